"""What was recorded of the pages' costs, and how a recording is made."""

import json

import pytest

from book import chapters, page_costs

PAGES = [path for path in chapters.paths() if path.stem in ("intro", "09_pipelines", "21_wgmma")]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(page_costs.provenance, "FOLDER", tmp_path)
    monkeypatch.setattr(page_costs, "_numpy", lambda: "NumPy")
    return tmp_path


def cost(page, kind, memory=50):
    row = dict.fromkeys(("bytes", "first_s", "whole_s", "tab_mb"), 1)
    return row | {"page": page.stem, "python_mb": memory}


def test_pages_are_stored_beside_those_that_were_in_the_books_order(folder, monkeypatch, capsys):
    monkeypatch.setattr(page_costs, "of_page", cost)
    assert page_costs.record(PAGES[1:], "chromium") == 0
    monkeypatch.setattr(page_costs, "of_page", lambda page, kind: cost(page, kind, 80))
    assert page_costs.record([PAGES[2], PAGES[0]], "chromium") == 0
    stored = json.loads((folder / "page-chromium.json").read_text())
    assert [row["page"] for row in stored["rows"]] == [page.stem for page in PAGES]
    assert [row["python_mb"] for row in stored["rows"]] == [80, 50, 80]
    capsys.readouterr()
    assert page_costs.main(["--table"]) == 0
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()[2:]] == [
        "intro", "21_wgmma", "09_pipelines"]  # fmt: skip


def test_a_page_that_fails_is_named_and_the_others_are_stored(folder, monkeypatch, capsys):
    def of_page(page, kind):
        if page == PAGES[0]:
            raise RuntimeError(f"{page.stem}: a cell failed")
        return cost(page, kind)

    monkeypatch.setattr(page_costs, "of_page", of_page)
    assert page_costs.record(PAGES, "chromium") == 1
    assert "intro: a cell failed" in capsys.readouterr().err
    assert len(json.loads((folder / "page-chromium.json").read_text())["rows"]) == 2


def test_every_page_was_recorded_and_its_python_stays_below_a_gigabyte():
    stored = json.loads(
        (page_costs.provenance.FOLDER / "page-chromium.json").read_text(encoding="utf-8")
    )
    rows = {row["page"]: row for row in stored["rows"]}
    assert not {page.stem for page in chapters.paths()} - set(rows)
    assert max(row["python_mb"] for row in rows.values()) < 1000
    assert max(row["bytes"] for row in rows.values()) < 16e6
    told = (chapters.ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert all(line in told for line in page_costs.table("chromium").split("\n")[:8])
