"""What single Hopper instructions count under Nsight Compute.

    python tests/data/probes/counts.py launch FAMILY [KERNELS]     # its probes, with two repeats each
    python tests/data/probes/counts.py profile OUT.json [KERNELS]  # under ncu: counts per instruction
    python tests/data/probes/counts.py faults            # tensor copies that the hardware refuses
    python tests/data/probes/counts.py time OUT.json     # clocks per wgmma

Needs a GPU of compute capability 9.0, nvcc, and for `profile` permission to read its counters. A
probe is launched with `LOW` and with `HIGH` repeats of its instruction; the difference of a counter
divided by the difference of the repeats is the instruction's own share. KERNELS is a regular
expression: only kernels whose names hold it.
"""

import csv
import ctypes
import datetime
import io
import json
import re
import subprocess
import sys
import tempfile
from ctypes import c_int, c_uint
from dataclasses import asdict
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import wgmma  # noqa: E402
from count_probes import METRICS, Probe, family, sound, table, tensor_probes  # noqa: E402
from cuda_driver import SIZES, Driver  # noqa: E402

LOW, HIGH = 1, 5
SHARED = 96 * 1024
GLOBAL = 64 << 20


class Bench:
    """Loaded kernels and their memory."""

    def __init__(self):
        self.driver = Driver()
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            (folder / "wgmma.ptx").write_text(wgmma.ptx(wgmma.probes()))
            target = "-gencode=arch=compute_90a,code=sm_90a"
            for source, name in ((HERE / "counts.cu", "counts"), (folder / "wgmma.ptx", "wgmma")):
                ready = HERE / f"{name}.cubin"
                if not ready.exists():
                    ready = folder / f"{name}.cubin"
                    subprocess.run(
                        ["nvcc", "-cubin", target, "-o", ready, source],
                        check=True,
                        capture_output=True,
                    )
                setattr(self, name, self.driver.module(ready))
        self.data = self.driver.allocate(GLOBAL)
        self.out = self.driver.allocate(1 << 16)
        self.offsets = self.driver.allocate(128)

    def run(self, probe, repeat, grid=None):
        """Launch a probe; the words that it stored."""
        function = self.driver.function(getattr(self, probe.module), probe.kernel, SHARED)
        out, data = (
            ctypes.c_uint64(self.out.value),
            ctypes.c_uint64(self.data.value + probe.global_offset),
        )
        if probe.module == "wgmma":
            args = [c_int(repeat), out]
        elif probe.tensor:
            args = [*self.tensor_arguments(probe), c_int(repeat), out]
        elif probe.offsets:
            self.driver.upload(
                self.offsets, b"".join(x.to_bytes(4, "little") for x in probe.offsets)
            )
            args = [ctypes.c_uint64(self.offsets.value), c_uint(probe.active), c_int(repeat), out]
        else:
            place = probe.mask if "multicast" in probe.kernel else probe.shared_offset
            args = [data, c_uint(probe.bytes), c_uint(place), c_int(repeat), out]
        self.driver.launch(
            function, args, grid or probe.cluster, probe.block, SHARED, probe.cluster
        )
        return self.driver.download(self.out, 16)

    def tensor_arguments(self, probe):
        shape = probe.tensor
        size, strides = SIZES[shape["type"]], []
        pitch = shape["pitch"]
        for extent in shape["sizes"][1:]:
            strides.append(pitch)
            pitch *= extent
        at = ctypes.c_uint64(self.data.value + shape["base"])
        map = self.driver.tensor_map(
            at, shape["type"], shape["sizes"], strides, shape["box"], shape["swizzle"]
        )
        start = [*shape["start"], 0, 0, 0, 0, 0][:5]
        start[4] = probe.mask or start[4]
        total = size
        for extent in shape["box"]:
            total *= extent
        return [map, (c_int * 5)(*start), c_uint(total)]


def faults():
    """Tensor copies that are not `sound`, each in a process of its own: what becomes of them."""
    probes = [p for p in tensor_probes() if not sound(p)]
    for index, probe in enumerate(probes):
        code = f"import counts; counts.Bench().run([p for p in counts.tensor_probes() if not counts.sound(p)][{index}], 1)"
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True
        )
        print(
            probe.kernel, probe.tensor, done.stderr.strip().splitlines()[-1:] or "ran", flush=True
        )


def picked(chosen, kernels):
    """A family's probes, in order."""
    return [p for p in table() if family(p) == chosen and re.search(kernels, p.kernel)]


def launch(chosen, kernels=""):
    """Every probe of a family with both repeats, in order; a line for what did not finish."""
    bench = Bench()
    for index, probe in enumerate(picked(chosen, kernels)):
        for repeat in (LOW, HIGH):
            try:
                stored = bench.run(probe, repeat)
            except RuntimeError as problem:
                print("failed", index, problem, asdict(probe), flush=True)
                if "TensorMap" in str(problem):
                    break  # refused before the launch: the others can go on
                raise
            finished = int.from_bytes(stored[:4], "little")
            if family(probe) == "copies" and not finished:
                print("unfinished", index, repeat, asdict(probe), flush=True)
    print("launched", flush=True)


