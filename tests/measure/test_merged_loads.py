"""Loads from shared memory that ptxas merges, and what they cost: by the GPU's counters where they are recorded."""

import json

import numpy as np
import pytest

import kernels
from emulator import Module
from measure import machine_code, merged_loads, provenance
from measure.compare import count_on_emulator
from measure.inspection import inspect

NEIGHBOURS = """
extern "C" __global__ void sums(const float* in, float* out) {
  __shared__ float tile[32 * STRIDE + 64];
  for (int i = threadIdx.x; i < 32 * STRIDE + 64; i += 32) tile[i] = in[i];
  __syncthreads();
  float sum = 0;
  for (int k = 0; k < 4; ++k) sum += tile[threadIdx.x * STRIDE + k];
  out[threadIdx.x] = sum;
}
"""


def neighbours(stride: int):
    return kernels.build(NEIGHBOURS.replace("STRIDE", str(stride)), arch=90, name="sums")


def launched(built, merged):
    size = 32 * 4 + 64
    data, out = np.arange(size, dtype=np.float32), np.zeros(32, np.float32)
    trace = Module(built.ptx).launch("sums", 1, 32, [data, out], merged=merged)
    return trace.rows("ld.shared"), out


def test_four_neighbours_are_one_load():
    built = neighbours(4)
    assert machine_code.shared_loads(built) == {16: 1}
    merged = merged_loads.merged_loads(built)
    assert sorted(merged.values()) == [0, 0, 0, 16]
    rows, out = launched(built, merged)
    assert (out == np.arange(128).reshape(32, 4).sum(axis=1)).all()
    # 32 lanes 16 bytes apart: four words of each bank in each of PTX's four loads, 512 bytes once in the machine's one.
    assert [row.shared_wavefronts for row in rows] == [4] * 4
    assert sum(row.machine_wavefronts for row in rows) == 4
    assert sum(row.machine_loads for row in rows) == 1


def test_where_nothing_is_merged_the_counts_are_those_of_ptx():
    built = neighbours(3)  # 12 bytes from lane to lane: no load of 16 bytes would be aligned
    merged = merged_loads.merged_loads(built)
    assert merged == {} and machine_code.shared_loads(built) == {4: 4}
    rows, _ = launched(built, merged)
    assert [row.machine_wavefronts for row in rows] == [row.shared_wavefronts for row in rows]
    assert all(row.machine_loads == row.warps == 1 for row in rows)


def test_what_is_not_certain_is_not_said(monkeypatch):
    """Machine code that loads what PTX does not, loads it twice, or cuts PTX's loads in two."""
    built = neighbours(4)
    (load,) = machine_code.shared_accesses(built)
    kind = machine_code.SharedLoad
    for made in (
        [kind(load.registers, 0, 8)],
        [load, load],
        [load, kind((9, 0), 64, 4)],
        [kind(load.registers, 0, 2), kind(load.registers, 2, 8), kind(load.registers, 10, 6)],
    ):
        monkeypatch.setattr(machine_code, "shared_accesses", lambda *_, made=made: made)
        assert merged_loads.merged_loads(built) is None


def test_two_groups_that_touch_alike_but_were_made_otherwise_are_not_told_apart(monkeypatch):
    ours = [tuple(merged_loads.Load(4 * i, 4, 10 * g + i) for i in range(4)) for g in (1, 2)]
    whole, parts = (merged_loads.Load(0, 16),), ours[0]
    monkeypatch.setattr(merged_loads, "_in_ptx", lambda *_: ours)
    built = neighbours(4)
    monkeypatch.setattr(merged_loads, "_in_machine_code", lambda *_: [whole, parts])
    assert merged_loads.merged_loads(built) is None
    monkeypatch.setattr(merged_loads, "_in_machine_code", lambda *_: [whole, whole])
    assert sorted(merged_loads.merged_loads(built).items()) == [
        (10, 16), (11, 0), (12, 0), (13, 0), (20, 16), (21, 0), (22, 0), (23, 0)
    ]  # fmt: skip


@pytest.mark.parametrize("rung", ["tiled", "coarsened_1d", "coarsened_2d", "warp_tiled"])
def test_the_gpus_counters_are_met(rung):
    """Recorded by Nsight Compute on an H200. ptxas merges loads in the first three."""
    path = provenance.FOLDER / "compare-nvidia-h200.json"
    rows = [row for row in json.loads(path.read_text())["rows"] if row["rung"] == rung]
    recorded = {row["counter"]: row["gpu"] for row in rows if "shared" in row["counter"]}
    counts = count_on_emulator(rung, tuple(rows[0]["size"]), rows[0]["config"], arch=90)
    assert {name: counts.machine[name] for name in recorded} == recorded
    name = "shared wavefronts, loads"
    assert (counts[name] > recorded[name]) == (rung != "warp_tiled")


def test_inspect_shows_both_counts():
    size = 32 * 4 + 64
    data, out = np.arange(size, dtype=np.float32), np.zeros(32, np.float32)
    text = NEIGHBOURS.replace("STRIDE", "4")
    found = inspect(text, 1, 32, [data, out], arch=90)
    (kept,) = found.machine_loads.values()
    assert kept == {
        "warps": 4, "machine_loads": 1, "shared_wavefronts": 16, "machine_wavefronts": 4
    }  # fmt: skip
    assert "machine wavefronts" in found.text()
    other = inspect(NEIGHBOURS.replace("STRIDE", "3"), 1, 32, [data, out], arch=90)
    assert "merged loads from shared memory: none" in other.text()
