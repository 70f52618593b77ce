"""Special registers: %tid, %ctaid, %laneid and the rest (PTX ISA 10), as register values of a chunk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .values import Affine, Pattern, Value

if TYPE_CHECKING:
    from .machine import Chunk


def special(m: Chunk, name: str) -> Value:
    """A special register that does not change while a chunk runs."""
    root, _, axis = name.partition(".")
    axis_number = "xyz".find(axis) if axis else 0
    if root == "tid":
        return _thread_axis(m, axis_number)
    if root == "ntid":
        return m.launch.block[axis_number]
    if root in ("ctaid", "clusterid"):
        return _pattern(m.blocks[:, axis_number][:, None].astype(np.int64))
    if root in ("nctaid", "nclusterid"):
        return m.launch.grid[axis_number]
    if root == "laneid":
        return _pattern(np.arange(m.T, dtype=np.int64)[None, :] % 32)
    if root == "warpid":
        return _pattern(np.arange(m.T, dtype=np.int64)[None, :] // 32)
    if root.startswith("lanemask_"):
        lane = np.arange(m.T, dtype=np.int64)[None, :] % 32
        below = (1 << lane) - 1
        kinds = {
            "eq": 1 << lane,
            "lt": below,
            "le": below | (1 << lane),
            "gt": 0xFFFFFFFF & ~(below | (1 << lane)),
            "ge": 0xFFFFFFFF & ~below,
        }
        return _pattern(kinds[root[9:]])
    constants = {
        "nwarpid": m.T // 32,
        "smid": 0,
        "nsmid": 1,
        "gridid": 0,
        "cluster_ctaid": 0,
        "cluster_nctaid": 1,
        "cluster_ctarank": 0,
        "cluster_nctarank": 1,
        "is_explicit_cluster": False,
        "dynamic_smem_size": m.launch.dynamic_bytes,
        "total_smem_size": m.launch.shared_bytes,
        "aggr_smem_size": m.launch.shared_bytes,
        "current_graph_exec": 0,
    }
    return constants.get(root, 0)


def _thread_axis(m: Chunk, axis: int) -> Value:
    bx, by, _ = m.launch.block
    thread = np.arange(m.T, dtype=np.int64)[None, :]
    # lanes past the end of the block never run; give them the coordinates of its last thread
    thread = np.minimum(thread, m.threads - 1)
    return _pattern((thread % bx, thread // bx % by, thread // (bx * by))[axis])


def _pattern(array: np.ndarray) -> Value:
    lo, hi = int(array.min()), int(array.max())
    if lo == hi:
        return lo
    found = Pattern(array, lo, hi)
    found._tight = True
    return Affine(found)
