"""A cursor on the words of PTX text, and the errors that name a line of it."""

from __future__ import annotations

from emulator.errors import PtxError
from emulator.text.words import integer, tokens_of


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

    # constant expressions

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
        return integer(self.next())

    def signed_sum(self) -> int:
        return self.constant_term() if self.next() == "+" else -self.constant_term()
