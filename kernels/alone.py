"""Rungs that leave the book: nvcc builds one with the main of `alone.cu`, which runs it, checks it and times it."""

import importlib.util
import os
import shlex
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .gpus import gpu
from .rung import FOLDER, Rung
from .rungs import RUNGS, find
from .settings import configuration

MAIN = FOLDER / "alone.cu"


def words(rung: str | Rung, arch: int | None = None) -> list[str]:
    """nvcc's words for a rung, with the macros that the book times it with at 4096 (on Hopper, unless it is Blackwell's):
    for the GPU that is there, for `arch`, or for the only one that has the rung's instructions.
    """
    rung = find(rung)
    macros = configuration(rung, (4096, 4096, 4096), rung.max_arch or 90).macros
    given = [f"-D{name}={value}" for name, value in macros.items() if value != rung.macros[name]]
    # Not -arch=sm_90a, for which nvcc 13.0 makes code for compute_90 too, where there is no wgmma.
    number = str(rung.max_arch or arch or "")
    target = rung.target(number)
    named = ["-gencode", f"arch=compute_{target},code=sm_{target}"]
    return [*(named if number else ["-arch=native"]), f"-DRUNG={rung.path.stem}", *given]


def line(rung: str | Rung) -> str:
    """What a reader types in the repository's folder to build a rung and run it."""
    return " ".join(["nvcc", *words(rung), "kernels/alone.cu", "-o", "gemm && ./gemm"])


def compiler() -> list[str]:
    """nvcc: on the path, or the one of NVIDIA's wheel, which needs to be told where its libraries are; [] without one."""
    if found := shutil.which("nvcc"):
        return [found]
    spec = importlib.util.find_spec("nvidia")
    roots = [Path(place) / "cu13" for place in (spec.submodule_search_locations if spec else ())]
    found = next((str(root / "bin/nvcc") for root in roots if (root / "bin/nvcc").exists()), None)
    return [found, *(f"-L{root / 'lib'}" for root in roots)] if found else []


def compiled(rung: str | Rung, folder: Path, arch: int | None = None) -> Path:
    """The program of a rung, compiled where a source is newer. RuntimeError says what nvcc said, or that it is not here.

    Without nvcc, a program that another machine has compiled.
    """
    rung, nvcc = find(rung), compiler()
    program = folder / f"{rung.path.stem}-{rung.max_arch or arch or 'native'}"
    sources = [rung.path, MAIN, *FOLDER.glob("*.cuh")]
    newest = max(source.stat().st_mtime for source in sources)
    if program.exists() and (not nvcc or program.stat().st_mtime > newest):
        return program
    if not nvcc:
        raise RuntimeError("nvcc is not here: install CUDA, or pip install nvidia-cuda-nvcc")
    command = [*nvcc, *words(rung, arch), str(MAIN), "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{shlex.join(command)}\n{done.stdout}{done.stderr}")
    return program


def run_all(
    names: list[str], folder: Path, arch: int | None, size: tuple, compile_only: bool
) -> int:
    """Compiles the programs of rungs, those of this GPU unless named, and runs one after another; how many went wrong."""
    folder.mkdir(parents=True, exist_ok=True)
    arch = arch or (here.arch if (here := gpu()) else None)
    every = [rung for rung in RUNGS.values() if rung.path]
    known = [rung.name for rung in every if arch is None or rung.runs_on(arch)]
    wrong = 0
    with ThreadPoolExecutor(os.cpu_count()) as workers:
        programs = {name: workers.submit(compiled, name, folder, arch) for name in names or known}
        for name, program in programs.items():
            try:
                path = program.result()
                if compile_only:
                    print(f"{path}: compiled", flush=True)
                    continue
                command = [path.resolve(), *map(str, size)]
                ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
                said = (ran.stdout + ran.stderr).strip()
                print(said or f"{name}: exit {ran.returncode}", flush=True)
                wrong += ran.returncode != 0
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                print(f"{name}: {error}", flush=True)
                wrong += 1
    return wrong
