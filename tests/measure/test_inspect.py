"""Kernels in others' style through `python -m measure inspect`: right, or refused by name."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from emulator.arguments import argument
from measure.__main__ import arguments, main
from measure.inspection import CannotInspect, inspect
from measure.others_source import device_source

OTHERS = Path(__file__).parent / "others"


def inspected(path: Path):
    """The inspection that a file's first line asks for, and the arguments before it ran."""
    words = shlex.split(path.read_text(encoding="utf-8").splitlines()[0].removeprefix("// inspect"))
    options = arguments().parse_args(["inspect", str(path), *words])
    args = [argument(text) for text in options.arg]
    before = [np.copy(getattr(arg, "array", arg)) for arg in args]
    found = inspect(
        path, options.grid, options.block, args, options.entry, options.shared, options.arch,
        cooperative=options.cooperative,
    )  # fmt: skip
    return found, before, args


def softmax(x):
    e = np.exp(x.astype("f8") - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(q, k, v, _o, _n, scale):
    return softmax(np.einsum("abid,abjd->abij", q, k, dtype="f8") * scale) @ v


def layernorm(x, gain, bias, _y):
    x = x.astype("f8")
    centred = x - x.mean(1, keepdims=True)
    return centred / np.sqrt(x.var(1, keepdims=True) + 1e-5) * gain + bias


def gelu(x, *_):
    x = x.astype("f8")
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def convolution(x, *_):
    return np.convolve(x.astype("f8"), [1, 4, 6, 4, 1])[2:-2] / 16


def heat(u, _v, n, r):
    p = np.pad(u, 1, mode="edge")
    return u + r * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * u)


def spmv(start, col, val, x, _y):
    return val.astype("f8") * np.append(x, 0)[col]  # one element per row


def moved(p, dt):
    q = p.copy()
    q[:, :3] += dt * p[:, 3:]
    return q


def kept(x, *_):
    large = x[x > 4]
    return np.concatenate([large, np.zeros(len(x) - len(large), x.dtype)])


# file: (which argument holds the result, what it should be of the arguments before, what is found)
EXPECTED = {
    "reduce_modulo": (1, lambda x, _: x.reshape(4, -1).sum(1), "fine"),
    "reduce_strided": (1, lambda x, _: x.reshape(4, -1).sum(1), "conflicts"),
    "reduce_shuffle": (1, lambda x, *_: x.sum(keepdims=True), "fine"),
    "reduce_no_barrier": (1, lambda x, _: x.sum(keepdims=True), "hazards"),
    "transpose_naive": (1, lambda a, *_: a.T, "sectors"),
    "transpose_tile": (1, lambda a, *_: a.T, "conflicts"),
    "softmax_online": (1, lambda x, *_: softmax(x), "fine"),
    "softmax_block": (1, lambda x, *_: softmax(x), "fine"),
    "attention": (3, attention, "conflicts sectors"),
    "scan_hillis_steele": (1, lambda x, _: x.reshape(2, -1).cumsum(1).ravel(), "fine"),
    "scan_blelloch": (1, lambda x, _: np.cumsum(x) - x, "conflicts sectors"),
    "scan_look_back": (1, lambda x, *_: np.cumsum(x), "fine"),
    "histogram": (1, lambda x, *_: np.bincount(x, minlength=256), "conflicts"),
    "layernorm": (3, layernorm, "fine"),
    "matvec": (2, lambda a, x, *_: a.astype("f8") @ x, "fine"),
    "sgemm_blocktiled": (
        7,
        lambda m, n, k, al, a, b, be, c: al * (a @ b) + be * c,
        "conflicts sectors",
    ),
    "hgemm_wmma": (2, lambda a, b, *_: a.astype("f8") @ b.astype("f8"), "sectors"),
    "convolution": (1, convolution, "fine"),
    "stencil": (1, heat, "fine"),
    "bitonic_sort": (0, lambda x: np.sort(x), "fine"),
    "gelu_half": (1, gelu, "fine"),
    "embedding": (2, lambda ids, table, _: table[ids], "fine"),
    "compaction": (1, kept, "fine"),
    "spmv_csr": (4, spmv, "sectors"),
    "particles": (0, moved, "sectors"),
    "grid_sync": (0, lambda x, _: x - x.mean(dtype="f8"), "fine"),
    "tile_sums": (1, lambda a, *_: a.sum(0), "fine"),
}


def test_every_file_is_expected():
    assert {path.stem for path in OTHERS.glob("*.cu")} == set(EXPECTED)
    assert len(EXPECTED) >= 20


