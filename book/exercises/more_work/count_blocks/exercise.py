"""Registers, shared memory and occupancy."""

from book.exercises.answers import wrong_counts
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


def _right(row: str) -> int:
    threads, registers, kib = RESIDENT[row]
    return occupancy(80, threads, registers, kib * 1024).blocks


def resident_blocks(answer: dict[str, int], _) -> list[str]:
    """Compare blocks per multiprocessor of an A100, counted by hand, with kernels.occupancy; say which limit was missed."""
    return wrong_counts(answer, {row: _right(row) for row in RESIDENT}, _missed)


def _missed(row: str, number: int) -> str:
    """Which limit so many blocks break, or that one more fits."""
    threads, registers, kib = RESIDENT[row]
    uses = dict(zip(SM_80, (threads, threads * registers, kib + 1, 1), strict=True))
    over = [name for name, each in uses.items() if number * each > SM_80[name]]
    if not over:
        return "one more fits: threads, registers, shared memory and blocks all suffice for it"
    if over == ["KiB of shared memory"] and number * kib <= SM_80[over[0]]:
        return "each block takes 1 KiB more, for the system"
    return f"that takes {number * uses[over[0]]:,} {over[0]}, and there are {SM_80[over[0]]:,}"


EXERCISE = Exercise.read(
    __file__,
    judge=resident_blocks,
    variable="blocks",
    twin=lambda run: _right("256 threads, 96 registers, 16 KiB"),
)
