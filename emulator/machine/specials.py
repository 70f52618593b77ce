"""Special registers: %tid, %ctaid, %laneid and the rest (PTX ISA 10), as register values of a chunk."""

from __future__ import annotations

import numpy as np

from emulator.machine.memory import RESERVED_BYTES, RESERVED_FIRST, reserved_start
from emulator.machine.values import Affine, Pattern, Value


def special(name: str, launch, blocks: np.ndarray, threads: int, lanes: int) -> Value:
    """A special register that does not change while a chunk runs.

    launch: its `grid`, `block`, `cluster`, `dynamic_bytes`, `shared_bytes` and `workspace`. blocks: (B, 3)
    coordinates of the
    resident blocks. Each has so many `threads`, in so many `lanes` (whole warps).
    """
    root, _, axis = name.partition(".")
    axis_number = "xyz".find(axis) if axis else 0
    if root == "tid":
        return _thread_axis(launch.block, threads, lanes, axis_number)
    if root == "ntid":
        return launch.block[axis_number]
    cluster = launch.cluster
    if root == "ctaid":
        return _pattern(blocks[:, axis_number][:, None].astype(np.int64))
    if root == "clusterid":
        number = blocks[:, axis_number] // cluster[axis_number]
        return _pattern(number[:, None].astype(np.int64))
    if root == "cluster_ctaid":
        place = blocks[:, axis_number] % cluster[axis_number]
        return _pattern(place[:, None].astype(np.int64))
    if root == "cluster_ctarank":
        x, y, z = (blocks % np.array(cluster)).T
        rank = x + cluster[0] * (y + cluster[1] * z)
        return _pattern(rank[:, None].astype(np.int64))
    if root == "nctaid":
        return launch.grid[axis_number]
    if root == "nclusterid":
        return launch.grid[axis_number] // cluster[axis_number]
    if root == "cluster_nctaid":
        return cluster[axis_number]
    if root == "laneid":
        return _pattern(np.arange(lanes, dtype=np.int64)[None, :] % 32)
    if root == "warpid":
        return _pattern(np.arange(lanes, dtype=np.int64)[None, :] // 32)
    if root.startswith("lanemask_"):
        lane = np.arange(lanes, dtype=np.int64)[None, :] % 32
        below = (1 << lane) - 1
        kinds = {
            "eq": 1 << lane,
            "lt": below,
            "le": below | (1 << lane),
            "gt": 0xFFFFFFFF & ~(below | (1 << lane)),
            "ge": 0xFFFFFFFF & ~below,
        }
        return _pattern(kinds[root[9:]])
    reserved = reserved_start(launch.shared_bytes)
    constants = {
        "nwarpid": lanes // 32,
        "smid": 0,
        "nsmid": 1,
        "gridid": 0,
        "cluster_nctarank": int(np.prod(cluster)),
        "is_explicit_cluster": launch.explicit_cluster,
        "dynamic_smem_size": launch.dynamic_bytes,
        "total_smem_size": launch.shared_bytes,
        "aggr_smem_size": launch.shared_bytes + RESERVED_BYTES,
        "reserved_smem_offset_begin": reserved,
        "reserved_smem_offset_0": reserved,
        "reserved_smem_offset_1": reserved + RESERVED_FIRST,
        "reserved_smem_offset_end": reserved + RESERVED_BYTES,
        "reserved_smem_offset_cap": reserved + RESERVED_BYTES,
        "current_graph_exec": 0,
        "envreg1": launch.workspace >> 32,
        "envreg2": launch.workspace & 0xFFFFFFFF,
    }
    return constants.get(root, 0)


def _thread_axis(block, threads: int, lanes: int, axis: int) -> Value:
    bx, by, _ = block
    thread = np.arange(lanes, dtype=np.int64)[None, :]
    # lanes past the end of the block never run; give them the coordinates of its last thread
    thread = np.minimum(thread, threads - 1)
    return _pattern((thread % bx, thread // bx % by, thread // (bx * by))[axis])


def _pattern(array: np.ndarray) -> Value:
    lo, hi = int(array.min()), int(array.max())
    if lo == hi:
        return lo
    found = Pattern(array, lo, hi)
    found._tight = True
    return Affine(found)
