"""Does the book run in Colab? An environment like its image, the book served from a local bare clone, every notebook run.

    python tests/colab_image.py check [--arch 75,80,t4] [NOTEBOOK ...]   make colab-check
    python tests/colab_image.py pins                                  make colab-pins: renew tests/colab-image.txt

What is checked: the set-up cell of a published notebook, outside any clone, fetches the book and installs what the image
lacks in under 60 s, and nothing that the image has changes its version; then every cell of every notebook runs on the
emulator, as on a machine of that architecture, and none writes a warning. As `t4`, CuPy is replaced by `tests/stub_t4`: the
cells take every branch for a GPU, times are recorded ones that were scaled, and what was not timed is said.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PINS = ROOT / "tests" / "colab-image.txt"
PUBLISHED = "https://raw.githubusercontent.com/googlecolab/backend-info/main/"
SETUP_SECONDS = 60
STUB_OF_GPU = ROOT / "tests" / "stub_t4"
# Stands where Colab's own package is: the set-up cell asks whether it was imported.
STUB = "import sys, types\nsys.modules['google.colab'] = types.ModuleType('google.colab')\n"


def python() -> str:
    """A Python of the image's version; one of another version with a word, where there is none."""
    wanted = re.search(r"^# python (\S+)", PINS.read_text(encoding="utf-8"), re.MULTILINE)[1]
    for name in (os.environ.get("GEMM_COLAB_PYTHON"), f"python{wanted}", sys.executable):
        if name and (path := shutil.which(name)):
            told = subprocess.run([path, "-V"], capture_output=True, text=True)
            if told.returncode == 0:
                if f" {wanted}." not in told.stdout:
                    print(
                        f"no Python {wanted} here (GEMM_COLAB_PYTHON names one): {told.stdout.strip()}"
                    )
                return path
    raise SystemExit(f"no Python {wanted} here: name one in GEMM_COLAB_PYTHON")


