"""Every chapter begins with the one set-up cell, which names no address until a build writes it there."""

import re
import shutil
import subprocess
import sys
import types

import nbformat
import pytest

from book import chapters, lab, markdown, plumbing, publish, telling
from book.cells import answers, this_machine  # noqa: F401  (found before sys.path changes)
from figures import carried

HEAVY = {"cupy", "numpy", "torch", "scipy", "matplotlib", "ipywidgets"}


def first_code_cell(notebook):
    return next(cell for cell in notebook.cells if cell.cell_type == "code")


def test_every_chapter_begins_with_the_set_up_cell(notebooks):
    wrong = [
        name
        for name, notebook in notebooks.items()
        if first_code_cell(notebook).source != chapters.SETUP_CELL
    ]
    assert not wrong, f"run `make setup-cells`: {wrong}"


def test_no_file_names_an_address(notebooks):
    named = re.compile(r"github\.com/[\w.-]+/gemm-ladder|\bOWNER/", re.IGNORECASE)
    places = [chapters.ROOT / "_config.yml", *chapters.ROOT.glob("*.md"), *chapters.paths()]
    assert [p.name for p in places if named.search(p.read_text(encoding="utf-8"))] == []


def test_colab_installs_small_wheels_only():
    lines = (chapters.ROOT / "requirements-colab.txt").read_text(encoding="utf-8").splitlines()
    names = {re.split(r"[<>=~\[ ]", line)[0].lower() for line in lines if line and line[0] != "#"}
    assert names
    assert not {name for name in names if any(name.startswith(heavy) for heavy in HEAVY)}
    assert "pip install" in chapters.SETUP_CELL
    assert chapters.SETUP_CELL.count("pip install") == 1


def test_an_older_set_up_cell_is_replaced():
    notebook = nbformat.v4.new_notebook()
    old = nbformat.v4.new_code_cell("root = 1", metadata={"tags": ["setup"]})
    other = nbformat.v4.new_code_cell("print(1)")
    notebook.cells = [nbformat.v4.new_markdown_cell("# Title"), old, other]
    chapters.write_setup_cell(notebook)
    assert [c.source for c in notebook.cells] == ["# Title", chapters.SETUP_CELL, "print(1)"]


def test_a_chapter_without_one_gets_it_after_its_title():
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_markdown_cell("# Title"), nbformat.v4.new_code_cell("1")]
    chapters.write_setup_cell(notebook)
    assert [c.source for c in notebook.cells] == ["# Title", chapters.SETUP_CELL, "1"]


