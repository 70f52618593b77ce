"""What an entry's operands name: a slot for each register, an address for each variable and parameter."""

from __future__ import annotations

from emulator.text.flow import Flow
from emulator.text.program import WIDTHS, Function, Program, Reg, Special

GRID_WORKSPACE = (
    "envreg1",
    "envreg2",
)  # high and low half of its address, as cooperative groups expect


def _align(offset: int, alignment: int) -> int:
    return (offset + alignment - 1) // alignment * alignment


class Names:
    """The registers and symbols of one entry. `globals_` maps module variables to their addresses.

    widths, names: bytes (0 for a predicate) and name of each register slot. symbols: variable ->
    (space, address in that space). params: (name, offset, size, type) of the entry's parameters.
    shared_static, local_bytes: what the fixed shared and the local variables occupy. reserved: whether
    the entry asks where the system's part of shared memory is; asks_for_grid: or a grid's workspace.
    """

    def __init__(self, program: Program, function: Function, graph: Flow, globals_: dict[str, int]):
        self.program, self.graph = program, graph
        self.registers = {**graph.registers, "%cc": "pred"}  # %cc: the condition code register
        self.slots: dict[str, int] = {}
        self.widths: list[int] = []
        self.names: list[str] = []
        self.symbols: dict[str, tuple[str, int]] = {
            name: ("global", at) for name, at in globals_.items()
        }
        self.params: list[tuple[str, int, int, str]] = []
        offset = 0
        for param in function.params:
            offset = _align(offset, param.align)
            self.symbols[param.name] = ("param", offset)
            self.params.append((param.name, offset, param.size, param.type))
            offset += param.size
        self._lay_out()

    def _lay_out(self) -> None:
        """Gives shared and local variables their offsets: fixed shared ones first, `extern` ones after."""
        shared, local, dynamic = 0, 0, []
        module = [v for v in self.program.variables.values() if v.space == "shared"]
        used = {
            getattr(operand, "name", None) or getattr(getattr(operand, "base", None), "name", None)
            for block in self.graph.blocks
            for item in block.code
            for operand in item.operands
        }
        for variable in [*(v for v in module if v.name in used), *self.graph.variables]:
            if variable.space == "shared":
                if not variable.size:
                    dynamic.append(variable)
                    continue
                shared = _align(shared, variable.align)
                self.symbols[variable.name] = ("shared", shared)
                shared += variable.size
            elif variable.space in ("local", "param"):
                local = _align(local, variable.align)
                self.symbols[variable.name] = ("local", local)
                local += variable.size
        asked = {
            operand.name
            for block in self.graph.blocks
            for item in block.code
            for operand in item.operands
            if isinstance(operand, Special)
        }
        self.reserved = any(name.startswith("reserved_smem") for name in asked)
        self.asks_for_grid = not asked.isdisjoint(GRID_WORKSPACE)
        if dynamic:
            shared = _align(shared, max(16, *(v.align for v in dynamic)))
        for variable in dynamic:
            self.symbols[variable.name] = ("shared", shared)
        self.shared_static, self.local_bytes = shared, local

    def slot(self, register: Reg) -> int:
        known = self.slots.get(register.name)
        if known is None:
            known = self.slots[register.name] = len(self.widths)
            kind = self.registers[register.name]
            self.widths.append(0 if kind == "pred" else WIDTHS[kind])
            self.names.append(register.name)
        return known

    def is_function(self, name: str) -> bool:
        return name in self.program.functions or name in self.program.declared
