"""One launch of a reader's kernel: what became of it, and what would have become of it had one thing been different."""

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


def _launch(built: kernels.Build, entry: str, case: Case, args, module=None, **options):
    """The Trace of a launch on the emulator, which watches memory for hazards. Options are those of `Module.launch`.

    module: where the kernel was launched before, so that its __device__ variables hold what that left there.
    """
    module = module or loaded(built.ptx).fresh()
    try:
        with time_limit(EMULATOR_SECONDS):
            return module.launch(
                entry, case.grid, case.block, args, case.shared_bytes, progress=False, **options
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
        if machine == "gpu":
            trace = launch(built, entry, case.grid, case.block, args, case.shared_bytes, machine)
        else:
            trace = _launch(built, entry, case, args, module)
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
        return _launch(built, entry, case, args, record=EVERY_ACCESS, blocks=blocks)
    except (*STOPPED, errors.Unsupported, ValueError, TypeError):
        return None


def one_block_after_another(built: kernels.Build, entry: str, case: Case) -> bool:
    if np.prod(case.grid) > 64:
        return True
    x, y, z = (*case.grid, 1, 1)[:3]
    blocks = [(i, j, k) for k in range(z) for j in range(y) for i in range(x)]
    args, module = [_copied(a, "emulator") for a in case.args], loaded(built.ptx).fresh()
    try:
        for block in reversed(blocks):
            _launch(built, entry, case, args, module, blocks=[block])
    except (*STOPPED, errors.Unsupported):
        return True
    return not wrong(case, args[case.output]).any()