def run_cell(source: str, shell=lambda command: None) -> dict:
    """The cell's names after it ran; `shell` is called with the commands that it gives."""
    python = re.sub(r"^(\s+)!(.*)$", r"\1shell(f'\2')", source, flags=re.MULTILINE)
    names = {"shell": shell}
    exec(compile(python, "setup", "exec"), names)
    return names


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """A folder outside any clone, and no address in the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [])
    monkeypatch.delenv("GEMM_REPOSITORY", raising=False)
    return tmp_path


@pytest.fixture
def colab(nowhere, monkeypatch):
    monkeypatch.setitem(sys.modules, "google.colab", types.ModuleType("google.colab"))
    return nowhere


@pytest.mark.parametrize("deep", ["", "book", "book/_static"])
def test_the_cell_finds_the_repository_from_inside(deep, monkeypatch):
    monkeypatch.chdir(chapters.ROOT / deep)
    monkeypatch.setattr("sys.path", [])
    assert run_cell(chapters.SETUP_CELL)["root"] == chapters.ROOT


def test_outside_a_clone_it_says_in_one_line_what_to_do(nowhere):
    with pytest.raises(Exception, match=r"clone its repository, then make lab") as raised:
        run_cell(chapters.SETUP_CELL)
    assert raised.value._render_traceback_() == [str(raised.value)]
    assert "\n" not in str(raised.value)


def test_outside_colab_it_fetches_nothing_but_names_the_address(nowhere, monkeypatch):
    monkeypatch.setenv("GEMM_REPOSITORY", "https://github.com/jane/ladder")
    with pytest.raises(Exception, match=r"git clone https://github.com/jane/ladder, then make lab"):
        run_cell(chapters.SETUP_CELL, shell=pytest.fail)


def test_in_colab_a_published_notebook_fetches_its_book_from_the_address_in_it(colab):
    commands = []

    def shell(command):
        commands.append(command)
        if command.startswith("git clone"):
            (colab / "gemm-ladder").mkdir()

    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(chapters.SETUP_CELL, metadata={"tags": ["setup"]})]
    )
    text = publish.published(nbformat.writes(notebook), "https://github.com/jane/ladder")
    cell = nbformat.reads(text, as_version=4).cells[0]
    names = run_cell(cell.source, shell)
    assert names["root"] == colab / "gemm-ladder"
    assert sys.path == [str(colab / "gemm-ladder")]
    assert commands == [
        f"git clone --quiet --depth 1 https://github.com/jane/ladder {names['root']}",
        f"pip install --quiet -r {names['root']}/requirements-colab.txt",
    ]


def test_in_colab_a_clone_that_fails_is_said(colab, monkeypatch):
    monkeypatch.setenv("GEMM_REPOSITORY", "https://github.com/jane/nothing")
    with pytest.raises(Exception, match=r"git clone https://github\.com/jane/nothing"):
        run_cell(chapters.SETUP_CELL)


def test_a_published_notebook_knows_its_address_and_moves_by_itself():
    """What Colab opens: each output in a frame of its own, with the script that moves it."""
    for path in chapters.paths():
        text = path.read_text(encoding="utf-8")
        told = publish.published(text, "https://github.com/jane/ladder")
        before, after = (nbformat.reads(one, as_version=4) for one in (text, told))
        sources = [
            (a.source, b.source)
            for a, b in zip(before.cells, after.cells, strict=True)
            if a.cell_type == "code"
        ]
        assert sum(a != b for a, b in sources) == 1, path.name
        assert '"https://github.com/jane/ladder"' in first_code_cell(after).source
        assert after.metadata == before.metadata == chapters.METADATA, path.name
        for html in outputs(after):
            kinds = set(re.findall(r'data-kind="(\w+)"', html))
            assert all(f'mount("{kind}", explorer)' in html for kind in kinds), path.name
            assert ("questions.mount()" in html) == ('class="gl-q"' in html or "gl-said" in html)
            assert ("<style>" in html) == (carried.FIGURE in html), path.name


def test_a_published_notebook_leads_to_the_pages_that_colab_cannot_open():
    cell = nbformat.v4.new_markdown_cell(
        "A [warp](../glossary.md#warp), [all](sheet.md), [1](a.ipynb)."
    )
    text = nbformat.writes(nbformat.v4.new_notebook(cells=[cell]))
    page = "https://jane.github.io/ladder/book/exercises/1_memory.ipynb"
    told = nbformat.reads(
        publish.published(text, "https://github.com/jane/ladder", page), as_version=4
    )
    assert told.cells[0].source == (
        "A [warp](https://jane.github.io/ladder/book/glossary.html#warp), "
        "[all](https://jane.github.io/ladder/book/exercises/sheet.html), [1](a.ipynb)."
    )
    unknown = nbformat.reads(publish.published(text), as_version=4)
    assert unknown.cells[0].source == cell.source


def test_a_published_notebook_tells_no_answer_before_it_is_given():
    asked_at_all = 0
    for path in chapters.paths():
        told = nbformat.reads(publish.published(path.read_text(encoding="utf-8")), as_version=4)
        for place, asked in telling.behind(told):
            cell, asked_at_all = told.cells[place], asked_at_all + 1
            if cell.cell_type == "code":
                hidden = cell.metadata.get("collapsed", False)
                assert hidden == cell.metadata.get("jupyter", {}).get("outputs_hidden", False)
                assert hidden or not telling.tells(cell, asked), f"{path.name}, {cell.id}"
            else:
                text = re.sub(r"(?m)^#.*$", "", cell.source)
                assert telling.told(telling.seen(text), asked) == [], f"{path.name}, {cell.id}"
    assert asked_at_all > 100


def outputs(notebook):
    return [
        output.data["text/html"]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "text/html" in output.get("data", {})
    ]


def test_notebooks_hold_no_script_and_are_small(notebooks):
    texts = {path.stem: path.read_text(encoding="utf-8") for path in chapters.paths()}
    assert [name for name, text in texts.items() if "<script" in text] == []
    assert sum(len(text.encode()) for text in texts.values()) < 5e6


def test_colab_is_asked_for_a_gpu_and_cells_fold_everywhere(notebooks):
    for name, notebook in notebooks.items():
        assert notebook.metadata["accelerator"] == "GPU", name
        assert notebook.metadata["colab"]["gpuType"] == "T4", name
        for cell in (one for one in notebook.cells if one.cell_type == "code"):
            folded = any(chapters.has_tag(cell, tag) for tag in plumbing.FOLDING)
            hidden = cell.metadata.get("jupyter", {}).get("source_hidden", False)
            assert folded == hidden == (cell.metadata.get("cellView") == "form"), name


def test_what_a_notebook_shows_is_plain_markdown(notebooks):
    for name, notebook in notebooks.items():
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                assert not re.search(r"(?m)^:{3,}|^`{3,}\{|\{[\w:]+\}`", cell.source), name
                assert markdown.plain(cell.source) == cell.source, name


BOTH = """\
Text (see [a page](https://a.b "its title")).

:::{exercise}
:label: ex-one
Why {cite:p}`ptx-isa,higham`?
:::

:::{admonition} Hint
:class: dropdown
Two

paragraphs.
:::"""


def test_markdown_has_two_forms_of_which_each_gives_the_other():
    plain = markdown.plain(BOTH)
    assert '<strong id="ex-one">Exercise.</strong> Why ([NVIDIA, 2025](https://docs.nvidia' in plain
    assert "<details><summary>Hint</summary>\n\nTwo\n\nparagraphs.\n\n</details>" in plain
    assert markdown.myst(plain) == BOTH and markdown.plain(plain) == plain
    box = ":::{admonition} Takeaways\n:class: takeaways\n* One.\n* Two.\n:::"
    assert markdown.plain(box) == "> **Takeaways**\n>\n> * One.\n> * Two."
    assert markdown.myst(markdown.plain(box)) == box
    with pytest.raises(KeyError, match="no entry 'nowhere'"):
        markdown.plain("A claim {cite:p}`nowhere`.")


def test_the_set_up_cell_says_which_gpu_it_found(monkeypatch):
    monkeypatch.setattr(this_machine, "gpu", lambda: None)
    monkeypatch.delitem(sys.modules, "google.colab", raising=False)
    assert "emulator" in this_machine.said() and "Runtime" not in this_machine.said()
    monkeypatch.setitem(sys.modules, "google.colab", types.ModuleType("google.colab"))
    assert "Runtime > Change runtime type > T4 GPU" in this_machine.said()
    monkeypatch.setattr(this_machine, "gpu", lambda: types.SimpleNamespace(name="T4", arch=75))
    assert this_machine.said().startswith("GPU: T4 (sm_75)")


def test_jupyterlab_gets_the_style_and_every_script_that_stored_figures_are_without(tmp_path):
    lab.extension(tmp_path)
    text = (tmp_path / lab.NAME / "static" / "cuda_cells.js").read_text(encoding="utf-8")
    kinds = {path.stem for path in (chapters.ROOT / "figures" / "js").glob("*.js")}
    for kind in kinds - {"common", "choice"}:
        assert f'mounts.push(() => mount("{kind}", explorer))' in text
    assert "questions.mount()" in text and ".gl-choice:not([data-ready])" in text
    assert "style.textContent" in text and ".gl-table" in text
    if node := shutil.which("node"):
        file = tmp_path / lab.NAME / "static" / "cuda_cells.js"
        assert subprocess.run([node, "--check", file]).returncode == 0
