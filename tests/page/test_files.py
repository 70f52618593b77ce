"""What is put into the pages: the very files that Pyodide's release names, or a stand-in that is never published."""

import hashlib
import io
import json

import pytest

from book import page_python, publish

CONTENT = b"a wheel"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache whose core is there, for a release that names a NumPy of these bytes."""
    core = tmp_path / "cache" / "node_modules" / "pyodide"
    core.mkdir(parents=True)
    named = {"file_name": "numpy-1-wasm32.whl", "sha256": hashlib.sha256(CONTENT).hexdigest()}
    for name in page_python.CORE:
        (core / name).write_text(json.dumps({"packages": {"numpy": named}}))
    (core / "pyodide.mjs").write_text("`https://example.org/pyodide/v${U}/full/`")
    monkeypatch.setattr(page_python, "CACHE", tmp_path / "cache")
    files = (core / name for name in page_python.CORE)
    monkeypatch.setattr(page_python, "CORE_HASH", page_python._digest(*files))
    return tmp_path / "cache"


@pytest.fixture
def release(monkeypatch):
    """The release: what it answers, and what it was asked for."""
    asked = []

    def answers(content: bytes | OSError):
        def urlopen(address, timeout):
            asked.append(address)
            if isinstance(content, OSError):
                raise content
            return io.BytesIO(content)

        monkeypatch.setattr(page_python.urllib.request, "urlopen", urlopen)
        return asked

    return answers


def test_the_wheel_is_the_one_that_the_lock_names(cache, release):
    asked = release(CONTENT)
    page_python.fetch()
    page_python.fetch()  # the cache is full
    version = page_python.VERSION
    assert asked == [f"https://example.org/pyodide/v{version}/full/numpy-1-wasm32.whl"]
    assert page_python.wheel().read_bytes() == CONTENT and not page_python.is_stand_in()


def test_another_wheel_or_core_is_refused(cache, release, monkeypatch):
    release(b"another")
    with pytest.raises(RuntimeError, match="not the file that the lock names"):
        page_python.fetch(or_stand_in=True)
    assert page_python.wheel() is None
    monkeypatch.setattr(page_python, "CORE_HASH", "0")
    with pytest.raises(RuntimeError, match="does not hold the files"):
        page_python.fetch()


def test_a_stand_in_is_for_tests_says_so_and_is_never_published(
    cache, release, monkeypatch, tmp_path, capsys
):
    release(OSError("no network"))
    monkeypatch.setenv("GEMM_PYODIDE_WHEEL", str(tmp_path))
    assert page_python.main(["fetch"]) == page_python.UNREACHABLE
    assert page_python.main(["fetch", "--or-stand-in"]) == page_python.UNREACHABLE
    assert "GEMM_PYODIDE_WHEEL" in capsys.readouterr().err
    (tmp_path / "numpy-2-wasm32.whl").write_bytes(b"a stand-in")
    assert page_python.main(["fetch", "--or-stand-in"]) == 0
    assert "for tests only" in capsys.readouterr().out and page_python.is_stand_in()

    site = tmp_path / "html"
    (site / "_static").mkdir(parents=True)
    (site / "index.html").write_text("")
    page_python.add(site)
    assert page_python.marked_stand_in(site)
    monkeypatch.setattr(publish, "PAGES", site)
    monkeypatch.setattr(publish, "RELEASE", tmp_path)
    with pytest.raises(ValueError, match="NumPy for tests"):
        publish.site()


def test_nothing_is_added_to_pages_that_are_not_there(cache, tmp_path):
    with pytest.raises(ValueError, match="nothing was fetched"):
        page_python.add(tmp_path)
