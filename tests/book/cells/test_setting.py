"""The setting that was timed, and where a warp's clocks go."""

import numpy as np
import pytest

from book import facts
from book.cells import limits, setting


def test_what_is_dissected_is_what_was_timed():
    assert setting.timed("coarsened_1d")["TM"] == facts.config("coarsened_1d", "TM")
    rng = np.random.default_rng(0)
    A, B = rng.uniform(-1, 1, (70, 20)), rng.uniform(-1, 1, (20, 130))
    A, B = A.astype(np.float32), B.astype(np.float32)
    run = setting.run("coarsened_1d", A, B)
    assert np.allclose(run.C, A @ B, atol=1e-4)
    # blocks of its own tile, not of the row's default
    m = setting.timed("coarsened_1d")
    blocks = -(-70 // m["BM"]) * -(-130 // m["BN"])
    warps = m["BM"] * m["BN"] // m["TM"] // 32
    assert sum(row.warps for row in run.trace.rows("st.global")) == blocks * warps * m["TM"]


def test_a_rung_that_was_not_timed_so_is_an_error():
    with pytest.raises(LookupError, match="naive was not timed at 4096 with float16"):
        setting.timed("naive", inputs="float16")


def test_the_table_names_setting_and_limit(capsys):
    setting.show("tiled", "coarsened_2d")
    text = capsys.readouterr().out
    assert "32x32x32" in text and "8x8" in text and "registers" in text


def test_clocks_per_multiply_add_add_up_to_the_time_of_a_warp():
    row = limits.row("coarsened_2d")
    every = sum(limits.per_multiply_add("coarsened_2d", reason) for reason in row["stalls"])
    warps = row["warps resident, %"] / 100 * 64
    clocks = row["cycles"] * facts.machine("sms") * warps / (4096**3 / 32)
    assert every == pytest.approx(clocks, rel=0.05)


def test_a_reason_that_the_profiler_lacks_is_an_error():
    with pytest.raises(KeyError):
        limits.per_multiply_add("tiled", "boredom")
