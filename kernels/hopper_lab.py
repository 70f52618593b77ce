"""The bench for Hopper's rungs while they are being written: many variants of many kernels, checked
and timed against cuBLAS in one run on a GPU that has no copy of this repository.

    python -m kernels.hopper_lab pack FOLDER JOBS.json     # here: compile; prints what ptxas says
    python FOLDER/hopper_lab.py check FOLDER OUT           # there: right? (a hung kernel is killed)
    python FOLDER/hopper_lab.py time FOLDER OUT            # there: how fast, in bursts after a rest
    python FOLDER/hopper_lab.py sustain FOLDER OUT         # there: two seconds of each
    ncu ... python FOLDER/hopper_lab.py once FOLDER        # there: one launch of each, for a profiler

JOBS.json is a list of {"rung": name, "macros": {...}, "check": [[M, N, K], ...], "time": [...],
"sustain": [...]}; with "programmatic": true a launch may begin before the one before it has ended.
Times are those of CUDA events around groups of launches; the clock is read by one warp that runs
beside the kernel, in a burst that is not timed.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import math
import shutil
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

HUNG_S = 25.0
BURST_MS = 20.0
REST_S = 0.1
GROUP_MS = 0.5
SAMPLES = 24
SUSTAIN_S = 2.0
PROBES = 16
L2_BYTES = 60 << 20
BYTES = {"float8_e4m3fn": 1, "int8": 1, "float16": 2, "bfloat16": 2, "tf32": 4, "float32": 4}
TOLERANCE = {"float32": 2e-6, "float16": 6e-4, "bfloat16": 5e-3}  # of |C|: one rounding
# Of (|A||B|)_ij, the sums' own: tf32 operands are rounded, 8-bit products lose bits in the tensor core.
SUMS_TOLERANCE = {"tf32": 1e-3, "float8_e4m3fn": 1e-3}

# One block spins on one multiprocessor and returns clocks and nanoseconds.
CLOCK_PROBE = """
extern "C" __global__ void clock_probe(long long* out) {
    long long ns0, ns1;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns0) :: "memory");
    long long c0 = clock64(), c1;
    do { c1 = clock64(); } while (c1 - c0 < 150000);
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns1) :: "memory");
    out[0] = c1 - c0;
    out[1] = ns1 - ns0;
}
"""


# ---- here


def pack(folder: Path, jobs_file: Path) -> None:
    """Compile every job to a cubin in `folder`, with all that a launch needs beside it."""
    from .rungs import FOLDER, find

    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.cubin"):
        old.unlink()

    for job in json.loads(jobs_file.read_text(encoding="utf-8")):
        check_rows(job, find(job["rung"]))

    def compile_one(numbered):
        index, job = numbered
        rung = find(job["rung"])
        values = rung.resolve(job.get("macros"))
        rung.check_needs(values)
        cubin = folder / f"{index:03d}.cubin"
        flags = [f"-D{key}={value}" for key, value in values.items()]
        source = FOLDER / job.get("source", rung.file)
        done = subprocess.run(
            ["nvcc", "-cubin", "-std=c++17", "-gencode=arch=compute_90a,code=sm_90a", "-lineinfo",
             "-Xptxas", "-v", *flags, *job.get("flags", ()), f"-I{FOLDER}", str(source), "-o", str(cubin)],
            capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode:
            return index, job, None, done.stdout + done.stderr
        _, block, shared = rung.geometry(values, 1, 1, 1)
        types = rung.types(values)
        ready = {
            **job, "given": job.get("macros", {}), "macros": values, "cubin": cubin.name,
            "entry": job.get("entry", rung.entry), "block": block, "shared": shared,
            "inputs": types.inputs, "output": types.output, "b_major": rung.b_major,
            "boxes": rung.boxes(**values) if rung.boxes else None,
            "grids": {
                "x".join(map(str, size)): rung.geometry(values, *size)[0]
                for kind in ("check", "time", "sustain", "once") for size in job.get(kind, ())
            },
        }  # fmt: skip
        return index, job, ready, done.stdout + done.stderr

    jobs = []
    with ThreadPoolExecutor(2) as pool:
        for index, job, ready, log in pool.map(
            compile_one, enumerate(json.loads(jobs_file.read_text(encoding="utf-8")))
        ):
            name = f"{index:03d} {label(job)}"
            if ready is None:
                print(
                    name,
                    "DOES NOT COMPILE:",
                    *(line[:300] for line in log.splitlines()[:8]),
                    sep="\n  ",
                )
                continue
            used = [line.split(":")[-1].strip() for line in log.splitlines() if "Used" in line]
            spills = [
                line
                for line in log.splitlines()
                if "spill" in line and " 0 bytes spill stores" not in line
            ]
            odd = [line[:200] for line in log.splitlines() if "C75" in line or "warning" in line]
            print(name, *used, *spills, *odd)
            jobs.append(ready)
    (folder / "jobs.json").write_text(json.dumps(jobs), encoding="utf-8")
    (folder / "probe.cu").write_text(CLOCK_PROBE, encoding="utf-8")
    subprocess.run(
        ["nvcc", "-cubin", "-arch=sm_90", str(folder / "probe.cu"), "-o", str(folder / "probe.cub")], check=True
    )  # fmt: skip
    here = Path(__file__).parent
    described = here.parent / "emulator" / "machine" / "tensor_map.py"
    for source, name in (
        (here / "hopper_lab.py", "hopper_lab.py"),
        (here / "tensor_map.py", "encoded_maps.py"),
        (described, "tensor_map.py"),
    ):
        shutil.copy(source, folder / name)


def check_rows(job: dict, rung) -> None:
    """Refuse sizes whose rows TMA cannot copy."""
    types = rung.types(rung.resolve(job.get("macros")))
    if not rung.boxes:
        return
    for size in itertools.chain(
        *(job.get(kind, ()) for kind in ("check", "time", "sustain", "once"))
    ):
        _, N, K = size
        for matrix, name, extent in (("A", "K", K), ("B", "N", N))[
            : 1 if rung.b_major == "K" else 2
        ]:
            if extent * (item := BYTES[types.inputs]) % 16:
                raise ValueError(
                    f"{label(job)}, {'x'.join(map(str, size))}: a row of {matrix} is {extent} elements of {item} bytes; "
                    f"TMA copies rows of whole 16 bytes, so {name} must be a multiple of {16 // item}"
                )


def label(job: dict) -> str:
    """A job in one line: the rung and the macros that were given."""
    given = " ".join(f"{k}={v}" for k, v in (job.get("given") or job.get("macros") or {}).items())
    promotion = f" promotion={job['promotion']}" if "promotion" in job else ""
    return f"{job.get('name', job['rung'])} {given}{promotion}".strip()


# ---- there


class Gpu:
    """Kernels, matrices and launches through the driver, beside torch."""

    def __init__(self, folder: Path):
        import torch
        from cuda.bindings import driver

        sys.path.insert(0, str(folder))
        self.torch, self.driver, self.folder = torch, driver, folder
        torch.cuda.init()
        torch.zeros(1, device="cuda")
        self.modules = {}
        self.probe = self.kernel("probe.cub", "clock_probe", 0)
        self.clocks = torch.zeros(PROBES, 2, dtype=torch.int64, device="cuda")
        self.beside = torch.cuda.Stream(priority=-1)

    def expect(self, answer):
        status, *rest = answer
        if int(status):
            raise RuntimeError(str(status))
        return rest[0] if rest else None

    def kernel(self, cubin: str, entry: str, shared: int):
        d = self.driver
        module = self.expect(d.cuModuleLoadData((self.folder / cubin).read_bytes()))
        function = self.expect(d.cuModuleGetFunction(module, entry.encode()))
        self.modules[int(function)] = module
        wanted = d.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self.expect(d.cuFuncSetAttribute(function, wanted, shared))
        return function

    def dtype(self, name: str):
        return getattr(self.torch, {"tf32": "float32"}.get(name, name))

    def map(self, tensor, box, promotion: int = 256, format: str | None = None):
        """The 128 bytes that describe a torch matrix; the swizzle is as wide as a row of the box."""
        from encoded_maps import encode
        from tensor_map import TensorMap

        interface = {  # torch has none for bfloat16
            "data": (tensor.data_ptr(), False),
            "shape": tuple(tensor.shape),
            "strides": None,
            "typestr": {2: "<u2", 4: "<f4", 1: "|u1"}[tensor.element_size()],
            "version": 3,
        }
        bare = SimpleNamespace(__array_interface__=interface)
        name = format or str(tensor.dtype).removeprefix("torch.")
        return encode(
            TensorMap(
                bare, box, format=name, swizzle=box[1] * tensor.element_size(), promotion=promotion
            )
        )

    def launcher(self, job: dict, A, B, C, alpha=1.0, beta=0.0, function=None):
        """A function that launches this job's kernel on these matrices."""
        d = self.driver
        M, K = A.shape
        N = C.shape[1]
        function = function or self.kernel(job["cubin"], job["entry"], job["shared"])
        promotion = job.get("promotion", 256)
        format = "tf32" if job["inputs"] == "tf32" else None
        matrices = {"A": (A, promotion, format), "B": (B, promotion, format), "C": (C,)}
        values = [A.data_ptr(), B.data_ptr()]
        if job["boxes"]:
            values = [
                self.map(matrices[name][0], box, *matrices[name][1:])
                for name, box in job["boxes"].items()
            ]
        kept, pointers = [], []
        for value in [*values, C.data_ptr(), M, N, K, float(alpha), float(beta)]:
            if isinstance(value, float):
                kept.append(ctypes.c_float(value))
            elif isinstance(value, int):
                kept.append(ctypes.c_uint64(value) if value > 2**31 else ctypes.c_int32(value))
            else:
                buffer = ctypes.create_string_buffer(256)
                address = ctypes.addressof(buffer)
                ctypes.memmove(address, value.tobytes(), 128)
                kept.append(buffer)
            pointers.append(ctypes.addressof(kept[-1]))
        array = (ctypes.c_void_p * len(pointers))(*pointers)
        grid = job["grids"]["x".join(map(str, (M, N, K)))]
        block, shared, torch = job["block"], job["shared"], self.torch
        address = ctypes.addressof(array)
        config, early = d.CUlaunchConfig(), d.CUlaunchAttribute()
        config.gridDimX, config.gridDimY, config.gridDimZ = grid
        config.blockDimX, config.blockDimY, config.blockDimZ = block
        config.sharedMemBytes = shared
        early.id = d.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        early.value.programmaticStreamSerializationAllowed = 1
        config.attrs, config.numAttrs = [early], 1

        def launch():
            launch.kept = (kept, array, A, B, C)
            stream = torch.cuda.current_stream().cuda_stream
            if job.get("programmatic"):
                config.hStream = d.CUstream(stream)
                (status,) = d.cuLaunchKernelEx(config, function, address, 0)
            else:
                (status,) = d.cuLaunchKernel(function, *grid, *block, shared, stream, address, 0)
            if int(status):
                raise RuntimeError(str(status))

        return launch

    def libraries(self, inputs: str, A, B, C, b_major: str) -> dict:
        """The same product by the libraries, each as a function to call."""
        torch = self.torch
        right = B.t() if b_major == "K" else B
        if inputs == "float8_e4m3fn":
            one = torch.ones((), device="cuda")
            return {
                f"(cublaslt {'fast' if fast else 'precise'})": lambda fast=fast: torch._scaled_mm(
                    A,
                    right,
                    scale_a=one,
                    scale_b=one,
                    out_dtype=C.dtype,
                    use_fast_accum=fast,
                    out=C,
                )
                for fast in (True, False)
            }
        if inputs == "int8":
            whole = torch.empty(C.shape, dtype=torch.int32, device="cuda")
            return {"(int_mm)": lambda: torch._int_mm(A, right, out=whole)}
        torch.backends.cuda.matmul.allow_tf32 = inputs == "tf32"
        types = {} if C.dtype == A.dtype else {"out_dtype": C.dtype}

        def by(library):
            def multiply():
                torch.backends.cuda.preferred_blas_library(library)
                torch.mm(A, right, out=C, **types)

            return multiply

        return {f"({library})": by(library) for library in ("cublas", "cublaslt")}

    def random(self, rows, cols, dtype, seed):
        generator = self.torch.Generator(device="cuda").manual_seed(seed)
        normal = self.torch.randn(rows, cols, device="cuda", generator=generator)
        return (normal * 40 if dtype == "int8" else normal).to(self.dtype(dtype))

    def clock_ghz(self, graph, replays: int) -> float:
        """The multiprocessors' clock while `graph` runs: a warp beside it counts clocks against
        nanoseconds. Not to be timed at the same time.
        """
        torch = self.torch
        for i in range(replays):
            graph.replay()
            if i == replays // 4:
                now = torch.cuda.Event()
                now.record()
                self.beside.wait_event(now)
                for probe in range(PROBES):
                    self._probe(probe)
        torch.cuda.synchronize()
        return statistics.median(clocks / ns for clocks, ns in self.clocks.tolist())

    def own_ghz(self, function) -> float | None:
        """The clock that the kernel saw in its last launch, where it keeps `long long clocks[4]`:
        clocks and nanoseconds at its start and at its end.
        """
        d = self.driver
        status, address, _ = d.cuModuleGetGlobal(self.modules[int(function)], b"clocks")
        if int(status):
            return None
        values = (ctypes.c_int64 * 4)()
        self.expect(d.cuMemcpyDtoH(ctypes.addressof(values), address, 32))
        nanoseconds = values[3] - values[1]
        return (values[2] - values[0]) / nanoseconds if nanoseconds else None

    def _probe(self, index: int) -> None:
        address = ctypes.c_uint64(self.clocks.data_ptr() + 16 * index)
        array = (ctypes.c_void_p * 1)(ctypes.addressof(address))
        stream = self.beside.cuda_stream
        (status,) = self.driver.cuLaunchKernel(
            self.probe, 1, 1, 1, 1, 1, 1, 0, stream, ctypes.addressof(array), 0
        )
        assert not int(status), status


