"""A test that waits for ever ends `make test`, by its name."""

import subprocess
import sys

from book.__main__ import ROOT, TWO_PROCESSES

WAITS = """
import threading


def test_passes():
    pass


def test_waits():
    threading.Event().wait(300)
"""


def test_a_test_that_waits_is_named(tmp_path):
    (tmp_path / "test_it.py").write_text(WAITS)
    told = ["-c", ROOT / "pyproject.toml", "-o", "faulthandler_timeout=3", *TWO_PROCESSES]
    plain = [word for plugin in ("cacheprovider", "nbval") for word in ("-p", f"no:{plugin}")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plain, *told, tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert "crashed while running" in done.stdout and "test_it.py::test_waits" in done.stdout
    assert "in test_waits" in done.stderr, "where it waits is not printed"
    assert "1 failed, 1 passed" in done.stdout
    assert done.returncode == 1
