"""The shadow of shared memory, driven by hand: which sequences are hazards and which are not."""

from dataclasses import dataclass

import numpy as np
import pytest

from emulator.machine.values import Affine, Pattern
from emulator.sanitizer import Places, Report, Shadow, source_name


@dataclass(frozen=True)
class Line:
    """An instruction, as far as a report needs one."""

    line: int
    location: object = None


STORE, LOAD, COPY, LATER = Line(10), Line(20), Line(30), Line(40)
THREADS = np.arange(128, dtype=np.int64)[None, :]
ALL = np.ones((2, 128), bool)
DONE = np.ones(2, bool)


def shadow(by_warp=False, **more):
    places = Places((("As", 0, 1024), ("Bs", 1024, 1024)))
    return Shadow(2, 128, 4096, places=places, by_warp=by_warp, **more)


def kinds(s):
    return [h.kind for h in s.report.hazards]


def warps(*numbers):
    mask = np.zeros((2, 4), bool)
    mask[:, list(numbers)] = True
    return mask


def lanes(*numbers):
    return np.repeat(warps(*numbers), 32, axis=1)


both = pytest.mark.parametrize("by_warp", [False, True])


@both
def test_a_barrier_between_write_and_read_is_enough(by_warp):
    s = shadow(by_warp)
    for _ in range(3):
        s.write(THREADS * 4, None, 4, STORE)
        s.barrier(0, ALL, DONE)
        s.read((THREADS ^ 77) * 4, None, 4, LOAD)
        s.barrier(0, ALL, DONE)
    assert not s.report.hazards


@both
def test_reading_what_another_thread_wrote_needs_a_barrier(by_warp):
    s = shadow(by_warp)
    s.write(THREADS * 4 + 1024, None, 4, STORE)
    s.read((THREADS ^ 64) * 4 + 1024, None, 4, LOAD)
    (hazard,) = s.report.hazards
    assert hazard.kind == "read-after-write"
    assert (hazard.ptx_line, hazard.other_ptx_line, hazard.count) == (20, 10, 256)
    assert (hazard.symbol, hazard.offset, hazard.address) == ("Bs", 256, 1280)
    assert hazard.thread == (0, 0, 0) and hazard.other_thread == (64, 0, 0)
    assert "byte 256 of Bs" in hazard.message and "no barrier" in hazard.message


@both
def test_overwriting_what_may_still_be_read_needs_a_barrier(by_warp):
    s = shadow(by_warp)
    s.write(THREADS * 4, None, 4, STORE)
    s.barrier(0, ALL, DONE)
    s.read((THREADS ^ 64) * 4, None, 4, LOAD)
    s.write(THREADS * 4, None, 4, LATER)
    (hazard,) = s.report.hazards
    assert (hazard.kind, hazard.ptx_line, hazard.other_ptx_line) == ("write-after-read", 40, 20)
    assert hazard.other_thread == (64, 0, 0)