def check_one(gpu: Gpu, job: dict) -> dict:
    """Errors against float64 over all the sizes; poisoned outputs, alpha and beta, guards behind C."""
    torch = gpu.torch
    worst, wrong = 0.0, []
    function = gpu.kernel(job["cubin"], job["entry"], job["shared"])
    for size in job["check"]:
        M, N, K = size
        for alpha, beta in ((1.0, 0.0), (-0.75, 1.5)):
            A, B = gpu.random(M, K, job["inputs"], 1), gpu.random(K, N, job["inputs"], 2)
            if job["b_major"] == "K":
                B = B.t().contiguous()
            right = B.t() if job["b_major"] == "K" else B
            guarded = gpu.random(M + 2, N, job["output"], 3)
            C = guarded[1 : M + 1]
            before = guarded.clone()
            if beta == 0.0:
                C.fill_(float("nan"))
            gpu.launcher(job, A, B, C, alpha, beta, function)()
            torch.cuda.synchronize()
            want = alpha * (A.double() @ right.double())
            scale = abs(alpha) * (A.double().abs() @ right.double().abs())
            if beta != 0.0:
                want += beta * before[1 : M + 1].double()
                scale += abs(beta) * before[1 : M + 1].double().abs()
            # fp32 sums, then one rounding to the output's type
            error = (C.double() - want).abs()
            allowed = (
                SUMS_TOLERANCE.get(job["inputs"], 4e-6) * scale
                + TOLERANCE[job["output"]] * want.abs()
            )
            bad = ~(error <= allowed + 1e-6)
            relative = (error / scale).max().item()
            worst = max(worst, relative) if not math.isnan(relative) else float("nan")
            guards = torch.equal(guarded[0], before[0]) and torch.equal(guarded[-1], before[-1])
            if bad.any() or not guards:
                where = bad.nonzero()[:3].tolist()
                wrong.append(
                    f"{size} beta={beta}: {int(bad.sum())} wrong at {where}, guards {guards}"
                )
    return {"ok": not wrong, "worst": worst, "wrong": wrong[:4]}


