"""`pytest --emulate-gpu` as a user runs it: a test passes, fails on a race with file and line, or is skipped with the reason."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from emulator.plugin import compared

pytest.importorskip("cuda.bindings.nvrtc")
ROOT = Path(__file__).resolve().parents[2]
TESTS = '''
import importlib
import cupy as cp
import numpy as np
import pytest

ADD = r"""
extern "C" __global__ void add(const float* x, const float* y, float* z, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = x[i] + y[i];
}
"""
TURN = r"""
template <typename T> __global__ void turn(T* x) {
    __shared__ T tile[64];
    tile[threadIdx.x] = x[threadIdx.x];
    SYNC;
    x[threadIdx.x] = tile[63 - threadIdx.x];  // the line
}
"""
OTHERS = r"""
extern "C" __global__ void heap(unsigned long long* x) { x[0] = (unsigned long long)malloc(4); }
extern "C" __global__ void poll(volatile int* x) { while (x[0] < 1000000) x[0] = x[0] + 1; }
"""
add = cp.RawKernel(ADD, "add")
others = cp.RawModule(code=OTHERS)

def turned(options):
    kernel = cp.RawModule(code=TURN, options=options, name_expressions=["turn<float>"]).get_function("turn<float>")
    x = cp.arange(64, dtype=cp.float32)
    kernel((1,), (64,), (x,))
    np.testing.assert_array_equal(cp.asnumpy(x), np.arange(64)[::-1])

def test_add():
    x, y = cp.random.random(1000, dtype=cp.float32), cp.ones(1000, cp.float32)
    z = cp.zeros_like(x)
    add((8,), (128,), (x, y, z, 1000))
    cp.testing.assert_allclose(z, x + y)

def test_turn():
    turned(("-DSYNC=__syncthreads()",))

def test_race():
    turned(("-DSYNC=",))

IN_A_LINE = 'extern "C" __global__ void turn(int* x) { __shared__ int s[64]; s[threadIdx.x] = 1; x[0] = s[63]; }'

@pytest.mark.parametrize("name", ["file", "line"])
def test_race_elsewhere(name):
    source = IN_A_LINE if name == "line" else open(__file__.replace("test_it.py", "turn.cu")).read()
    cp.RawKernel(source, "turn")((1,), (64,), (cp.zeros(64, cp.int32),))

def test_no_kernel():
    assert cp.arange(3).sum() == 3

def test_outside():
    x = cp.zeros(999, cp.float32)
    with pytest.raises(Exception):
        add((8,), (128,), (x, x, x, 1000))

def test_narrow_argument():
    x = cp.zeros(4, cp.float32)
    add((1,), (4,), (x, x, x, np.int16(4)))

@pytest.mark.parametrize("body", [
    lambda: cp.fft.fft(cp.ones(8)),
    lambda: cp.ElementwiseKernel("T x", "T y", "y = x", "copy"),
    lambda: others.get_function("heap")((1,), (1,), (cp.ones(1, cp.uint64),)),
    lambda: add.num_regs,
    lambda: others.get_function("poll")((1,), (1,), (cp.zeros(1, cp.int32),)),
    lambda: cp.cuda.Stream().begin_capture(),
    lambda: importlib.import_module("cuda.core").Device().create_graph_builder(),
], ids=["module", "class", "instruction", "attribute", "time", "stream", "device"])
def test_refused(body):
    try:
        body()
    except Exception:
        pass

def test_cuda_core():
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
    Device().set_current()
    stream = Device().create_stream()
    program = Program(TURN, code_type="c++", options=ProgramOptions(std="c++17", define_macro=("SYNC", "__syncthreads()")))
    kernel = program.compile("cubin", name_expressions=("turn<int>",)).get_kernel("turn<int>")
    x = cp.arange(64, dtype=cp.int32)
    launch(stream, LaunchConfig(grid=1, block=64), kernel, x.data.ptr)
    assert cp.asnumpy(x).tolist() == list(range(64))[::-1]

def numba_turns(with_barrier):
    cuda = pytest.importorskip("numba.cuda")

    @cuda.jit
    def turn(x):
        tile = cuda.shared.array(64, np.float32)
        i = cuda.threadIdx.x
        tile[i] = x[i]
        if with_barrier:
            cuda.syncthreads()
        x[i] = tile[63 - i]

    x = np.arange(64, dtype=np.float32)
    turn[1, 64](x)
    assert x.tolist() == list(range(64))[::-1]

def test_numba():
    numba_turns(True)

def test_numba_race():
    numba_turns(False)

def test_triton():
    torch, kernels = pytest.importorskip("torch"), pytest.importorskip("triton_kernels_here")
    x, y = torch.rand(1000, device="cuda"), torch.rand(1000, device="cuda")
    out = torch.empty_like(x)
    kernels.add[(8,)](x, y, out, 1000, BLOCK=128)
    torch.testing.assert_close(out, x + y)

def test_triton_autocast():
    torch = pytest.importorskip("torch")
    pytest.importorskip("triton")
    with torch.autocast("cuda", torch.float16, enabled=False):
        pass
    with torch.autocast("cuda", torch.float16):
        pass

def test_triton_by_tma():
    torch, kernels = pytest.importorskip("torch"), pytest.importorskip("triton_kernels_here")
    from triton.tools.tensor_descriptor import TensorDescriptor
    x = torch.rand(40, 96, device="cuda").half()[:, :80]
    out = torch.zeros(40, 80, device="cuda", dtype=torch.float16)
    kernels.twice[(2,)](*(TensorDescriptor.from_tensor(one, [32, 64]) for one in (x, out)))
    torch.testing.assert_close(out, 2 * x)
'''
IN_A_FILE = """// A kernel that a test reads from a file.
extern "C" __global__ void turn(int* x) {
    __shared__ int s[64];
    s[threadIdx.x] = 1;
    x[0] = s[63];
}
"""
TRITON = """
import triton
import triton.language as tl

