"""Every rung is right on the emulator, at its edges and in its settings, and what `check` does and says."""

import sys

import numpy as np
import pytest

from kernels import RUNGS, build, find
from kernels.check import (
    SCALARS,
    broken_promises,
    check,
    check_one,
    edge_sizes,
    persistent_case,
)
from kernels.gemm import arch_on_emulator
from kernels.mistakes import whole
from kernels.settings import searched, types_of

CUDA = [rung for rung in RUNGS.values() if rung.path is not None]


def widths(rung, setting):
    """What addresses hang on: bytes of an element of A and of C, and the macros that choose no number format."""
    types, formats = (
        rung.types(setting),
        {macro for macros, _ in types_of(rung) for macro in macros},
    )
    sizes = (np.dtype(dtype).itemsize for dtype in (types.input_dtype, types.output_dtype))
    return *sizes, *sorted(pair for pair in setting.items() if pair[0] not in formats)


def first_of_each(rung, cases):
    """(case, whether a case before it has the same addresses): bfloat16 lies where float16 does."""
    seen = set()
    for case in cases:
        setting, *arch = case if isinstance(case, tuple) else (case,)
        key = (*arch, *widths(rung, setting))
        yield case, key in seen
        seen.add(key)


SETTINGS = [
    pytest.param(rung.name, setting, alike, id="-".join([rung.name, *map(str, setting)]))
    for rung in CUDA
    for setting, alike in first_of_each(rung, rung.configurations())
]
TINY = (1, 8, 8)  # fewer tiles than blocks, fewer k-steps than stages
FALLBACK = [
    rung.name
    for rung in CUDA
    if rung.min_arch <= 75 and "ptx.cuh" in rung.path.read_text(encoding="utf-8")
]


def at_the_edges(rung):
    """What `SETTINGS` has of a rung, with all macros."""
    arch = arch_on_emulator(rung)
    return [(rung.resolve(setting, arch), arch) for setting in rung.configurations()]


@pytest.mark.parametrize(("name", "setting", "alike"), SETTINGS)
def test_right_around_every_tile_edge_and_keeps_its_promises(name, setting, alike):
    arch = arch_on_emulator(name)
    edges = edge_sizes(name, setting, arch)
    for turn, size in enumerate(edges[3:4] if alike else edges):
        found, hazards = check_one(name, size, setting, *SCALARS[turn % 2])
        assert found.ok, f"{size}: {found}"
        assert not hazards, f"{size}: {hazards[0]}"
    assert broken_promises(name, setting, arch) == []


@pytest.mark.parametrize("name", FALLBACK)
def test_right_on_a_gpu_without_sm_80_instructions(name):
    size = edge_sizes(name, None, 75)[2]
    found, hazards = check_one(name, size, None, *SCALARS[1], arch=75)
    assert found.ok and not hazards


@pytest.mark.parametrize(
    ("name", "macros", "arch"),
    [
        pytest.param(rung.name, macros, arch, id=f"{rung.name}-{arch}-{number}")
        for rung in CUDA
        for number, ((macros, arch), alike) in enumerate(first_of_each(rung, searched(rung)))
        if not alike and (macros, arch) not in at_the_edges(rung)
    ],
)
def test_what_a_search_found_is_right_and_keeps_the_promises(name, macros, arch):
    for size, scalars in zip((edge_sizes(name, macros, arch)[3], TINY), SCALARS[::-1], strict=True):
        found, hazards = check_one(name, size, macros, *scalars, arch=arch)
        assert found.ok and not hazards, size
    assert broken_promises(name, macros, arch) == []


@pytest.mark.parametrize(
    ("name", "macros"),
    [
        pytest.param(rung.name, macros, id=f"{rung.name}-{number}")
        for rung in CUDA
        for number, macros in enumerate(rung.checked)
    ],
)
def test_what_a_row_names_for_this_is_right(name, macros):
    arch = arch_on_emulator(name)
    values = find(name).resolve(macros, arch)
    found, hazards = check_one(name, edge_sizes(name, values, arch)[3], values, *SCALARS[1])
    assert found.ok and not hazards