def sets_of(gpu: Gpu, size, inputs: str, output: str, b_major: str):
    """Sets of matrices, together more than twice L2."""
    M, N, K = size
    one = (M * K + K * N) * gpu.dtype(inputs).itemsize + M * N * gpu.dtype(output).itemsize
    count = max(2, min(64, math.ceil(2 * L2_BYTES / one) + 1))
    return [
        (
            gpu.random(M, K, inputs, 10 + i),
            gpu.random(*((N, K) if b_major == "K" else (K, N)), inputs, 110 + i),
            gpu.torch.empty(M, N, device="cuda", dtype=gpu.dtype(output)),
        )
        for i in range(count)
    ]


def graph_of(gpu: Gpu, launches):
    """A CUDA graph of launches that fill GROUP_MS, and how many they are."""
    torch = gpu.torch
    for launch in launches[:3]:
        launch()
    torch.cuda.synchronize()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for i in range(8):
        launches[i % len(launches)]()
    end.record()
    torch.cuda.synchronize()
    estimate = max(2e-3, start.elapsed_time(end) / 8)
    count = max(1, math.ceil(GROUP_MS / estimate))
    count = len(launches) * math.ceil(count / len(launches)) if count > 1 else len(launches)
    graph = torch.cuda.CUDAGraph()
    stream = torch.cuda.Stream()
    with torch.cuda.graph(graph, stream=stream):
        for i in range(count):
            launches[i % len(launches)]()
    graph.replay()
    torch.cuda.synchronize()
    return graph, count


