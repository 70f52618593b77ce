"""Which waits for an mbarrier nobody asks whether they have succeeded: a pass over a decoded entry, once.

`mbarrier.test_wait` does not block, and `mbarrier.try_wait` may give up: their answer says whether the phase is over
(PTX ISA 9.7.13.15.16). One whose answer comes to no branch, no guard and no store is no wait.
"""

from __future__ import annotations

# What only hands values on: the roots of instructions without any effect but their result.
_PURE = frozenset(
    ("mov", "selp", "setp", "set", "slct", "and", "or", "xor", "not", "cnot", "lop3", "shl", "shr", "add", "sub", "mul",
     "mad", "min", "max", "neg", "abs", "cvt", "prmt", "bfe", "bfi")
)  # fmt: skip


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
