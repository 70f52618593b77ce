"""Names and what is declared by them: scopes, variables and their initial bytes."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

from emulator.text.constants import Value
from emulator.text.program import WIDTHS, Imm, Symbol, Variable
from emulator.text.reader import Reader
from emulator.text.words import floating, integer

_FAMILY = re.compile(r"(.*?)(\d+)$")


@dataclass
class Scope:
    """Names declared inside one pair of braces, each with its unique name."""

    parent: Scope | None
    names: dict[str, str] = field(default_factory=dict)
    families: dict[str, tuple[int, str]] = field(default_factory=dict)  # "%r" -> (count, suffix)

    def resolve(self, name: str) -> str:
        """A name as written, to the unique name that this scope, or one around it, gave it."""
        scope = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            if scope.families:
                match = _FAMILY.match(name)
                while match:
                    family = scope.families.get(match.group(1))
                    if family and int(match.group(2)) < family[0]:
                        return name + family[1]
                    # `%r1` may be family `%r` or, rarely, `%r1` with no digits left: try longer prefixes
                    stem, digits = match.group(1), match.group(2)
                    if len(digits) == 1:
                        break
                    match = re.match(rf"({re.escape(stem + digits[0])})(\d+)$", name)
            scope = scope.parent
        return name


class Declarations(Reader):
    """Reads variable declarations, and makes names unique where inner scopes use them again."""

    def __init__(self, text: str):
        super().__init__(text)
        self.scopes = 0  # inner declarations so far

    def declare(self, scope: Scope, name: str) -> str:
        """The unique name of `name` in this scope: its own, or marked when an outer scope has it too."""
        outer, clash = scope.parent, False
        while outer is not None:
            clash = True
            outer = outer.parent
        if clash:
            self.scopes += 1
            scope.names[name] = f"{name}@{self.scopes}"
        else:
            scope.names[name] = name
        return scope.names[name]

    def variable_declaration(self, scope: Scope | None, single: bool = False) -> list[Variable]:
        """`.space [.align n] [.v4] .type name[dims] [= initialiser] {, name ...};` or one parameter."""
        space, align, lanes, line = self.next()[1:], 0, 1, self.line()
        kind = None
        while self.peek().startswith("."):
            word = self.next()[1:]
            if word == "align":
                align = self.number("an alignment")
                if align < 1 or align & (align - 1):
                    self.fail(f"an alignment is a power of two, not {align}")
            elif word in ("v2", "v4"):
                lanes = int(word[1])
            elif word in ("ptr", "global", "shared", "const", "local"):
                pass  # pointer attributes of a parameter
            elif word == "attribute":
                self.expect("(")
                while self.next() != ")":
                    pass
            elif word in WIDTHS:
                kind = word
            else:
                self.fail(f"unknown type .{word}")
        if kind is None:
            self.fail("a declaration without a type")
        found = []
        while True:
            name, width = self.next(), WIDTHS[kind] * lanes
            count, open_size = 1, False
            while self.accept("["):
                if self.accept("]"):
                    open_size = True
                else:
                    extent = self.whole()
                    if extent < 0:
                        self.fail(f"{name} cannot have {extent} elements")
                    count *= extent
                    self.expect("]")
            initial, pointers = b"", ()
            if self.accept("="):
                initial, pointers = self.initialiser(kind)
                if open_size:
                    count, open_size = len(initial) // width, False
            size = 0 if open_size else width * count
            if initial and size > len(initial):
                initial = initial + bytes(size - len(initial))
            unique = name
            if scope is not None:
                unique = self.declare(scope, name)
            found.append(
                Variable(unique, space, kind, align or width, size, initial, pointers, line)
            )
            if single or not self.accept(","):
                break
        if not single:
            self.expect(";")
        return found

    def initialiser(self, kind: str) -> tuple[bytes, tuple]:
        data, pointers, width = bytearray(), [], WIDTHS[kind]

        def one() -> None:
            if self.accept("{"):
                while not self.accept("}"):
                    one()
                    self.accept(",")
                return
            (kind_of, word, _), after = self.tokens[self.at], self.tokens[self.at + 1]
            if kind_of == "word":
                self.next()
                place(word, 0)
            elif kind_of == "int" and after[1] == "(":  # some bits of an address
                mask = integer(self.next())
                self.expect("(")
                shift = (mask & -mask).bit_length() - 1
                if mask != (1 << 8 * width) - 1 << shift:
                    self.fail(f"a mask of {8 * width} bits that stand together, not {mask:#x}")
                place(self.next(), shift)
                self.expect(")")
            else:
                lone = kind_of == "float" and after[1] in (",", "}", ";")
                value = floating(self.next()) if lone else self.constant()
                try:
                    data.extend(_bytes_of(value, kind))
                except (ValueError, OverflowError) as problem:
                    self.fail(str(problem))

        def place(name: str, shift: int) -> None:
            """symbol, or generic(symbol), with an offset here or there."""
            offset = 0
            if name == "generic":
                self.expect("(")
                name = self.next()
                offset = self.signed_sum() if self.peek() in ("+", "-") else 0
                self.expect(")")
            if self.peek() in ("+", "-"):
                offset += self.signed_sum()
            pointers.append((len(data), width, Symbol(name, offset), shift))
            data.extend(bytes(width))

        one()
        return bytes(data), tuple(pointers)


_FLOATS = {"f64": "<d", "f32": "<f", "f16": "<e"}


def _bytes_of(value: Value | Imm, kind: str) -> bytes:
    """A variable's initial value. ValueError, in words, for one of another sort than its type."""
    width = WIDTHS[kind]
    if isinstance(value, Imm):  # one literal, whose bits are kept
        if value.bits is not None and not (kind == "f64" and value.bits < 1 << 32):
            return value.bits.to_bytes(width, "little")
        value = value.value
    if isinstance(value, float):
        if kind not in _FLOATS:
            raise ValueError(f"a .{kind} cannot begin as {value}")
        return struct.pack(_FLOATS[kind], value)
    return (int(value) % (1 << 8 * width)).to_bytes(width, "little")


def register_type(reader: Reader) -> tuple[str, int]:
    """(type, 2 or 4 for a vector, else 1) of a `.reg` declaration, which stands next. PtxError for unknown ones."""
    lanes = int((reader.accept(".v2", ".v4") or "..1")[2])
    word = reader.peek()
    kind = word[1:] if word[:1] == "." else ""
    if kind not in WIDTHS:
        reader.fail(f"{word} is no type of a register")
    if lanes > 1 and (kind == "pred" or lanes * WIDTHS[kind] > 16):
        reader.fail(
            f"a vector of registers has 128 bits at most, and no predicates: .v{lanes} .{kind}"
        )
    reader.next()
    return kind, lanes