@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)

@triton.jit
def twice(x, out):
    for column in range(0, 128, 64):
        out.store([tl.program_id(0) * 32, column], x.load([tl.program_id(0) * 32, column]) * 2)
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """One run of TESTS: {test: (its outcome, what was said)}, and what the run printed."""
    folder = tmp_path_factory.mktemp("a_project")
    (folder / "test_it.py").write_text(TESTS, encoding="utf-8")
    (folder / "turn.cu").write_text(IN_A_FILE, encoding="utf-8")
    (folder / "triton_kernels_here.py").write_text(TRITON, encoding="utf-8")
    words = "-p emulator.plugin.hooks --emulate-gpu --emulate-gpu-seconds 0.2 --junitxml made.xml -p no:cacheprovider"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    printed = subprocess.run(
        [sys.executable, "-m", "pytest", "test_it.py", *words.split()],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=300,
    ).stdout  # fmt: skip
    outcomes = {}
    for case in ElementTree.parse(folder / "made.xml").iter("testcase"):
        said = next(iter(case), None)
        outcomes[case.get("name")] = (
            ("passed", "") if said is None else (said.tag, f"{said.get('message')} {said.text}")
        )
    return outcomes, printed


def test_right_kernels_pass_and_the_report_says_what_stands_behind_it(ran):
    outcomes, printed = ran
    assert {name for name, (what, _) in outcomes.items() if what == "passed"} >= {
        "test_add", "test_turn", "test_no_kernel", "test_cuda_core",
    }  # fmt: skip
    assert "1 test passed without a kernel" in printed
    compared = next(line for line in printed.splitlines() if "GPU's counters" in line)
    assert "ld.shared.f32" in compared and "add.f32" not in compared


def test_a_race_fails_with_file_and_line_though_the_numbers_are_right(ran):
    what, said = ran[0]["test_race"]
    line = TESTS.splitlines().index(next(x for x in TESTS.splitlines() if "// the line" in x)) + 1
    assert what == "failure" and "read-after-write" in said and f"test_it.py:{line} that" in said


