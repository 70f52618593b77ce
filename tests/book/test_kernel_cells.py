"""`%%kernel` cells are CUDA in the pages, and C++ to JupyterLab's editor, which knows no CUDA."""

import json
import re
import shutil

import pytest

from book import chapters
from tests import limited

FOLDER = chapters.ROOT / "book" / "_lab" / "gemm-ladder-cuda"
STUB = """
global.window = {};
%s
const signal = () => { const seen = []; return { connect: (f) => seen.push(f), emit: (x) => seen.forEach((f) => f(x)) }; };
const cell = (type, source) => ({ type, mimeType: "text/x-ipython", sharedModel: { getSource: () => source },
  mimeTypeChanged: signal(), contentChanged: signal() });
const cells = [cell("code", "%%%%kernel a\\nint i;"), cell("code", "x = 1"), cell("markdown", "%%%%kernel")];
const changed = signal();
const panel = { context: { ready: Promise.resolve() }, content: { model: { cells: Object.assign(cells, { changed }) } } };
const tracker = { forEach: (f) => f(panel), widgetAdded: signal() };
(async () => {
  const container = window._JUPYTERLAB["gemm-ladder-cuda"];
  container.init({ "@jupyterlab/notebook": { "4.0.0": { get: async () => () => ({ INotebookTracker: "token" }) } } });
  const module = (await container.get("./extension"))();
  module.default.activate({}, tracker);
  await new Promise((done) => setTimeout(done, 10));
  const first = cells.map((one) => one.mimeType);
  cells[0].mimeType = "text/x-ipython";  // the kernel's language comes later
  cells[0].mimeTypeChanged.emit(cells[0]);
  cells.push(cell("code", "%%%%kernel b"));
  changed.emit();
  console.log(JSON.stringify([module.__esModule, module.default.requires, first, cells.map((one) => one.mimeType)]));
})();
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="running the script needs Node.js")
def test_kernel_cells_are_told_from_the_others():
    described = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
    script = FOLDER / described["jupyterlab"]["_build"]["load"]
    code = STUB % script.read_text(encoding="utf-8")
    run = limited.run(["node", "-e", code])
    assert run.returncode == 0, run.stderr
    python, cuda = "text/x-ipython", "text/x-c++src"
    is_module, requires, first, then = json.loads(run.stdout)
    assert is_module and requires == ["token"]
    assert first == [cuda, python, python]
    assert then == [cuda, python, python, cuda]


def test_kernel_cells_of_a_page_are_coloured_as_cuda(site):
    page = (site / "book" / "exercises" / "1_memory.html").read_text(encoding="utf-8")
    cells = re.findall(r'"highlight-(\w+) notranslate">(.*?)</pre>', page, re.DOTALL)
    kernels = [
        language for language, cell in cells if re.sub(r"<[^>]+>", "", cell).startswith("%%kernel")
    ]
    assert kernels and set(kernels) == {"cuda"}