def test_a_count_that_is_not_set_back_is_a_hazard():
    """The blocks of stream-K share tiles, and count who has come."""
    macros, sizes = persistent_case("wgmma_split", {"SPLIT": 0}, 90)
    text = whole("wgmma_split")
    changed = text.replace("atomicExch(arrived, 0)", "return")
    for source, kinds in ((text, []), (changed, ["not-set-back"])):
        built = build(source, macros, "90a", name="26_wgmma_split.cu")
        _, hazards = check_one("wgmma_split", sizes[0], macros, 1.0, 0.0, arch=90, built=built)
        assert [hazard.kind for hazard in hazards] == kinds


def test_a_persistent_kernel_goes_round_three_times():
    for rung in CUDA:
        if case := persistent_case(rung, None, arch_on_emulator(rung)):
            macros, sizes = case
            for M, N, K in sizes:
                tiles = -(-M // macros.get("BM", 128)) * -(-N // macros["BN"])
                (blocks, *_), _, _ = rung.geometry(macros, M, N, K)
                assert tiles >= 3 * blocks


def test_check_covers_searches_loops_and_promises(monkeypatch):
    module = sys.modules["kernels.check"]
    rows = module._cases(find("mma_multistage"), "emulator", None, None, False, False)
    settings = [macros for macros, *_ in rows]
    assert {} in settings and {"HALF_OUTPUT": 1} in settings
    assert any(macros.get("BLOCKS") == 2 for macros in settings)
    cases = list(module._cases(find("wgmma_cluster"), "emulator", None, None, True, False))
    rounds = [macros for macros, *_ in cases if macros.get("CLUSTER_N") == 2]
    assert find("wgmma_cluster").checked[0] in rounds and any(
        "BLOCKS" in macros for macros in rounds
    )
    assert any(macros in settings for macros, _ in searched("mma_multistage"))
    bare = [m for m, *_ in module._cases(find("mma_tiled"), "emulator", None, None, True, False)]
    assert bare == [{}]
    monkeypatch.setattr(module, "broken_promises", lambda *_: ["ldmatrix: 16, 4 promised"])
    (row,) = check(["naive"], [(5, 6, 7)], ["emulator"], show=False)
    assert not row.ok and "16, 4 promised" in row.problem


def test_sizes_surround_the_tiles():
    sizes = edge_sizes("coarsened_1d", {"BM": 64, "BN": 32, "BK": 8})
    assert (1, 1, 1) in sizes
    assert {63, 65, 129} <= {m for m, _, _ in sizes}
    assert {31, 33, 65} <= {n for _, n, _ in sizes}
    assert {9, 15} <= {k for _, _, k in sizes}


def test_the_table_says_what_was_checked(capsys):
    rows = check(["cpu", "naive", "cublas"], sizes=[(5, 6, 7), (33, 1, 2)], machines=["emulator"])
    assert [row.rung for row in rows] == ["cpu", "naive", "cublas"]
    assert all(row.ok for row in rows)
    assert rows[1].sizes == 2 and 0 < rows[1].worst < 1
    assert rows[2].skipped
    printed = capsys.readouterr().out
    assert "naive" in printed and "ok" in printed and "needs a GPU" in printed


def test_a_fault_in_whole_tiles_is_a_row_and_no_traceback(monkeypatch):
    def faults(*case):
        raise RuntimeError("planted\nand more")

    monkeypatch.setattr(sys.modules[check.__module__], "broken_promises", faults)
    (row,) = check(["naive"], sizes=[(5, 6, 7)], machines=["emulator"], show=False)
    assert (row.ok, row.problem) == (False, "whole tiles: RuntimeError: planted")


def test_the_row_without_a_setting_is_the_rows_default(monkeypatch):
    """At sizes for which a search has found other settings, too."""
    ran = []

    def noted(rung, size, macros, *more):
        ran.append(macros)
        return check_one("naive", (1, 1, 1))

    monkeypatch.setattr(sys.modules[check.__module__], "check_one", noted)
    monkeypatch.setattr(sys.modules[check.__module__], "broken_promises", lambda *case: [])
    check(["wgmma_cluster"], machines=["emulator"], show=False, defaults=True)
    default = find("wgmma_cluster").resolve({}, arch_on_emulator(find("wgmma_cluster"), None))
    assert ran[:6] == [default] * 6
