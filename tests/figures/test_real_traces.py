"""The figures of the first chapters, drawn from what the emulator recorded of the kernels themselves."""

import numpy as np
import pytest

import figures
import kernels
from kernels.rungs import find

M, N, K = 64, 96, 64


@pytest.fixture(scope="module")
def traces():
    rng = np.random.default_rng(11)
    A = rng.standard_normal((M, K), dtype=np.float32)
    B = rng.standard_normal((K, N), dtype=np.float32)
    return {
        name: kernels.gemm(name, A, B, machine="emulator").trace
        for name in ("uncoalesced", "naive", "tiled")
    }


def text(name):
    return find(name).path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["uncoalesced", "naive", "tiled"])
def test_annotated_lines_add_up_to_the_whole_trace(traces, name):
    listing = figures.annotated_source(traces[name], text(name))
    totals = listing.facts["totals"]
    assert totals["sectors"] == traces[name].total("global_sectors") > 0
    assert totals["wavefronts"] == traces[name].total("shared_wavefronts")
    assert sum(cost["warps"] for cost in listing.facts["lines"].values()) == totals["warps"]
    assert "sum +=" in listing.plain() and "// [compute]" not in listing.plain()


def test_global_accesses_show_the_sectors_of_their_rows(traces):
    """An unrolled loop has the same pattern many times over, at other addresses: each pattern is drawn once."""
    loads, drawn = {}, {}
    for name, trace in traces.items():
        for row in trace.rows("ld.global"):
            access = trace.accesses(row)[0]
            start = access.addresses.min() // 128 * 128
            pattern = access.width, *(access.addresses - start).tolist()
            if pattern not in drawn:
                drawn[pattern] = figures.global_access(access).facts[""]["sectors"]
            loads[name] = max(loads.get(name, 0), drawn[pattern])
            if name != "tiled":
                assert drawn[pattern] == row.global_sectors / row.global_requests
    assert loads == {"uncoalesced": 32, "naive": 4, "tiled": 4}


def test_shared_accesses_show_the_wavefronts_of_their_rows(traces):
    trace = traces["tiled"]
    rows = [*trace.rows("ld.shared"), *trace.rows("st.shared")]
    assert len(rows) > 3
    for row in rows:
        access = trace.accesses(row)[0]
        fact = figures.shared_banks(access, rows="wavefront").facts[""]
        assert fact["wavefronts"] == row.shared_wavefronts / row.warps
        explorer = figures.BankExplorer(cases={"recorded": access})
        assert explorer.data["cases"]["recorded"]["addresses"] == access.addresses.tolist()


def test_a_missing_barrier_is_drawn_from_the_hazard_report():
    source = text("tiled").replace("__syncthreads();", "", 1)
    build = kernels.build(source, macros=dict(find("tiled").resolve()), name="no barrier")
    grid, block, shared = find("tiled").geometry({}, 64, 64, 64)
    A = np.ones((64, 64), np.float32)
    arguments = [
        A,
        A.copy(),
        np.zeros_like(A),
        *map(np.int32, (64, 64, 64)),
        *map(np.float32, (1, 0)),
    ]
    trace = kernels.launch(build, None, grid, block, arguments, shared, machine="emulator")
    found = next(hazard for hazard in trace.hazards if hazard.kind == "read-after-write")
    drawing = figures.hazard(found, source)
    written, read = (source.splitlines()[line - 1] for line in drawing.facts["lines"])
    assert "s[tile_row][tile_col] =" in written and "sum +=" in read
    assert drawing.facts["threads"][0] != drawing.facts["threads"][1]
