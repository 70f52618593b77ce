"""Seeded mistakes (`kernels.mistakes`) on a GPU: a plain test of the result, and compute-sanitizer's four tools.

    export GEMM_BUILDS=$PWD/.builds
    python -m measure mistakes --compile-only --arch 90     # anywhere
    python -m measure mistakes --seconds 500                # on the GPU, again until nothing is left out
    python -m measure mistakes                              # anywhere: the table of what was recorded
    python -m measure mistakes --emulate [RUNG ...]         # anywhere: what the emulator says now

Each run is a process of its own with a limit, since a mistake may hang, or end its process. What is there is stored
after every few rows, and not run again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import multiprocessing
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

from kernels.errors import BuildError, UnsupportedGPU
from kernels.gpus import gpu
from kernels.mistakes import Case, Seeded, cases, made, seeded, source, unchanged
from kernels.rungs import find

from .compute_sanitizer import TOOLS, command, initcheck_reads, parse, version
from .ncu import environment
from .progress import aside, progress
from .provenance import FOLDER, describe, rows_in, store

LIMIT_S = {"result": 30.0} | dict.fromkeys(TOOLS, 40.0)
REPEATS = 3  # of each case, in the test of the result
LARGE = (1031, 1016, 1024)  # a size that fills the GPU, in that test, too
JOBS = 12
STORED_EVERY = 10  # runs
FIRST_PORT = 49200
PROGRAM = (sys.executable, "-m", "measure.mistakes")
GRACE_S = 6.0  # for a tool to tell what it has found, after the program that it watches was ended
SAYS = "@@ "  # before what a run reports to the process that started it
METHOD = (
    f"the emulator's cases; the result: each case {REPEATS} times and {LARGE}, against float64; "
    "compute-sanitizer: each case once, in a process of its own with a limit; no pool of memory"
)


def rows() -> tuple[Seeded, ...]:
    """What is run: mistakes and twins in turn, then the rungs as they are."""
    wrong = [row for row in seeded() if row.wrong]
    twins = [row for row in seeded() if not row.wrong]
    return (*wrong, *twins, *unchanged())


def digest(row: Seeded) -> str:
    """Another one when the row's source or its cases are."""
    parts = [source(row), [[dict(c.macros), c.size] for c in cases(row)]]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def compile_all(arch: int, jobs: int | None = None) -> tuple[int, list[str]]:
    """Compiles all rows for an architecture into the cache and `$GEMM_BUILDS`; how many builds there are, and what does
    not compile. Needs no GPU.
    """
    wanted = [row for row in rows() if find(row.rung).runs_on(arch)]
    context = multiprocessing.get_context("spawn")
    count, refused = 0, []
    with ProcessPoolExecutor(jobs or os.cpu_count(), mp_context=context) as pool:
        done = pool.map(_compile, wanted, [arch] * len(wanted))
        for number, (row, outcome) in enumerate(zip(wanted, done, strict=True)):
            progress(number + 1, len(wanted), row.key)
            if isinstance(outcome, str):
                refused.append(f"{row.key}: {outcome}")
            else:
                count += outcome
    return count, refused


def _compile(row: Seeded, arch: int) -> int | str:
    try:
        return len({made(row, case, arch).cubin for case in cases(row)})
    except BuildError as error:
        return str(error)


# --- one run, in its own process ---------------------------------------------------------------------------------


def run_here(key: str, name: str) -> None:
    """Launches a row's cases on the GPU here, compares what they give where `name` is "result", and says how it ended."""
    import cupy

    row = next(row for row in rows() if row.key == key)
    cupy.cuda.set_allocator(None)  # a pool hides where an array ends
    plain = name == "result"
    run = list(cases(row))
    if plain:
        first = run[0]
        run.append(Case(first.macros, LARGE, first.alpha, first.beta))
    arch = gpu().arch
    for number, case in enumerate(run):
        print(f"{SAYS}{json.dumps({'begun': number})}", flush=True)
        try:
            words = _once(row, case, arch, plain)
        except (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError) as error:
            return _say("fault", str(error).splitlines()[0], number)
        if words:
            return _say("wrong", words, number)
    return _say("ended", "", len(run) - 1)


