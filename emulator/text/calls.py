"""Who calls whom: what an indirect call may reach, and which functions call themselves."""

from __future__ import annotations

from emulator.errors import PtxError
from emulator.text.program import Address, Function, Group, Instruction, Program, Symbol, Vector


class CallGraph:
    """The calls of a module. A function is its name."""

    def __init__(self, program: Program):
        self.program = program
        self._taken: set[str] | None = None
        self._reached: dict[str, set[str]] = {}

    def callees(self, function: Function, item: Instruction) -> list[Function]:
        """The functions with a body that a call may go to, in the order of the module; of a direct call, one or none."""
        target, table = parts_of(item)[1], parts_of(item)[3]
        functions = self.program.functions
        if isinstance(target, Symbol):
            return [functions[target.name]] if target.name in functions else []
        if table is None:
            raise PtxError(
                "an indirect call names its targets or its prototype", item.line, item.text
            )
        listed = function.targets.get(table.name)
        if listed:
            names = set(listed)
        elif listed is None:
            variable = self.program.variables.get(table.name)
            if variable is None or not variable.pointers:
                text = f"no .calltargets, .callprototype or table of functions named {table.name}"
                raise PtxError(text, item.line, item.text)
            names = {symbol.name for _, _, symbol, _ in variable.pointers}
        else:
            names = {name for name in self.taken() if self._fits(function, functions[name], item)}
        return [f for name, f in functions.items() if name in names and not f.is_entry]

    def _fits(self, caller: Function, callee: Function, item: Instruction) -> bool:
        """Whether a function takes parameters of the sizes that a call through a prototype has."""
        results, _, arguments, _ = parts_of(item)
        sizes = {v.name: v.size for v in (*caller.variables, *caller.params, *caller.results)}
        for actual, formal in ((results, callee.results), (arguments, callee.params)):
            if len(actual) != len(formal):
                return False
            for given, wanted in zip(actual, formal, strict=True):
                if isinstance(given, Symbol) and sizes.get(given.name) != wanted.size:
                    return False
        return True

    def taken(self) -> set[str]:
        """Functions whose address something in the module takes."""
        if self._taken is None:
            functions = self.program.functions
            found = {s.name for v in self._variables() for _, _, s, _ in v.pointers}
            for function in functions.values():
                for item in function.body:
                    if isinstance(item, Instruction) and item.parts[0] != "call":
                        found.update(name for operand in item.operands for name in _names(operand))
            self._taken = {name for name in found if name in functions}
        return self._taken

    def _variables(self):
        yield from self.program.variables.values()
        for function in self.program.functions.values():
            yield from function.variables

    def reached(self, name: str) -> set[str]:
        """The functions that a function calls, directly or through others."""
        if name not in self._reached:
            found: set[str] = set()
            work = [name]
            while work:
                function = self.program.functions[work.pop()]
                for item in function.body:
                    if isinstance(item, Instruction) and item.parts[0] == "call":
                        new = {f.name for f in self.callees(function, item)} - found
                        found |= new
                        work.extend(new)
            self._reached[name] = found
        return self._reached[name]

    def is_recursive(self, name: str) -> bool:
        return name in self.reached(name)


def parts_of(item: Instruction) -> tuple[tuple, object, tuple, Symbol | None]:
    """(results, target, arguments, table or prototype) of a call."""
    operands = list(item.operands)
    results = operands.pop(0).items if operands and isinstance(operands[0], Group) else ()
    target = operands.pop(0) if operands else None
    arguments = operands.pop(0).items if operands and isinstance(operands[0], Group) else ()
    table = operands.pop(0) if operands else None
    if operands or not (table is None or isinstance(table, Symbol)):
        raise PtxError("its operands are no call's", item.line, item.text)
    return results, target, arguments, table


def _names(operand) -> list[str]:
    match operand:
        case Symbol(name):
            return [name]
        case Address(base):
            return _names(base)
        case Vector(items):
            return [name for item in items for name in _names(item)]
    return []
