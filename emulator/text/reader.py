"""A cursor on the words of PTX text, and the errors that name a line of it."""

from __future__ import annotations

from emulator.errors import PtxError
from emulator.text import constants
from emulator.text.constants import BINARY, BINDS, Value
from emulator.text.words import floating, integer, tokens_of


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

    # constant expressions: see `constants`

    def constant(self, least: int = 0) -> Value:
        """A constant expression, as C has it, of operators that bind as tightly as `least` at least."""
        at = self.line()
        try:
            return self._expression(least)
        except (TypeError, ZeroDivisionError) as problem:
            self.fail(str(problem), at)

    def whole(self, least: int = 0) -> int:
        """The same of integers."""
        value = self.constant(least)
        if isinstance(value, float):
            self.fail("an integer constant is expected here")
        return int(value)

    def _expression(self, least: int) -> Value:
        value = self._term()
        while True:
            operator = self.operator()
            binds = BINDS.get(operator, -1)
            if binds < least:
                return value
            for mark in operator:
                self.expect(mark)
            if operator == "?":
                first = self._expression(0)
                self.expect(":")
                value = constants.chosen(value, first, self._expression(0))
            else:
                value = BINARY[operator](value, self._expression(binds + 1))

    def operator(self) -> str:
        """The operator that stands next, of one mark or two; "" where there is none."""
        pair = self.tokens[self.at][1] + self.tokens[min(self.at + 1, len(self.tokens) - 1)][1]
        return pair if pair in BINDS else pair[:1] if self.peek() in BINDS else ""

    def _term(self) -> Value:
        if self.accept("-"):
            return constants.negative(self._term())
        if self.accept("+"):
            return self._term()
        if self.accept("~"):
            return constants.inverted(self._term())
        if self.accept("!"):
            return constants.denied(self._term())
        if self.accept("("):
            kind = self.accept(".s64", ".u64")
            value = None if kind else self._expression(0)
            self.expect(")")
            return constants.cast(self._term(), kind) if kind else value
        kind, word, _ = self.tokens[self.at]
        if kind not in ("int", "float"):
            self.fail(f"expected a number, found {word!r}")
        self.next()
        if kind == "float":
            return float(floating(word).value)
        return constants.literal(integer(word), word[-1] == "U")

    def signed_sum(self) -> int:
        return (1 if self.next() == "+" else -1) * self.whole(constants.PRODUCT)