@pytest.mark.parametrize("name", EXPECTED)
def test_right_and_what_is_found(name):
    result, reference, said = EXPECTED[name]
    found, before, after = inspected(OTHERS / f"{name}.cu")
    expected = reference(*before)
    half = after[result].dtype == np.float16
    assert np.allclose(after[result], expected, rtol=1e-3 if half else 1e-4, atol=2e-4)
    kinds = {"conflicts": found.conflicts, "sectors": found.wasted, "hazards": found.hazards}
    present = " ".join(kind for kind, lines in kinds.items() if lines)
    assert present == ("" if said == "fine" else said)
    text = found.text()
    assert found.entry in text and "instructions" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "--arch 90 --arg f32[50,80]",
            "for a tensor map pass a TensorMap of it, --arg map:BOX:TYPE",
        ),
        ("--arch 90 --arg map=f32[50,80]", "a tensor map is map:BOX:TYPE"),
        ("--arch 90 --arg map:32x33x1:f32[50,80]", "box .32, 33, 1.: 2 integers"),
        ("--arg map:32x32:f32[50,80]", "tensor maps need --arch 90"),
    ],
)
def test_what_is_no_tensor_map_is_told(words, said, capsys):
    path = OTHERS / "tile_sums.cu"
    rest = "--grid 3x2 --block 32 --arg f32[80] --arg s32=80"
    assert main(["inspect", str(path), *f"{words} {rest}".split()]) == 1
    error = capsys.readouterr().err
    assert re.search(said, error) and error.count("\n") == 1, error


@pytest.mark.parametrize("path", sorted((OTHERS / "refused").glob("*.cu")), ids=lambda p: p.stem)
def test_what_cannot_run_is_refused_by_name(path, capsys):
    lines = path.read_text(encoding="utf-8").splitlines()
    words = shlex.split(lines[0].removeprefix("// inspect"))
    assert main(["inspect", str(path), *words]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and error.startswith("measure inspect: "), error
    for said in re.findall(r"^// said: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE):
        assert said in error


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("nowhere.cu", "no such file"),
        ("README.md", "a .cu or a .ptx file"),
        ("{matvec} --arg q32=1", "expected TYPE=VALUE"),
        ("{matvec} --grid 8 --block 128 --arg f32[4]", "gemv takes 5 arguments, not 1"),
        ("{matvec} --entry gemm", "it has gemv"),
        ("{sgemm_blocktiled} --entry sgemm<1,2>", "5 parameters"),
        ("{sgemm_blocktiled} --entry hgemm<1>", "no kernel template hgemm"),
        ("{matvec} --arch 42", "no architecture"),
        ("{matvec} --show 3", "--show 3"),
        ("{matvec} --html /no/folder/report.html", "no file can be written"),
        ("{matvec} --block 2000 --arg f32[4] --arg f32[4] --arg f32[4] --arg s32=1 --arg s32=4", "1024"),
    ],
)  # fmt: skip
def test_typing_mistakes_end_in_one_line(words, said, capsys):
    files = {path.stem: str(path) for path in OTHERS.glob("*.cu")}
    assert main(["inspect", *words.format(**files).split()]) == 1
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_a_report_needs_nothing_else(tmp_path, capsys):
    target = tmp_path / "report.html"
    words = shlex.split(
        (OTHERS / "reduce_no_barrier.cu").read_text(encoding="utf-8").splitlines()[0][11:]
    )
    code = main(["inspect", str(OTHERS / "reduce_no_barrier.cu"), *words, "--html", str(target)])
    assert code == 1  # it has hazards
    page = target.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and page.rstrip().endswith("</html>")
    assert "read-after-write" in page and "Bank conflicts" in page
    assert not re.search(r'(?:src|href)="(?!#)', page) and "<script" not in page
    assert str(target) in capsys.readouterr().out


def test_a_report_draws_the_worst_access():
    page = inspected(OTHERS / "transpose_tile.cu")[0].html()
    assert "32 wavefronts" in page
    page = inspected(OTHERS / "transpose_naive.cu")[0].html()
    assert "sectors" in page and page.count("<svg") == 1


def test_ptx_is_annotated_by_its_own_lines(tmp_path):
    found, _, _ = inspected(OTHERS / "transpose_tile.cu")
    path = tmp_path / "transpose.ptx"
    path.write_text(found.built.ptx)
    a, b = np.arange(4096, dtype="f4").reshape(64, 64), np.zeros((64, 64), "f4")
    again = inspect(path, (2, 2), (32, 8), [b, a] if found.arguments[0].startswith("o") else [a, b])
    assert (b == a.T).all()
    line = again.conflicts[0].line
    assert "ld.shared" in path.read_text(encoding="utf-8").splitlines()[line - 1]
    assert again.trace.total("shared_wavefronts") == found.trace.total("shared_wavefronts")


def test_wrong_ptx_ends_in_one_line():
    with pytest.raises(CannotInspect, match="PTX line 5") as refused:
        head = ".version 8.0\n.target sm_80\n.address_size 64\n"
        inspect(head + ".visible .entry k() {\nnonsense.b32 1;\nret;\n}\n", 1, 1, [])
    assert "\n" not in str(refused.value)


def test_host_code_goes_and_lines_stay():
    text = (
        "#include <cstdio>\nint host(int a) {\n  return a;\n}\n__device__ int f() { return 1; }\n"
    )
    text += "struct S { int g() { return 2; } };\nnamespace n { __global__ void k(int* x) { *x = f(); } }\n"
    made = device_source(text)
    assert made.left_out == ("host()", "<cstdio>")
    assert made.text.splitlines()[4:7] == text.splitlines()[4:7]
    x = np.zeros(1, "i4")
    inspect(text, 1, 1, [x])
    assert x[0] == 1
