"""Every rung in WebAssembly: result, counters and hazards are those of this machine's Python."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from book import page_python
from kernels import RUNGS, find
from kernels.errors import NoCompiler
from kernels.gemm import plan
from tests.page import rungs

SCRIPTS = Path(__file__).parent
NAMES = [rung.name for rung in RUNGS.values() if rung.path is not None]
SECONDS = 600  # of the clock, on a busy machine; alone it takes one


@pytest.fixture(scope="module")
def carried(tmp_path_factory):
    """Builds of the rungs that no page compiles, made here: {GEMM_BUILDS: the folder} is what both machines then have."""
    folder = tmp_path_factory.mktemp("builds")
    with pytest.MonkeyPatch.context() as patch:
        for name in NAMES:
            patch.setenv("GEMM_COMPILER", "none")
            patch.delenv("GEMM_BUILDS", raising=False)
            try:
                plan(name, rungs.SIZE, rungs.SIZE, rungs.SIZE, arch=max(80, find(name).min_arch))
            except NoCompiler:
                patch.delenv("GEMM_COMPILER")
                patch.setenv("GEMM_BUILDS", str(folder))
                plan(name, rungs.SIZE, rungs.SIZE, rungs.SIZE, arch=max(80, find(name).min_arch))
    return folder


def in_node(place, expression: str) -> str:
    node = shutil.which("node")
    assert node, "there is no Node.js here: the rungs cannot run in WebAssembly outside a browser"
    core = page_python.CACHE / "node_modules" / "pyodide"
    command = [node, SCRIPTS / "in_node.mjs", core, place, SCRIPTS / "rungs.py", expression]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert not done.returncode, done.stderr[-3000:]
    return done.stdout


def test_every_rung_gives_in_webassembly_what_it_gives_here(place, carried, monkeypatch):
    assert len(NAMES) >= 30
    monkeypatch.setenv("GEMM_COMPILER", "none")
    monkeypatch.setenv("GEMM_BUILDS", str(carried))
    wanted = {"rungs": rungs.counted(NAMES), "broken": rungs.broken()}
    assert wanted["broken"]["hazards"], "a kernel without its barriers has no hazard"
    asked = f"{{'rungs': counted({NAMES!r}, '/here{carried}'), 'broken': broken()}}"
    found = json.loads(in_node(place, f"json.dumps({asked} | {{'memory': memory()}})"))
    assert found.pop("memory") < 1e9
    for name, here in wanted["rungs"].items():
        assert found["rungs"][name] == here, name
    assert found["broken"] == wanted["broken"]