def image(folder: Path) -> Path:
    """A virtual environment with the image's packages; returns its Python. Kept until the pins change."""
    made, stamp = folder / "bin" / "python", folder / "pins.txt"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != PINS.read_text(encoding="utf-8"):
        print("making an environment like Colab's image ...", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([python(), "-m", "venv", folder], check=True)
        subprocess.run([made, "-m", "pip", "install", "--quiet", "-r", PINS], check=True)
        packages = subprocess.run(
            [made, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"],
            capture_output=True, text=True, check=True,
        ).stdout.strip()  # fmt: skip
        Path(packages, "colab_stub.pth").write_text("import colab_stub\n", encoding="utf-8")
        Path(packages, "colab_stub.py").write_text(STUB, encoding="utf-8")
        shutil.copyfile(PINS, stamp)
    return made


def versions(interpreter: Path) -> dict[str, str]:
    told = subprocess.run(
        [interpreter, "-m", "pip", "list", "--format", "json"], capture_output=True, check=True
    )
    return {one["name"].lower(): one["version"] for one in json.loads(told.stdout)}


def served(folder: Path) -> Path:
    """A bare clone of this commit, whose branch `colab` knows its own address, as `make colab-branch` makes it."""
    work, bare = folder / "work", folder / "other-name.git"
    subprocess.run(["git", "clone", "--quiet", ROOT, work], check=True)
    environment = os.environ | {"GEMM_REPOSITORY": f"file://{bare.with_suffix('')}"}
    for part in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{part}_NAME": "check", f"GIT_{part}_EMAIL": "check@example.org"}
    subprocess.run(
        [sys.executable, "-m", "book.publish", "colab"], cwd=work, env=environment, check=True
    )
    subprocess.run(["git", "clone", "--quiet", "--bare", work, bare.with_suffix("")], check=True)
    return work


RUN = """
import sys, json, re, time, nbformat
from nbclient import NotebookClient
source, folder = sys.argv[1:]
notebook = nbformat.read(source, as_version=4)
client = NotebookClient(notebook, timeout=900, kernel_name="python3", resources={"metadata": {"path": folder}})
problem, seconds = "", []
with client.setup_kernel():
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            continue
        start = time.monotonic()
        try:
            client.execute_cell(cell, number)
        except Exception as error:
            problem = f"cell {number}: " + re.sub(r"\\x1b\\[[0-9;]*m", "", str(error)).strip()[-300:]
            break
        seconds.append(time.monotonic() - start)
        said = "".join(o.text for o in cell.outputs if o.output_type == "stream" and o.name == "stderr")
        if said.strip():
            problem = f"cell {number} wrote to stderr: {said[-600:]}"
            break
missed = [line for cell in notebook.cells if cell.cell_type == "code" for out in cell.outputs
          if out.output_type == "stream" for line in out.text.splitlines() if "was not timed here" in line]
print(json.dumps({"problem": problem, "missed": missed, "setup": seconds[0] if seconds else None, "seconds": sum(seconds)}))
"""


def check(names: list[str], archs: list[str]) -> int:
    folder = ROOT / ".cache" / "colab"
    interpreter = image(folder / "image")
    subprocess.run(
        [interpreter, "-m", "ipykernel", "install", "--sys-prefix", "--name", "python3"],
        check=True, capture_output=True,
    )  # fmt: skip
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        work = served(Path(temporary))
        for arch in archs:
            place = (
                Path(temporary) / f"content-{arch}"
            )  # Colab's /content: one folder for a session
            place.mkdir()
            for name in names or notebooks():
                environment = os.environ | {
                    "CUDA_VISIBLE_DEVICES": "",
                    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
                    "PATH": f"{interpreter.parent}{os.pathsep}{os.environ['PATH']}",
                }
                for name_of in ("GEMM_REPOSITORY", "PYTHONPATH", "GEMM_ARCH", "GEMM_BUILDS"):
                    environment.pop(name_of, None)
                waited = place / "seconds.txt"
                waited.unlink(missing_ok=True)
                on_gpu = {"PYTHONPATH": str(STUB_OF_GPU), "STUB_T4_SECONDS": str(waited)}
                environment |= on_gpu if arch == "t4" else {"GEMM_ARCH": arch}
                notebook = subprocess.run(
                    ["git", "show", f"colab:{name}"], cwd=work, capture_output=True, check=True
                ).stdout
                (place / "opened.ipynb").write_bytes(notebook)
                before = versions(interpreter)
                done = subprocess.run(
                    [interpreter, "-c", RUN, place / "opened.ipynb", place],
                    env=environment, cwd=place, capture_output=True, text=True,
                )  # fmt: skip
                if done.returncode:
                    told = {"problem": done.stderr[-600:], "setup": None, "seconds": 0}
                else:
                    told = json.loads(done.stdout.splitlines()[-1])
                problems = [told["problem"]] if told["problem"] else []
                if (told["setup"] or 0) > SETUP_SECONDS:
                    problems.append(f"set-up took {told['setup']:.0f} s")
                after = versions(interpreter)
                if changed := {k: after.get(k) for k, v in before.items() if after.get(k) != v}:
                    problems.append(f"the image's packages changed: {changed}")
                if waited.exists():
                    seconds = sum(map(float, waited.read_text(encoding="utf-8").split()))
                    print(f"  the GPU would have worked for {seconds:.0f} s")
                machine = "T4" if arch == "t4" else f"sm_{arch}"
                for line in told.get("missed", []):
                    print(f"  {line}")
                print(f"{machine} {name}: {'; '.join(problems) or 'right'} "
                      f"(set-up {told['setup'] or 0:.1f} s, all {told['seconds']:.0f} s)", flush=True)  # fmt: skip
                failed += bool(problems)
    return 1 if failed else 0


def notebooks() -> list[str]:
    toc = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    files = re.findall(r"^\s*-?\s*(?:root|file):\s*(\S+)", toc, re.MULTILINE)
    return [f"{name}.ipynb" for name in files if (ROOT / f"{name}.ipynb").exists()]


def pins() -> int:
    """Writes the versions that Colab publishes now for the packages that the file names."""

    def published(name: str) -> str:
        with urllib.request.urlopen(PUBLISHED + name, timeout=60) as answer:
            return answer.read().decode()

    try:
        listed, about = published("pip-freeze.gpu.txt"), published("os-info-gpu.txt")
    except OSError as error:
        print(f"Colab's list cannot be read from {PUBLISHED}: {error}", file=sys.stderr)
        return 1
    there = dict(re.findall(r"^([\w.-]+)==(\S+)$", listed, re.MULTILINE))
    version = re.search(r"^Python (\d+\.\d+)", about, re.MULTILINE)[1]
    names = re.findall(r"^([\w.-]+)==", PINS.read_text(encoding="utf-8"), re.MULTILINE)
    gone = [name for name in names if name not in there]
    if gone:
        print(f"Colab's image no longer has {', '.join(gone)}", file=sys.stderr)
    lines = [f"{name}=={there[name]}" for name in names if name in there]
    head = (
        "# What Colab's GPU image has of what the book uses, as published in googlecolab/backend-info,\n"
        f"# pip-freeze.gpu.txt and os-info-gpu.txt, on {time.strftime('%Y-%m-%d')}. `make colab-pins` renews it.\n"
        f"# python {version}\n"
    )
    PINS.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="colab_image")
    parser.add_argument("do", choices=["check", "pins"])
    parser.add_argument("notebooks", nargs="*", help="default: all of the book")
    parser.add_argument("--arch", default="75,80,t4", help="such as 75 or 75,t4")
    asked = parser.parse_intermixed_args()
    return pins() if asked.do == "pins" else check(asked.notebooks, asked.arch.split(","))


if __name__ == "__main__":
    sys.exit(main())
