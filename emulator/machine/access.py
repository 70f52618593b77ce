"""From an instruction's addresses to the memories that they point into: reading, writing and counting."""

from __future__ import annotations

import numpy as np

from emulator.machine.cluster import REMOTE, is_remote
from emulator.machine.memory import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BYTES
from emulator.machine.values import SIGNED, UNSIGNED, Affine, Pattern, add
from emulator.text.program import WIDTHS

_SPACES = ("global", "shared", "local", "const", "param")
POLLING = {"volatile", "relaxed", "acquire", "mmio"}  # what others may be changing under us
_STRONG = POLLING | {"release"}


def dtype_of(kind: str) -> np.dtype:
    """The NumPy type that holds one element of a PTX memory type."""
    width = WIDTHS[kind]
    if kind in ("f16", "f32", "f64"):
        return np.dtype(f"f{width}")
    if width not in UNSIGNED:
        raise ValueError(kind)
    return np.dtype(SIGNED[width] if kind[0] == "s" and kind[1:].isdigit() else UNSIGNED[width])


def space_of(ins) -> str:
    """The state space an instruction names, or "generic"."""
    for part in ins.parts[1:]:
        root = part.split("::")[0]
        if root in _SPACES:
            return root
    return "generic"


def resolve(m, space: str, address, mask) -> list:
    """[(memory, address in it, lanes, name)]: the memories that an address of this space points into."""
    if space in ("global", "const", "param"):
        return [(m.globals, address, mask, "global" if space == "global" else "const")]
    if space == "shared":
        return _in_cluster(m, address, mask)
    if space == "local":
        return [(m.local, address, mask, "local")]
    if type(address) is int:
        lo = hi = address
    else:
        lo, hi = address.lo, address.hi
        if hi >= SHARED_WINDOW:
            address.pattern.tighten()
            lo, hi = address.lo, address.hi
    if hi < SHARED_WINDOW:
        return [(m.globals, address, mask, "global")]
    for window, memory, name in (
        (SHARED_WINDOW, m.shared, "shared"),
        (LOCAL_WINDOW, m.local, "local"),
    ):
        if lo >= window - WINDOW_BYTES and hi < window + WINDOW_BYTES:
            inside = add(address, -window & (1 << 64) - 1, 8)
            if name == "shared":
                return _in_cluster(m, inside, mask)
            return [(memory, inside, mask, name)]
    lanes, active, found = m.addresses(address), m.lanes_of(mask), []
    near_shared = (lanes >= SHARED_WINDOW - WINDOW_BYTES) & (lanes < SHARED_WINDOW + WINDOW_BYTES)
    near_local = (lanes >= LOCAL_WINDOW - WINDOW_BYTES) & (lanes < LOCAL_WINDOW + WINDOW_BYTES)
    for where, memory, window, name in (
        (near_shared, m.shared, SHARED_WINDOW, "shared"),
        (near_local, m.local, LOCAL_WINDOW, "local"),
        (~near_shared & ~near_local, m.globals, 0, "global"),
    ):
        here = active & where
        if here.any():
            pattern = Pattern(np.where(here, lanes - window, int(lanes[here][0]) - window), 0, 0)
            pattern.lo, pattern.hi = int(pattern.array.min()), int(pattern.array.max())
            if name == "shared":
                found += _in_cluster(m, Affine(pattern), here)
            else:
                found.append((memory, Affine(pattern), here, name))
    return found


def _in_cluster(m, address, mask) -> list:
    """A block's own shared memory, and that of the other blocks of its cluster: "cluster"."""
    if m.remote is None or not is_remote(address):
        return [(m.shared, address, mask, "shared")]
    lanes = m.lanes_of(mask)
    far = lanes & (m.addresses(address) >= REMOTE)
    found = [(m.remote, address, far, "cluster")] if far.any() else []
    near = lanes & ~far
    if near.any():
        found.append((m.shared, address, near, "shared"))
    return found


def fetch(m, memory, address, mask, dtype: np.dtype, count: int, ins) -> list[np.ndarray]:
    """`count` consecutive elements per lane; rubbish in inactive lanes."""
    places = memory.places(m, address, mask, dtype.itemsize, dtype.itemsize * count, ins)
    (place, *others) = places
    view = place.buffer.view(dtype)
    found = [view[place.start + i :].take(place.index) for i in range(count)]
    for place in others:
        view = place.buffer.view(dtype)
        for i in range(count):
            found[i] = np.where(place.mask, view[place.start + i :].take(place.index), found[i])
    return found


def deliver(m, memory, address, mask, dtype: np.dtype, values: list[np.ndarray], ins) -> None:
    """Writes consecutive elements; where lanes collide, the last one wins."""
    for place in memory.places(m, address, mask, dtype.itemsize, dtype.itemsize * len(values), ins):
        view = place.buffer.view(dtype)
        for i, value in enumerate(values):
            target = view[place.start + i :]
            if place.mask is None:
                shape = np.broadcast_shapes(place.index.shape, value.shape)
                target[np.broadcast_to(place.index, shape)] = value
            else:
                shape = place.mask.shape
                picked = np.broadcast_to(place.index, shape)[place.mask]
                target[picked] = np.broadcast_to(value, shape)[place.mask]


def watch_global(m, ins, address, mask, width: int, kind: str, values=None) -> None:
    """Tells the sanitizer of an access to global memory; see `sanitizer.device.DeviceShadow.access`."""
    if m.device is not None and ins.index in m.device.watched:
        m.device.access(ins, address, mask, width, kind, values)


def count(m, ins, name: str, address, mask, width: int, kind: str, values=None) -> None:
    """Counts and watches an access. Stores to global memory are watched before they happen: `watch_global`."""
    if name == "global":
        if kind != "store":
            watch_global(m, ins, address, mask, width, kind)
        m.count_global(ins, address, mask, width, kind)
    elif name == "shared":
        m.count_shared(ins, address, mask, width, kind)
        if m.sanitizer is not None:
            strong = kind == "atomic" or bool(_STRONG & set(ins.parts))
            if kind != "store":
                m.sanitizer.read(address, mask, width, ins, strong)
            if kind != "load":
                m.sanitizer.write(address, mask, width, ins, strong, values)
    elif name == "cluster":
        m.count_cluster(ins, address, mask, width, kind)
