"""What every rung gives at 128 x 128 x 128, run by the Python of this machine and by the one of a page."""

import hashlib
import json
import os

import numpy as np

SIZE = 128
BARRIER = "bar.sync"


def digest(*parts: bytes) -> str:
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def counted(names: list[str], builds: str = "") -> dict[str, dict]:
    """{rung: its result's hash, the sum of each counter, a hash of all rows, its hazards}. `builds`: a folder of builds that the
    book does not ship. No compiler is used.
    """
    os.environ |= {"GEMM_COMPILER": "none"} | ({"GEMM_BUILDS": builds} if builds else {})
    import kernels
    from emulator.counts.trace import COLUMNS
    from kernels.check import random_inputs
    from kernels.rungs import find

    found = {}
    for name in names:
        A, B, _ = random_inputs(find(name).types({}), SIZE, SIZE, SIZE)
        run = kernels.gemm(name, A, B, machine="emulator")
        found[name] = {
            "C": digest(np.ascontiguousarray(run.C).tobytes()),
            **_of(run.trace, COLUMNS),
        }
    return found


def _of(trace, columns) -> dict:
    rows = [[row.opcode, *(getattr(row, c) for c in columns)] for row in trace.instructions]
    return {
        "counters": {column: int(trace.total(column)) for column in columns},
        "rows": digest(json.dumps(rows, default=int).encode()),
        "hazards": [str(hazard) for hazard in trace.hazards],
    }


def broken() -> dict:
    """The rung `tiled` without its barriers: what the sanitizer says of it."""
    os.environ["GEMM_COMPILER"] = "none"
    import emulator
    from emulator.counts.trace import COLUMNS
    from kernels.check import random_inputs
    from kernels.gemm import plan
    from kernels.rungs import find

    how = plan("tiled", SIZE, SIZE, SIZE, arch=80)
    lines = how.build.ptx.split("\n")
    text = "\n".join(line for line in lines if not line.strip().startswith(BARRIER))
    A, B, C = random_inputs(find("tiled").types({}), SIZE, SIZE, SIZE)
    trace = emulator.Module(text).launch(
        find("tiled").entry, how.grid, how.block, how.arguments(A, B, C, 1.0, 0.0), how.shared_bytes
    )
    return _of(trace, COLUMNS)