def _say(how: str, words: str, case: int) -> None:
    print(f"{SAYS}{json.dumps({'how': how, 'words': words, 'case': case})}", flush=True)


def _once(row: Seeded, case: Case, arch: int, plain: bool) -> str:
    """One case; what is wrong with its result, "" for nothing or where it is not compared."""
    from kernels.check import check_one, random_inputs
    from kernels.gemm import gemm

    built = made(row, case, arch)
    if not plain:
        A, B, C = random_inputs(find(row.rung).types(case.macros), *case.size)
        given = C if case.beta else None
        gemm(row.rung, A, B, given, case.alpha, case.beta, case.macros, "gpu", arch, built)
        return ""
    for seed in range(REPEATS):
        right, _ = check_one(
            row.rung, case.size, case.macros, case.alpha, case.beta, "gpu", arch, built, seed
        )
        if not right.ok:
            return str(right)
    return ""


# --- one run, seen from outside ----------------------------------------------------------------------------------


def run_once(row: Seeded, name: str, slot: int, limit: float) -> dict:
    """A run of a row in a process of its own, ended at the limit (s): how it went, in what is stored."""
    words = [*PROGRAM, row.key, name]
    if name in TOOLS:
        words = [*command(name, "gemm_", FIRST_PORT + 20 * slot), *words]
    start = time.monotonic()
    output, late = limited(words, limit)
    return {**outcome(name, output, late), "seconds": round(time.monotonic() - start, 1)}


def limited(words: Sequence[str], limit: float) -> tuple[str, bool]:
    """What a program and its children print, and whether they were ended because `limit` seconds were over."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as file:
        process = subprocess.Popen(
            words, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            cwd=FOLDER.parent, env=environment(), start_new_session=True,
        )  # fmt: skip
        late = False
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            late = True
            for child in _watched(process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_S)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_S)
        file.seek(0)
        return file.read(), late


def _watched(session: int) -> list[int]:
    """The processes of a session that run this Python: what a tool watches, not the tool."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if words[0] == os.fsencode(PROGRAM[0]) and os.getsid(int(entry.name)) == session:
                found.append(int(entry.name))
    return found


def outcome(name: str, output: str, late: bool) -> dict:
    """What a run's output says of it. how: "right", "wrong", "fault" or "hung" of the result; of a tool "reported", "quiet",
    "fault" or "hung" (without a report); "failed" where it did not work, with its last words.
    """
    said = [json.loads(line[len(SAYS) :]) for line in output.splitlines() if line.startswith(SAYS)]
    ends = [one for one in said if "how" in one]
    begun = [one["begun"] for one in said if "begun" in one]
    end = ends[-1] if ends else {"how": "hung" if late and begun else "failed", "words": ""}
    case = {"case": end.get("case", begun[-1] if begun else -1)}
    if end["how"] == "failed":
        end["words"] = " / ".join(output.strip().splitlines()[-3:])[:300]
    if name == "result":
        how = "right" if end["how"] == "ended" else end["how"]
        return {"how": how, "words": end["words"], **case}
    found = parse(output)
    if found.reports:
        how = "reported"
    elif found.broken:
        return {"how": "failed", "words": found.broken, **case}
    else:
        how = "quiet" if end["how"] == "ended" else end["how"]
    stored = {"how": how, "words": end["words"], **case}
    if how == "reported":
        stored |= {"reports": found.reports, "words": list(found.words), "places": found.places}
        stored["then"] = end["how"]
    return stored


