"""What looks safe between blocks and is not: volatile accesses, and atomics that hold for one block only.

The emulator takes both for accesses that do not race, as PTX's memory model does. In an exercise they hide a race:
`volatile` keeps every access, and orders none, and `atomicAdd_block` is atomic for the threads of one block. So a
kernel that uses them is launched once more with plain accesses in their place.
"""

import re
from dataclasses import replace

import kernels

from .attempt import attempt
from .exercise import Exercise
from .hazards import explain_hazards

_VOLATILE = re.compile(r"\b(ld|st)\.volatile\.global\b")
# "atom.global.cta.add.f32 %f1, [%rd2], %f3;": what it stores stands behind the address.
_OF_A_BLOCK = re.compile(
    r"\b(?:atom|red)\.(?:\w+\.)*cta\.(?:\w+\.)*([bsuf]\d+)\s+(?:[^\[;]*,\s*)?(\[[^\]]+\]),\s*([^,;]+)[^;]*;"
)
_KINDS = (
    (
        _VOLATILE,
        r"\1.global",
        "`volatile` makes each access happen. It orders no thread before another, so which block comes first is still left "
        "to chance.",
    ),
    (
        _OF_A_BLOCK,
        r"st.global.\1 \2, \3;",
        "An atomic with _block in its name is atomic for the threads of one block only. Other blocks come in between.",
    ),
)


def between_blocks(exercise: Exercise, source: str, built: kernels.Build, cases) -> tuple[str, ...]:
    """Headline and lines where blocks meet in such accesses; nothing where the kernel has none, or they never meet."""
    for pattern, plain, why in _KINDS:
        ptx, found = pattern.subn(plain, built.ptx)
        if not found:
            continue
        weaker = replace(built, ptx=ptx)
        for case in cases:
            trace = attempt(weaker, exercise.name, case).trace
            if trace is None:
                continue
            if races := [h for h in trace.hazards if h.kind == "global-race" and h.other_block]:
                return (*explain_hazards(trace, source, f"{exercise.name}.cu", races, case), why)
    return ()
