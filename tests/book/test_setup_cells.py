"""Every chapter begins with the one set-up cell, made for the address in `_config.yml`."""

import re

import nbformat
import pytest
import yaml

from book import chapters

HEAVY = {"cupy", "numpy", "torch", "scipy", "matplotlib", "ipywidgets"}


def first_code_cell(notebook):
    return next(cell for cell in notebook.cells if cell.cell_type == "code")


def test_every_chapter_begins_with_the_set_up_cell(notebooks):
    wrong = [
        name
        for name, notebook in notebooks.items()
        if first_code_cell(notebook).source != chapters.setup_cell()
    ]
    assert not wrong, f"run `make setup-cells`: {wrong}"


def test_the_address_is_the_one_in_the_config():
    config = yaml.safe_load((chapters.ROOT / "_config.yml").read_text(encoding="utf-8"))
    url = config["repository"]["url"]
    assert chapters.repository_url() == url
    assert f"git clone --quiet --depth 1 {url} " in chapters.setup_cell()


def test_the_address_stands_nowhere_else(notebooks):
    url = chapters.repository_url()
    places = [chapters.ROOT / "README.md", chapters.ROOT / "CONTRIBUTING.md"]
    places += (chapters.ROOT / "book").glob("*.md")
    for place in places:
        assert url not in place.read_text(encoding="utf-8"), place.name
    for name, notebook in notebooks.items():
        cells = [c for c in notebook.cells if c is not first_code_cell(notebook)]
        assert not any(url in cell.source for cell in cells), name


def test_colab_installs_small_wheels_only():
    lines = (chapters.ROOT / "requirements-colab.txt").read_text(encoding="utf-8").splitlines()
    names = {re.split(r"[<>=~\[ ]", line)[0].lower() for line in lines if line and line[0] != "#"}
    assert names
    assert not {name for name in names if any(name.startswith(heavy) for heavy in HEAVY)}
    assert "pip install" in chapters.setup_cell()
    assert chapters.setup_cell().count("pip install") == 1


def test_an_older_set_up_cell_is_replaced():
    notebook = nbformat.v4.new_notebook()
    old = nbformat.v4.new_code_cell("root = '_config.yml'", metadata={"tags": ["setup"]})
    other = nbformat.v4.new_code_cell("print(1)")
    notebook.cells = [nbformat.v4.new_markdown_cell("# Title"), old, other]
    chapters.write_setup_cell(notebook)
    assert [c.source for c in notebook.cells] == ["# Title", chapters.setup_cell(), "print(1)"]


def test_a_chapter_without_one_gets_it_after_its_title():
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_markdown_cell("# Title"), nbformat.v4.new_code_cell("1")]
    chapters.write_setup_cell(notebook)
    assert [c.source for c in notebook.cells] == ["# Title", chapters.setup_cell(), "1"]


@pytest.mark.parametrize("deep", ["", "book", "book/_static"])
def test_the_cell_finds_the_repository_from_inside(deep, monkeypatch):
    monkeypatch.chdir(chapters.ROOT / deep)
    monkeypatch.setattr("sys.path", [])
    plain = re.sub(r"^(\s+)!.*$", r"\1pass", chapters.setup_cell(), flags=re.MULTILINE)
    names = {}
    exec(compile(plain, "setup", "exec"), names)
    assert names["root"] == chapters.ROOT