@both
def test_many_readers_of_one_word_are_remembered(by_warp):
    s = shadow(by_warp)
    s.write(THREADS * 4, None, 4, STORE)
    s.barrier(0, ALL, DONE)
    s.read(THREADS // 32 * 4, None, 4, LOAD)  # each warp its own word
    s.read((THREADS // 32 ^ 1) * 4, None, 4, LOAD)  # and its neighbour's
    s.write(0, np.arange(256).reshape(2, 128) % 128 == 0, 4, LATER)
    (hazard,) = s.report.hazards
    assert hazard.kind == "write-after-read" and hazard.count == 2


@both
def test_two_threads_writing_one_word_race_unless_in_one_instruction(by_warp):
    s = shadow(by_warp)
    s.write(THREADS % 64 * 4, None, 4, STORE)
    assert not s.report.hazards
    s.write((THREADS + 32) % 128 * 4, None, 4, LATER)
    assert set(kinds(s)) == {"write-after-write"}


@both
def test_a_thread_may_use_its_own_words_without_barriers(by_warp):
    s = shadow(by_warp)
    for _ in range(2):
        s.write(THREADS * 8, None, 8, STORE)
        s.read(THREADS * 8 + 4, None, 4, LOAD)
    assert not s.report.hazards


@both
def test_lanes_of_a_warp_need_a_warp_sync(by_warp):
    for synced in (True, False):
        s = shadow(by_warp)
        s.write(THREADS * 4, None, 4, STORE)
        if synced:
            s.warp_barrier()
        s.read((THREADS ^ 1) * 4, None, 4, LOAD)
        if synced:
            s.warp_barrier(ALL)
        s.write(THREADS * 4, None, 4, LATER)
        expected = [] if synced else ["read-after-write", "write-after-read"]
        assert kinds(s) == expected
        if not synced:
            assert "the warp does not synchronise" in s.report.hazards[0].message


@both
def test_a_warp_sync_does_not_order_two_warps(by_warp):
    s = shadow(by_warp)
    s.write(THREADS * 4, None, 4, STORE)
    s.warp_barrier()
    s.read((THREADS ^ 32) * 4, None, 4, LOAD)
    assert kinds(s) == ["read-after-write"]


@both
def test_uninitialised_reads(by_warp):
    s = shadow(by_warp)
    s.write(THREADS % 127 * 4, None, 4, STORE)
    s.barrier(0, ALL, DONE)
    s.read(THREADS * 4, None, 4, LOAD)
    (hazard,) = s.report.hazards
    assert hazard.kind == "uninitialised-read" and hazard.offset == 127 * 4 and hazard.count == 2
    assert hazard.thread == (127, 0, 0) and hazard.other_thread is None


@both
def test_halves_of_a_word_are_kept_apart(by_warp):
    s = shadow(by_warp)
    s.write(THREADS * 4 + 2048, None, 4, STORE)
    s.barrier(0, ALL, DONE)
    s.write(THREADS * 2, None, 2, STORE)
    s.warp_barrier()
    s.write(THREADS * 2 + 512, None, 2, LATER)
    assert not s.report.hazards
    s.read(THREADS * 4 + 2048, None, 4, LOAD)
    assert not s.report.hazards
    s.read((THREADS ^ 32) * 2, None, 2, LOAD)
    assert kinds(s) == ["read-after-write"]


@both
def test_copies_need_a_wait_and_a_barrier(by_warp):
    for wait, barrier, expected in (
        (True, True, []),
        (True, False, ["read-after-write"]),
        (False, True, ["unfinished-copy"]),
    ):
        s = shadow(by_warp)
        ticket = s.copy(THREADS * 16, None, 16, COPY)
        if wait:
            s.land(THREADS * 16, None, 16, ticket)
        if barrier:
            s.barrier(0, ALL, DONE)
        s.read((THREADS ^ 32) * 16, None, 16, LOAD)
        assert kinds(s) == expected
        if expected:
            (hazard,) = s.report.hazards
            assert (hazard.ptx_line, hazard.other_ptx_line) == (20, 30)
            assert ("wait" in hazard.message) and hazard.other_thread == (32, 0, 0)


@both
def test_the_copying_thread_itself_needs_only_the_wait(by_warp):
    s = shadow(by_warp)
    ticket = s.copy(THREADS * 16, None, 16, COPY)
    s.land(THREADS * 16, None, 16, ticket)
    s.read(THREADS * 16, None, 16, LOAD)
    assert not s.report.hazards


@both
def test_a_stage_must_not_be_overwritten_before_its_readers_are_done(by_warp):
    s = shadow(by_warp)
    ticket = s.copy(THREADS * 16, None, 16, COPY)
    s.land(THREADS * 16, None, 16, ticket)
    s.barrier(0, ALL, DONE)
    s.read((THREADS ^ 32) * 16, None, 16, LOAD)
    s.copy(THREADS * 16, None, 16, COPY)
    assert kinds(s) == ["write-after-read"]


@both
def test_blocks_do_not_share(by_warp):
    s = shadow(by_warp)
    first = np.zeros((2, 128), bool)
    first[0] = True
    s.write(THREADS * 4, first, 4, STORE)
    s.barrier(0, ALL, DONE)
    s.read(THREADS * 4, first, 4, LOAD)
    assert not s.report.hazards
    s.read(THREADS * 4, ~first, 4, LOAD)
    (hazard,) = s.report.hazards
    assert hazard.kind == "uninitialised-read" and hazard.block == (1, 0, 0)


def test_a_barrier_of_one_block_orders_that_block_only():
    s = shadow()
    s.write(THREADS * 4, None, 4, STORE)
    first = np.zeros((2, 128), bool)
    first[0] = True
    s.barrier(0, first, np.array([True, False]))
    s.read((THREADS ^ 64) * 4, first, 4, LOAD)
    assert not s.report.hazards
    s.read((THREADS ^ 64) * 4, ~first, 4, LOAD)
    assert [h.block for h in s.report.hazards] == [(1, 0, 0)]


def test_a_named_barrier_orders_its_participants():
    s = shadow(by_warp=True)
    s.write(THREADS * 4, lanes(0, 1), 4, STORE)
    s.barrier(1, lanes(0, 1), DONE)
    s.read((THREADS ^ 32) * 4, lanes(0, 1), 4, LOAD)
    assert not s.report.hazards
    s.read(THREADS % 32 * 4, lanes(2), 4, LATER)
    (hazard,) = s.report.hazards
    assert (hazard.kind, hazard.ptx_line) == ("read-after-write", 40)


def test_arriving_at_a_named_barrier_releases_but_does_not_acquire():
    s = shadow(by_warp=True)
    s.write(THREADS * 4, lanes(0), 4, STORE)  # producer
    s.barrier_arrive(1, lanes(0))
    s.write(THREADS * 4, lanes(1), 4, STORE)  # consumer
    s.barrier(1, lanes(1), DONE)
    s.read(THREADS % 32 * 4, lanes(1), 4, LOAD)
    assert not s.report.hazards
    s.read(THREADS % 32 * 4 + 128, lanes(0), 4, LATER)
    assert kinds(s) == ["read-after-write"]


def test_mbarrier_edges_order_producer_and_consumer():
    for with_empty_barrier in (True, False):
        s = shadow(by_warp=True)
        for stage in range(2):
            s.write(THREADS * 4, lanes(0), 4, STORE)
            s.release("full", warps(0))
            s.acquire("full", warps(1, 2))
            s.read(THREADS % 32 * 4, lanes(1, 2), 4, LOAD)
            if with_empty_barrier:
                s.release("empty", warps(1, 2))
                s.acquire("empty", warps(0))
            assert stage or not s.report.hazards
        assert kinds(s) == ([] if with_empty_barrier else ["write-after-read"])


def test_phases_of_an_mbarrier_are_kept_apart():
    s = shadow(by_warp=True)
    s.write(THREADS * 4, lanes(0), 4, STORE)
    s.release("arriving", warps(0))
    s.transfer("arriving", "done", DONE)
    s.write(THREADS * 4 + 1024, lanes(0), 4, LATER)
    s.release("arriving", warps(0))
    s.acquire("done", warps(1))
    s.read(THREADS % 32 * 4, lanes(1), 4, LOAD)
    assert not s.report.hazards
    s.read(THREADS % 32 * 4 + 1024, lanes(1), 4, LOAD)
    assert kinds(s) == ["read-after-write"]


@both
def test_atomics_do_not_race_with_each_other(by_warp):
    s = shadow(by_warp)
    s.write(0, lanes(0), 4, STORE)
    s.barrier(0, ALL, DONE)
    for _ in range(2):
        s.write(0, None, 4, LATER, strong=True)
    assert not s.report.hazards
    s.read(0, lanes(3), 4, LOAD, strong=True)
    assert not s.report.hazards
    s.read(0, lanes(0, 1, 2), 4, LOAD)
    assert kinds(s) == ["read-after-write"]


def test_a_flag_carries_order_between_warps():
    for flagged in (True, False):
        s = shadow(by_warp=True)
        s.write(2048, lanes(0), 4, STORE)
        s.barrier(0, ALL, DONE)
        s.write(THREADS * 4, lanes(0), 4, STORE)
        if flagged:
            s.write(2048, lanes(0), 4, STORE, strong=True)
            s.read(2048, lanes(2), 4, LOAD, strong=True)
        s.read(THREADS % 32 * 4, lanes(2), 4, LOAD)
        assert kinds(s) == ([] if flagged else ["read-after-write"])


def test_exited_threads_are_not_waited_for():
    alive = lanes(0, 1)
    s = shadow(alive=lambda: alive)
    s.write(THREADS * 4, lanes(0, 1), 4, STORE)
    s.barrier(0, lanes(0, 1), DONE)
    s.read((THREADS ^ 32) * 4, lanes(0, 1), 4, LOAD)
    assert not s.report.hazards


def test_reports_are_merged_by_place_and_shared_between_chunks():
    report = Report()
    for _ in range(3):
        s = shadow(report=report)
        s.write(THREADS * 4, None, 4, STORE)
        s.read((THREADS ^ 64) * 4, None, 4, LOAD)
    (hazard,) = report.hazards
    assert hazard.count == 3 * 256 and str(hazard).endswith("(768 times)")


@both
def test_patterns_are_remembered_without_changing_the_outcome(by_warp):
    pattern = Pattern(THREADS * 4, 0, 508)
    turned = Pattern((THREADS ^ 64) * 4, 0, 508)
    s = shadow(by_warp)
    for tile in range(3):
        for part in range(2):
            s.write(Affine(pattern, 512 * part), None, 4, STORE)
        s.barrier(0, ALL, DONE)
        for part in range(2):
            s.read(Affine(turned, 512 * part), None, 4, LOAD)
        if tile < 2:
            s.barrier(0, ALL, DONE)
    assert not s.report.hazards
    s.write(Affine(pattern, 512), lanes(1), 4, LATER)
    (hazard,) = s.report.hazards
    assert (hazard.kind, hazard.offset, hazard.count) == ("write-after-read", 640, 64)


def replay(events, threads=64):
    """Hazards of random events by the definition, thread by thread, for one block."""
    clocks = [dict.fromkeys(range(threads), -1) for _ in range(threads)]
    accesses, found = [], set()
    for time, (what, *rest) in enumerate(events):
        if what == "barrier":
            for clock in clocks:
                clock.update(dict.fromkeys(range(threads), time))
        elif what == "sync":
            for t in range(32 * rest[0], 32 * rest[0] + 32):
                clocks[t].update(dict.fromkeys(range(t // 32 * 32, t // 32 * 32 + 32), time))
        else:
            where = rest[0]
            for t in range(threads):
                if where[t] < 0:
                    continue
                for when, kind, other, word in accesses:
                    conflict = word == where[t] and other != t and "write" in (what, kind)
                    if conflict and clocks[t][other] < when < time:
                        found.add((kind, what, word))
            accesses += [(time, what, t, where[t]) for t in range(threads) if where[t] >= 0]
    return found


@both
def test_the_first_hazard_of_random_programs_is_found_and_none_invented(by_warp):
    rng = np.random.default_rng(11)
    hazardous = 0
    for _ in range(60):
        events, s = [], Shadow(1, 64, 64, by_warp=by_warp)
        s.write(np.arange(64)[None] % 16 * 4, None, 4, STORE)
        s.barrier(0, np.ones((1, 64), bool), np.ones(1, bool))
        while len(events) < 12 and not s.report.hazards:
            what = rng.choice(["write", "read", "sync", "barrier"], p=[0.25, 0.25, 0.25, 0.25])
            if what == "barrier":
                events.append((what,))
                s.barrier(0, np.ones((1, 64), bool), np.ones(1, bool))
            elif what == "sync":
                warp = int(rng.integers(2))
                events.append((what, warp))
                mask = np.zeros((1, 64), bool)
                mask[:, 32 * warp : 32 * warp + 32] = True
                s.warp_barrier(mask)
            else:
                where = np.where(rng.random(64) < 0.08, rng.integers(0, 16, 64), -1)
                events.append((what, where.tolist()))
                call = s.write if what == "write" else s.read
                call(np.maximum(where, 0)[None] * 4, (where >= 0)[None], 4, LOAD)
        expected = replay(events)
        assert bool(expected) == bool(s.report.hazards), events
        hazardous += bool(expected)
    assert 20 < hazardous < 60


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_ZZ10gemm_tiledE2As", "As"),
        ("_ZZN3lab6kernelEPKfE4E2Bs", "E2Bs"),
        ("tile", "tile"),
        ("_ZN3lab4tileE", "_ZN3lab4tileE"),
    ],
)
def test_shared_variables_are_called_as_in_the_source(symbol, name):
    assert source_name(symbol) == name
