"""Loads and stores, and what only hints at them: PTX ISA 9.7.9 (data movement)."""

from __future__ import annotations

import numpy as np

from emulator.machine.access import (
    POLLING,
    count,
    deliver,
    dtype_of,
    fetch,
    resolve,
    space_of,
    watch_global,
)
from emulator.machine.values import SIGNED, UNSIGNED
from emulator.ops.forms import CACHED, HELD, PREFETCHED, SCOPE, SPACE
from emulator.text.program import SINK, WIDTHS, Address, Symbol
from emulator.text.rows import Row

_VECTORS = {"v2": 2, "v4": 4, "v8": 8}
ELSEWHERE = {"async", "bulk"}  # st.async, red.async, st.bulk: not plain memory instructions


def _elements(ins, bind) -> tuple[str, np.dtype, int]:
    kind = ins.parts[-1]
    if kind not in WIDTHS or kind == "b128" or ELSEWHERE & set(ins.parts):
        raise bind.unsupported()
    lanes = next((_VECTORS[part] for part in ins.parts if part in _VECTORS), 1)
    return kind, dtype_of(kind), lanes


def ld(ins, bind):
    kind, dtype, lanes = _elements(ins, bind)
    destinations = bind.vector(ins.operands[0], lanes, "destinations")
    space = space_of(ins)
    operand: Address = ins.operands[1]
    puts = [_extending(bind, destination, dtype) for destination in destinations]
    if space == "param" and isinstance(operand.base, Symbol):
        home, at = bind.symbol(operand.base)
        if home == "param":
            return _load_parameter(puts, at + operand.offset, dtype.itemsize, kind)
        space = home
    get, width = bind.address(operand, space), dtype.itemsize * lanes
    polling = bool(POLLING & set(ins.parts))

    def step(m, mask):
        address = get(m)
        if polling:
            m.spin(mask)
        targets = resolve(m, space, address, mask)
        for memory, where, here, name in targets:
            found = fetch(m, memory, where, here, dtype, lanes, ins)
            count(m, ins, name, where, here, width, "load")
            if len(targets) > 1:
                keep, m.keep = m.keep, -1
            for put, value in zip(puts, found, strict=True):
                put(m, value, here)
            if len(targets) > 1:
                m.keep = keep

    return step


def _extending(bind, destination, dtype: np.dtype):
    """A setter that sign- or zero-extends what was loaded to the register's width."""
    put = bind.put(destination)
    if destination == SINK:
        return put
    held = bind.width(destination)
    if held == dtype.itemsize:
        return put
    if held < dtype.itemsize:
        raise bind.error("the register is narrower than the value")
    wide = np.dtype(SIGNED[held] if dtype.kind == "i" else UNSIGNED[held])
    if dtype.kind == "f":
        dtype = np.dtype(UNSIGNED[dtype.itemsize])
        return lambda m, value, mask: put(m, value.view(dtype).astype(wide), mask)
    return lambda m, value, mask: put(m, value.astype(wide), mask)


def _load_parameter(puts, at: int, width: int, kind: str):
    is_signed = kind[0] == "s"

    def step(m, mask):
        for i, put in enumerate(puts):
            data = m.params[at + i * width : at + (i + 1) * width]
            value = np.frombuffer(data, SIGNED[width] if is_signed else UNSIGNED[width]).reshape(
                1, 1
            )
            put(m, value, mask)

    return step


def st(ins, bind):
    _, dtype, lanes = _elements(ins, bind)
    operand, sources = ins.operands[0], bind.vector(ins.operands[1], lanes, "sources")
    space = space_of(ins)
    if space == "param":
        space, _ = bind.symbol(operand.base)
    if space == "const":
        raise bind.error("constant memory cannot be written")
    get, gets = bind.address(operand, space), [bind.array(source, dtype) for source in sources]
    width = dtype.itemsize * lanes

    def step(m, mask):
        values = [get_value(m) for get_value in gets]
        for memory, where, here, name in resolve(m, space, get(m), mask):
            if name == "global":
                watch_global(m, ins, where, here, width, "store", values)
            deliver(m, memory, where, here, dtype, values, ins)
            count(m, ins, name, where, here, width, "store", values)
        m.changes += 1

    return step


def _nothing(ins, bind):
    """Hints, and fences: every store is seen at once here."""
    return lambda m, mask: None


_WIDE = f"v2|v4|v8 {HELD}!"
_HINT = Row(_nothing, types="-", spread="none")

OPCODES = {
    "ld": {
        f"weak|volatile|relaxed|acquire|mmio {SCOPE} {SPACE} nc ca|cg|cs|lu|cv {CACHED} "
        f"{PREFETCHED} {_WIDE}": Row(ld, (2, 3), types="~own -", spread="loads")
    },
    "ldu": {f"global v2|v4 {HELD}!": Row(ld, (2,), types="~own -", spread="loads")},
    "st": {
        f"weak|volatile|relaxed|release|mmio {SCOPE} {SPACE} wb|cg|cs|wt {CACHED} {_WIDE}": Row(
            st, (2, 3), types="- ~own", spread="stores"
        )
    },
    "prefetch": {"global|local|const|param L1|L2|L2::evict_last|L2::evict_normal": _HINT},
    "prefetchu": {"L1": _HINT},
    "discard": {"global L2": _HINT},
    "applypriority": {"global L2::evict_normal": _HINT},
}

_RESTRICTED = "sync_restrict::shared::cta|sync_restrict::shared::cluster"


def _fence(ins, bind):
    """A fence: what was done before it is done for all of the GPU, unless its scope is narrower."""
    block_only = "cta" in ins
    narrow = block_only or "cluster" in ins

    def step(m, mask):
        if m.device is not None and not narrow:
            m.device.between.fence(mask)
        if m.sanitizer is not None:
            m.sanitizer.fence(m.lanes_of(mask), not block_only)

    return step


FENCES = {
    "membar": {
        "cta|gl|sys!": Row(_fence, (0,), types="", spread="none"),
        "proxy! alias|async async|global|shared::cta|shared::cluster": _HINT,
    },
    "fence": {
        f"sc|acq_rel|acquire|release {SCOPE} {_RESTRICTED}": Row(_fence, types="", spread="none"),
        f"proxy! alias|async::generic! acquire|release {SCOPE} {_RESTRICTED}": _HINT,
    },
}
