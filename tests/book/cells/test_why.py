"""The model's table on a page: its shares, what binds, and what it refuses."""

import pytest

from book import facts
from book.cells.why import reason, why


def test_a_share_is_counted_work_over_a_rate_and_the_measured_time():
    found = reason("mma_tiled")
    need = found.bound["shared memory and L1"]
    by_hand = need.work / need.rate.value / (found.row.ghz * 1e6)  # wavefronts of the busiest SM
    assert need.ms == pytest.approx(by_hand)
    assert facts.least("mma_tiled", "shared memory and L1") == pytest.approx(by_hand / found.row.ms)
    assert 0 < facts.bound("mma_tiled") <= found.row.least


def test_the_table_ends_with_what_binds_what_is_predicted_and_what_was_measured(capsys):
    why("mma_tiled", "mma_padded")
    lines = capsys.readouterr().out.splitlines()
    bound, predicted, measured = (
        next(line for line in lines if line.startswith(word))
        for word in ("bound", "predicted", "measured")
    )
    assert "shared memory and L1" in bound and "L2 look-ups" in bound
    assert f"{facts.predicted('mma_padded'):.3g} ms" in predicted
    assert f"{facts.ms('mma_tiled'):.3g} ms" in measured


def test_what_was_not_recorded_is_refused_with_what_was():
    with pytest.raises(KeyError, match=r"naive at 3000 .*there are .*4096"):
        reason("naive", 3000)
    with pytest.raises(LookupError, match="tensor cores"):
        facts.least("naive", "tensor cores")


def test_the_page_of_misses_has_every_pair_and_names_the_worst(capsys):
    from book.cells.why import changes
    from measure.model.pairs import pairs

    changes()
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    stages = next(line for line in lines if line[:1] == ["STAGES"])
    found = [pair for pair in pairs() if pair.change.startswith("STAGES ")]
    worst = max((p for p in found if not p.hit), key=lambda p: abs(p.measured - 1))
    assert int(stages[1]) == len(found)
    assert stages[2] == f"{sum(p.hit for p in found) / len(found):.0%}"
    assert stages[3] == f"{worst.first.rung}," and stages[-1] == f"{worst.measured:.2f}"
