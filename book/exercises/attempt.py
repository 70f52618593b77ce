"""One launch of a reader's kernel: what became of it, and what would have become of it had one thing been different."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

import emulator
import kernels
from emulator import errors
from kernels.launch import launch, loaded

from .diagnose import wrong
from .exercise import Case
from .explain import STOPPED
from .time_limit import time_limit

EMULATOR_SECONDS = 5  # of the processor: the slowest right answer takes one
COUNTED_ON = 80  # tasks speak of cp.async and of mma.m16n8k16, which older GPUs lack
EVERY_ACCESS = 1 << 20  # warp executions per instruction
ROOM = 8  # so many times larger is every array in a launch that looks where addresses lead


@dataclass(frozen=True)
class Attempt:
    """A launch and what became of it: an output and a trace (None from a GPU), or the error that it stopped at."""

    case: Case
    output: np.ndarray | None = None
    trace: object = None
    error: Exception | None = None

    @property
    def right(self) -> bool:
        """It ran to its end and every element is what it must be. Hazards are another matter."""
        return self.error is None and not wrong(self.case, self.output).any()


def compile_cell(name: str, source: str, arch: int | None = None) -> kernels.Build:
    """Build the CUDA of one exercise, for sm_80 unless told otherwise."""
    return kernels.build(source, name=f"{name}.cu", arch=arch or COUNTED_ON)


def try_launch(
    built: kernels.Build,
    entry: str,
    grid,
    block,
    args,
    shared_bytes: int = 0,
    machine: str = "emulator",
    record: int = 256,
    blocks=None,
    module: emulator.Module | None = None,
):
    """Launch on this machine. The emulator watches memory for hazards, and its Trace is returned.

    record: of how many warp executions per instruction the Trace keeps addresses. blocks: run only these.
    module: where the kernel was launched before, so that its __device__ variables hold what that left there.
    """
    if machine == "gpu":
        return launch(built, entry, grid, block, args, shared_bytes, machine)
    module = module or loaded(built.ptx).fresh()
    try:
        with time_limit(EMULATOR_SECONDS):
            return module.launch(
                entry, grid, block, args, shared_bytes, record=record, progress=False, blocks=blocks
            )
    except STOPPED as error:
        code = module.entry(entry)
        # A header's line may be at fault: what counts is the line of the kernel that called it.
        error.frames = {
            i.line: i.location.frames() for i in code.instructions.values() if i.location
        }
        raise


def _copied(value, machine: str):
    """An argument of its own for a launch: a copy of an array; a tensor map of a GPU's memory where that runs."""
    if isinstance(value, emulator.TensorMap) and machine == "gpu":
        import cupy

        return replace(value, array=cupy.asarray(value.array))
    return value.copy() if isinstance(value, np.ndarray) else value


def attempt(
    built: kernels.Build, entry: str, case: Case, machine: str = "emulator", module=None
) -> Attempt:
    """Launch one case on copies of its arrays. Only what the kernel did wrong is caught."""
    args = tuple(_copied(a, machine) for a in case.args)
    try:
        shared = case.shared_bytes
        trace = try_launch(
            built, entry, case.grid, case.block, args, shared, machine, module=module
        )
    except (*STOPPED, errors.Unsupported, ValueError, TypeError, kernels.UnsupportedGPU) as error:
        return Attempt(case, error=error)
    return Attempt(case, args[case.output], trace)


def in_ample_memory(built: kernels.Build, entry: str, case: Case, blocks=None):
    """The Trace of the case with arrays that go on with zeros where they should end; None if it stops even so.

    blocks: run only these; the Trace has the addresses of one block.
    """
    args = [
        np.concatenate([a.reshape(-1), np.zeros((ROOM - 1) * a.size, a.dtype)])
        if isinstance(a, np.ndarray)
        else a
        for a in case.args
    ]
    try:
        return try_launch(
            built,
            entry,
            case.grid,
            case.block,
            args,
            case.shared_bytes,
            record=EVERY_ACCESS,
            blocks=blocks,
        )
    except (*STOPPED, errors.Unsupported, ValueError, TypeError):
        return None


def _with_other_grid(case: Case) -> Case | None:
    grid = case.grid
    if case.product is None:  # the sentence is on tiles of a product
        return None
    return replace(case, grid=grid[::-1]) if len(grid) == 2 and grid[0] != grid[1] else None


def _with_empty_output(case: Case) -> Case | None:
    if case.product is None or case.product.beta:
        return None
    args = list(case.args)
    args[case.output] = np.zeros_like(args[case.output])
    return replace(case, args=tuple(args))


# What is wrong, if the launch is right once this is different.
WHAT_IFS = {
    "blockIdx.x and blockIdx.y are the wrong way round: x counts tiles along the columns (N), y along the rows (M)": (
        _with_other_grid
    ),
    "What C held before gets into the result (by `+=`, by atomicAdd, or by reading C where beta is 0: 0 * NaN is NaN). "
    "Here C must be overwritten": (_with_empty_output),
}


def what_if(built: kernels.Build, entry: str, case: Case) -> Iterator[str]:
    """The sentences of WHAT_IFS that hold for this launch, which is wrong as it is."""
    for sentence, change in WHAT_IFS.items():
        other = change(case)
        if other is not None and attempt(built, entry, other).right:
            yield f"{sentence}."


def one_block_after_another(built: kernels.Build, entry: str, case: Case) -> bool:
    if np.prod(case.grid) > 64:
        return True
    x, y, z = (*case.grid, 1, 1)[:3]
    blocks = [(i, j, k) for k in range(z) for j in range(y) for i in range(x)]
    args, module = [_copied(a, "emulator") for a in case.args], loaded(built.ptx).fresh()
    try:
        for block in reversed(blocks):
            try_launch(
                built, entry, case.grid, case.block, args, case.shared_bytes, blocks=[block], module=module
            )  # fmt: skip
    except (*STOPPED, errors.Unsupported):
        return True
    return not wrong(case, args[case.output]).any()