@pytest.mark.parametrize("name", ["file", "line"])
def test_the_line_is_that_of_the_file_in_which_the_source_stands(ran, name):
    line = next(n for n, x in enumerate(TESTS.splitlines(), 1) if "x[0] = s[63]; }" in x)
    what, said = ran[0][f"test_race_elsewhere[{name}]"]
    assert what == "failure"
    assert ("at turn.cu:5 that" if name == "file" else f"at test_it.py:{line} that") in said


@pytest.mark.parametrize(
    "name, reason",
    [
        (
            "outside",
            "0 bytes past the end of argument 0 (3996 bytes)",
        ),  # the test catches the exception
        ("narrow_argument", "is 4 bytes; an argument of 2 bytes was passed"),
    ],
)
def test_a_fault_fails(ran, name, reason):
    what, said = ran[0][f"test_{name}"]
    assert what == "failure" and reason in said


@pytest.mark.parametrize(
    "name, reason",
    [
        ("module", "cupy.fft"),
        ("class", "cupy.ElementwiseKernel"),
        ("instruction", "call of malloc, which has no body here"),
        ("attribute", "RawKernel.num_regs: the machine code's, which ptxas makes"),
        ("time", "takes more than 0.2 s"),
        ("stream", "Stream.begin_capture"),
        ("device", "Device.create_graph_builder"),
    ],
)
def test_what_cannot_run_is_skipped_with_its_reason_whatever_the_test_catches(ran, name, reason):
    what, said = ran[0][f"test_refused[{name}]"]
    assert what == "skipped" and reason in said and reason in ran[1]


@pytest.mark.parametrize(
    "name", ["numba", "triton", "triton_by_tma", "triton_autocast", "numba_race"]
)
def test_numba_and_triton_where_they_are_installed(ran, name):
    what, said = ran[0][f"test_{name}"]
    if "could not import" in said:
        pytest.skip(said.splitlines()[0])
    if name == "numba_race":
        line = next(n for n, x in enumerate(TESTS.splitlines(), 1) if "x[i] = tile[63 - i]" in x)
        assert what == "failure" and f"test_it.py:{line} that" in said
    elif name == "triton_autocast":
        assert what == "skipped" and "autocast of PyTorch's CUDA functions" in said
    else:
        assert (what, said) == ("passed", "")


def test_the_demonstration_runs_and_its_race_is_a_failure():
    words = "-p emulator.plugin.hooks --emulate-gpu -p no:cacheprovider -o addopts= emulator/plugin/demonstration.py"
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words.split()],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0 and "1 xfailed" in done.stdout, done.stdout
    assert "1 failed as they are marked to, 0 were refused" in done.stdout
    assert "1 hazards and faults in 1 tests" in done.stdout


def test_the_option_is_what_puts_it_there():
    """Loaded without it, as any test run does where the emulator is installed, it changes nothing."""
    from emulator.plugin import hooks

    class Config:
        def getoption(self, name):
            return False

    before = list(sys.meta_path)
    hooks.pytest_configure(Config())
    assert sys.meta_path == before


def test_what_it_calls_compared_is_in_the_recordings():
    stored = ROOT / "tests" / "data"
    single = json.loads(
        (ROOT / "results/accesses/h100_single_accesses.json").read_text(encoding="utf-8")
    )
    counted = {row["access"] for row in single["rows"]}
    bytes_of = {"b16": 2, "b32": 4, "v2.b32": 8, "v4.b32": 16}
    for kind, sizes in compared.LANES.items():
        assert {n for form, n in bytes_of.items() if f"{kind}.{form}" in counted} == set(sizes)
    results = [
        one["name"]
        for one in json.loads((stored / "semantics_h200.json").read_text(encoding="utf-8"))
    ]
    results += [
        one[0] for one in json.loads((stored / "uncommon_h200.json").read_text(encoding="utf-8"))
    ]
    words = [set(re.split(r"[. ,]", name)) for name in results]
    for row in compared.MEASURED:
        if row not in ("mma", "wmma.mma", "wgmma.mma_async"):  # tensor_sums_h200.npz
            assert any(set(row.split(".")) - {"cc"} <= one for one in words), row
