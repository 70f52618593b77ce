"""The model of the machine: what it counts, that no bound is above a time, and what it does not reach yet."""

import json
from dataclasses import replace

import pytest

from kernels.gemm import plan
from measure.model import check, held, pairs, show
from measure.model.bound import bound, of_product
from measure.model.code import alone, main_loop, offset
from measure.model.counts import count
from measure.model.prediction import STRUCTURE, throughput, turns
from measure.model.rates import BOOK, copies
from measure.model.recorded import ladder, others
from measure.model.sharing import delivery, footprint
from measure.model.store import key, stored
from measure.provenance import FOLDER


def test_the_main_loop_of_naive_is_that_of_the_disassembly():
    """137 instructions for 32 multiply-adds, as nvdisasm prints them; Nsight Compute counts 4.29 per multiply-add."""
    loop = main_loop(plan("naive", 32, 32, 128, {"BLOCK": 32}, 90).build, "gemm_naive")
    assert (loop.kind, loop.products, loop.instructions) == ("fma", 32, 137)


@pytest.mark.parametrize(("low", "to"), [(0xFFFFFFFC00FC7947, -16), (0xFFFFFFB800C49947, -17648)])
def test_a_branch_goes_where_nvdisasm_says(low, to):
    """The branch to itself behind every kernel, and that of warp_tiled's loop, from 0x5300 to 0xe20."""
    assert offset(low) == to


@pytest.mark.parametrize("rung", ["naive", "wmma_shared", "mma_sync", "wgmma"])
def test_a_stored_count_is_what_is_counted_today(rung):
    row = next(r for r in ladder() if r.rung == rung and r.size[0] == 4096)
    ours, now = stored()[key(row.rung, row.macros)], count(row.rung, row.macros)
    assert (list(now.tile), now.registers) == (list(ours.tile), ours.registers)
    for name, parts in ours.work.items():
        assert now.work[name] == pytest.approx(parts, abs=1e-3)


def test_counts_agree_with_nsight_compute():
    """Wavefronts of the data path of the busiest SM, within 12%."""
    rows = json.loads((FOLDER / f"limits-{BOOK}.json").read_text(encoding="utf-8"))["rows"]
    for row in rows:
        counts = stored()[key(row["rung"], row["config"])]
        shares = check.busy(row, counts)
        limit = bound(counts, tuple(row["size"]), BOOK, row["cycles"] / row["milliseconds"] / 1e6)
        ours = limit["shared memory and L1"].work / row["cycles"]
        assert ours == pytest.approx(shares["shared memory and L1"], rel=0.12), row["rung"]


def test_no_bound_lies_above_a_measured_time():
    found = check.bounds()
    assert found.holds, found.misses


def test_a_bound_above_a_time_is_found(monkeypatch):
    """Planted: TMA's writes in the data path of wgmma put a bound above a time."""
    from measure.model import bound as module

    monkeypatch.setattr(module, "DATA_PATH", (*module.DATA_PATH, "TMA"))
    assert not check.bounds().holds


@pytest.mark.parametrize(
    ("size", "inputs", "binding", "ms"),
    [  # 134 MB of B; 2 N^3 operations at 4095 per clock and SM; N^3 multiply-adds at 3.86 warps' per clock and SM
        ((16, 8192, 8192), "float16", "device memory", 0.0296),
        ((4096, 4096, 4096), "float16", "tensor cores", 0.1284),
        ((4096, 4096, 4096), "float32", "FMA pipe", 2.128),
    ],
)
def test_what_any_kernel_of_a_product_needs_at_least(size, inputs, binding, ms):
    found = of_product(size, inputs, inputs, BOOK, 1.98)
    assert (pytest.approx(found[0], rel=1e-3), found[1]) == (ms, binding)


def test_a_kernel_of_others_below_its_bound_is_found(monkeypatch):
    row = next(others())
    planted = replace(row, name="planted", least=row.least / 10)
    monkeypatch.setattr(check, "others", lambda: [planted])
    assert ["planted" in miss for miss in check.bounds().misses] == [True]


def test_the_binding_resource_is_the_busiest_of_nsight_compute():
    found = check.bindings()
    assert found.holds, found.misses
    assert all("longest stall" in miss for miss in found.misses)


def test_the_directions_of_recorded_changes_and_the_errors_hold():
    assert len(list(pairs.pairs())) >= check.PAIRS
    for verdict in (check.directions(), *check.errors()):
        assert verdict.holds and verdict.of_today, verdict.misses


@pytest.mark.parametrize(("of_today", "status"), [(True, 1), (False, 0)])
def test_a_miss_fails_the_check_unless_an_earlier_model_made_it(
    monkeypatch, capsys, of_today, status
):
    missed = check.Verdict("claimed", "found", False, ("the miss",), of_today)
    monkeypatch.setattr(show, "check", lambda: [missed])
    assert show.verdicts() == status
    assert "claimed" in capsys.readouterr().out


def _instruction(opcode: int, pause: int = 1, sets: int = 7, waits: int = 0) -> tuple[int, int]:
    return opcode, waits << 52 | sets << 46 | pause << 41


