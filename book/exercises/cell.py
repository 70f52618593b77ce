"""What a notebook calls: the `%%kernel NAME` magic, `check`, and the session's progress."""

import json
from difflib import get_close_matches
from pathlib import Path

from IPython import get_ipython
from IPython.display import display

import kernels
from kernels.build import cache_folder
from kernels.errors import NoCompiler

from . import lab
from .catalogue import EXERCISES, find
from .compiler_words import explained
from .includes import device_code, missing
from .judge import compile_cell, judge
from .time_limit import DoesNotEnd, time_limit
from .verdict import RIGHT, WRONG, Verdict

LAB = "lab3"  # what the lab's notebook calls its kernels; no exercise of the catalogue
NAMES = (*(exercise.name for exercise in EXERCISES), LAB)

ANSWER_SECONDS = 5  # of the processor, for an answer in Python
# What the gaps of a skeleton bring with them.
EXPECTED_WARNINGS = "was declared but never referenced", "was set but never used"

# The kernels that this session has written, and why the last version of others is none of them.
_SOURCES: dict[str, str] = {}
_REFUSED: dict[str, kernels.BuildError | NoCompiler] = {}


def kernel(line: str, cell: str) -> None:
    """`%%kernel NAME`: compile the cell as CUDA and keep it for the cells below."""
    name = line.strip()
    if not name.isidentifier():
        print("Write a name after %%kernel, for example: %%kernel coalesce")
        return
    # The cell's first line is the magic itself: with an empty line for it, lines count as the cell shows them.
    text = device_code("\n" + cell)
    _SOURCES.pop(name, None)
    try:
        if absent := missing("\n" + cell, f"{name}.cu"):
            raise kernels.BuildError(f"{name} does not compile", absent)
        built = compile_cell(name, text, next((e.arch for e in EXERCISES if e.name == name), None))
    except (kernels.BuildError, NoCompiler) as error:
        _REFUSED[name] = error
        if isinstance(error, NoCompiler):
            raise
        print(f"{WRONG} {name} does not compile")
        print("\n".join(explained(d, text) for d in error.diagnostics))
        return
    _SOURCES[name] = text
    print(f"{RIGHT} {name} compiles")
    for warning in built.warnings:
        if not any(words in warning for words in EXPECTED_WARNINGS):
            print(warning)
    if name not in NAMES and (near := _near(name)):
        print(f"  no exercise is called {name}; {near}")


def _near(name: str) -> str:
    """Which exercise was probably meant; "" where none is near."""
    found = get_close_matches(name.lower(), NAMES, 1, cutoff=0.8)
    return f"did you mean {found[0]}?" if found else ""


def source(name: str) -> str:
    """The CUDA that a `%%kernel NAME` cell above holds. KeyError names what there is."""
    if name not in _SOURCES:
        known = ", ".join(_SOURCES) or "none yet"
        raise KeyError(f"no %%kernel {name} has compiled; this session has {known}")
    return _SOURCES[name]


def check(name: str, answer=None) -> None:
    """Try the kernel that `%%kernel NAME` kept, or judge this `answer`, and print the verdict.

    Whatever is given, what is wrong with it is printed: nothing is raised, but for a kernel where there is no compiler.
    """
    if not isinstance(name, str) or name not in NAMES:
        print(f"{WRONG} {_no_such_exercise(name)}")
        return
    exercise = find(name) if name != LAB else None
    if exercise is not None and not exercise.is_kernel:
        verdict = judge_answer(name, answer)
    elif not _has_compiled(name):
        return
    elif exercise is not None:
        verdict = judge(exercise, _SOURCES[name])
    else:  # as the lab's own program would print it
        verdict = lab.run(_SOURCES[name], machine="emulator")
    if verdict.passed:
        _remember(name)
    print(verdict)
    for picture in verdict.pictures:
        _show(picture.drawing())


