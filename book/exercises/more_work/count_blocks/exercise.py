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
    for row, (threads, registers, kib) in RESIDENT.items():
        given = answer.get(row)
        if given is None:
            mistakes.append(f"{row}: no count yet")
            continue
        if (number := whole(given)) is None:
            mistakes.append(
                f"{row}: a count is an integer, not {given!r}"
                + (
                    "; a part of a block is not resident, so round down"
                    if isinstance(given, Real) and not isinstance(given, bool)
                    else ""
                )
            )
            continue
        given = number
        right = occupancy(80, threads, registers, kib * 1024).blocks
        if given == right:
            continue
        uses = {
            "threads": threads,
            "registers": threads * registers,
            "KiB of shared memory": kib + 1,
            "blocks": 1,
        }
        over = [name for name, each in uses.items() if given * each > SM_80[name]]
        if given < 0:
            mistakes.append(f"{row}: not {given}; a count is 0 or more")
        elif over == ["KiB of shared memory"] and given * kib <= SM_80[over[0]]:
            mistakes.append(f"{row}: not {given}; each block takes 1 KiB more, for the system")
        elif over:
            name = over[0]
            mistakes.append(
                f"{row}: not {given}; that takes {given * uses[name]:,} {name}, and there are {SM_80[name]:,}"
            )
        else:
            mistakes.append(
                f"{row}: not {given}; one more fits: threads, registers, shared memory and blocks all suffice for it"
            )
    return mistakes


def twin(run) -> int:
    threads, registers, kib = RESIDENT["256 threads, 96 registers, 16 KiB"]
    return occupancy(80, threads, registers, kib * 1024).blocks


EXERCISE = Exercise.read(
    __file__,
    judge=resident_blocks,
    variable="blocks",
    twin=twin,
    no_kernel="occupancy",
)
