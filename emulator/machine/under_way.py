"""Registers whose values come later, of a wgmma or of a tcgen05.ld: which instructions touch them."""

from __future__ import annotations

from emulator.text.program import Instruction, Reg


def _is_move(item: Instruction) -> bool:
    return item.parts[0] == "mov" and all(isinstance(x, Reg) for x in item.operands)


def tracked(blocks, slot_of, held) -> int:
    """Registers that `held` names of an instruction, and those that `mov` may move them to: a set of bits.

    blocks: of code, each with its instructions; slot_of: register -> number.
    """
    code = [item for block in blocks for item in block.code]
    names = {reg.name for item in code for reg in held(item)}
    moves = [tuple(x.name for x in item.operands) for item in code if _is_move(item)]
    while found := {to for to, source in moves if source in names} - names:
        names |= found
    bits = 0
    for name in names:
        bits |= 1 << slot_of(Reg(name))
    return bits


def watched(step, item: Instruction, reads: int, writes: int, slot_of, under_way):
    """The step, which tells what is under way (`under_way(m)`, None for nothing) what it touches before it runs."""
    move = None
    if _is_move(item):
        target, source = item.operands
        move = slot_of(source), slot_of(target)

    def run(m, mask):
        found = under_way(m)
        if found is not None:
            found.touch(mask, item, reads, writes, move)
        step(m, mask)

    return run
