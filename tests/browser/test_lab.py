"""`live.kernel` as a reader of JupyterLab has it: widgets that compile and run the kernel, moved in a real browser."""

import contextlib
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request

import nbformat
import pytest

from book.chapters import ROOT

IMPORTS = f"""\
import sys
sys.path.insert(0, {str(ROOT)!r})
from book.cells import live
"""
CELL = f"""\
{IMPORTS}
live.kernel("tiled", {{"BLOCK": (8, 16)}}, shape=(64, 64, 16), free={{"the read": "Bs[k][tile_col]"}}, title="Mine")
"""
# As in *Swizzles*: a box for an expression of the reader's own.
SWIZZLE = f"""\
{IMPORTS}
live.kernel("mma_swizzled", {{"WM": (32, 64)}}, shape=(64, 64, 32), free={{"the place": "(chunk ^ row / 2 % 4)"}},
            start={{"BM": 64, "BN": 64, "WM": 32, "WN": 32}})
"""
# By JupyterLab's own command, once it and the notebook's kernel are ready: a key pressed before that is lost, or opens a dialog.
RUN = """async () => {
    const app = window.jupyterapp
    await app.restored
    const notebook = app.shell.currentWidget
    await notebook.context.ready
    await notebook.sessionContext.ready
    await app.commands.execute("notebook:run-all-cells")
}"""
PATIENCE_MS = 120_000  # a kernel that starts, and imports everything, on a busy machine


@contextlib.contextmanager
def lab(folder, source):
    """A JupyterLab of this Python on a notebook of one cell; gives the notebook's address."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    notebook.metadata["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    nbformat.write(notebook, folder / "mine.ipynb")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    places = {name: str(folder / name) for name in ("config", "data", "runtime")}
    environment = os.environ | {
        "CUDA_VISIBLE_DEVICES": "",
        "JUPYTER_CONFIG_DIR": places["config"],
        "JUPYTER_RUNTIME_DIR": places["runtime"],
        "IPYTHONDIR": str(folder / "ipython"),
    }
    environment.pop("GEMM_LIVE", None)
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}", "--ip=127.0.0.1",
         "--IdentityProvider.token=", "--ServerApp.password=", f"--ServerApp.root_dir={folder}",
         "--LabApp.expose_app_in_browser=True", "--LabApp.news_url=",
         "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"],
        env=environment, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        for _ in range(600):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/api", timeout=5).read()
                break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/lab/tree/mine.ipynb"
    finally:
        server.terminate()
        server.wait(20)


@pytest.fixture
def running(tab, tmp_path, request):
    with lab(tmp_path, request.param) as address:
        tab.set_default_timeout(PATIENCE_MS)
        tab.goto(address)
        tab.wait_for_function("window.jupyterapp?.shell?.currentWidget?.sessionContext")
        tab.evaluate(RUN)
        tab.locator(".gl-live .gl-table").wait_for()
        yield tab


def counted(tab, access: str) -> str:
    row = tab.locator(".gl-live .gl-table tbody tr").filter(has_text=re.compile(rf"^{access}"))
    return row.inner_text()


def until_counted(tab, row: str, shown: bool) -> None:
    """A change of several controls, as Reset is, shows what it passes through: waited for, not read once."""
    tab.wait_for_function(
        "([row, shown]) => document.querySelector('.gl-live .gl-table')?.innerText.includes(row) === shown",
        arg=[row, shown],
    )


@pytest.mark.parametrize("running", [CELL], indirect=True, ids=["tiled"])
def test_the_kernel_runs_at_what_the_reader_chooses(running):
    tab = running
    cells = tab.locator(".jp-Notebook .jp-Cell").count()
    said = tab.locator(".gl-live")
    said.get_by_text("The product is right").wait_for()
    before = counted(tab, "load A")
    # The slider has the keyboard: arrows move it, and `d d` deletes no cell.
    handle = tab.locator(".gl-live .noUi-handle").first
    handle.focus()
    tab.keyboard.press("ArrowRight")
    until_counted(tab, before, shown=False)
    assert counted(tab, "load A") != before
    handle.focus()
    tab.keyboard.press("d")
    tab.keyboard.press("d")
    assert tab.locator(".jp-Notebook .jp-Cell").count() == cells
    # An expression of the reader's own: one that conflicts, and one that is not CUDA.
    box = tab.locator(".gl-live input[type=text]").first
    box.fill("Bs[k][(tile_col * 16) % BLOCK + tile_col / 16]")
    box.press("Enter")
    tab.get_by_text("The product is wrong").wait_for()
    box.fill("Bs[k][tile_col")
    box.press("Enter")
    tab.get_by_text("It does not compile").wait_for()
    tab.get_by_role("button", name="Reset").click()
    tab.get_by_text("The product is right").wait_for()
    until_counted(tab, before, shown=True)


@pytest.mark.parametrize("running", [SWIZZLE], indirect=True, ids=["mma_swizzled"])
def test_a_swizzle_of_the_readers_own_runs(running):
    tab = running
    tab.locator(".gl-live").get_by_text("The product is right").wait_for()
    before = counted(tab, "ldmatrix shared")
    box = tab.locator(".gl-live input[type=text]").first
    box.fill("chunk")
    box.press("Enter")
    until_counted(tab, before, shown=False)
    tab.locator(".gl-live").get_by_text("The product is right").wait_for()  # slower, not wrong
    handle = tab.locator(".gl-live .noUi-handle").first
    handle.focus()
    conflicts = counted(tab, "ldmatrix shared")
    tab.keyboard.press("ArrowRight")
    until_counted(tab, conflicts, shown=False)