def burst(gpu: Gpu, graph, count: int, milliseconds: float, estimate=None):
    """Times in ms of one launch, one per replay, in a burst after a rest."""
    torch = gpu.torch
    if estimate is None:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        estimate = start.elapsed_time(end)
    replays = max(2, round(milliseconds / estimate))
    events = [torch.cuda.Event(enable_timing=True) for _ in range(replays + 1)]
    time.sleep(REST_S)
    graph.replay()
    events[0].record()
    for event in events[1:]:
        graph.replay()
        event.record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) / count for a, b in itertools.pairwise(events)]


def time_all(gpu: Gpu, jobs: list[dict], kind: str, done) -> None:
    """All jobs that share a size and types, taking turns with cuBLAS."""
    groups: dict = {}
    for job in jobs:
        for size in job.get(kind, ()):
            key = (tuple(size), job["inputs"], job["output"], job["b_major"])
            groups.setdefault(key, []).append(job)
    for (size, inputs, output, b_major), members in groups.items():
        sets = sets_of(gpu, size, inputs, output, b_major)
        runs, own = [], {}
        calls = [gpu.libraries(inputs, *matrices, b_major) for matrices in sets]
        for name in calls[0]:
            try:
                runs.append((name, *graph_of(gpu, [call[name] for call in calls])))
                own[name] = None
            except RuntimeError as error:
                print("no", name, inputs, output, str(error)[:100])
        for job in members:
            function = gpu.kernel(job["cubin"], job["entry"], job["shared"])
            launches = [gpu.launcher(job, *matrices, function=function) for matrices in sets]
            try:
                runs.append((label(job), *graph_of(gpu, launches)))
                own[label(job)] = function
            except RuntimeError as error:
                print("FAILED", label(job), size, str(error)[:200])
        times: dict = {name: [] for name, _, _ in runs}
        clocks: dict = {name: [] for name, _, _ in runs}
        rounds = 1 if kind == "sustain" else 3
        for _ in range(rounds):
            for name, graph, count in runs:
                length = SUSTAIN_S * 1e3 if kind == "sustain" else BURST_MS
                times[name] += burst(gpu, graph, count, length)
                if own[name] and (ghz := gpu.own_ghz(own[name])):
                    clocks[name].append(ghz)
        for name, graph, count in runs:
            if clocks[name]:
                continue
            time.sleep(REST_S)
            replays = max(4, round(BURST_MS / (count * statistics.median(times[name]))))
            clocks[name].append(gpu.clock_ghz(graph, replays))
        flops = 2e-9 * math.prod(size)
        libraries = [statistics.median(times[n]) for n in times if n.startswith("(")]
        best = min(libraries, default=math.nan)
        for name in times:
            median = statistics.median(times[name])
            row = {
                "kind": kind, "size": size, "inputs": inputs, "output": output, "name": name,
                "ms": round(median, 6), "min": round(min(times[name]), 6), "max": round(max(times[name]), 6),
                "samples": len(times[name]), "tflops": round(flops / median, 1),
                "of_cublas": round(best / median, 4), "ghz": round(statistics.median(clocks[name]), 3),
            }  # fmt: skip
            done(row)
        del runs, sets
        gpu.torch.cuda.empty_cache()


