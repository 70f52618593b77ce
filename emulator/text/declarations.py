"""Names and what is declared by them: scopes, variables and their initial bytes."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

from emulator.text.program import WIDTHS, Symbol, Variable
from emulator.text.reader import Reader
from emulator.text.words import floating

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
                    extent = self.constant()
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
            token = self.tokens[self.at]
            if token[0] == "float" or (token[1] == "-" and self.tokens[self.at + 1][0] == "float"):
                negative = self.accept("-")
                literal = floating(self.next())
                if literal.bits is None or (kind == "f64" and literal.bits < 1 << 32):
                    value = -literal.value if negative else literal.value
                    data.extend(struct.pack("<d" if kind == "f64" else "<f", value))
                else:
                    data.extend(literal.bits.to_bytes(width, "little"))
            elif token[0] == "word":
                self.next()
                name, offset = token[1], 0
                if self.accept(
                    "("
                ):  # generic(symbol) or generic(symbol + offset); mask(symbol) is refused
                    if name != "generic":
                        self.fail(f"initialiser {name}() is not supported")
                    name = self.next()
                    if self.peek() in ("+", "-"):
                        offset += self.signed_sum()
                    self.expect(")")
                if self.peek() in ("+", "-"):
                    offset += self.signed_sum()
                pointers.append((len(data), width, Symbol(name, offset)))
                data.extend(bytes(width))
            else:
                data.extend((self.constant() % (1 << 8 * width)).to_bytes(width, "little"))

        one()
        return bytes(data), tuple(pointers)


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
