"""Reads PTX text, as `nvcc` or NVRTC emit it, into a `program.Program`.

The grammar is the PTX ISA's (9.0); what the instructions mean is no concern of this module. Names are
made unique here (`{ }` scopes may declare a register, label or parameter again), and `.loc` lines
become each instruction's source location, with the chain of call sites that inlining left behind.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

from emulator.errors import PtxError
from emulator.text.program import (
    SINK,
    SPACES,
    SPECIALS,
    WIDTHS,
    Address,
    Function,
    Group,
    Imm,
    Instruction,
    Label,
    Location,
    Not,
    Pair,
    Program,
    Reg,
    Special,
    Symbol,
    Variable,
    Vector,
)

# --- Words ------------------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"""(?P<newline>\n)
      | (?P<space>[ \t\r\f]+|//[^\n]*)
      | (?P<comment>/\*.*?\*/)
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<float>0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)
      | (?P<int>0[xX][0-9a-fA-F]+U?|0[bB][01]+U?|\d+U?)
      | (?P<word>\.[\w$]+|[%$_a-zA-Z][\w$]*(?:(?:\.|::)[\w$]+)*)
      | (?P<mark>.)""",
    re.X | re.S,
)


def _tokens(text: str) -> list[tuple[str, str, int]]:
    """(kind, text, line) of every token, comments left out, and an "end" token."""
    found, line = [], 1
    for match in _TOKEN.finditer(text):
        kind, value = match.lastgroup, match.group()
        if kind == "newline":
            line += 1
        elif kind == "comment":
            line += value.count("\n")
        elif kind != "space":
            found.append((kind, value, line))
    found.append(("end", "", line))
    return found


def _integer(text: str) -> int:
    text = text.rstrip("U")
    if text[:2] in ("0x", "0X", "0b", "0B"):
        return int(text, 0)
    return int(text, 8) if len(text) > 1 and text[0] == "0" else int(text)


def _float(text: str) -> Imm:
    if text[:2] in ("0f", "0F"):
        bits = int(text[2:], 16)
        return Imm(struct.unpack("<f", struct.pack("<I", bits))[0], bits)
    if text[:2] in ("0d", "0D"):
        bits = int(text[2:], 16)
        return Imm(struct.unpack("<d", struct.pack("<Q", bits))[0], bits)
    return Imm(float(text))


# --- The parser -------------------------------------------------------------------------------------


@dataclass
class _Scope:
    """Names declared inside one pair of braces, each with its unique name."""

    parent: _Scope | None
    names: dict[str, str] = field(default_factory=dict)
    families: dict[str, tuple[int, str]] = field(default_factory=dict)  # "%r" -> (count, suffix)


_FAMILY = re.compile(r"(.*?)(\d+)$")


class _Parser:
    def __init__(self, text: str):
        self.tokens, self.at = _tokens(text), 0
        self.lines = text.splitlines()
        self.files = {
            int(number): name
            for number, name in re.findall(r'^\s*\.file\s+(\d+)\s+"((?:[^"\\]|\\.)*)"', text, re.M)
        }
        self.version = self.target = ""
        self.functions: dict[str, Function] = {}
        self.variables: dict[str, Variable] = {}
        self.declared: set[str] = set()
        self.count = self.scopes = 0

    # tokens

    def peek(self) -> str:
        return self.tokens[self.at][1]

    def line(self) -> int:
        return self.tokens[self.at][2]

    def next(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1][1]

    def accept(self, *texts: str) -> str | None:
        if self.peek() in texts and self.tokens[self.at][0] != "end":
            return self.next()
        return None

    def expect(self, text: str) -> None:
        if self.peek() != text:
            self.fail(f"expected {text!r}, found {self.peek()!r}")
        self.at += 1

    def fail(self, message: str, line: int | None = None) -> None:
        line = line or self.line()
        text = self.lines[line - 1].strip() if line <= len(self.lines) else ""
        raise PtxError(message, line, text)

    def skip_line(self) -> None:
        line = self.line()
        while self.line() == line and self.tokens[self.at][0] != "end":
            self.at += 1

    def skip_braces(self) -> None:
        self.expect("{")
        depth = 1
        while depth:
            token = self.next()
            depth += (token == "{") - (token == "}")
            if self.tokens[self.at - 1][0] == "end":
                self.fail("a { is never closed")

    # module level

    def program(self) -> Program:
        linkage = {".visible", ".extern", ".weak", ".common"}
        while self.tokens[self.at][0] != "end":
            word = self.peek()
            if word in linkage or word == ";":
                self.next()
            elif word == ".version":
                self.next()
                self.version = self.next()
            elif word == ".target":
                self.next()
                self.target = self.next()
                while self.accept(","):
                    self.next()
            elif word in (".address_size", ".file", ".loc"):
                if word == ".address_size" and self.tokens[self.at + 1][1] != "64":
                    self.fail("only .address_size 64 is supported")
                self.skip_line()
            elif word == ".section":
                while self.peek() != "{":
                    self.next()
                self.skip_braces()
            elif word in (".pragma", ".alias", ".noreturn"):
                while self.next() != ";":
                    pass
            elif word in (".entry", ".func"):
                self.function(word == ".entry")
            elif word[1:] in SPACES or word == ".tex":
                for variable in self.variable_declaration(None):
                    known = self.variables.get(variable.name)
                    if known is None or not (known.initial or known.size):
                        self.variables[variable.name] = variable
            elif word.startswith("@@"):
                self.skip_line()
            else:
                self.fail(f"unexpected {word!r}")
        if not self.version:
            raise PtxError(
                "this is not PTX: it has no .version", 1, self.lines[0] if self.lines else ""
            )
        return Program(
            self.version,
            self.target,
            self.functions,
            self.variables,
            self.count,
            frozenset(self.declared),
        )

    def variable_declaration(self, scope: _Scope | None, single: bool = False) -> list[Variable]:
        """`.space [.align n] [.v4] .type name[dims] [= initialiser] {, name ...};` or one parameter."""
        space, align, lanes, line = self.next()[1:], 0, 1, self.line()
        kind = None
        while self.peek().startswith("."):
            word = self.next()[1:]
            if word == "align":
                align = _integer(self.next())
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
                    count *= self.constant()
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

    def constant(self) -> int:
        """A constant expression: integers with + - * /, parentheses, left to right."""
        value = self.constant_term()
        while self.peek() in "+-*/" and self.peek():
            sign = self.next()
            term = self.constant_term()
            value = {
                "+": value + term,
                "-": value - term,
                "*": value * term,
                "/": value // (term or 1),
            }[sign]
        return value

    def constant_term(self) -> int:
        if self.accept("-"):
            return -self.constant_term()
        if self.accept("("):
            value = self.constant()
            self.expect(")")
            return value
        if self.tokens[self.at][0] != "int":
            self.fail(f"expected a number, found {self.peek()!r}")
        return _integer(self.next())

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
                literal = _float(self.next())
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

    def signed_sum(self) -> int:
        return self.constant_term() if self.next() == "+" else -self.constant_term()

    # functions

    def parameters(self, scope: _Scope, registers: dict[str, str]) -> tuple[Variable, ...]:
        found: list[Variable] = []
        if not self.accept("("):
            return ()
        while not self.accept(")"):
            if self.peek() == ".reg":
                line = self.line()
                self.next()
                kind, name = self.next()[1:], self.next()
                unique = self.declare(scope, name)
                registers[unique] = kind
                found.append(Variable(unique, "reg", kind, WIDTHS[kind], WIDTHS[kind], line=line))
            else:
                while self.peek() == ".noalias":
                    self.next()
                found.extend(self.variable_declaration(scope, single=True))
            self.accept(",")
        return tuple(found)

    def function(self, is_entry: bool) -> None:
        line = self.line()
        self.next()
        scope, registers = _Scope(None), {}
        results = () if is_entry else self.parameters(scope, registers)
        name = self.next()
        scope.names.clear()
        results = tuple(results)
        for variable in results:
            scope.names[variable.name] = variable.name
        params = self.parameters(scope, registers)
        limits: dict[str, tuple[int, int, int]] = {}
        while self.peek().startswith("."):
            word = self.next()[1:]
            numbers = []
            while self.tokens[self.at][0] in ("int", "string") or self.peek() == ",":
                token = self.next()
                if token[0].isdigit():
                    numbers.append(_integer(token))
            if word in ("maxntid", "reqntid", "reqnctapercluster"):
                limits[word] = tuple([*numbers, 1, 1, 1][:3])
            elif word == "pragma":
                self.accept(";")
        if self.accept(";"):
            self.declared.add(name)
            return
        body = _Body(self, scope, registers)
        body.block(scope)
        self.functions[name] = Function(
            name, is_entry, params, results, tuple(body.items), registers, tuple(body.variables),
            body.targets, limits.get("reqntid"), limits.get("maxntid"),
            limits.get("reqnctapercluster", (1, 1, 1)), line,
        )  # fmt: skip

    def declare(self, scope: _Scope, name: str) -> str:
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


class _Body:
    """The inside of one function's braces."""

    def __init__(self, parser: _Parser, scope: _Scope, registers: dict[str, str]):
        self.parser, self.registers = parser, registers
        self.items: list[Label | Instruction] = []
        self.variables: list[Variable] = []
        self.targets: dict[str, tuple[str, ...]] = {}
        self.location: Location | None = None
        self.sites: dict[tuple[int, int, int], Location] = {}
        self.known: dict[Location, Location] = {}

    def block(self, scope: _Scope) -> None:
        p = self.parser
        opened = p.line()
        p.expect("{")
        self.find_labels(scope)
        while not p.accept("}"):
            kind, word, _ = p.tokens[p.at]
            if kind == "end":
                p.fail("this { is never closed", opened)
            if word == "{":
                self.block(_Scope(scope))
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

    def find_labels(self, scope: _Scope) -> None:
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

    def label(self, scope: _Scope, word: str) -> None:
        p = self.parser
        name = scope.names[word]
        if p.peek() in (".branchtargets", ".calltargets"):
            p.next()
            found = []
            while not p.accept(";"):
                target = p.next()
                if target != ",":
                    found.append(self.resolve(scope, target))
            self.targets[name] = tuple(found)
        elif p.peek() == ".callprototype":
            while p.next() != ";":
                pass
        else:
            self.items.append(Label(name))

    def label_list(self, scope: _Scope) -> None:
        while self.parser.next() != ";":
            pass

    def reg(self, scope: _Scope) -> None:
        p = self.parser
        p.next()
        kind = p.next()[1:]
        if kind not in WIDTHS:
            p.fail(f"registers of type .{kind} are not supported")
        while True:
            name = p.next()
            if p.accept("<"):
                count = _integer(p.next())
                p.expect(">")
                suffix = ""
                if scope.parent is not None:
                    p.scopes += 1
                    suffix = f"@{p.scopes}"
                scope.families[name] = (count, suffix)
                for number in range(count):
                    self.registers[f"{name}{number}{suffix}"] = kind
            else:
                self.registers[p.declare(scope, name)] = kind
            if not p.accept(","):
                break
        p.expect(";")

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
        file, row = p.files.get(numbers[0], f"file {numbers[0]}"), numbers[1]
        caller = None
        if len(site) == 3:
            caller = self.sites.get(tuple(site))
            if caller is None:
                caller = Location(p.files.get(site[0], f"file {site[0]}"), site[1])
        here = Location(file, row, caller)
        here = self.known.setdefault(here, here)
        if len(numbers) > 2:
            self.sites[tuple(numbers[:3])] = here
        self.location = here if row else self.location

    def resolve(self, scope: _Scope | None, name: str) -> str:
        """A name as written, to the unique name that its scope gave it."""
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

    def instruction(self, scope: _Scope) -> None:
        p = self.parser
        start, line, guard = p.at, p.line(), None
        if p.accept("@"):
            negated = bool(p.accept("!"))
            guard = (Reg(self.resolve(scope, p.next())), negated)
        if p.tokens[p.at][0] != "word":
            p.fail(f"expected an instruction, found {p.peek()!r}")
        opcode = p.next()
        operands = []
        while not p.accept(";"):
            operands.append(self.operand(scope))
            if not p.accept(",") and p.peek() != ";":
                p.fail(f"expected ',' or ';', found {p.peek()!r}")
        text = _join(p.tokens[start : p.at])
        parts = tuple(opcode.split("."))
        item = Instruction(p.count, line, parts, tuple(operands), guard, self.location, text)
        p.count += 1
        self.items.append(item)

    def operand(self, scope: _Scope):
        first = self.simple_operand(scope)
        if self.parser.accept("|"):
            return Pair(first, self.simple_operand(scope))
        return first

    def simple_operand(self, scope: _Scope):
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
                    offset -= _integer(p.next())
                elif p.tokens[p.at][0] == "int":
                    offset += _integer(p.next())
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
        if word in ("{", "("):
            close = "}" if word == "{" else ")"
            items = []
            while not p.accept(close):
                items.append(self.operand(scope))
                p.accept(",")
            return Vector(tuple(items)) if word == "{" else Group(tuple(items))
        if word == "!":
            return Not(self.name_operand(scope, p.next()))
        if word in ("-", "+"):
            literal = self.simple_operand(scope)
            if not isinstance(literal, Imm):
                p.fail("a sign before something that is not a number")
            return Imm(-literal.value) if word == "-" else literal
        if kind == "int":
            return Imm(_integer(word))
        if kind == "float":
            return _float(word)
        if kind == "word":
            return self.name_operand(scope, word)
        p.fail(f"unexpected {word!r}")

    def name_operand(self, scope: _Scope, word: str):
        p = self.parser
        if word == "_":
            return SINK
        if word == "WARP_SZ":
            return Imm(32)
        if word in ("%p_true", "true"):
            return Imm(1)
        unique = self.resolve(scope, word)
        if unique in self.registers:
            return Reg(unique)
        stem, _, _ = word.rpartition(".")
        if word[0] == "%":
            root = word[1:].split(".")[0]
            if root in SPECIALS or re.fullmatch(r"(envreg|pm|reserved_smem_offset_)\w*", root):
                return Special(word[1:])
            if stem and self.resolve(scope, stem) in self.registers:
                p.fail("vector registers are not supported")
            p.fail(f"undeclared register {word}")
        offset = 0
        while p.peek() == "+" and p.tokens[p.at + 1][0] == "int":
            p.next()
            offset += _integer(p.next())
        return Symbol(unique, offset)


def _join(tokens: list[tuple[str, str, int]]) -> str:
    """An instruction's text, evenly spaced."""
    text = ""
    for _, word, _ in tokens:
        if text and (word in ",;])}|+" or text[-1] in "[({@!|+-"):
            text += word
        else:
            text += (" " if text else "") + word
    return text


def parse(text: str) -> Program:
    """A whole PTX module. Raises PtxError, which names the PTX line."""
    parser = _Parser(text)
    try:
        return parser.program()
    except IndexError:  # it read past the last word
        parser.at = len(parser.tokens) - 1
        parser.fail("the module ends in the middle of something")
