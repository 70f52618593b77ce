"""A cursor on the words of PTX text, and the errors that name a line of it."""

from __future__ import annotations

import operator

from emulator.errors import PtxError
from emulator.text.words import integer, tokens_of


def _quotient(a: int, b: int) -> int:
    return 0 if not b else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_OPERATIONS = {
    "*": operator.mul, "/": _quotient, "%": lambda a, b: a - b * _quotient(a, b),
    "+": operator.add, "-": operator.sub,
    "<<": lambda a, b: a << (b & 63), ">>": lambda a, b: a >> (b & 63),
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne, "&": operator.and_, "^": operator.xor, "|": operator.or_,
    "&&": lambda a, b: bool(a and b), "||": lambda a, b: bool(a or b),
}  # fmt: skip
_TIGHTER = (
    "*/%",
    "+-",
    ("<<", ">>"),
    ("<", "<=", ">", ">="),
    ("==", "!="),
    "&",
    "^",
    "|",
    ("&&",),
    ("||",),
    "?",
)
_BINDS = {name: 10 - level for level, names in enumerate(_TIGHTER) for name in names}


class Reader:
    """text: a whole module. Every complaint is a PtxError with the line where the cursor stands."""

    def __init__(self, text: str):
        self.tokens, self.at = tokens_of(text), 0
        self.lines = text.splitlines()

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
        raise PtxError(message, line, self.line_text(line))

    def line_text(self, line: int | None = None) -> str:
        """The text of a line, of the one where the cursor stands by default."""
        line = line or self.line()
        return self.lines[line - 1].strip() if line <= len(self.lines) else ""

    def number(self, what: str) -> int:
        """The integer that stands here; a complaint that names `what` it was to be, where none does."""
        if self.tokens[self.at][0] != "int":
            self.fail(f"{what} is a number, not {self.peek()!r}")
        return integer(self.next())

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

    # constant expressions (PTX ISA 4.5.5)

    def constant(self, least: int = 0) -> int:
        """A constant expression of integers, as C has it, of operators that bind as tightly as `least` at least."""
        value = self.constant_term()
        while True:
            operator = self.operator()
            binds = _BINDS.get(operator, -1)
            if binds < least:
                break
            for mark in operator:
                self.expect(mark)
            if operator == "?":
                first = self.constant()
                self.expect(":")
                second = self.constant()
                value = first if value else second
            else:
                value = _OPERATIONS[operator](value, self.constant(binds + 1))
        return value

    def operator(self) -> str:
        """The operator that stands next, of one mark or two; "" where there is none."""
        pair = self.tokens[self.at][1] + self.tokens[min(self.at + 1, len(self.tokens) - 1)][1]
        return pair if pair in _BINDS else pair[:1] if self.peek() in _BINDS else ""

    def constant_term(self) -> int:
        if self.accept("-"):
            return -self.constant_term()
        if self.accept("+"):
            return self.constant_term()
        if self.accept("~"):
            return ~self.constant_term()
        if self.accept("!"):
            return int(not self.constant_term())
        if self.accept("("):
            if self.accept(".s64", ".u64"):
                unsigned = self.tokens[self.at - 1][1] == ".u64"
                self.expect(")")
                value = self.constant_term()
                return value & (1 << 64) - 1 if unsigned else value
            value = self.constant()
            self.expect(")")
            return value
        if self.tokens[self.at][0] != "int":
            self.fail(f"expected a number, found {self.peek()!r}")
        return integer(self.next())

    def signed_sum(self) -> int:
        return self.constant_term() if self.next() == "+" else -self.constant_term()