def _show(drawing) -> None:
    if getattr(get_ipython(), "kernel", None) is not None:  # in a notebook
        display(drawing)
    else:
        print(f"\n{drawing.plain()}")


def _has_compiled(name: str) -> bool:
    """Whether there is a kernel of this name to check; if not, says what to do. NoCompiler where nothing could compile it."""
    if name in _SOURCES:
        return True
    if isinstance(_REFUSED.get(name), NoCompiler):
        raise _REFUSED[name]
    mend = "its %%kernel cell does not compile; mend it, run it, and check again"
    print(f"{WRONG} {name}: {mend if name in _REFUSED else 'run its %%kernel cell first'}")
    return False


def _no_such_exercise(name) -> str:
    if not isinstance(name, str):
        return 'check takes the name of an exercise, in quotes: check("coalesce")'
    return f"no exercise is called {name}; {_near(name) or 'there are ' + ', '.join(NAMES)}"


def judge_answer(name: str, answer) -> Verdict:
    """Judge an answer that is not a kernel. A function that raises is a wrong answer, not an accident."""
    exercise = find(name)
    try:
        with time_limit(ANSWER_SECONDS):
            mistakes = exercise.mistakes(answer)
    except DoesNotEnd:
        mistakes = [f"it does not end: it was stopped after {ANSWER_SECONDS} s of the processor"]
    except Exception as error:
        mistakes = [f"{type(error).__name__}: {error}"]
    if mistakes:
        return Verdict(name, False, "not yet", tuple(mistakes))
    return Verdict(name, True, "right")


def progress() -> None:
    """Print which exercises have been passed on this machine, and whether the lab has."""
    done = _passed()
    print(f"{sum(name in done for name in NAMES)} of {len(NAMES)} exercises passed")
    part = None
    for exercise in EXERCISES:
        if exercise.part != part:
            part = exercise.part
            print(f"\n{part}")
        print(f"  {RIGHT if exercise.name in done else '·'} {exercise.title}")
    print(f"\nThe ECE 60827 lab\n  {RIGHT if LAB in done else '·'} Parts A and B")


def save_progress(path: str | Path = "progress.json") -> None:
    """Write what has been passed to a file, to be kept or taken to another machine (a Colab machine is gone tomorrow)."""
    path = Path(path)
    try:
        path.write_text(
            json.dumps({"passed": sorted(_passed())}, indent=1) + "\n", encoding="utf-8"
        )
    except OSError as error:
        print(f"{WRONG} nothing saved: {path} cannot be written ({error.strerror})")
        return
    print(f"{RIGHT} saved to {path}")


def load_progress(path: str | Path = "progress.json") -> None:
    """Add what such a file says has been passed to what has been passed here. Nothing is lost either way."""
    path = Path(path)
    try:
        passed = set(json.loads(path.read_text(encoding="utf-8"))["passed"])
        unknown = ", ".join(sorted(passed - set(NAMES)))
    except FileNotFoundError:
        print(f"{WRONG} there is no {path}; save_progress() writes one")
        return
    except (OSError, ValueError, TypeError, KeyError):
        print(f"{WRONG} {path} is no file that save_progress has written")
        return
    known = passed & set(NAMES)
    new = known - _passed()
    _store(_passed() | known)
    print(f"{RIGHT} {len(known)} passed in {path}, {len(new)} of them new here")
    if unknown:
        print(f"  no exercise is called {unknown}: left out")


def _progress_file() -> Path:
    return cache_folder() / "exercises.json"


def _passed() -> set[str]:
    try:
        return set(json.loads(_progress_file().read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return set()


def _remember(name: str) -> None:
    _store(_passed() | {name})


def _store(names: set[str]) -> None:
    path = _progress_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(sorted(names)), encoding="utf-8")
    except OSError:
        pass  # a read-only home costs the progress page, not the verdict


def load_ipython_extension(ipython) -> None:
    """`%load_ext book.exercises` adds the magic."""
    ipython.register_magic_function(kernel, magic_kind="cell", magic_name="kernel")
