"""Reads the inside of a function: registers, labels, source locations, instructions and their operands."""

from __future__ import annotations

import re

from emulator.text.constants import PRODUCT
from emulator.text.declarations import Declarations, Scope, register_type
from emulator.text.program import (
    SINK,
    SPACES,
    SPECIALS,
    Address,
    Group,
    Imm,
    Instruction,
    Label,
    Location,
    Negative,
    Not,
    Pair,
    Part,
    Reg,
    Special,
    Symbol,
    Variable,
    Vector,
)
from emulator.text.words import floating, integer, joined

_ELEMENTS = ("xyzw", "rgba")  # of a vector register: v.x or v.r is the first
_SELECTOR = re.compile(r"[bh]\d{1,4}")
_VIDEO = re.compile(r"v(add|sub|absdiff|avrg|min|max|shl|shr|mad|set)[24]?(\.|$)")
MOST_REGISTERS = 1 << 20  # of a function; ptxas takes no more than memory has room for


class Body:
    """The inside of one function's braces.

    registers: unique name -> type, which declarations add to. files: number -> name. count: how many
    instructions stand before this body.
    """

    def __init__(
        self,
        parser: Declarations,
        registers: dict[str, str],
        files: dict[int, str],
        count: int,
    ):
        self.parser, self.registers, self.files, self.count = parser, registers, files, count
        self.items: list[Label | Instruction] = []
        self.placed: set[str] = set()  # labels
        self.vectors: dict[str, int] = {}  # unique name of a vector register -> its elements
        self.variables: list[Variable] = []
        self.targets: dict[str, tuple[str, ...]] = {}
        self.is_call = False  # the instruction that is being read: parentheses hold its arguments
        self.location: Location | None = None
        self.sites: dict[tuple[int, int, int], Location] = {}
        self.known: dict[Location, Location] = {}

    def block(self, scope: Scope) -> None:
        p = self.parser
        opened = p.line()
        p.expect("{")
        self.find_labels(scope)
        while not p.accept("}"):
            kind, word, _ = p.tokens[p.at]
            if kind == "end":
                p.fail("this { is never closed", opened)
            if word == "{":
                self.block(Scope(scope))
            elif word == ";":
                p.next()
            elif word == ".reg":
                self.reg(scope)
            elif word == ".loc":
                self.loc()
            elif word == ".pragma":
                while p.next() != ";":
                    pass
            elif word in (".branchtargets", ".calltargets", ".callprototype"):
                self.label_list(scope)
            elif word == ".file" or word.startswith("@@"):
                p.skip_line()
            elif (word[1:] in SPACES and word[0] == ".") or word == ".extern":
                p.accept(".extern")
                self.variables.extend(p.variable_declaration(scope))
            elif kind == "word" and p.tokens[p.at + 1][1] == ":":
                p.at += 2
                self.label(scope, word)
            else:
                self.instruction(scope)

    def find_labels(self, scope: Scope) -> None:
        """Labels may be used before they are written: declare those of this scope first."""
        p = self.parser
        at, depth = p.at, 1
        while depth and at < len(p.tokens) - 1:
            kind, word, _ = p.tokens[at]
            if word == "{":
                depth += 1
            elif word == "}":
                depth -= 1
            elif (
                depth == 1
                and kind == "word"
                and p.tokens[at + 1][1] == ":"
                and p.tokens[at + 1][2] == p.tokens[at][2]
                and word not in scope.names
            ):
                p.declare(scope, word)
            at += 1

    def label(self, scope: Scope, word: str) -> None:
        p = self.parser
        name = scope.names[word]
        if p.peek() in (".branchtargets", ".calltargets"):
            p.next()
            found = []
            while not p.accept(";"):
                target = p.next()
                if target != ",":
                    found.append(scope.resolve(target))
            self.targets[name] = tuple(found)
        elif p.peek() == ".callprototype":
            self.targets[name] = ()  # whatever has its shape
            while p.next() != ";":
                pass
        else:
            if name in self.placed:
                p.fail(f"label {word} stands twice")
            self.placed.add(name)
            self.items.append(Label(name))

    def label_list(self, scope: Scope) -> None:
        while self.parser.next() != ";":
            pass

    def reg(self, scope: Scope) -> None:
        p = self.parser
        p.next()
        kind, lanes = register_type(p)
        while True:
            name = p.next()
            if p.accept("<"):
                count = p.number(f"how many registers {name} has")
                if len(self.registers) + count > MOST_REGISTERS:
                    p.fail(f"more than {MOST_REGISTERS} registers: {count} called {name}")
                p.expect(">")
                suffix = ""
                if scope.parent is not None:
                    p.scopes += 1
                    suffix = f"@{p.scopes}"
                scope.families[name] = (count, suffix)
                for number in range(count):
                    self.register(f"{name}{number}{suffix}", kind, lanes)
            else:
                if name in scope.names and self.known_register(scope.resolve(name)):
                    p.fail(f"{name} is declared twice")
                self.register(p.declare(scope, name), kind, lanes)
            if not p.accept(","):
                break
        p.expect(";")

    def register(self, unique: str, kind: str, lanes: int) -> None:
        """Notes a register; of a vector, its elements: `v.x`, `v.y`, ... One of 128 bits is a vector of two of 64."""
        if (kind, lanes) == ("b128", 1):
            kind, lanes = "b64", 2
        if lanes == 1:
            self.registers[unique] = kind
            return
        self.vectors[unique] = lanes
        for letter in _ELEMENTS[0][:lanes]:
            self.registers[f"{unique}.{letter}"] = kind

    def known_register(self, unique: str) -> bool:
        return unique in self.registers or unique in self.vectors

    def loc(self) -> None:
        """`.loc file line column[, function_name label[+n], inlined_at file line column]`"""
        p = self.parser
        line = p.line()
        p.next()
        numbers, site, inlined = [], [], False
        while p.line() == line and p.tokens[p.at][0] != "end":
            kind, word, _ = p.tokens[p.at]
            p.next()
            if word == "function_name":
                p.next()
                if p.accept("+"):
                    p.next()
            elif word == "inlined_at":
                inlined = True
            elif kind == "int":
                (site if inlined else numbers).append(int(word))
        if len(numbers) < 2:
            p.fail("a .loc needs a file and a line", line)
        file, row = self.files.get(numbers[0], f"file {numbers[0]}"), numbers[1]
        caller = None
        if len(site) == 3:
            caller = self.sites.get(tuple(site))
            if caller is None:
                caller = Location(self.files.get(site[0], f"file {site[0]}"), site[1])
        here = Location(file, row, caller)
        here = self.known.setdefault(here, here)
        if len(numbers) > 2:
            self.sites[tuple(numbers[:3])] = here
        self.location = here if row else self.location

    def instruction(self, scope: Scope) -> None:
        p = self.parser
        start, line, guard = p.at, p.line(), None
        if p.accept("@"):
            negated = bool(p.accept("!"))
            guard = (self.predicate(scope), negated)
        if p.tokens[p.at][0] != "word":
            p.fail(f"expected an instruction, found {p.peek()!r}")
        opcode = p.next()
        self.is_call = opcode.startswith("call")
        operands = []
        while not p.accept(";"):
            operands.append(self.operand(scope))
            if type(operands[-1]) in (Part, Negative) and not _VIDEO.match(opcode):
                p.fail(f"{opcode} takes whole registers, with no sign and no selector")
            if not p.accept(",") and p.peek() != ";":
                p.fail(f"expected ',' or ';', found {p.peek()!r}")
        text = joined(p.tokens[start : p.at])
        parts = tuple(opcode.split("."))
        if parts[-1] == "b128" and parts[0] in ("mov", "ld", "st"):
            parts = (*parts[:-1], "v2", "b64")
        item = Instruction(self.count, line, parts, tuple(operands), guard, self.location, text)
        self.count += 1
        self.items.append(item)

    def predicate(self, scope: Scope) -> Reg:
        """The register that guards an instruction."""
        p = self.parser
        word = p.peek()
        unique = scope.resolve(word)
        kind = self.registers.get(unique)
        if kind is None:
            meant = scope.resolve(f"%{word}") in self.registers
            p.fail(f"undeclared predicate {word}" + (f"; did you mean %{word}?" if meant else ""))
        if kind != "pred":
            p.fail(f"{word} guards an instruction, and is no predicate but .{kind}")
        p.next()
        return Reg(unique)

    def operand(self, scope: Scope):
        first = self.simple_operand(scope)
        if self.parser.accept("|"):
            return Pair(first, self.simple_operand(scope))
        return first

    def simple_operand(self, scope: Scope):
        p = self.parser
        kind, word, _ = p.tokens[p.at]
        p.next()
        if word == "[":
            base, offset = None, 0
            parts, further = [], []
            while not p.accept("]"):
                if p.accept("+"):
                    continue
                if p.accept("-"):
                    offset -= p.whole(PRODUCT)
                elif p.tokens[p.at][0] == "int" or p.peek() == "(":
                    offset += p.whole(PRODUCT)
                elif p.accept(","):  # a sampler, coordinates of a texture, surface or tensor
                    further.append(self.operand(scope))
                else:
                    parts.append(self.name_operand(scope, p.next()))
            if len(parts) > 1:
                p.fail("an address has one base")
            if parts:
                base = parts[0]
                if isinstance(base, Symbol):
                    base, offset = Symbol(base.name), offset + base.offset
            return Address(base, offset, tuple(further))
        if word == "~" or (word == "(" and not self.is_call):
            return self.constant_operand()
        number = kind in ("int", "float")
        if number and p.operator() and p.tokens[p.at + 1][0] != "word":  # `1|%p` is a pair
            return self.constant_operand()
        if word in ("{", "("):
            close = "}" if word == "{" else ")"
            items = []
            while not p.accept(close):
                items.append(self.operand(scope))
                p.accept(",")
            return Vector(tuple(items)) if word == "{" else Group(tuple(items))
        if word == "!" and p.tokens[p.at][0] == "int":
            return self.constant_operand()
        if word == "!":
            return Not(self.name_operand(scope, p.next()))
        if word in ("-", "+"):
            if p.tokens[p.at][0] in ("int", "float") or p.peek() in "(-+~!":
                return self.constant_operand()
            literal = self.simple_operand(scope)
            if isinstance(literal, Reg | Part) and word == "-":
                return Negative(literal)
            if not isinstance(literal, Imm):
                p.fail("a sign before something that is not a number")
            return Imm(-literal.value) if word == "-" else literal
        if kind == "int":
            return Imm(integer(word))
        if kind == "float":
            return floating(word)
        if kind == "word":
            return self.name_operand(scope, word)
        p.fail(f"unexpected {word!r}")

    def constant_operand(self) -> Imm:
        """The constant expression whose first word has just been read."""
        self.parser.at -= 1
        value = self.parser.constant()
        return Imm(value if isinstance(value, float) else int(value))

    def elements(self, unique: str) -> tuple[Reg, ...]:
        """The elements of a vector register."""
        return tuple(Reg(f"{unique}.{letter}") for letter in _ELEMENTS[0][: self.vectors[unique]])

    def name_operand(self, scope: Scope, word: str):
        p = self.parser
        if word == "_":
            return SINK
        if word in ("%p_true", "true"):
            return Imm(1)
        unique = scope.resolve(word)
        if unique in self.registers:
            return Reg(unique)
        if unique in self.vectors:
            return Vector(self.elements(unique))
        stem, _, last = word.rpartition(".")
        if stem and scope.resolve(stem) in self.vectors:
            found = self.elements(scope.resolve(stem))
            at = next((letters.find(last) for letters in _ELEMENTS if last in letters), -1)
            if len(last) != 1 or not 0 <= at < len(found):
                p.fail(f"{stem} has {len(found)} elements, and no .{last}")
            return found[at]
        if stem and _SELECTOR.fullmatch(last) and scope.resolve(stem) in self.registers:
            return Part(Reg(scope.resolve(stem)), last)
        if word[0] == "%":
            root = word[1:].split(".")[0]
            if root in SPECIALS or re.fullmatch(r"(envreg|pm|reserved_smem_offset_)\w*", root):
                return Special(word[1:])
            if stem and scope.resolve(stem) in self.registers:
                p.fail(f"{stem} is one register, and no vector")
            p.fail(f"undeclared register {word}")
        offset = 0
        while p.peek() == "+" and (p.tokens[p.at + 1][0] == "int" or p.tokens[p.at + 1][1] == "("):
            offset += p.signed_sum()
        return Symbol(unique, offset)
