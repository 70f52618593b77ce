"""setmaxnreg: registers moved between warpgroups (PTX ISA 9.7.19.5)."""

from __future__ import annotations

import numpy as np

from emulator.errors import Deadlock, ExecutionError
from emulator.ops.wgmma import warps_of_groups
from emulator.text.rows import Row

FILE = 65536  # registers of a multiprocessor
LEAST, MOST, UNIT = 24, 256, 8
PER_THREAD = 255  # that ptxas can give a thread


def at_launch(m) -> int | None:
    """Registers of each thread to begin with, as ptxas 13.0 counts them: what the launch bounds allow, or `.maxnreg`, and not
    more than the largest `inc` asks for. None where it knows neither: then it leaves all setmaxnreg out (its note C7508).
    """
    function = m.code.function
    bound, most = function.reqntid or function.maxntid, function.max_registers
    if most is None and (bound is None or function.min_blocks is None):
        return None
    if most is None:
        most = FILE // (int(np.prod(bound)) * function.min_blocks) // UNIT * UNIT
    asked = [
        int(ins.operands[0].value)
        for ins in m.code.instructions.values()
        if ins.parts[0] == "setmaxnreg" and "inc" in ins
    ]
    return -(-min(most, PER_THREAD, *asked) // UNIT) * UNIT  # given out in units


class Pool:
    """Registers per thread of each warp, if they are known."""

    def __init__(self, m):
        self.each = at_launch(m)
        if self.each is None:
            return
        self.per_block = self.each * m.T
        self.held = np.full(m.W, self.each, np.int64)
        self.last = None
        m.endings.append(self._check)

    def _check(self, m) -> None:
        total = self.held.reshape(m.B, -1).sum(axis=1) * 32
        block = int(total.argmax())
        if total[block] > self.per_block:
            text = (
                f"setmaxnreg would wait for ever: the warps of a block would hold {int(total[block])} "
                f"registers, and it has {self.per_block} ({self.each} for each thread at launch)"
            )
            m.fail(Deadlock, text, self.last, block)


def setmaxnreg(ins, bind):
    count = bind.constant(ins.operands[0], 4)
    if count % UNIT or not LEAST <= count <= MOST:
        raise bind.error(
            f"setmaxnreg takes a multiple of {UNIT} from {LEAST} to {MOST}, not {count}"
        )
    grows = "inc" in ins

    def step(m, mask):
        pool = m.state("registers", lambda: Pool(m))
        if pool.each is None:
            return
        warps = warps_of_groups(m, mask, ins)
        wrong = warps & ((pool.held > count) if grows else (pool.held < count))
        if wrong.any():
            warp = int(wrong.argmax())
            held, kind = int(pool.held[warp]), "inc" if grows else "dec"
            text = f"setmaxnreg.{kind} to {count} registers by a warp that has {held}"
            m.fail(ExecutionError, text, ins, *divmod(32 * warp, m.T))
        pool.held[warps] = count
        pool.last = ins

    return step


OPCODES = {
    "setmaxnreg": {
        "inc|dec! sync! aligned! u32!": Row(
            setmaxnreg, (1,), types="-", spread="none", meets="warpgroup"
        )
    }
}
