"""Seeded mistakes on a GPU: what is made of the tools' output, limits, and going on where a run stopped."""

import json
import sys
import time
from types import SimpleNamespace

import pytest

from kernels.mistakes import Seeded, cases, source
from measure import compute_sanitizer, mistakes
from measure.mistakes import SAYS, limited, outcome, record, rows, run_all, run_once

RUNS = ("result", *compute_sanitizer.TOOLS)

RACE = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at void cp_async<(int)16>(unsigned int)+0x7b0 in ptx.cuh:20
=========     and Read access at gemm_async_copy+0x930 in 08_async_copy.cu:100 [256 hazards]
=========
========= Warning: Detected overflow of tracked cuda::barrier structures. Results might be incorrect.
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
BOUNDS = """========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at gemm_naive+0x2e0 in /x/02_naive.cu:30
=========     by thread (0,0,0) in block (1,0,0)
=========     Access at 0x7f0 is out of bounds
=========         Host Frame: main in driver.cu:7
========= Invalid __global__ read of size 4 bytes
=========     at gemm_naive+0x2e0 in /x/02_naive.cu:30
========= Program hit CUDA_ERROR_LAUNCH_FAILED (error 719) due to "unspecified launch failure" on CUDA API call
========= Target application returned an error
========= ERROR SUMMARY: 3 errors
"""


def test_reports_are_counted_with_their_places():
    race, bounds = compute_sanitizer.parse(RACE), compute_sanitizer.parse(BOUNDS)
    assert race.reports == 1 and race.words == ("Error: Race reported between Write access",)
    assert race.places == ("ptx.cuh:20", "08_async_copy.cu:100")
    assert bounds.reports == 2 and bounds.words == ("Invalid __global__ read of size 4 bytes",)
    assert bounds.places == ("02_naive.cu:30",)


@pytest.mark.parametrize(
    "headline",
    [
        "Barrier error detected. Divergent thread(s) in block",
        "Uninitialized __shared__ memory read of size 4 bytes",
        "Potential invalid __shared__ read of size 4 bytes",
        "Warpgroup MMA sequence error detected",
        "Unknown Error",
        "Deadlock detected in Cuda::barrier wait called by threads starting at (0,0,0)",
    ],
)
def test_each_tool_s_headline_is_a_report(headline):
    assert compute_sanitizer.parse(f"========= {headline}\n").reports == 1


def test_what_a_tool_without_finding_prints_is_no_report():
    quiet = compute_sanitizer.parse(
        "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
    )
    broken = compute_sanitizer.parse("========= Internal Sanitizer Error: out of memory\n")
    assert quiet == compute_sanitizer.Said() and broken.broken


def says(**words):
    return SAYS + json.dumps(words) + "\n"


BEGUN = says(begun=2)


@pytest.mark.parametrize(
    ("name", "output", "late", "how"),
    [
        ("result", BEGUN + says(how="ended", words="", case=5), False, "right"),
        ("result", BEGUN + says(how="wrong", words="3 elements", case=2), False, "wrong"),
        ("result", BEGUN, True, "hung"),
        ("result", "Traceback\nImportError: cupy\n", False, "failed"),
        ("result", "", True, "failed"),
        ("racecheck", BEGUN + RACE, True, "reported"),
        ("memcheck", BEGUN + BOUNDS + says(how="fault", words="719", case=2), False, "reported"),
        ("memcheck", BEGUN + says(how="fault", words="719", case=2), False, "fault"),
        ("synccheck", BEGUN + says(how="ended", words="", case=5), False, "quiet"),
        ("synccheck", BEGUN + "========= Internal Sanitizer Error\n", False, "failed"),
    ],
)
def test_how_a_run_ended(name, output, late, how):
    assert outcome(name, output, late)["how"] == how


def test_a_hang_says_in_which_case():
    assert outcome("result", says(begun=0) + BEGUN, True)["case"] == 2


def test_a_tool_whose_program_hangs_tells_what_it_found(tmp_path):
    """As compute-sanitizer does: its reports come when the program that it watches has ended."""
    program, tool = tmp_path / "program.py", tmp_path / "tool"
    program.write_text(f"import time; print({BEGUN!r}, flush=True); time.sleep(600)")
    tool.write_text(f'#!/bin/bash\n"{sys.executable}" {program}\necho "========= Barrier error"\n')
    tool.chmod(0o755)
    begun = time.monotonic()
    output, late = limited([str(tool)], 1.5)
    assert late and time.monotonic() - begun < 1.5 + 2 * mistakes.GRACE_S
    assert outcome("synccheck", output, late)["how"] == "reported"


def test_a_run_has_its_limit(monkeypatch):
    monkeypatch.setattr(mistakes, "PROGRAM", (sys.executable, "-c", "import time; time.sleep(600)"))
    found = run_once(rows()[0], "result", 0, 0.5)
    assert found["how"] == "failed" and found["seconds"] < 10


