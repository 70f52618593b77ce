"""Registers, shared memory and occupancy."""

from numbers import Real

from book.exercises.answers import whole
from book.exercises.exercise import Exercise
from kernels.occupancy import occupancy

SM_80 = {"threads": 2048, "registers": 65_536, "KiB of shared memory": 164, "blocks": 32}

RESIDENT = {  # threads per block, registers per thread, KiB of shared memory per block
    "256 threads, 32 registers, 16 KiB": (256, 32, 16),
    "256 threads, 96 registers, 16 KiB": (256, 96, 16),
    "128 threads, 40 registers, 40 KiB": (128, 40, 40),
    "64 threads, 24 registers, 0 KiB": (64, 24, 0),
    "512 threads, 128 registers, 0 KiB": (512, 128, 0),
}


def resident_blocks(answer: dict[str, int]) -> list[str]:
    """Compare blocks per multiprocessor of an A100, counted by hand, with kernels.occupancy; say which limit was missed."""
    mistakes = [f"{row}: there is no such row" for row in answer if row not in RESIDENT]
    for row, setting in RESIDENT.items():
        if said := _wrong_count(answer.get(row), *setting):
            mistakes.append(f"{row}: {said}")
    return mistakes


def _wrong_count(given, threads: int, registers: int, kib: int) -> str:
    """What is wrong with this count of blocks; "" where nothing is."""
    if given is None:
        return "no count yet"
    number = whole(given)
    if number is None:
        fraction = isinstance(given, Real) and not isinstance(given, bool)
        more = "; a part of a block is not resident, so round down" if fraction else ""
        return f"a count is an integer, not {given!r}{more}"
    if number == occupancy(80, threads, registers, kib * 1024).blocks:
        return ""
    uses = dict(zip(SM_80, (threads, threads * registers, kib + 1, 1), strict=True))
    over = [name for name, each in uses.items() if number * each > SM_80[name]]
    if not over:
        return f"not {number}; one more fits: threads, registers, shared memory and blocks all suffice for it"
    if over == ["KiB of shared memory"] and number * kib <= SM_80[over[0]]:
        return f"not {number}; each block takes 1 KiB more, for the system"
    return f"not {number}; that takes {number * uses[over[0]]:,} {over[0]}, and there are {SM_80[over[0]]:,}"


def twin(run) -> int:
    threads, registers, kib = RESIDENT["256 threads, 96 registers, 16 KiB"]
    return occupancy(80, threads, registers, kib * 1024).blocks


EXERCISE = Exercise.read(
    __file__,
    judge=resident_blocks,
    variable="blocks",
    twin=twin,
)
