"""A cell's limit is of its kernel's processor time: computing too long fails, waiting does not."""

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parent.parent
WAITS = "import os, time\ntime.sleep(4)\nassert os.environ['GEMM_COMPILER'] == 'last'"
COMPUTES = "import time\nend = time.process_time() + 60\nwhile time.process_time() < end: pass"
LIMITED = """
import sys, pytest
from tests import processor_limit
processor_limit.CELL_SECONDS = 2
options = "-q -p tests.processor_limit -p no:cacheprovider --nbval --nbval-current-env"
sys.exit(pytest.main([*options.split(), sys.argv[1]]))
"""


@pytest.mark.parametrize(
    ("source", "passes"), [(WAITS, True), (COMPUTES, False)], ids=["waits", "computes"]
)
def test_a_cell_may_wait_but_not_compute_longer_than_its_limit(tmp_path, source, passes):
    page = tmp_path / "page.ipynb"
    cell = nbformat.v4.new_code_cell(source, execution_count=1)
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), page)
    said = tmp_path / "said.txt"  # a file: a kernel that outlives its pytest would keep a pipe open
    with said.open("w") as out:
        done = subprocess.run(
            [sys.executable, "-c", LIMITED, str(page)], cwd=ROOT, stdout=out, timeout=600
        )
    words = said.read_text(encoding="utf-8")
    assert (done.returncode == 0) is passes, words
    assert ("Timeout of 2 seconds exceeded executing cell" in words) is not passes
