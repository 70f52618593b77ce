"""What a Trace says: counters by instruction and by source line, and sample accesses."""

import numpy as np
import pytest

import emulator

PTX = """.version 9.0
.target sm_90
.address_size 64
.visible .entry copy(.param .u64 source, .param .u64 target, .param .u32 pitch)
{
 .shared .align 16 .b8 tile[4096];
 .reg .b64 %p, %q, %n; .reg .b32 %t, %s, %v, %w;
 .loc 1 10 3
 ld.param.u64 %p, [source]; ld.param.u64 %q, [target]; ld.param.u32 %w, [pitch];
 mov.u32 %t, %tid.x; mul.wide.u32 %n, %t, 4; add.s64 %p, %p, %n; add.s64 %q, %q, %n;
 .loc 1 11 3
 ld.global.u32 %v, [%p];
 .loc 2 5 1, function_name $S, inlined_at 1 12 9
 mul.lo.u32 %s, %t, %w; mov.u32 %t, tile; add.u32 %s, %s, %t;
 st.shared.u32 [%s], %v;
 .loc 1 13 3
 ld.shared.u32 %v, [%s];
 st.global.u32 [%q], %v;
 ret;
}
.file 1 "copy.cu"
.file 2 "inline.cuh"
.section .debug_str { $S: .b8 1, 2, 3 }
"""


def launch(pitch=4, threads=64, **options):
    source, target = np.arange(96, dtype="u4"), np.zeros(96, "u4")
    trace = emulator.Module(PTX).launch(
        "copy", 2, threads, [source, target, np.uint32(pitch)], **options
    )
    assert (target[:threads] == source[:threads]).all()
    return trace


def row(trace, opcode):
    (found,) = trace.rows(opcode)
    return found


def test_counters():
    trace = launch()
    load, store = row(trace, "ld.global"), row(trace, "st.shared")
    assert (load.warps, load.threads, load.global_requests, load.global_sectors, load.bytes) == (
        4,
        128,
        4,
        16,
        512,
    )
    assert (store.shared_wavefronts, store.shared_wavefronts_ideal, store.bytes) == (4, 4, 512)
    assert trace.total("global_sectors") == 32 and trace.total("shared_wavefronts") == 8
    trace = launch(pitch=64)
    assert row(trace, "st.shared").shared_wavefronts == 4 * 16
    assert row(trace, "st.shared").shared_wavefronts_ideal == 4
    with pytest.raises(ValueError, match="no column"):
        trace.total("sectors")


def test_lanes_outside_the_block_count_for_nothing():
    trace = launch(threads=40)
    load = row(trace, "ld.global")
    assert (load.warps, load.threads, load.global_sectors, load.bytes) == (4, 80, 2 * (4 + 1), 320)


def test_what_was_not_watched_is_not_said_to_be_without_hazards():
    with pytest.raises(ValueError, match="sanitize=False"):
        assert launch(sanitize=False).hazards


def test_source_lines_and_call_sites():
    trace = launch()
    store = row(trace, "st.shared")
    assert store.source == ("inline.cuh", 5) and store.frames == (
        ("inline.cuh", 5),
        ("copy.cu", 12),
    )
    lines = trace.by_line()
    assert list(lines) == [10, 11, 12, 13]
    assert lines[12]["shared_wavefronts"] == 4 and lines[11]["global_sectors"] == 16
    assert lines[13]["instructions"] == 3
    assert trace.by_line("inline.cuh")[5]["shared_wavefronts"] == 4
    assert [r.opcode for r in trace.rows("ld", line=13)] == ["ld.shared.u32"]


def test_accesses_are_relative_to_their_buffer():
    trace = launch()
    first, second = trace.accesses(row(trace, "ld.global"))
    assert (first.warp, second.warp, first.occurrence, first.block) == (0, 1, 0, (0, 0, 0))
    assert (
        first.buffer == "argument 0"
        and first.kind == "load"
        and first.width == 4
        and first.active.all()
    )
    assert (first.addresses == np.arange(32) * 4).all() and (
        second.addresses == 128 + np.arange(32) * 4
    ).all()
    (shared,) = trace.accesses(row(trace, "st.shared"), warp=1)
    assert shared.space == "shared" and (shared.addresses == 128 + np.arange(32) * 4).all()
    (last,) = trace.accesses(trace.instructions.index(row(trace, "st.global")), warp=0)
    assert last.buffer == "argument 1" and last.kind == "store"
    assert not trace.accesses(row(launch(record=0), "ld.global"))


def test_hazards_of_a_missing_barrier():
    text = PTX.replace("ld.shared.u32 %v, [%s];", "xor.b32 %s, %s, 128; ld.shared.u32 %v, [%s];")
    module = emulator.Module(text)
    trace = module.launch(
        "copy", 1, 64, [np.arange(64, dtype="u4"), np.zeros(64, "u4"), np.uint32(4)]
    )
    assert trace.hazards and {hazard.kind for hazard in trace.hazards} <= {
        "read-after-write",
        "uninitialised-read",
    }
    text = text.replace("ld.shared.u32 %v", "bar.sync 0; ld.shared.u32 %v")
    trace = emulator.Module(text).launch(
        "copy", 1, 64, [np.arange(64, dtype="u4"), np.zeros(64, "u4"), np.uint32(4)]
    )
    assert trace.hazards == []