def profiled(chosen, kernels):
    """Rows of one family: each probe's operands and its counts per instruction."""
    metrics = METRICS[chosen]
    command = [
        "ncu",
        "--clock-control",
        "none",
        "--cache-control",
        "none",
        "--csv",
        "--page",
        "raw",
    ]
    command += [
        "--print-units",
        "base",
        "--metrics",
        ",".join(f"{m}.sum" for m in metrics.values()),
    ]
    command += [sys.executable, __file__, "launch", chosen, kernels]
    lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    said = [line for line in lines if line.startswith(("failed", "unfinished", "==ERROR"))]
    print(*said[:20], sep="\n")
    start = next(i for i, line in enumerate(lines) if line.startswith('"ID"'))
    read = list(csv.DictReader(io.StringIO("\n".join(lines[start:]))))
    read = [row for row in read if row["ID"].strip().isdigit()]
    refused = {int(line.split()[1]) for line in said if line.startswith("failed")}
    probes = [p for i, p in enumerate(picked(chosen, kernels)) if i not in refused]
    default, rows = Probe(""), []
    for index, probe in enumerate(probes[: len(read) // 2]):
        low, high = read[2 * index : 2 * index + 2]
        assert low["Kernel Name"].startswith(probe.kernel), (low["Kernel Name"], probe)
        times = (HIGH - LOW) * (wgmma.UNROLLED if chosen == "wgmma" else 1)
        counts = {}
        for name, metric in metrics.items():
            value = [float(row[f"{metric}.sum"].replace(",", "")) for row in (low, high)]
            counts[name] = round((value[1] - value[0]) / times, 4)
        given = {k: v for k, v in asdict(probe).items() if v != getattr(default, k)}
        rows.append({**given, "counts": {k: v for k, v in counts.items() if v}})
    return rows


def save(rows, machine, out):
    """Rows as JSON, one a line, with what was measured on which machine and how."""
    head = {
        "measured_on": machine,
        "command": "python tests/data/probes/counts.py profile",
        "note": f"Counts of one instruction: those of {HIGH} less those of {LOW}, divided. One thread issues "
        "a copy, one warp the others, one warpgroup a wgmma. Counts of zero are left out.",
        "metrics": METRICS,
    }
    text = json.dumps(head, indent=1)[:-2] + ',\n "rows": [\n'
    text += ",\n".join("  " + json.dumps(row, separators=(",", ":")) for row in rows)
    Path(out).write_text(text + "\n ]\n}\n", encoding="utf-8")


def machine():
    """GPU, driver, profiler and day."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    gpu = (
        subprocess.run(query, capture_output=True, text=True)
        .stdout.strip()
        .replace(", ", ", driver ")
    )
    ncu = subprocess.run(["ncu", "--version"], capture_output=True, text=True).stdout.split()
    version = next(word for i, word in enumerate(ncu) if i and ncu[i - 1] == "Version")
    return f"{gpu}, Nsight Compute {version}, {datetime.date.today()}"


def profile(out, kernels=""):
    """Counts per instruction of every probe, by ncu, family by family."""
    rows = []
    for chosen in METRICS:
        rows += profiled(chosen, kernels) if picked(chosen, kernels) else []
        save(rows, machine(), out)
        print(chosen, len(rows), flush=True)


def time(out):
    """Clocks per wgmma, one and two warpgroups per multiprocessor, on one and on all of them."""
    bench = Bench()
    rows = []
    for w in dict.fromkeys(wgmma.timed()):
        row = asdict(w)
        for groups in (1, 2):
            for grid, where in ((1, "one"), (132, "all")):
                best = None
                for _ in range(3):
                    clocks = []
                    for times in (16, 144):
                        probe = Probe(w.name, "wgmma", block=128 * groups)
                        clocks.append(int.from_bytes(bench.run(probe, times, grid)[:8], "little"))
                    value = (clocks[1] - clocks[0]) / (128 * wgmma.UNROLLED * groups)
                    best = value if best is None else min(best, value)
                row[f"clocks_{groups}_{where}"] = round(best, 3)
        rows.append(row)
    head = {
        "measured_on": machine(),
        "command": "python tests/data/probes/counts.py time",
        "note": "Clocks between wgmmas of m64nN and 32 bytes of k on one multiprocessor: clocks_G_one with G "
        "warpgroups on one multiprocessor, clocks_G_all with one such block on each.",
    }
    text = json.dumps(head, indent=1)[:-2] + ',\n "rows": [\n'
    Path(out).write_text(
        text + ",\n".join("  " + json.dumps(row) for row in rows) + "\n ]\n}\n", encoding="utf-8"
    )
    print(len(rows), "timed")


if __name__ == "__main__":
    {"launch": launch, "faults": faults, "profile": profile, "time": time}[sys.argv[1]](
        *sys.argv[2:]
    )
