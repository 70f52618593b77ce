"""The benchmark's table: what counts as caught, as named, and as a false alarm."""

import pytest

from kernels.mistakes import HELD_OUT, held_out, seeded, source, unchanged
from kernels.mistakes.rule import changed, place, statements
from measure import mistakes_table
from measure.compute_sanitizer import TOOLS

TEXT = """__global__ void k(int* s) {
    s[threadIdx.x] = 1;
    for (int i = 0; i < 2; ++i)
        s[i] = 2;
    __syncthreads();  // a comment
    cp_async_wait<0>();
}
"""


@pytest.mark.parametrize(
    ("way", "has", "lacks"),
    [
        ("deleted", "s[i] = 2;\n    ;\n", "__syncthreads"),
        ("weakened", "__syncwarp();", "__syncthreads"),
        ("moved up", "= 1;\n    __syncthreads();", "comment\n    cp_async"),
        ("moved down", "cp_async_wait<0>();\n    __syncthreads();", "s[i] = 2;\n    __syncthreads"),
    ],
)
def test_the_rule_changes_one_statement(way, has, lacks):
    new = changed(TEXT, place(TEXT, "__syncthreads();", 0), way)
    assert has in new and lacks not in new
    assert len(statements(TEXT)) == 2


def test_a_statement_that_is_no_longer_there_is_told():
    with pytest.raises(ValueError, match="no longer stands there 2 times"):
        place(TEXT, "__syncthreads();", 1)


def test_what_a_tool_says_of_the_kernel_as_it_is_counts_for_nothing():
    mistake = next(row for row in seeded() if row.rung == "wgmma" and row.kind == "mbarrier")
    twin = next(row for row in seeded() if row.rung == "tiled" and not row.wrong)
    right = next(row for row in unchanged() if row.rung == "wgmma" and not row.setting)
    race = {"how": "reported", "words": ["Error: Race reported"], "places": ["a.cu:1"]}
    old = {"how": "reported", "words": ["Barrier error detected."], "places": ["a.cu:2"]}
    quiet = {"how": "quiet", "words": ""}

    def row(about, result, **said):
        runs = {name: {**said.get(name, quiet), "seconds": 1.0} for name in TOOLS}
        runs["result"] = {"how": result, "seconds": 1.0}
        return {"rung": about.rung, "words": about.words, "table": about.table, "runs": runs}

    stored = {
        "rows": [
            row(mistake, "hung", racecheck=race, synccheck=old),
            row(twin, "right", synccheck=old, memcheck={"how": "hung", "words": ""}),
            row(right, "right", synccheck=old),
        ]
    }
    scores = {score.name: score for score in mistakes_table.scores(stored)}
    assert scores["racecheck"].caught == scores["racecheck"].named == scores["racecheck"].line == 1
    assert scores["synccheck"].caught == 0 and scores["synccheck"].alarms == 2
    assert scores["memcheck"].silent == 1 and scores["test of the result"].caught == 1
    assert scores["any of the four"].caught == 1 and scores["any of the four"].right == 2
    assert scores["emulator, rows of this GPU"].run == 1


def test_the_table_is_printed_without_a_gpu_s_recording(monkeypatch):
    monkeypatch.setattr(mistakes_table, "recording_of_gpu", lambda: None)
    said = mistakes_table.show()
    assert "not yet run" in said and "emulator, at first" in said and "no reason" not in said


def test_every_row_was_judged_as_it_is_now():
    held = mistakes_table.emulated()
    rows = (*seeded(), *held_out())
    old = [row.key for row in rows if held.get(row.key, {}).get("digest") is None]
    assert old == []


def test_what_was_held_out_is_no_other_row_and_counts_apart():
    others = {(source(row), *sorted(row.setting.items())) for row in (*seeded(), *unchanged())}
    rows = held_out()
    assert not others & {(source(row), *sorted(row.setting.items())) for row in rows}
    scores = {score.name: score for score in mistakes_table.scores({"rows": []})}
    first = scores["emulator, held-out rows, at first"]
    assert first.run == len(rows) >= 40 and first.alarms == 0
    assert first.caught >= 0.97 * first.run
    now = scores["emulator"], scores["emulator, held-out rows"]
    assert sum(one.line for one in now) >= 0.9 * sum(one.run for one in now)
    assert scores["emulator"].run == sum(row.wrong for row in seeded())
    assert HELD_OUT not in {row.table for row in seeded()}
