"""Wrong arguments are refused by name, before anything runs; what was not counted is not given as 0."""

from pathlib import Path

import numpy as np
import pytest
from cuda_source import compile_ptx

import emulator
from emulator import bench
from emulator.__main__ import main

SCALE = compile_ptx(
    'extern "C" __global__ void scale(const float *x, float *y, int n, float a) {'
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;"
    "  if (i < n) y[i] = a * x[i]; }"
)
X = np.arange(8, dtype=np.float32)


def launch(x=X, y=None, n=8, a=2.0, grid=1, block=32, **options):
    y = np.zeros(8, np.float32) if y is None else y
    trace = emulator.Module(SCALE).launch("scale", grid, block, [x, y, n, a], **options)
    return y, trace


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (X.astype(">f4"), "bytes in the other order"),
        (np.ma.masked_array(X, X > 3), "mask"),
        (np.array([1, None]), "object"),
        (np.array(["a", "b"]), "<U1"),
    ],
)
def test_arrays_whose_bytes_mean_something_else(x, words):
    with pytest.raises((TypeError, ValueError), match=words):
        launch(x)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_a_matrix_is_its_elements():
    y, _ = launch(np.asmatrix(X))
    assert (y == 2 * X).all()


@pytest.mark.parametrize(
    "extents", ["ab", None, 1.5, (1, None), {1: 2, 3: 4}, np.inf, ((1, 2), (3,))]
)
def test_extents_that_are_no_integers(extents):
    with pytest.raises(ValueError, match="one to three positive integers"):
        launch(grid=extents)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"shared_bytes": 1.5}, "shared_bytes is an integer"),
        ({"record": -1}, "record"),
        ({"blocks": 0}, "list of blocks"),
        ({"blocks": [(0.5,)]}, "one to three integers"),
        ({"blocks": [(0, 0, 0, 7)]}, "one to three integers"),
        ({"blocks": [0, 0]}, "twice"),
        ({"a": 1e60}, "does not fit"),
        ({"a": 10**400}, "does not fit"),
    ],
)
def test_options_that_are_wrong(options, words):
    with pytest.raises((TypeError, ValueError), match=words):
        launch(**options)


def test_arguments_that_are_no_list():
    with pytest.raises(TypeError, match="args is a list"):
        emulator.Module(SCALE).launch("scale", 1, 32, None)


def test_infinity_is_a_number():
    y, _ = launch(a=float("inf"))
    assert np.isinf(y[1:]).all()


@pytest.mark.parametrize("text", [SCALE[:400], b"\x7fELF\xff\xfe", 5, None])
def test_what_is_no_ptx(text):
    with pytest.raises((emulator.PtxError, TypeError)):
        emulator.Module(text)


def test_what_was_not_counted_is_not_zero():
    _, trace = launch(count=False)
    assert not trace.counted and trace.total("warps") > 0
    with pytest.raises(ValueError, match="count=False"):
        trace.total("global_sectors")
    with pytest.raises(ValueError, match="count=False"):
        trace.accesses(trace.instructions[0])


def test_a_warp_that_is_not_there():
    _, trace = launch()
    with pytest.raises(ValueError, match="no warp 1"):
        trace.accesses(trace.instructions[0], warp=1)


@pytest.mark.parametrize(
    "wrong",
    [
        "--show 9",
        "--show -1",
        "--save 1",
        "--save 9=x.npy",
        "--save 1=nowhere/x.npy",
        "--arg s32=99999999999",
        "--arg u8=-1",
        "--arg s32=1.5",
        "--arg f32=1e60",
        "--arg f32[8]=arrange",
        "--arg f32[8]=random:x",
        "--arg f32[8,]",
        "--arg f32[99999999999999]",
        "--arg s8[300]=arange",
        "--arg f16[70000]=arange",
        "--entry scal",
    ],
)
def test_typing_mistakes_on_the_command_line(wrong, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.ptx").write_text(SCALE)
    right = "--arg f32[8]=arange --arg f32[8] --arg s32=8 --arg f32=2"
    assert main(f"run k.ptx {right} {wrong}".split()) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["k.ptx"]


@pytest.mark.parametrize("wrong", ["--grid ax4", "--grid 1.5", "--only a", "--only 0x0x0x0"])
def test_extents_on_the_command_line(wrong, capsys):
    with pytest.raises(SystemExit) as left:
        main(["run", "k.ptx", *wrong.split()])
    assert left.value.code == 2
    assert "one to three numbers" in capsys.readouterr().err


def test_bench_sets_two_checkouts_side_by_side(capsys):
    here = Path(emulator.__file__).parents[1]
    said = bench.against(here, size=128, rounds=1)
    assert len(said.splitlines()) == 4 and "mma.sync tiles" in said
    assert all(0.05 < float(line.split()[-1]) < 20 for line in said.splitlines()[1:])
    assert main(["bench", "--against", str(here / "tests")]) == 1
    assert "no emulator is there" in capsys.readouterr().err


def test_bench_takes_whole_tiles(capsys):
    assert main(["bench", "--size", "100"]) == 1
    assert "multiple of 128" in capsys.readouterr().err
