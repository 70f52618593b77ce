"""Reads PTX text, as `nvcc` or NVRTC emit it, into a `program.Program`.

The grammar is the PTX ISA's (9.0); what the instructions mean is no concern of this module. Names are
made unique here (`{ }` scopes may declare a register, label or parameter again), and `.loc` lines
become each instruction's source location, with the chain of call sites that inlining left behind.
"""

from __future__ import annotations

import re

from emulator.errors import PtxError, Unsupported
from emulator.text.body import Body
from emulator.text.declarations import Declarations, Scope, register_type
from emulator.text.program import SPACES, WIDTHS, Function, Program, Variable
from emulator.text.words import integer


class _Parser(Declarations):
    """Reads a module: its directives, variables and functions."""

    def __init__(self, text: str):
        super().__init__(text)
        self.files = {
            int(number): name
            for number, name in re.findall(r'^\s*\.file\s+(\d+)\s+"((?:[^"\\]|\\.)*)"', text, re.M)
        }
        self.version = self.target = ""
        self.functions: dict[str, Function] = {}
        self.variables: dict[str, Variable] = {}
        self.declared: set[str] = set()
        self.count = 0  # instructions so far

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
            frozenset(self.declared),
        )

    def parameters(self, scope: Scope, registers: dict[str, str]) -> tuple[Variable, ...]:
        found: list[Variable] = []
        if not self.accept("("):
            return ()
        while not self.accept(")"):
            if self.peek() == ".reg":
                line = self.line()
                self.next()
                (kind, lanes), name = register_type(self), self.next()
                if lanes > 1:
                    what = f"vector registers as parameters are not supported (.reg .v{lanes} .{kind} {name})"
                    raise Unsupported(what, line, self.line_text(line))
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
        scope, registers = Scope(None), {}
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
                    numbers.append(integer(token))
            if word in (
                "maxntid",
                "reqntid",
                "reqnctapercluster",
                "maxclusterrank",
                "minnctapersm",
                "maxnreg",
            ):
                limits[word] = tuple([*numbers, 1, 1, 1][:3])
            elif word == "explicitcluster":
                limits[word] = (1, 1, 1)
            elif word == "pragma":
                self.accept(";")
        if self.accept(";"):
            self.declared.add(name)
            return
        body = Body(self, registers, self.files, self.count)
        body.block(scope)
        self.count = body.count
        self.functions[name] = Function(
            name, is_entry, params, results, tuple(body.items), registers, tuple(body.variables),
            body.targets, limits.get("reqntid"), limits.get("maxntid"),
            limits.get("reqnctapercluster"), "explicitcluster" in limits,
            limits.get("maxclusterrank", (None,))[0], line, limits.get("minnctapersm", (None,))[0],
            limits.get("maxnreg", (None,))[0],
        )  # fmt: skip


def parse(text: str) -> Program:
    """A whole PTX module. Raises PtxError, which names the PTX line."""
    parser = _Parser(text)
    try:
        return parser.program()
    except IndexError:  # it read past the last word
        parser.at = len(parser.tokens) - 1
        parser.fail("the module ends in the middle of something")
