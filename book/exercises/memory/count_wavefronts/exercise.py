"""Count wavefronts by hand."""

from pathlib import Path

import numpy as np

import kernels
from book.exercises.answers import wrong_counts
from book.exercises.exercise import Exercise
from kernels.launch import launch

# What a lane reads: the words of its line in kernel.cu, and which word of shared memory it is; the float4 reads four.
ACCESSES = {
    "s[lane]": ("v[lane];", lambda lane: lane),
    "s[2 * lane]": ("v[2 * lane];", lambda lane: 2 * lane),
    "s[lane / 2]": ("v[lane / 2];", lambda lane: lane // 2),
    "s[32 * lane]": ("v[32 * lane];", lambda lane: 32 * lane),
    "s[33 * lane]": ("v[33 * lane];", lambda lane: 33 * lane),
    "float4 s[lane]": ("float4*>(s)[lane];", None),
}


def measured_wavefronts() -> dict[str, int]:
    """Wavefronts of each access, from the trace of its line in kernel.cu, on the emulator."""
    path = Path(__file__).with_name("kernel.cu")
    lines = path.read_text(encoding="utf-8").splitlines()
    built = kernels.build(path.read_text(encoding="utf-8"), name="count_wavefronts.cu", arch=80)
    trace = launch(built, None, (1,), (32,), [np.zeros(32, np.float32)], machine="emulator")
    counts = {}
    for access, (words, _) in ACCESSES.items():
        number = next(i for i, text in enumerate(lines, 1) if text.endswith(words))
        rows = [r for r in trace.instructions if r.source and r.source[1] == number]
        counts[access] = int(sum(r.shared_wavefronts for r in rows))
    return counts


def _wavefront_slip(access: str, given: int) -> str:
    """What to look at, for a count that is wrong: the words of the first lanes, and their banks."""
    if given < 1:
        return "a read takes one wavefront even where there is no conflict"
    word = ACCESSES[access][1]
    if word is None:
        return (
            "lane 0 reads words 0 to 3 and lane 1 words 4 to 7, so eight lanes fill the 32 banks once: "
            "how many such groups of lanes are there?"
        )
    words = [word(lane) for lane in (0, 1, 2, 16)]
    banks = [word % 32 for word in words]
    return (
        f"lanes 0, 1, 2 and 16 read words {_listed(words)}, in banks {_listed(banks)}: "
        "how many different words does the busiest bank serve?"
    )


def _listed(numbers) -> str:
    *some, last = map(str, numbers)
    return f"{', '.join(some)} and {last}"


def wavefront_counts(answer: dict[str, int], _) -> list[str]:
    return wrong_counts(answer, measured_wavefronts(), _wavefront_slip, "access")


EXERCISE = Exercise.read(
    __file__,
    judge=wavefront_counts,
    variable="counts",
    twin=lambda run: measured_wavefronts()["s[2 * lane]"],
)
