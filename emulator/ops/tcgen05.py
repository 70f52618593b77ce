"""tcgen05: tensor memory's columns, loads, stores, fences and commits (PTX ISA 9.7.16).

`machine.tensor_memory` says when things land, `numbers.tcgen05` where they lie, `sanitizer.tensor_memory`
what must be ordered; products and copies are in `tcgen05_mma`.
"""

from __future__ import annotations

import numpy as np

from emulator.errors import ExecutionError
from emulator.machine.access import deliver, resolve, space_of
from emulator.machine.mbarriers import MBarrier
from emulator.machine.memory import SHARED_WINDOW
from emulator.machine.tensor_memory import Load, loading, tensor_memory
from emulator.machine.values import Affine, Pattern
from emulator.numbers.tcgen05 import LANES, MOVES, fragment
from emulator.ops.bulk_operands import Issuers, in_shared
from emulator.ops.matrices import meet, together
from emulator.text.program import Imm, items
from emulator.text.rows import Row


def is_pair(ins) -> bool:
    return "cta_group::2" in ins


def warps_of(m, mask) -> np.ndarray:
    """(W,) bool: the warps that execute."""
    return m.lanes_of(mask).reshape(m.W, 32).any(axis=1)


def of_warps(m, value, warps: np.ndarray, ins, what: str) -> np.ndarray:
    """(len(warps),) int64: an operand that all lanes of a warp give alike."""
    lanes = m.addresses(value).reshape(m.W, 32)[warps]
    other = (lanes != lanes[:, :1]).any(axis=1)
    if other.any():
        at = 32 * int(warps[int(other.argmax())])
        text = f"{what} of {ins.opcode} differs between the lanes of a warp"
        m.fail(ExecutionError, text, ins, at // m.T, at % m.T)
    return lanes[:, 0]


# --- Columns ----------------------------------------------------------------------------------------


def _alloc(ins, bind):
    pair, space = is_pair(ins), space_of(ins)
    to, count_of = bind.address(ins.operands[0], space), bind.integer(ins.operands[1], "u32")

    def step(m, mask):
        meet(m, mask, ins)
        memory = tensor_memory(m)
        memory.check_group(ins, pair)
        warps = np.flatnonzero(warps_of(m, mask))
        counts = of_warps(m, count_of(m), warps, ins, "the number of columns")
        found = np.zeros((m.B, m.T), np.uint32)
        first = np.zeros((m.B, m.T), bool)
        for flat, count in zip(warps.tolist(), counts.tolist(), strict=True):
            block, warp = divmod(flat, m.T // 32)
            found[block, 32 * warp] = memory.allocate(ins, block, warp, count)
            first[block, 32 * warp] = True
        # ThunderKittens gives a generic address, whose lower half is one of shared memory on a GPU
        where = m.addresses(to(m))
        where = np.where(where >= SHARED_WINDOW, where - SHARED_WINDOW, where)
        at = Affine(Pattern(where, int(where.min()), int(where.max())))
        for shared, where, lanes, name in resolve(m, space, at, first):
            if name != "shared":
                m.fail(ExecutionError, "tcgen05.alloc writes its address to shared memory", ins)
            deliver(m, shared, where, lanes, np.dtype(np.uint32), [found], ins)
            if m.sanitizer is not None:
                m.sanitizer.write(where, lanes, 4, ins)

    return step


def _dealloc(ins, bind):
    pair = is_pair(ins)
    at, count_of = (bind.integer(operand, "u32") for operand in ins.operands)

    def step(m, mask):
        meet(m, mask, ins)
        memory = tensor_memory(m)
        memory.check_group(ins, pair)
        warps = np.flatnonzero(warps_of(m, mask))
        address = of_warps(m, at(m), warps, ins, "the address")
        counts = of_warps(m, count_of(m), warps, ins, "the number of columns")
        for flat, where, count in zip(
            warps.tolist(), address.tolist(), counts.tolist(), strict=True
        ):
            memory.free(ins, *divmod(flat, m.T // 32), where & 0xFFFFFFFF, count)

    return step


def _relinquish(ins, bind):
    pair = is_pair(ins)

    def step(m, mask):
        meet(m, mask, ins)
        memory = tensor_memory(m)
        memory.check_group(ins, pair)
        for flat in np.flatnonzero(warps_of(m, mask)).tolist():
            memory.relinquished[flat // (m.T // 32)] = ins

    return step


# --- Loads and stores -------------------------------------------------------------------------------


def _move(ins, bind):
    """(lanes, columns, columns in all, put or gets) of a load or store."""
    shape = next(part for part in ins.parts if part in MOVES)
    times = int(next(part for part in ins.parts if part[0] == "x" and part[1:].isdigit())[1:])
    packed = "pack::16b" in ins or "unpack::16b" in ins
    storing, operands = ins.parts[1] == "st", list(ins.operands)
    address = operands.pop(0 if storing else 1)
    split = 0
    if shape == "16x32bx2":
        number = operands.pop(0 if storing else 1)
        if not isinstance(number, Imm):
            raise bind.error("the distance of the second half is a constant")
        split = bind.constant(number, 4)
    registers = items(operands[0])
    if len(operands) != 1 or len(registers) != MOVES[shape][0] * times:
        raise bind.error(f"{MOVES[shape][0] * times} registers expected for {shape}.x{times}")
    if MOVES[shape][0] * times > 128:
        raise bind.unsupported(f"{shape} goes up to x{128 // MOVES[shape][0]}")
    lanes, columns = fragment(shape, times, split)
    return shape, lanes, columns * (2 if packed else 1), packed, address, registers


def _places(m, ins, warps, at, shape: str, lanes, columns, packed: bool):
    """(block, lane, column) of each register of each thread, (n, R, 32), checked; and each warp's range."""
    memory, per = tensor_memory(m), m.T // 32
    block, warp = warps // per, warps % per
    # Published kernels that are right on a B200 write the second block's lanes as 128 to 255
    lane, column = at >> 16 & (LANES - 1), at & 0xFFFF
    quarter = warp % 4 * 32
    over = MOVES[shape][2]
    # DeepGEMM's epilogues name lane 0 in every warp, and are right on a B200: a warp gets its own lanes
    first = (lane < 32) & (quarter > 0)
    lane = np.where(first, lane + quarter, lane)
    for i in np.flatnonzero(first).tolist() if memory.shadow is not None else ():
        own = f"{int(quarter[i])} to {int(quarter[i]) + 31}"
        memory.shadow.tell("foreign-lanes", ins, None, int(block[i]), int(warp[i]) * 32, own)
    bad = (lane < quarter) | (lane + over > quarter + 32) | (lane % 16 != 0)
    if bad.any():
        i = int(bad.argmax())
        text = (
            f"{ins.opcode} at lane {int(lane[i])}: warp {int(warp[i])} of its block reaches lanes {int(quarter[i])} to "
            f"{int(quarter[i]) + 31} of tensor memory, {over} of them from a multiple of {over}"
        )
        m.fail(ExecutionError, text, ins, int(block[i]), int(warp[i]) * 32)
    for i in range(len(warps)):
        wide = int(columns.max()) + 1 + packed
        gaps = np.unique(columns)
        first = int(column[i])
        if wide <= len(gaps) * (1 + packed):
            memory.check_columns(ins, int(block[i]), int(warp[i]) * 32, first, wide, ins.opcode)
        else:  # 16x32bx2 leaves columns out
            for one in (0, int(columns[0, 16])):
                count = len(columns) * (1 + packed)
                memory.check_columns(
                    ins, int(block[i]), int(warp[i]) * 32, first + one, count, ins.opcode
                )
    return (
        block[:, None, None],
        lane[:, None, None] + lanes,
        column[:, None, None] + columns,
    )


def _tell(m, ins, warps, where, packed: bool, write: bool) -> None:
    shadow = tensor_memory(m).shadow
    if shadow is None:
        return
    per = m.T // 32
    for i, flat in enumerate(warps.tolist()):
        halves = np.unique(where[1][i] // 16)[:, None]
        columns = np.unique(where[2][i])
        if packed:
            columns = np.unique(np.concatenate([columns, columns + 1]))
        shadow.access(ins, *divmod(flat, per), halves, columns[None, :], write)


def _ld(ins, bind):
    shape, lanes, columns, packed, address, registers = _move(ins, bind)
    get = bind.address(address, "tensor")
    put = bind.put_lanes(registers)
    slots = {bind.names.slot(register) for register in registers}
    if len(slots) != len(registers):
        raise bind.error("a register is named twice")

    def step(m, mask):
        meet(m, mask, ins)
        warps = np.flatnonzero(warps_of(m, mask))
        at = of_warps(m, get(m), warps, ins, "the address")
        where = _places(m, ins, warps, at, shape, lanes, columns, packed)
        _tell(m, ins, warps, where, packed, False)
        cells = tensor_memory(m).cells
        found = cells[where]
        if packed:
            found = found & 0xFFFF | cells[where[0], where[1], where[2] + 1] << np.uint32(16)
        values = np.zeros((len(registers), m.W, 32), np.uint32)
        values[:, warps] = found.transpose(1, 0, 2)
        m.rows[ins.index].bytes += found.size * 4
        put(m, values, mask)
        loading(m).start(Load(ins, warps_of(m, mask), set(slots)))

    return step


def _st(ins, bind):
    shape, lanes, columns, packed, address, registers = _move(ins, bind)
    get, values = bind.address(address, "tensor"), bind.lanes(registers, np.uint32)

    def step(m, mask):
        meet(m, mask, ins)
        warps = np.flatnonzero(warps_of(m, mask))
        at = of_warps(m, get(m), warps, ins, "the address")
        where = _places(m, ins, warps, at, shape, lanes, columns, packed)
        _tell(m, ins, warps, where, packed, True)
        cells, found = tensor_memory(m).cells, values(m)[:, warps].transpose(1, 0, 2)
        m.rows[ins.index].bytes += found.size * 4
        if packed:
            cells[where] = found & 0xFFFF
            cells[where[0], where[1], where[2] + 1] = found >> np.uint32(16)
        else:
            cells[where] = found

    return step


def _wait(ins, bind):
    loads = "wait::ld" in ins

    def step(m, mask):
        meet(m, mask, ins)
        warps, shadow = warps_of(m, mask), tensor_memory(m).shadow
        if shadow is not None:
            shadow.wait(warps, loads)
        if loads:
            loading(m).wait(warps)

    return step


def _fence(ins, bind):
    after = "fence::after_thread_sync" in ins

    def step(m, mask):
        shadow = tensor_memory(m).shadow
        if shadow is not None:
            shadow.fence(warps_of(m, mask), after)

    return step


# --- Commits ----------------------------------------------------------------------------------------


def _commit(ins, bind):
    pair = is_pair(ins)
    get = bind.address(ins.operands[0], space_of(ins))
    ranks_of = bind.integer(ins.operands[1], "u16") if "multicast::cluster" in ins else None
    if (ranks_of is None) != (len(ins.operands) == 1):
        raise bind.error("a mask of blocks goes with .multicast::cluster")

    def step(m, mask):
        rows, memory = Issuers(m, mask), tensor_memory(m)
        memory.check_group(ins, pair)
        offset, owner = in_shared(m, rows, get, ins, "the mbarrier", 8)
        ranks = rows.of(ranks_of(m)) if ranks_of else None
        for i, block, thread in rows:
            targets = [int(owner[i])]
            if ranks is not None:
                base, bits = block // m.cluster * m.cluster, int(ranks[i]) & 0xFFFF
                named = [rank for rank in range(16) if bits >> rank & 1]
                if not named or named[-1] >= m.cluster:
                    text = f"a commit to blocks {named} of a cluster of {m.cluster}"
                    m.fail(ExecutionError, text, ins, block, thread)
                targets = [base + rank for rank in named]
            here = np.zeros(m.B, bool)
            here[targets] = True
            lanes = np.zeros((m.B, m.T), bool)
            lanes[block, thread] = True
            MBarrier(m, int(offset[i])).check_blocks(here, ins, lanes)
            memory.commit(ins, block, thread, [(t, int(offset[i])) for t in targets])

    return step


_GROUP, _ALIGNED = "cta_group::1|cta_group::2!", "sync! aligned!"
_SHAPES = "|".join(MOVES)
_TIMES = "|".join(f"x{1 << i}" for i in range(8))

OPCODES = {
    "tcgen05": {
        f"alloc! {_GROUP} {_ALIGNED} shared::cta b32!": together(_alloc, 2, spread="none"),
        f"dealloc! {_GROUP} {_ALIGNED} b32!": together(_dealloc, 2, spread="none"),
        f"relinquish_alloc_permit! {_GROUP} {_ALIGNED}": together(
            _relinquish, 0, types="", spread="none"
        ),
        f"ld! {_ALIGNED} {_SHAPES}! {_TIMES}! pack::16b b32!": together(_ld, 2, 3, spread="loads"),
        f"st! {_ALIGNED} {_SHAPES}! {_TIMES}! unpack::16b b32!": together(_st, 2, 3, spread="none"),
        f"wait::ld|wait::st! {_ALIGNED}": together(_wait, 0, types="", spread="none"),
        "fence::before_thread_sync|fence::after_thread_sync!": Row(
            _fence, (0,), types="", spread="none"
        ),
        f"commit! {_GROUP} mbarrier::arrive::one! shared::cluster multicast::cluster b64!": Row(
            _commit, (1, 2), types="-", spread="none"
        ),
    }
}
