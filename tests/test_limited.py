"""Limits of programs and of cells are of the processor, not of the clock."""

import signal
import sys

import nbformat
import pytest
from nbclient.exceptions import CellTimeoutError

from book import chapters
from tests import limited

ENDLESS = "while True: pass"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_a_program_that_computes_for_ever_is_ended_and_one_that_waits_is_not():
    assert limited.run([sys.executable, "-c", ENDLESS], 1).returncode in (
        -signal.SIGXCPU,
        -signal.SIGKILL,
    )
    waits = limited.run([sys.executable, "-c", "import time; time.sleep(1.5); print(1)"], 1)
    assert waits.returncode == 0 and waits.stdout == "1\n"


def test_a_cell_that_computes_for_ever_is_ended_and_one_that_waits_is_not(tmp_path):
    def run(source):
        path = tmp_path / "page.ipynb"
        cells = [nbformat.v4.new_code_cell(source)]
        nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
        return chapters.run(path, cell_seconds=1)

    assert run("import time; time.sleep(2.5)") > 2.5
    with pytest.raises(CellTimeoutError):
        run(ENDLESS)
