"""Live controls: what a page shows of them."""

import json

import pytest

from book import chapters
from book.cells import live, one_setting
from book.cells.subjects import subject

SMALL = {"choices": {"BLOCK": (8, 16)}, "shape": (32, 32, 16)}


def test_a_page_has_a_figure_of_all_settings(monkeypatch):
    monkeypatch.setenv("GEMM_LIVE", "0")
    made = live.kernel("tiled", **SMALL)
    assert set(made.figure.data["counts"]) == {"8", "16"}
    assert "64 threads" in made.figure.data["blocks"]["8"]
    assert not live.wanted()
    with pytest.raises(ValueError, match="at most 24"):
        _ = live.kernel("warp_tiled").figure
    with pytest.raises(ValueError, match="does not contain"):
        live.kernel("tiled", free={"a": "no such words"})


def test_a_rung_without_macros_shows_a_table(monkeypatch):
    monkeypatch.setenv("GEMM_LIVE", "0")
    made = live.kernel("mma_atoms", {}, shape=(32, 16, 32), free={"a row": "group + r % 2 * 8"})
    rows = {row[0]: row[1:3] for row in made.figure.rows}
    # 4 blocks, 2 steps, 8 loads of 2 bytes per lane, each of 8 sectors
    assert rows["load A"] == (str(4 * 2 * 8), str(4 * 2 * 8 * 8))


def test_a_kernel_of_others_moves_as_a_rung_does(monkeypatch):
    monkeypatch.setenv("GEMM_LIVE", "0")
    asked = {"choices": {"ALIGN": (4, 16)}, "shape": (32, 32, 64), "start": {"TILES": 1}}
    made = live.kernel("all copy, 4 bytes", **asked)
    counts = {
        at: {row[0]: row[1:] for row in rows} for at, rows in made.figure.data["counts"].items()
    }
    assert counts["4"]["cp.async reads"][0] == 4 * counts["16"]["cp.async reads"][0]
    with pytest.raises(ValueError, match="has no macro TILE: it has TILES, ALIGN"):
        live.kernel("all copy, 4 bytes", {"ALIGN": (4,)}, start={"TILE": 1})


def test_a_page_says_what_the_emulator_reports(monkeypatch):
    monkeypatch.setenv("GEMM_LIVE", "0")
    made = live.kernel("zeros, nothing after the wait", {"ZEROS": (1, 0)}, shape=(128, 128, 128))
    assert made.figure.data["reports"] == {"1": "1 hazard (missing-wgmma-fence)"}


def test_a_kernel_of_others_with_the_readers_words_is_judged():
    made = subject("zeros, nothing after the wait")
    macros = made.macros({})
    right = one_setting.run(
        made, macros, (256, 256, 128)
    )  # its SIZE and DEPTH are those of the product
    assert right.right and "1 hazard was found" in right.verdict
    unawaited = one_setting.run(made, macros, (128, 128, 128), [("wgmma_wait<0>();", "")])
    assert not unawaited.right and "hazards were found" in unawaited.verdict
    missing = one_setting.run(made, macros, (128, 128, 128), [("wgmma_wait<7>();", "")])
    assert "does not contain 'wgmma_wait<7>();'" in missing.problem
    torn = one_setting.run(made, macros, (100, 128, 128))
    assert "not whole tiles of 128 x 128" in torn.problem


def test_no_stored_output_holds_a_widget():
    for path in chapters.paths():
        outputs = [o for c in chapters.read(path).cells for o in c.get("outputs", [])]
        kinds = {kind for output in outputs for kind in output.get("data", {})}
        assert not [kind for kind in kinds if "widget" in kind], path.name
        assert "widgets" not in json.loads(path.read_text(encoding="utf-8"))["metadata"]