def run_all(
    tasks: Iterable[tuple[Seeded, str]],
    run: Callable[[Seeded, str, int, float], dict],
    keep: Callable[[Seeded, str, dict], None],
    end: float,
    jobs: int,
    limits: Callable[[Seeded, str], float],
) -> list[tuple[Seeded, str]]:
    """Runs tasks side by side until the moment `end`; returns those left out, cut short ones among them."""
    tasks = list(tasks)
    slots: queue.Queue[int] = queue.Queue()
    for slot in range(jobs):
        slots.put(slot)
    left, done, lock = [], 0, threading.Lock()

    def one(task: tuple[Seeded, str]) -> None:
        nonlocal done
        row, name = task
        full = limits(row, name)
        limit = min(full, end - time.monotonic())
        if limit < min(full, 1.0):
            with lock:
                left.append(task)
            return
        slot = slots.get()
        try:
            found = run(row, name, slot, limit)
        finally:
            slots.put(slot)
        with lock:
            done += 1
            progress(done, len(tasks), name)
            if limit < full and found["how"] in ("hung", "failed"):
                left.append(task)  # it had less than its time
            else:
                keep(row, name, found)

    with ThreadPoolExecutor(jobs) as pool:
        for future in [pool.submit(one, task) for task in tasks]:
            future.result()
    return left


def record(seconds: float = 500.0, jobs: int = JOBS, again: bool = False) -> tuple[Path, list[str]]:
    """Runs here what `results/mistakes-<gpu>.json` lacks, for so long; its path, and what is left out, in words."""
    here = gpu()
    if here is None or not version():
        raise UnsupportedGPU("needs an NVIDIA GPU, CuPy and compute-sanitizer")
    end = time.monotonic() + seconds
    path = FOLDER / f"mistakes-{here.slug}.json"
    machine = {**describe(), "compute_sanitizer": version(), "initcheck_reads": initcheck_reads()}
    stored = [] if again else rows_in(path)
    held = {f"{row['rung']}: {row['words']}": row for row in stored}
    wanted, unfit = [], []
    for row in rows():
        mark = digest(row)
        if held.get(row.key, {}).get("digest") != mark:
            held[row.key] = {"rung": row.rung, "words": row.words, "table": row.table}
            held[row.key] |= {"digest": mark, "runs": {}}
        if find(row.rung).runs_on(here.arch):
            wanted.append(row)
            if "repairs" not in held[row.key]:
                held[row.key]["repairs"] = _repairs(row, here.arch)
        else:
            held[row.key]["not_run"] = f"needs sm_{find(row.rung).min_arch}"
            unfit.append(row)
    names = {row.key for row in rows()}
    waiting = 0

    def save() -> None:
        kept = [held[key] for key in held if key in names]
        store(path, METHOD, machine, jobs=jobs, limits_s=LIMIT_S, rows=kept)

    def keep(row: Seeded, name: str, found: dict) -> None:
        nonlocal waiting
        held[row.key]["runs"][name] = found
        if found["how"] == "failed":
            aside(f"{row.key}, {name}: {found['words']}")
        waiting += 1
        if waiting % STORED_EVERY == 0:
            save()
            print(f"{waiting} runs, {end - time.monotonic():.0f} s left", flush=True)

    def limits(row: Seeded, name: str) -> float:
        hangs = held[row.key]["runs"].get("result", {}).get("how") == "hung"
        return LIMIT_S[name] / (2 if hangs and name in TOOLS else 1)

    def lacks(row: Seeded, name: str) -> bool:
        return held[row.key]["runs"].get(name, {"how": "failed"})["how"] == "failed"

    run_once(unchanged()[0], "result", 0, 60.0)  # CuPy compiles what all will use
    left = []
    for some in (("result",), TOOLS):  # the results first: a row that hangs gets less time later
        tasks = [(row, name) for row in wanted for name in some if lacks(row, name)]
        left += run_all(tasks, run_once, keep, end, jobs, limits)
    save()
    notes = [f"{row.key}, {name}" for row, name in left]
    if unfit:
        notes.append(f"{len(unfit)} rows need another GPU than sm_{here.arch}")
    return path, notes


def _repairs(row: Seeded, arch: int) -> list[str]:
    """What ptxas did to the row's wgmma instructions."""
    try:
        return sorted({words for case in cases(row) for words in made(row, case, arch).repairs})
    except BuildError as error:
        return [f"does not compile: {error}"]


if __name__ == "__main__":
    run_here(sys.argv[1], sys.argv[2])