@pytest.mark.parametrize(
    ("turn", "clocks"),
    [
        ([_instruction(0x223), _instruction(0x223, pause=4)], 5),
        ([_instruction(0x984, sets=0), _instruction(0x223, waits=1)], 21),  # waits for what it loads
        ([_instruction(0x223, waits=1), _instruction(0x984, sets=0), *[_instruction(0x223)] * 30], 32),  # loaded ahead
        ([_instruction(0x984, sets=0), _instruction(0x984, sets=0), _instruction(0x223, waits=1)], 22),
        ([_instruction(0x381, sets=2), _instruction(0x223, waits=4)], 2),  # of a tile's loads others tell
    ],
)  # fmt: skip
def test_a_turn_of_a_warp_on_its_own(turn, clocks):
    assert alone(turn, {"shared memory": 20.0}) == clocks


def test_a_warp_alone_takes_its_own_time_and_many_take_the_fullest_part():
    """A block of one warp: 8 clocks of its pipe in 40 on its own, and 3 of the shared path."""
    assert turns([2.0, 3.0], 40, 1) == pytest.approx(40 - 8 + 8 + 3)
    assert turns([2.0, 3.0], 40, 1, 400) == pytest.approx(400 * 3, rel=0.02)  # the path binds
    assert turns([8.0, 3.0], 40, 1, 400) == pytest.approx(400 * 8, rel=0.02)  # the pipes do
    assert turns([2.0, 3.0], 40, 4, 4) < 4 * turns([2.0, 3.0], 40, 4)  # warps overlap


def test_every_rung_that_is_timed_has_a_structure():
    assert {row.rung for row in ladder()} <= set(STRUCTURE)


@pytest.mark.parametrize(
    ("rung", "changed", "tiles", "touched"),
    [
        ("mma_swizzled", {}, 264, (8.25, 32)),  # blocks go along rows of C: 32 tiles of 128 columns
        ("mma_swizzled", {}, 16, (1, 16)),
        ("wgmma_persistent", {"GROUP": 16}, 132, (16, 8.25)),  # down 16 rows, then the next column
        ("wgmma_persistent", {"GROUP": 1}, 132, (8.25, 16)),  # with 16 columns of 256
        ("wgmma_split", {"SPLIT": 2}, 66, (32, 2.0625)),  # down a column of C
        (
            "wgmma_split",
            {"SPLIT": 1},
            132,
            (32, 16),
        ),  # each block at a tile of its own, far from the others
    ],
)
def test_which_tiles_run_at_the_same_time(rung, changed, tiles, touched):
    counts = replace(_counts(rung), macros={**_counts(rung).macros, **changed})
    sides = counts.tile
    assert sides[0] == 128
    assert footprint(counts, (4096, 4096, 4096), tiles) == pytest.approx(touched)


def test_an_sm_gets_less_where_each_asks_for_tiles_of_its_own():
    """Stream-K begins everywhere along K: nobody asks for what another has."""
    split = _counts("wgmma_split")
    alone, own = copies()["TMA, one SM"], copies()["TMA, all SMs"]
    rates = [
        delivery(
            replace(split, macros={**split.macros, "SPLIT": parts}),
            (4096,) * 3,
            "TMA",
            1,
            BOOK,
            1.7,
        )
        for parts in (0, 1, 2)
    ]
    assert rates[0] == pytest.approx(own)
    assert own < min(rates[1:]) and max(rates[1:]) < alone
    assert delivery(split, (128, 128, 4096), "TMA", 1, BOOK, 1.7) == pytest.approx(
        alone
    )  # few SMs ask


def _counts(rung: str):
    row = next(r for r in ladder() if r.rung == rung and r.size == (4096,) * 3 and r.ghz)
    return stored()[key(row.rung, row.macros)]


def test_mean_value_analysis():
    """One customer meets no queue; many are as fast as the slowest part."""
    assert throughput([2, 3], 5, 1) == pytest.approx(1 / 10)
    assert throughput([2, 3], 5, 500) == pytest.approx(1 / 3, rel=1e-3)
    assert throughput([1, 1], 0, 2) == pytest.approx(2 / 3)


def test_what_was_predicted_before_it_was_timed_is_never_predicted_anew(tmp_path, monkeypatch):

    before = json.loads(held.COMPARISONS.read_text(encoding="utf-8"))
    assert before["rows"]
    for row in before["rows"]:
        row["ratio"] = 7.0
    copy = tmp_path / "comparisons.json"
    copy.write_text(json.dumps(before), encoding="utf-8")
    monkeypatch.setattr(held, "COMPARISONS", copy)
    monkeypatch.setattr(
        held, "store_lines", lambda path, method, machine, rows: path.write_text(str(len(rows)))
    )
    monkeypatch.setattr(held, "counted", lambda *_: None)
    monkeypatch.setattr(held, "predict", lambda *_: pytest.fail("predicted again"))
    held.compare()
    assert copy.read_text() == str(len(before["rows"]))


@pytest.mark.parametrize("rung", ["naive", "mma_padded", "wgmma_split"])
def test_each_resource_of_a_rung_is_printed_with_the_source_of_its_rate(capsys, rung):
    show.detail(rung)
    printed = capsys.readouterr().out
    assert all(f"{name} " in printed for name in ("issue slots", "L2 to one SM", "device memory"))
    assert "Nsight Compute's peak" in printed and "predicted" in printed
