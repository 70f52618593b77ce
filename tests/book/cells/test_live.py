"""Live controls: what a page shows of them."""

import json

import pytest

from book import chapters
from book.cells import live

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


def test_no_stored_output_holds_a_widget():
    for path in chapters.paths():
        outputs = [o for c in chapters.read(path).cells for o in c.get("outputs", [])]
        kinds = {kind for output in outputs for kind in output.get("data", {})}
        assert not [kind for kind in kinds if "widget" in kind], path.name
        assert "widgets" not in json.loads(path.read_text(encoding="utf-8"))["metadata"]