def worker(folder: Path, kind: str, first: int) -> None:
    """Check jobs from `first` on; a line of JSON before and after each."""
    gpu = Gpu(folder)
    for index, job in enumerate(json.loads((folder / "jobs.json").read_text(encoding="utf-8"))):
        if index < first or not job.get(kind):
            continue
        print(json.dumps({"begin": index}), flush=True)
        try:
            found = check_one(gpu, job)
        except (
            Exception
        ) as error:  # reported, and the context may be gone: the parent starts another
            print(json.dumps({"end": index, "error": str(error)[:300]}), flush=True)
            return
        print(json.dumps({"end": index, **found}), flush=True)


def check(folder: Path, out: Path) -> None:
    """Check all jobs in a child process; kill it where a kernel hangs, and go on with the next."""
    import select

    jobs = json.loads((folder / "jobs.json").read_text(encoding="utf-8"))
    first, results = 0, {}
    while first < len(jobs):
        command = [sys.executable, __file__, "worker", str(folder), str(first)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        current, hung = None, False
        while True:
            ready, _, _ = select.select([child.stdout], [], [], HUNG_S)
            if not ready:
                hung = True
                child.kill()
                break
            line = child.stdout.readline()
            if not line:
                break
            if not line.startswith("{"):
                continue
            row = json.loads(line)
            if "begin" in row:
                current = row["begin"]
            else:
                results[row["end"]] = row
                print("ok  " if row.get("ok") else "BAD ", row["end"], label(jobs[row["end"]]),
                      f"{row.get('worst')}", row.get("error", ""), *row.get("wrong", ()), flush=True)  # fmt: skip
        if current is None:
            print("the child did not start:", child.stderr.read()[-2000:])
            break
        if current not in results:
            results[current] = {"end": current, "ok": False, "error": "hung" if hung else "died"}
            print("BAD ", current, label(jobs[current]), results[current]["error"], flush=True)
            if not hung:
                print(child.stderr.read()[-1500:])
        first = current + 1
    (out / "check.json").write_text(json.dumps(results), encoding="utf-8")
    good = {i for i, row in results.items() if row.get("ok")}
    print(f"{len(good)} of {len(results)} right")
    (folder / "good.json").write_text(json.dumps(sorted(good)), encoding="utf-8")


def timing(folder: Path, out: Path, kind: str) -> None:
    """Time the jobs that were right."""
    gpu = Gpu(folder)
    jobs = json.loads((folder / "jobs.json").read_text(encoding="utf-8"))
    good = folder / "good.json"
    if good.exists():
        wanted = set(json.loads(good.read_text(encoding="utf-8")))
        jobs = [job for i, job in enumerate(jobs) if i in wanted or not job.get("check")]
    rows = []

    def done(row):
        rows.append(row)
        size = "x".join(map(str, row["size"]))
        print(f"{row['kind']:7s} {size:15s} {row['inputs'][:5]}->{row['output'][:8]:8s} {row['tflops']:7.1f} TF "
              f"{row['of_cublas']:.3f} {row['ms'] * 1e3:9.2f} us {row['ghz']:.3f} GHz  {row['name']}", flush=True)  # fmt: skip

    time_all(gpu, jobs, kind, done)
    (out / f"{kind}.json").write_text(json.dumps(rows, indent=0), encoding="utf-8")


def once(folder: Path) -> None:
    """One launch of each job that has "once" sizes, and of cuBLAS: for a profiler."""
    gpu = Gpu(folder)
    seen = set()
    for job in json.loads((folder / "jobs.json").read_text(encoding="utf-8")):
        for size in job.get("once", ()):
            matrices = sets_of(gpu, size, job["inputs"], job["output"], job["b_major"])[0]
            gpu.launcher(job, *matrices)()
            print("once", label(job), size)
            if (key := (*size, job["inputs"], job["output"])) not in seen:
                seen.add(key)
                next(iter(gpu.libraries(job["inputs"], *matrices, job["b_major"]).values()))()
                print("once (cublas)", size)
            gpu.torch.cuda.synchronize()


if __name__ == "__main__":
    command, folder, *rest = sys.argv[1:]
    if command == "pack":
        pack(Path(folder), Path(rest[0]))
    elif command == "check":
        check(Path(folder), Path(rest[0]))
    elif command == "worker":
        worker(Path(folder), "check", int(rest[0]))
    elif command == "once":
        once(Path(folder))
    else:
        timing(Path(folder), Path(rest[0]), command)
