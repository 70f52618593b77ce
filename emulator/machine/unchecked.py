"""Which waits for an mbarrier are none, or may be: a pass over a decoded entry, once.

`mbarrier.test_wait` does not block, and `mbarrier.try_wait` may give up: their answer says whether the phase is over
(PTX ISA 9.7.13.15.16). One whose answer comes to no branch, no guard and no store is no wait (`find`). One that
nothing repeats must do without the phase being over (`find_single`).
"""

from __future__ import annotations

# What only hands values on: the roots of instructions without any effect but their result.
_PURE = frozenset(
    ("mov", "selp", "setp", "set", "slct", "and", "or", "xor", "not", "cnot", "lop3", "shl", "shr", "add", "sub", "mul",
     "mad", "min", "max", "neg", "abs", "cvt", "prmt", "bfe", "bfi")
)  # fmt: skip

# What a loop that does nothing but wait does not do.
_WORK = frozenset(
    ("st", "atom", "red", "bar", "barrier", "cp", "wgmma", "mma", "tcgen05", "ldmatrix", "stmatrix", "wmma")
)  # fmt: skip


def find_single(decoded: list[list[tuple]], blocks) -> frozenset[int]:
    """The indices of waits that no loop repeats until they succeed; the arguments are those of `find`."""
    waits, works = {}, []
    for number, block in enumerate(decoded):
        works.append(any(_is_work(ins) for ins, _, _ in block))
        for ins, _, _ in block:
            if ins.parts[0] == "mbarrier" and ins.parts[1] in ("test_wait", "try_wait"):
                waits[ins.index] = number
    return frozenset(
        index for index, number in waits.items() if not _repeats(number, works, blocks)
    )


def _is_work(ins) -> bool:
    waits = ins.parts[0] == "mbarrier" and ins.parts[1] in ("test_wait", "try_wait")
    return ins.parts[0] in _WORK or (ins.parts[0] == "mbarrier" and not waits)


def _repeats(start: int, works: list[bool], blocks) -> bool:
    """Whether this block may come again without anything being done."""
    seen, ahead = set(), [start]
    while ahead:
        number = ahead.pop()
        if works[number]:
            continue
        if start in blocks[number].targets:
            return True
        fresh = [target for target in blocks[number].targets if target not in seen]
        seen.update(fresh)
        ahead.extend(fresh)
    return False


def find(decoded: list[list[tuple]], blocks) -> frozenset[int]:
    """The indices of such instructions. decoded: (instruction, step or None, Binder) of those of each block."""
    waits = [
        (ins, bind)
        for block in decoded
        for ins, _, bind in block
        if ins.parts[0] == "mbarrier" and ins.parts[1] in ("test_wait", "try_wait")
    ]
    if not waits:
        return frozenset()
    needed = 0
    for block in blocks:
        if block.predicate is not None:
            needed |= 1 << block.predicate[0]
        if block.ends == "switch":
            return frozenset()  # what selects is not looked at
    pure = []
    for block in decoded:
        for ins, _, bind in block:
            if ins.parts[0] in _PURE:
                pure.append((bind.defs, bind.uses))
            else:
                needed |= bind.uses
    before = -1
    while before != needed:
        before = needed
        for defs, uses in pure:
            if defs & needed:
                needed |= uses
    return frozenset(ins.index for ins, bind in waits if not bind.defs & needed)
