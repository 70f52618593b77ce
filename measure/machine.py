"""What the machine itself can do: arithmetic per clock, bytes per clock, latencies, and the clock and power of each.

Every ceiling that a page quotes is a row of `results/machine-<gpu>.json`, which `python -m measure
machine` writes on a GPU. Each is a loop in `cuda/` that does one thing only, with the clock read
inside the loop: `clock64` counts this multiprocessor's clocks and `globaltimer` nanoseconds, and
their ratio is the frequency that it ran at. Operands are random numbers, because units that multiply
zeros draw less power and so keep a higher clock.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from kernels.build import build
from kernels.gpus import gpu, needed
from kernels.launch import prepare_on_gpu

from .clock import elapsed, watching
from .provenance import FOLDER, shown, store

CUDA = Path(__file__).with_name("cuda")
SHORT_S, LONG_S, SUSTAINED_S = 0.002, 0.1, 2.0
REST_S = 0.2  # before every measurement, so that it begins cool and at the highest clock
GIGABYTE = 1 << 30
SPIN = 16  # steps of a chain that stand in a row in latency.cu


@dataclass(frozen=True)
class Loop:
    """An arithmetic loop: UNIT in `cuda/<file>.cu`, operations of one launch per block and turn."""

    name: str
    words: str
    file: str
    unit: int
    operations: int
    threads: int
    blocks: int  # per multiprocessor
    shared_bytes: int
    min_arch: int


FFMA = 1024 * 16 * 8 * 2  # threads x sums x unrolled x (multiply and add)
MMA = 8 * 8 * 8  # warps x sums x unrolled
WGMMA = 2 * 4 * 2 * 64 * 256  # warpgroups x steps of 32 bytes x (multiply and add) x m64n256
WGMMA_SHARED = (2 * 64 + 256) * 128
LOOPS = (
    # One block: of several, the oldest takes all issue slots, and the last starts its watch late.
    Loop("ffma", "FFMA, float32", "arithmetic", 0, FFMA, 1024, 1, 0, 70),
    Loop("mma f16", "mma.sync, float16", "arithmetic", 1, MMA * 4096, 256, 2, 0, 80),
    Loop("mma bf16", "mma.sync, bfloat16", "arithmetic", 2, MMA * 4096, 256, 2, 0, 80),
    Loop("mma tf32", "mma.sync, TF32", "arithmetic", 3, MMA * 2048, 256, 2, 0, 80),
    Loop("mma s8", "mma.sync, int8", "arithmetic", 4, MMA * 8192, 256, 2, 0, 80),
    Loop("wgmma f16", "wgmma, float16", "wgmma_rate", 1, WGMMA * 16, 256, 1, WGMMA_SHARED, 90),
    Loop("wgmma bf16", "wgmma, bfloat16", "wgmma_rate", 2, WGMMA * 16, 256, 1, WGMMA_SHARED, 90),
    Loop("wgmma tf32", "wgmma, TF32", "wgmma_rate", 3, WGMMA * 8, 256, 1, WGMMA_SHARED, 90),
    Loop("wgmma e4m3", "wgmma, e4m3", "wgmma_rate", 4, WGMMA * 32, 256, 1, WGMMA_SHARED, 90),
    Loop("wgmma s8", "wgmma, int8", "wgmma_rate", 5, WGMMA * 32, 256, 1, WGMMA_SHARED, 90),
)
# wgmma of so many columns: what a multiprocessor does per clock, at the same operations between two waits.
COLUMNS = tuple(
    Loop(f"wgmma f16, {n} columns", f"wgmma m64n{n}k16, float16", "wgmma_rate", n, WGMMA * 16, 256, 1, WGMMA_SHARED, 90)
    for n in (8, 16, 32, 64, 128)
)  # fmt: skip

# Name: WHAT in latency.cu, threads, bytes that the chain of addresses covers, words.
CHAINS = {
    "FFMA": (3, 32, 0, "a multiply-add on the one before"),
    "integer multiply-add": (10, 32, 0, "a 32-bit integer multiply-add on the one before"),
    "shfl": (6, 32, 0, "a shuffle on the one before"),
    "mma.sync": (4, 32, 0, "mma.sync m16n8k16, its sums on the one before"),
    "shared memory": (2, 32, 0, "a load of shared memory, one address for the warp"),
    "ldmatrix": (5, 32, 0, "ldmatrix.x4 and an addition"),
    "shared atomic": (7, 32, 0, "atomicAdd of 32 lanes on one word of shared memory"),
    "barrier, 8 warps": (9, 256, 0, "__syncthreads of 256 threads"),
    "L1": (0, 1, 1 << 14, "a load that hits L1"),
    "L2": (1, 1, 8 << 20, "a load past L1 that hits L2"),
    "device memory": (1, 1, GIGABYTE, "a load of a random line of 1 GiB"),
    "global atomic": (8, 1, 1 << 14, "atomicAdd on global memory, answered by L2"),
}

# Name: FROM in bandwidth.cu, footprint in bytes (0: each block its own), bytes moved per byte read.
STREAMS = {
    "shared memory": (0, 0, 1),
    "L1": (1, 0, 1),
    "L2": (2, 24 << 20, 1),
    "device memory, read": (3, 8 * GIGABYTE, 1),
    "device memory, copy": (4, 4 * GIGABYTE, 2),
}
STREAM_THREADS, STREAM_BATCH = 1024, 4

# Name: HOW in copies.cu, tiles under way, whether all SMs copy, tiles between two blocks' first ones, words.
COPIES = {
    "registers, one SM": (0, 4, False, 0, "ld.global and st.shared of 16 bytes per lane"),
    "cp.async, one SM": (1, 4, False, 0, "cp.async of 16 bytes per lane"),
    "TMA, one SM": (2, 4, False, 0, "bulk copies of 16 KiB"),
    "TMA, one SM, eight tiles": (2, 8, False, 0, "bulk copies, eight under way"),
    "registers, all SMs": (0, 4, True, 11, "ld.global and st.shared, every SM its own tiles"),
    "cp.async, all SMs": (1, 4, True, 11, "cp.async, every SM its own tiles"),
    "TMA, all SMs": (2, 4, True, 11, "bulk copies, every SM its own tiles"),
    "TMA, all SMs, same tiles": (2, 4, True, 0, "bulk copies, all SMs the same tiles at the same time"),
}  # fmt: skip
# One tile at a time: the clocks from asking for it until it is there, and a barrier.
ONE_AT_A_TIME = {
    "registers, a tile": (0, 1, False, 0, "16 KiB by ld.global and st.shared, from L2"),
    "cp.async, a tile": (1, 1, False, 0, "16 KiB by cp.async, from L2"),
    "TMA, a tile": (2, 1, False, 0, "16 KiB by a bulk copy, from L2"),
    "TMA, a tile, all SMs": (2, 1, True, 11, "16 KiB by a bulk copy, from L2, while all SMs do so"),
}  # fmt: skip
COPY_THREADS, COPY_TILE = 256, 16384
COPY_TILES = 1536  # 24 MiB, which stay in L2
LAUNCHES = 500  # of a kernel that does nothing, one behind the other


@dataclass(frozen=True)
class Row:
    """One measurement. `value` in `unit`; `clock_ghz` the frequency seen in the loop, None where none was read."""

    kind: str
    name: str
    value: float
    unit: str
    words: str
    clock_ghz: float | None = None
    seconds: float | None = None
    watts: float | None = None


METHOD = (
    "loops of measure/cuda, one thing each; clock64 over globaltimer inside the loop gives the clock; random operands; "
    "0.2 s of rest before each, the median of 5 launches (arithmetic: one launch of the stated length after a short one; "
    "2 s: launches of 0.1 s back to back, the clock of the last half, power as nvidia-smi reports it meanwhile)"
)


def record() -> Path:
    """Measures everything here and writes `results/machine-<gpu>.json`. UnsupportedGPU without a GPU."""
    here = needed("measuring the machine")
    rows = [*arithmetic(), *latencies(), *bandwidths(), *copies(), *launches()]
    return store(f"machine-{here.slug}", METHOD, rows=[asdict(row) for row in rows])


def programs(arch: int) -> list[tuple[Path, dict[str, int], str]]:
    """Every source here with its macros and the architecture to compile it for, to be built beforehand."""
    target = "90a" if arch == 90 else str(arch)
    found = [
        (f"{loop.file}.cu", {"UNIT": loop.unit}) for loop in LOOPS + COLUMNS if _has(loop, arch)
    ]
    found += [("latency.cu", {"WHAT": chain[0]}) for chain in CHAINS.values()]
    found += [("bandwidth.cu", {"FROM": stream[0]}) for stream in STREAMS.values()]
    ways = {way[:2] for way in (COPIES | ONE_AT_A_TIME).values()}
    found += [
        ("copies.cu", {"HOW": h, "STAGES": n}) for h, n in sorted(ways) if h < 2 or arch >= 90
    ]
    return [
        *((CUDA / name, macros, target) for name, macros in found),
        (CUDA / "clock.cu", {}, str(arch)),
    ]


def _has(loop: Loop, arch: int) -> bool:
    return arch >= loop.min_arch and (loop.file != "wgmma_rate" or arch == 90)


def arithmetic() -> list[Row]:
    """TFLOP/s of every unit that this GPU has, for 2 ms, 100 ms and 2 s, and operations per clock and
    multiprocessor.
    """
    rows = []
    for loop in LOOPS:
        if not _has(loop, gpu().arch):
            continue
        run = _prepared(loop)
        run(64)
        turns_per_second = 64 / run(64)[0]
        for name, seconds in (("2 ms", SHORT_S), ("100 ms", LONG_S)):
            turns = max(1, int(turns_per_second * seconds))
            time.sleep(REST_S)
            took, ghz, per_clock = run(turns)
            turns_per_second = turns / took
            rate = 1e-12 * loop.operations * loop.blocks * gpu().sms * turns / took
            said = f"{loop.name}, {name}"
            rows.append(Row("arithmetic", said, round(rate, 2), "TFLOP/s", loop.words, ghz, took))
            if name == "2 ms":
                rows.append(_per_clock(loop, per_clock, ghz, took))
        rows.append(_sustained(loop, run, max(1, int(turns_per_second * LONG_S))))
    for loop in COLUMNS:
        if _has(loop, gpu().arch):
            run = _prepared(loop)
            run(64)
            time.sleep(REST_S)
            took, ghz, per_clock = run(4096)
            rows.append(_per_clock(loop, per_clock, ghz, took))
    return rows


def _per_clock(loop: Loop, value: float, ghz: float, took: float) -> Row:
    unit = "operations per clock and SM"
    return Row("per clock", loop.name, round(value, 1), unit, loop.words, ghz, took)


def latencies() -> list[Row]:
    """Clocks from an instruction to the next that needs its result; for L2, from the nearest line to the farthest."""
    import cupy

    rows = []
    clocks_taken, seen = cupy.zeros(1, np.int64), cupy.zeros(1024, np.uint32)
    swept = cupy.empty(4 * gpu().l2_bytes, np.uint8)
    for name, (what, threads, footprint, words) in CHAINS.items():
        built = build(CUDA / "latency.cu", {"WHAT": what}, arch=_arch())
        chain = _chain(footprint)
        # A chain that fits its cache is walked once before it is timed; one that does not is not.
        laps = chain.size // 16 // SPIN
        warm, turns = (laps, max(64, laps)) if footprint < GIGABYTE else (8, 256)
        arguments = [chain, clocks_taken, seen, np.int32(max(4, warm)), np.int32(turns)]
        launch = prepare_on_gpu(built, "latency", 1, threads, arguments)
        taken = []
        for _ in range(5):
            if footprint >= GIGABYTE:
                swept.fill(0)  # nothing of the chain is left in L2
            launch()
            taken.append(int(clocks_taken.get()[0]) / turns / SPIN)
        rows.append(Row("latency", name, round(statistics.median(taken), 1), "clocks", words))
    lines = 1024
    built = build(CUDA / "latency.cu", {"WHAT": 1}, arch=_arch())
    own = cupy.zeros(16 * lines, np.uint64)
    own[::16] = own.data.ptr + 128 * cupy.arange(lines, dtype=np.uint64)
    each = cupy.zeros(lines, np.int64)
    prepare_on_gpu(built, "line_latency", 1, 1, [own, each, seen, np.int32(lines)])()
    per_load = each.get() / (4 * SPIN)
    for name, share in (("nearest", 0.01), ("median", 0.5), ("farthest", 0.99)):
        value = round(float(np.quantile(per_load, share)), 1)
        words = f"of {lines} lines of L2 as seen from one multiprocessor, the quantile {share:g}"
        rows.append(Row("latency", f"L2, {name}", value, "clocks", words))
    return rows


def bandwidths() -> list[Row]:
    """Bytes per second of the whole GPU, and per clock and multiprocessor."""
    import cupy

    rows = []
    sms = gpu().sms
    seen = cupy.zeros(1, np.uint32)
    for name, (source, footprint, moved) in STREAMS.items():
        built = build(CUDA / "bandwidth.cu", {"FROM": source}, arch=_arch())
        blocks = sms * 2
        batch = STREAM_THREADS * STREAM_BATCH * 16
        footprint = footprint // batch * batch or blocks * 2048 * 16
        data = cupy.random.randint(0, 1 << 30, footprint // 4, dtype=np.int32)
        target = cupy.empty_like(data) if source == 4 else data
        turns = 4096 if source <= 1 else max(1, 2 * max(footprint, GIGABYTE) // (blocks * batch))
        passed = cupy.zeros((blocks, 2), np.int64)
        arguments = [data, target, passed, seen, np.int64(footprint // 16), np.int32(turns)]
        launch = prepare_on_gpu(built, "bandwidth", blocks, STREAM_THREADS, arguments)
        launch()
        taken = []
        for _ in range(5):
            time.sleep(0.05)
            taken.append((elapsed(launch), *passed.get().max(axis=0)))
        ms, block_clocks, block_ns = sorted(taken)[2]
        moved_bytes = moved * turns * blocks * batch
        ghz = round(block_clocks / block_ns, 3)
        rows.append(
            Row("bandwidth", name, round(moved_bytes / ms / 1e6, 1), "GB/s", name, ghz, ms / 1e3)
        )
        # Of the whole launch: blocks do not all run at the same time, so those of one block would tell more.
        per_clock = moved_bytes / sms / (1e6 * ms * ghz)
        unit = "bytes per clock and SM"
        rows.append(
            Row("bytes per clock", name, round(float(per_clock), 1), unit, name, ghz, ms / 1e3)
        )
        del data, target
        cupy.get_default_memory_pool().free_all_blocks()
    return rows


def copies() -> list[Row]:
    """Bytes per clock that blocks bring from L2 to shared memory and do nothing else with: one block, or one per SM."""
    import cupy

    rows, sms = [], gpu().sms
    data = cupy.random.randint(0, 256, COPY_TILES * COPY_TILE, dtype=np.uint8)
    for name, (how, stages, everywhere, apart, words) in (COPIES | ONE_AT_A_TIME).items():
        if how == 2 and gpu().arch < 90:
            continue
        built = build(CUDA / "copies.cu", {"HOW": how, "STAGES": stages}, arch=_arch())
        blocks, turns = sms if everywhere else 1, 4096
        passed, seen = cupy.zeros((blocks, 2), np.int64), cupy.zeros(1, np.uint32)
        tail = [np.int32(COPY_TILES), np.int32(apart), np.int32(turns)]
        shared = stages * COPY_TILE
        launch = prepare_on_gpu(
            built, "copies", blocks, COPY_THREADS, [data, passed, seen, *tail], shared
        )
        launch()  # after it, the tiles are in L2
        taken = []
        for _ in range(5):
            time.sleep(0.05)
            launch()
            taken.append(passed.get().max(axis=0))
        block_clocks, block_ns = sorted(map(tuple, taken))[2]
        each = float(block_clocks) / turns
        ghz, took = round(float(block_clocks / block_ns), 3), float(block_ns) / 1e9
        if name in ONE_AT_A_TIME:
            rows.append(Row("latency", name, round(each, 1), "clocks", words, ghz, took))
        else:
            unit = "bytes per clock and SM"
            rows.append(Row("copies", name, round(COPY_TILE / each, 1), unit, words, ghz, took))
    return rows


def launches() -> list[Row]:
    """Microseconds from one launch to the next of a kernel that does nothing, queued behind one that holds the stream."""
    built = build(CUDA / "clock.cu", {}, arch=str(gpu().arch))
    hold = prepare_on_gpu(built, "hold_back", 1, 32, [np.int64(20_000_000)])
    rows = []
    for name, blocks, threads, shared in (
        ("one block", 1, 32, 0),
        ("a block of 256 threads per SM", gpu().sms, 256, 0),
        ("a block of 384 threads and 200 KiB per SM", gpu().sms, 384, 200 << 10),
    ):
        nothing = prepare_on_gpu(built, "nothing", blocks, threads, [], shared)
        taken = []
        for _ in range(6):
            hold()
            taken.append(elapsed(lambda run=nothing: [run() for _ in range(LAUNCHES)]))
        value = round(1e3 * statistics.median(taken[1:]) / LAUNCHES, 2)
        rows.append(Row("launch", name, value, "microseconds", "a kernel that does nothing"))
    return rows


@dataclass(frozen=True)
class Machine:
    """A recorded file: `rows` by (kind, name)."""

    gpu: str
    recorded: str
    rows: Mapping[tuple[str, str], Row]

    @property
    def label(self) -> str:
        return f"recorded on {self.gpu}, {self.recorded[:10]}"

    def __getitem__(self, key: tuple[str, str]) -> Row:
        if key not in self.rows:
            kinds = ", ".join(sorted({kind for kind, _ in self.rows}))
            names = ", ".join(name for kind, name in self.rows if kind == key[0])
            known = names or f"kinds: {kinds}"
            raise KeyError(f"nothing measured is called {key}; there are {known}")
        return self.rows[key]


@lru_cache
def recorded(name: str = "") -> Machine | None:
    """The recording whose file name contains `name`, of the book's GPU where several do; None when
    there is none.
    """
    files = {path.stem: path for path in FOLDER.glob("machine-*.json") if name in path.stem}
    if not files:
        return None
    stored = json.loads(files[shown(files)].read_text(encoding="utf-8"))
    rows = [Row(**row) for row in stored["rows"]]
    return Machine(
        stored["machine"]["gpu"],
        stored["recorded"],
        {(row.kind, row.name): row for row in rows},
    )


def rows_of(slug: str) -> Mapping[tuple[str, str], Row]:
    """The rows measured on the GPU of this slug, by (kind, name); none where nobody measured there."""
    found = recorded(f"machine-{slug}")
    return found.rows if found else {}


def _arch() -> str:
    return "90a" if gpu().arch == 90 else str(gpu().arch)


def _prepared(loop: Loop):
    """A function that runs the loop for so many turns: (seconds, GHz, operations per clock and SM)."""
    import cupy

    built = build(CUDA / f"{loop.file}.cu", {"UNIT": loop.unit}, arch=_arch())
    blocks = gpu().sms * loop.blocks
    passed, seen = cupy.zeros((blocks, 2), np.int64), cupy.zeros(1, np.float32)

    def run(turns: int) -> tuple[float, float, float]:
        arguments = [passed, seen, np.int32(turns)]
        launch = prepare_on_gpu(
            built, loop.file, blocks, loop.threads, arguments, loop.shared_bytes
        )
        launch()
        block_clocks, block_ns = passed.get().astype(float).T
        per_clock = loop.operations * loop.blocks * turns / block_clocks.max()
        ghz = round(float(np.median(block_clocks / block_ns)), 3)
        return block_ns.max() / 1e9, ghz, float(per_clock)

    return run


def _sustained(loop: Loop, run, turns: int) -> Row:
    """The loop for two seconds, launches of a tenth of a second back to back."""
    time.sleep(REST_S)
    with watching(0.1) as watts:
        taken, start = [], time.perf_counter()
        while time.perf_counter() - start < SUSTAINED_S:
            taken.append(run(turns))
    late = taken[len(taken) // 2 :]
    seconds = statistics.median(row[0] for row in late)
    rate = 1e-12 * loop.operations * loop.blocks * gpu().sms * turns / seconds
    return Row(
        "arithmetic", f"{loop.name}, 2 s", round(rate, 2), "TFLOP/s", loop.words,
        statistics.median(row[1] for row in late), sum(row[0] for row in taken),
        max(watts[len(watts) // 2 :], default=None),
    )  # fmt: skip


def _chain(footprint: int):
    """Addresses in a chain: each names the next, in random order, one per line of 128 bytes, and the last the first."""
    import cupy

    lines = max(1, footprint // 128)
    chain = cupy.zeros(16 * lines, np.uint64)
    chain[::16] = chain.data.ptr + 128 * cupy.asarray(following(lines))
    return chain


def following(lines: int) -> np.ndarray:
    """Which line comes after each of `lines` in one random ring through all of them, (lines,) uint64."""
    order = np.random.default_rng(1).permutation(lines)
    ring = np.empty(lines, np.uint64)
    ring[order] = np.roll(order, -1)
    return ring
