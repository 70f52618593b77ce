"""The loops that measure the machine do what their rows say: counted on the emulator."""

import dataclasses
import json
from collections import Counter

import numpy as np
import pytest

import kernels
from measure import machine
from measure.machine import CHAINS, CUDA, LOOPS, STREAMS, Row, following
from measure.machine_code import words

SHAPES = {1: 16 * 8 * 16, 2: 16 * 8 * 16, 3: 16 * 8 * 8, 4: 16 * 8 * 32}
FFMA, HMMA, IMMA = 0x223, 0x23C, 0x237  # opcodes of sm_90


def executed(loop, turns: int) -> int:
    """Operations of one block in so many turns, from the instructions that the emulator executed."""
    built = kernels.build(CUDA / f"{loop.file}.cu", {"UNIT": loop.unit}, arch=80)
    passed, seen = np.zeros((1, 2), np.int64), np.zeros(1, np.float32)
    arguments = [passed, seen, np.int32(turns)]
    trace = kernels.launch(built, loop.file, 1, loop.threads, arguments, machine="emulator")
    if loop.unit == 0:
        return 2 * sum(row.threads for row in trace.rows("fma"))
    return 2 * SHAPES[loop.unit] * sum(row.warps for row in trace.rows("mma"))


@pytest.mark.parametrize("loop", [loop for loop in LOOPS if loop.file == "arithmetic"], ids=str)
def test_a_turn_has_the_operations_that_its_row_counts(loop):
    assert executed(loop, 3) - executed(loop, 1) == 2 * loop.operations


@pytest.mark.parametrize("loop", [loop for loop in LOOPS if loop.file == "arithmetic"], ids=str)
def test_the_compiler_leaves_every_operation_of_the_loop(loop):
    """One of e4m3 was recorded until 28 November 2026: of 256 products of halves, 16 were left."""
    built = kernels.build(CUDA / f"{loop.file}.cu", {"UNIT": loop.unit}, arch=90)
    made = Counter(low & 0xFFF for low, _ in words(built, loop.file))
    found, turn = made[FFMA] + made[HMMA] + made[IMMA], 128 if loop.unit == 0 else 64
    assert found and found % turn == 0  # as often as turns are unrolled


@pytest.mark.parametrize("name", CHAINS)
def test_every_chain_compiles_without_a_warning_and_each_step_needs_the_one_before(name):
    what = CHAINS[name][0]
    built = kernels.build(CUDA / "latency.cu", {"WHAT": what}, arch=90)
    assert built.warnings == () and built.spills == 0


def test_a_chain_of_loads_visits_every_line_once_and_comes_back():
    ring, at, seen = following(1000), 0, set()
    for _ in range(1000):
        seen.add(at)
        at = int(ring[at])
    assert at == 0 and len(seen) == 1000
    assert (np.abs(np.diff(ring.astype(int))) > 1).mean() > 0.9  # no neighbour to prefetch


def test_a_chain_of_loads_follows_its_addresses_on_the_emulator():
    built = kernels.build(CUDA / "latency.cu", {"WHAT": 2}, arch=80)
    chain, clocks, seen = np.zeros(16, np.uint64), np.zeros(1, np.int64), np.zeros(32, np.uint32)
    arguments = [chain, clocks, seen, np.int32(1), np.int32(3)]
    trace = kernels.launch(built, "latency", 1, 32, arguments, machine="emulator")
    loads = [row for row in trace.rows("ld.shared") if row.warps]
    assert sum(row.warps for row in loads) == machine.SPIN * (1 + 3)
    assert not trace.hazards


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_moves_the_bytes_that_its_row_counts(name):
    source, footprint, moved = STREAMS[name]
    built = kernels.build(CUDA / "bandwidth.cu", {"FROM": source}, arch=80)
    assert built.warnings == () and built.spills == 0
    batch = machine.STREAM_THREADS * machine.STREAM_BATCH
    data = np.random.default_rng(5).integers(0, 1 << 30, (3 * batch, 4), np.int32)
    target, seen = np.zeros_like(data), np.zeros(1, np.uint32)

    def loaded(turns: int) -> int:
        passed = np.zeros((2, 2), np.int64)
        arguments = [data, target, passed, seen, np.int64(3 * batch), np.int32(turns)]
        trace = kernels.launch(
            built, "bandwidth", 2, machine.STREAM_THREADS, arguments, machine="emulator"
        )
        opcodes = ("ld.shared",) if source == 0 else ("ld.global",)
        return sum(row.bytes for opcode in opcodes for row in trace.rows(opcode))

    assert loaded(3) - loaded(1) == 2 * 2 * batch * 16
    if source == 4:
        assert moved == 2 and (target == data).all()  # two blocks, three turns: all three batches
    assert footprint % (batch * 16) == 0


def test_a_recording_is_found_by_kind_and_name(tmp_path, monkeypatch):
    row = Row("latency", "L1", 33.0, "clocks", "a load that hits L1")
    stored = {
        "machine": {"gpu": "NVIDIA Test"}, "recorded": "2026-01-02T03:04:05", "rows": [dataclasses.asdict(row)],
    }  # fmt: skip
    (tmp_path / "machine-nvidia-test.json").write_text(json.dumps(stored))
    monkeypatch.setattr(machine, "FOLDER", tmp_path)
    machine.recorded.cache_clear()
    found = machine.recorded("nvidia-test")
    machine.recorded.cache_clear()
    assert found["latency", "L1"] == row and found.label == "recorded on NVIDIA Test, 2026-01-02"
    with pytest.raises(KeyError, match=r"latency.*L2.*there are L1"):
        found["latency", "L2"]


@pytest.mark.parametrize("name", machine.COPIES | machine.ONE_AT_A_TIME)
def test_copies_bring_the_tiles_that_their_row_counts_without_a_race(name):
    how, stages, _, apart, _ = (machine.COPIES | machine.ONE_AT_A_TIME)[name]
    macros = {"HOW": how, "STAGES": stages}
    built = kernels.build(CUDA / "copies.cu", macros, arch=90 if how == 2 else 80)
    assert built.warnings == () and built.spills == 0
    tile, tiles = machine.COPY_TILE, 6
    data = np.random.default_rng(5).integers(0, 256, tiles * tile, np.uint8)

    def brought(turns: int) -> int:
        passed, seen = np.zeros((2, 2), np.int64), np.zeros(1, np.uint32)
        tail = [np.int32(tiles), np.int32(apart), np.int32(turns)]
        shared = stages * tile
        arguments = [data, passed, seen, *tail]
        trace = kernels.launch(
            built, "copies", 2, machine.COPY_THREADS, arguments, shared, machine="emulator"
        )
        assert not trace.hazards
        opcodes = ("ld.global", "cp.async")
        return sum(row.bytes for opcode in opcodes for row in trace.rows(opcode))

    assert brought(8) == 2 * 8 * tile
