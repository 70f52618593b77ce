"""Any callables timed by the book's method: on the stub of a GPU (`tests/stub_t4`), and refused without one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import measure
from kernels.errors import UnsupportedGPU
from measure.timing import Timing

ROOT = Path(__file__).resolve().parents[2]


def on_stub(code: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "tests" / "stub_t4")}
    done = subprocess.run(
        [sys.executable, "-c", "import cupy, kernels, measure\n" + code],
        cwd=ROOT, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-600:]
    return done.stdout


def test_callables_take_turns_and_every_set_of_arrays_comes_along():
    said = on_stub(
        """
used = {"mine": [], "other": []}
def takes(name, ms):
    def call(A, B, C):
        used[name].append(A)
        cupy.cuda.takes(ms)
    return call
sets = measure.matrices(kernels.Types("float16"), ((256, 256), (256, 256), (256, 256)))
times = measure.time({"mine": takes("mine", 0.3), "other": takes("other", 0.6)}, sets, samples=9)
assert len(sets) > 1 and times.sets == len(sets)
for name in used:
    assert all(any(A is one[0] for A in used[name]) for one in sets), name
assert abs(times["mine"].median - 0.3) < 1e-6 and abs(times["other"].median - 0.6) < 1e-6
assert len(times["mine"].samples) == 9
print(times)
"""
    )
    head, columns, _, mine, other = said.splitlines()
    assert head.startswith("Tesla T4; ") and head.endswith("sets of arrays in turn")
    assert "over mine" in columns
    assert mine.split() == ["mine", "0.3", "0.3", "0.3", "9", "1.000"]
    assert other.split()[-1] == "2.000"


def test_functions_without_arguments_are_timed_and_what_launches_nothing_is_refused():
    said = on_stub(
        """
print(measure.time({"mine": lambda: cupy.cuda.takes(0.1)}, samples=3))
try:
    measure.time({"nothing": lambda: None}, samples=3)
except ValueError as error:
    print(error)
"""
    )
    assert "one set of arrays: the launches of a group may find theirs in L2" in said
    assert "nothing launched nothing on CuPy's current stream" in said.splitlines()[-1]


def test_the_text_gives_median_and_extremes():
    times = measure.callables.Times({"a": Timing((1.0, 4.0, 2.0))}, 1, "a GPU")
    assert str(times).splitlines()[-1].split() == ["a", "2", "1", "4", "3", "1.000"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (({},), "no callable"),
        (({"mine": 3},), "mine: a function"),
        (({"mine": print}, []), "no set of arrays"),
        (({"mine": print}, [()], 0), "samples 0"),
    ],
)
def test_what_cannot_be_timed_is_named(arguments, said):
    with pytest.raises(ValueError, match=said):
        measure.time(*arguments)


@pytest.mark.skipif(measure.callables.gpu() is not None, reason="there is a GPU")
def test_without_a_gpu_it_says_what_there_is():
    with pytest.raises(UnsupportedGPU, match=r"an NVIDIA GPU and CuPy.*recorded times"):
        measure.time({"mine": print})
