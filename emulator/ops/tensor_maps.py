"""Tensor maps changed by a kernel, and the fences between a change and TMA (PTX ISA 9.7.9.28, 9.7.13.4 and 9.7.13.16).

TMA reads maps through a proxy of its own: `sanitizer.tensor_maps` says when a changed one is used without a release
by its writer or without an acquire by its user's block.
"""

from __future__ import annotations

import numpy as np

from emulator.errors import ExecutionError, Misaligned
from emulator.machine import boxes, map_fields
from emulator.machine.access import deliver, fetch, resolve, space_of, watch_global
from emulator.machine.values import Affine, Pattern
from emulator.ops.bulk_operands import Issuers
from emulator.ops.forms import SCOPE
from emulator.sanitizer.tensor_maps import changes
from emulator.text.rows import Row

_WORD = np.dtype(np.uint64)
_WORDS = boxes.BYTES // 8
_ALIGNED = 64


def _aligned(m, ins, address, mask) -> None:
    """A map stands at a multiple of 64 bytes."""
    lanes = m.lanes_of(mask)
    off = lanes & (m.addresses(address) % _ALIGNED != 0)
    if off.any():
        block, thread = (int(x) for x in np.argwhere(off)[0])
        at = int(m.addresses(address)[block, thread])
        text = f"a tensor map at {at:#x}: it must stand at a multiple of {_ALIGNED} bytes"
        m.fail(Misaligned, text, ins, block, thread, address=at)


def _read(m, ins, memory, where, here, name) -> np.ndarray:
    """(B, T, 128) uint8: what stands at each lane's address."""
    _aligned(m, ins, where, here)
    words = fetch(m, memory, where, here, _WORD, _WORDS, ins)
    if name == "shared" and m.sanitizer is not None:
        m.sanitizer.read(where, here, boxes.BYTES, ins)
    if name == "global":
        watch_global(m, ins, where, here, boxes.BYTES, "load")
    found = np.stack([np.broadcast_to(word, (m.B, m.T)) for word in words], axis=-1)
    return np.ascontiguousarray(found).view(np.uint8)


def _write(m, ins, memory, where, here, name, data: np.ndarray) -> None:
    words = list(np.moveaxis(data.view(_WORD), -1, 0))
    if name == "global":
        watch_global(m, ins, where, here, boxes.BYTES, "store")
    deliver(m, memory, where, here, _WORD, words, ins)
    if name == "shared" and m.sanitizer is not None:
        m.sanitizer.write(where, here, boxes.BYTES, ins)
    m.changes += 1


def _replace(ins, bind):
    field = ins.parts[3]
    address, *at, value = ins.operands
    of_stride = field in ("global_address", "global_stride")
    if of_stride != (ins.parts[-1] == "b64"):
        raise bind.error(f"{field} is given as {'.b64' if of_stride else '.b32'}")
    if (field in map_fields.COUNTS) != bool(at):
        raise bind.error(f"{field} takes {'a number of the dimension' if not at else 'one value'}")
    number = bind.constant(at[0], 4) if at else 0
    if at and number >= map_fields.COUNTS[field]:
        raise bind.error(f"{field} {number}: there are {map_fields.COUNTS[field]}")
    if field in _NAMED:
        bind.constant(value, 4)  # these must be immediate
    space = space_of(ins)
    get, get_value = bind.address(address, space), bind.integer(value, f"u{ins.parts[-1][1:]}")

    def step(m, mask):
        given = m.addresses(get_value(m))
        for memory, where, here, name in resolve(m, space, get(m), mask):
            if name not in ("shared", "global"):
                m.fail(ExecutionError, f"a tensor map in {name} memory cannot be changed", ins)
            data = _read(m, ins, memory, where, here, name)
            for block, thread in np.argwhere(m.lanes_of(here)).tolist():
                new = int(np.broadcast_to(given, (m.B, m.T))[block, thread])
                problem = map_fields.limit(field, new)
                if problem:
                    m.fail(ExecutionError, problem, ins, block, thread)
                old = data[block, thread].tobytes()
                one = map_fields.replaced(old, field, number, new, m.launch.tensor_maps)
                if one is None:
                    text = "what stands there is no tensor map, and not 128 bytes of zeros"
                    m.fail(ExecutionError, text, ins, block, thread)
                data[block, thread] = np.frombuffer(one, np.uint8)
            _write(m, ins, memory, where, here, name, data)

    return step


def _copy_and_release(ins, bind):
    """tensormap.cp_fenceproxy: a warp copies a map to global memory, and releases it to TMA."""
    if bind.constant(ins.operands[2], 4) != boxes.BYTES:
        raise bind.error(f"a tensor map has {boxes.BYTES} bytes")
    to_of = bind.address(ins.operands[0], "global")
    from_of = bind.address(ins.operands[1], "shared")

    def step(m, mask):
        first = m.lanes_of(mask).reshape(m.B, -1, 32)
        first = (first & (np.cumsum(first, axis=2) == 1)).reshape(m.B, m.T)  # a lane of each warp
        source = from_of(m)
        for memory, where, here, name in resolve(m, "shared", source, first):
            data = _read(m, ins, memory, where, here, name)
        to = m.addresses(to_of(m))
        lowest = int(to[first].min())
        place = Affine(Pattern(np.where(first, to, lowest), lowest, int(to[first].max())))
        _aligned(m, ins, place, first)
        _write(m, ins, m.globals, place, first, "global", data)
        if m.device is not None:
            changes(m.device).copied(to[first], "cta" in ins)

    return step


def _fence(ins, bind):
    """fence.proxy.tensormap::generic: a release of what was changed, or an acquire of one map."""
    acquires, narrow = "acquire" in ins, "cta" in ins
    if acquires != bool(ins.operands):
        raise bind.error("the acquire takes an address and a size, the release nothing")
    get = bind.address(ins.operands[0], "generic") if acquires else None
    if acquires and bind.constant(ins.operands[1], 4) != boxes.BYTES:
        raise bind.error(f"a tensor map has {boxes.BYTES} bytes")

    def step(m, mask):
        if m.device is None:
            return
        if acquires:
            rows = Issuers(m, mask)
            changes(m.device).acquired(rows.of(get(m)), rows.block, narrow)
        else:
            changes(m.device).released(np.flatnonzero(m.lanes_of(mask).any(axis=1)), narrow)

    return step


_NAMED = ("elemtype", "interleave_layout", "swizzle_mode", "swizzle_atomicity", "fill_mode")
_SPACE = "global|shared::cta|shared b1024! b32|b64!"
_GENERIC = "tensormap::generic!"

OPCODES = {
    "tensormap": {
        f"replace! tile! global_address|rank|{'|'.join(_NAMED)}! {_SPACE}": Row(
            _replace, (2,), types="- own", spread="none"
        ),
        f"replace! tile! {'|'.join(map_fields.COUNTS)}! {_SPACE}": Row(
            _replace, (3,), types="- - own", spread="none"
        ),
        f"cp_fenceproxy! global! shared::cta! {_GENERIC} release! {SCOPE}! sync! aligned!": Row(
            _copy_and_release, (3,), types="-", spread="none", meets="warp"
        ),
    }
}
FENCES = {
    "fence": {
        f"proxy! {_GENERIC} acquire|release! {SCOPE}!": Row(
            _fence, (0, 2), types="-", spread="none"
        ),
    }
}
