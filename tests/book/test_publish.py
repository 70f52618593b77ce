"""What a publication consists of, made in a clone of its own."""

import json
import re
import subprocess
import sys
import zipfile

import pytest
import yaml

from book import chapters, edition, publish

ROOT = chapters.ROOT


def git(folder, *arguments) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, check=True)
    return done.stdout.decode()


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A clone with one commit of its own: a notebook with the set-up cell, and a file beside it."""
    monkeypatch.setattr(publish, "ROOT", tmp_path)
    for name, value in {"NAME": "a", "EMAIL": "a@example.org"}.items():
        monkeypatch.setenv(f"GIT_AUTHOR_{name}", value)
        monkeypatch.setenv(f"GIT_COMMITTER_{name}", value)
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    (tmp_path / "book").mkdir()
    source = chapters.paths()[0]
    (tmp_path / "book" / "x.ipynb").write_bytes(source.read_bytes())
    (tmp_path / "other.txt").write_text("other")
    (tmp_path / "README.md").write_bytes((ROOT / "README.md").read_bytes())
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "first")
    return tmp_path


def test_the_branch_for_colab_has_the_same_files_whose_notebooks_know_the_address(
    clone, monkeypatch
):
    monkeypatch.setenv("GEMM_REPOSITORY", "jane/ladder")
    before = git(clone, "status", "--porcelain")
    publish.colab_branch()
    assert git(clone, "diff", "--name-only", "main", "colab") == "README.md\nbook/x.ipynb\n"
    readme = git(clone, "show", "colab:README.md")
    assert "**[Read the book](https://jane.github.io/ladder/)**" in readme
    assert "/github/jane/ladder/blob/colab/book/01_start_here.ipynb)" in readme
    metadata = json.loads(git(clone, "show", "colab:book/x.ipynb"))["metadata"]
    assert (metadata["accelerator"], metadata["colab"]["gpuType"]) == ("GPU", "T4")
    told = git(clone, "show", "colab:book/x.ipynb")
    assert "https://github.com/jane/ladder" in told
    assert "(https://jane.github.io/ladder/book/glossary.html#kernel)" in told
    assert git(clone, "rev-parse", "colab^") == git(clone, "rev-parse", "main")
    assert git(clone, "status", "--porcelain") == before


def test_the_branch_needs_an_address(clone, monkeypatch):
    for name in ("GEMM_REPOSITORY", "GITHUB_REPOSITORY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="GEMM_REPOSITORY"):
        publish.colab_branch()


def test_the_zip_of_the_pages_is_the_same_each_time_and_leaves_out_what_servers_need(
    tmp_path, monkeypatch
):
    pages = tmp_path / "html"
    (pages / "book").mkdir(parents=True)
    for name in ("index.html", "book/x.html", "404.html", ".nojekyll"):
        (pages / name).write_text(name)
    monkeypatch.setattr(publish, "PAGES", pages)
    monkeypatch.setattr(publish, "RELEASE", tmp_path)
    first = publish.site().read_bytes()
    (pages / "index.html").touch()
    made = publish.site()
    assert made.read_bytes() == first
    top = f"gemm-ladder-{edition.version()}"
    assert sorted(zipfile.ZipFile(made).namelist()) == [f"{top}/book/x.html", f"{top}/index.html"]


def test_every_page_goes_into_the_pdf_in_reading_order():
    toc = re.findall(r"(?:root|file): (\S+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
    assert [name for _, names in publish.contents() for name in names] == toc


def test_a_version_stands_in_one_place_and_is_repeated_rightly():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    log = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest, day = re.search(r"^## (\S+) \((\S+)\)", log, re.MULTILINE).groups()
    assert citation["version"] == newest == edition.version()
    assert str(citation["date-released"]) == day
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", edition.date())


def test_steps_of_workflows_are_targets_that_the_makefile_has():
    targets = set(
        re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    used = set()
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        for job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values():
            for step in job["steps"]:
                used |= set(re.findall(r"^make ([a-z-]+)", step.get("run", ""), re.MULTILINE))
    assert used >= {"test", "page", "colab-branch", "release", "links", "colab-check"}
    assert used <= targets


def test_without_make_the_same_commands_have_a_python_entry():
    done = subprocess.run(
        [sys.executable, "-m", "book", "make", "nothing"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "choose from" in done.stderr


@pytest.mark.parametrize("broken", ["", "build", "not site", "site"])
def test_everything_is_tested_and_whatever_fails_is_told(monkeypatch, broken):
    from book import __main__ as commands

    ran = []

    def run(*arguments, **environment):
        found = next(part for part in ("build", "not site", "site") if part in arguments)
        ran.append(found)
        if found == broken:
            raise SystemExit(3)

    monkeypatch.setattr(commands, "_run", run)
    if not broken:
        commands.test()
        assert ran[-1] == "site" and sorted(ran) == ["build", "not site", "site"]
        return
    with pytest.raises(SystemExit, match="3"):
        commands.test()


def test_a_fresh_clone_opens_trusted(monkeypatch, tmp_path):
    import nbformat
    from nbformat.sign import NotebookNotary

    from book import __main__ as commands

    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path))
    one = nbformat.read(chapters.paths()[0], as_version=4)
    assert not NotebookNotary().check_signature(one)
    assert commands.trust() == len(chapters.paths())
    assert NotebookNotary().check_signature(one)
    one.cells[0].source += "changed"
    assert not NotebookNotary().check_signature(one)