def test_side_by_side_until_the_time_is_over():
    """A task that begins too late is left out, and so is one that had less than its time."""
    ran, kept = [], []

    def run(row, name, slot, limit):
        ran.append((row, slot))
        time.sleep(min(limit, row))
        return {"how": "hung" if row > limit else "quiet"}

    tasks = [(0.02, "a"), (0.03, "b"), (30, "c"), (0.02, "d"), (30, "e"), (0.02, "f")]
    end = time.monotonic() + 1.6
    left = run_all(tasks, run, lambda *one: kept.append(one[1]), end, 2, lambda *_: 5.0)
    assert time.monotonic() - end < 2
    assert sorted(kept) == ["a", "b", "d"] and sorted(name for _, name in left) == ["c", "e", "f"]
    assert {slot for _, slot in ran} == {0, 1}


def test_a_limit_of_its_own_ends_a_run_for_good():
    kept = []
    run_all(
        [(1, "hangs")],
        lambda *_: {"how": "hung"},
        lambda *one: kept.append(one[1]),
        time.monotonic() + 60,
        1,
        lambda *_: 5.0,
    )
    assert kept == ["hangs"]


HOPPER = SimpleNamespace(arch=90, slug="fake")


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A GPU that is none, for three rows, one of them Blackwell's; how often each was run."""
    some = [row for row in rows() if row.rung in ("tiled", "wgmma")][:2]
    some.append(next(row for row in rows() if row.rung == "tcgen05"))
    ran = []

    def run(row, name, slot, limit):
        ran.append((row.key, name, limit))
        hangs = row is some[0]
        return {"how": "hung" if hangs else "right" if name == "result" else "quiet"}

    for name, value in {
        "gpu": lambda: HOPPER, "version": lambda: "2025.3", "initcheck_reads": lambda: "global memory",
        "describe": lambda: {"gpu": "fake"},
        "FOLDER": tmp_path, "rows": lambda: tuple(some), "run_once": run, "_repairs": lambda *_: [],
    }.items():  # fmt: skip
        monkeypatch.setattr(mistakes, name, value)
    return SimpleNamespace(rows=some, ran=ran)


def test_a_recording_goes_on_where_it_stopped(machine):
    path, notes = record(60.0, jobs=2)
    stored = json.loads(path.read_text())
    by_key = {f"{row['rung']}: {row['words']}": row for row in stored["rows"]}
    assert stored["machine"]["compute_sanitizer"] == "2025.3" and stored["commit"]
    assert set(by_key[machine.rows[0].key]["runs"]) == set(RUNS)
    assert by_key[machine.rows[2].key]["not_run"] == "needs sm_100"
    assert notes == ["1 rows need another GPU than sm_90"]
    count = len(machine.ran)
    record(60.0, jobs=2)
    assert len(machine.ran) == count + 1  # the one that warms up
    stored["rows"][0]["digest"] = "of another source"
    path.write_text(json.dumps(stored))
    record(60.0, jobs=2)
    assert len(machine.ran) == count + 2 + len(RUNS)


def test_a_row_that_hangs_gets_less_time_under_the_tools(machine):
    record(600.0, jobs=2)
    limits = {(key, name): limit for key, name, limit in machine.ran}
    hung, fine = machine.rows[0].key, machine.rows[1].key
    assert limits[hung, "memcheck"] == limits[fine, "memcheck"] / 2


def test_no_time_leaves_everything_out(machine):
    _, notes = record(0.001, jobs=2)
    assert len(notes) == 2 * len(RUNS) + 1


def test_each_tool_looks_where_it_can(monkeypatch):
    helps = "--kernel-name arg --initcheck-address-space arg --racecheck-deadlock-timeout arg"
    monkeypatch.setattr(compute_sanitizer, "_says", lambda option: helps)
    first = compute_sanitizer.command("initcheck", "gemm_", 5)
    assert "--initcheck-address-space" in first and "kns=gemm_" not in first
    race = compute_sanitizer.command("racecheck", "gemm_", 5)
    assert "--racecheck-deadlock-timeout" in race and "--kernel-name" in race
    assert "--racecheck-continue-on-deadlock" not in race  # this one does not know it
    monkeypatch.setattr(compute_sanitizer, "_says", lambda option: "--kernel-name-exclude x")
    assert "--kernel-regex" in compute_sanitizer.command("memcheck", "gemm_", 5)


def test_rows_are_told_apart():
    keys = [row.key for row in rows()]
    assert len(set(keys)) == len(keys)
    for row in rows():
        assert cases(row) and source(row)


def test_a_row_whose_source_has_changed_is_told():
    with pytest.raises(ValueError, match="no longer has"):
        source(Seeded("tiled", "written", "x", {}, (("no such words", ""),)))
