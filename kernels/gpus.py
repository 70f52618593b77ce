"""Which GPU is here, if any, and what a GPU's hardware could do at most."""

import os
import subprocess
from dataclasses import dataclass
from functools import lru_cache

from .errors import UnsupportedGPU


@dataclass(frozen=True)
class Peak:
    """Data-sheet limits of one GPU: dense TFLOP/s by input format, GB/s of device memory, MB of L2.

    `match` are the words that its name contains. fp16 is with fp32 accumulation. `arch`, `sms`, `lanes` (FP32 multiply-add
    units of one multiprocessor) and `boost_mhz` (the clock that its FP32 peak is stated for) are 0 where no sheet gives them all.
    """

    name: str
    match: tuple[str, ...]
    fp32: float
    tf32: float | None
    fp16: float
    bandwidth: float
    l2_mb: float
    reference: str
    arch: int = 0
    sms: int = 0
    lanes: int = 0
    boost_mhz: int = 0

    @property
    def of_units(self) -> float:
        """TFLOP/s of its FP32 units: one multiply-add each, every clock."""
        return 2e-6 * self.sms * self.lanes * self.boost_mhz

    def tflops(self, inputs: str) -> float | None:
        """Peak for inputs "float32", "tf32" or "float16"."""
        return {"float32": self.fp32, "tf32": self.tf32, "float16": self.fp16}[inputs]


# More specific names first. Dense rates at boost clock; GeForce-class parts run fp16 with fp32
# accumulation at half rate, their data sheets' headline number is for fp16 accumulation or
# sparsity.
PEAKS = (
    Peak("T4", ("T4",), 8.1, None, 65, 320, 4, "NVIDIA Turing architecture white paper, Tesla T4", 75, 40, 64, 1590),
    Peak("L4", ("L4",), 30.3, 60, 121, 300, 48, "NVIDIA L4 data sheet (2023)", 89, 58, 128, 2040),
    Peak("L40S", ("L40S",), 91.6, 183, 362, 864, 96, "NVIDIA L40S data sheet (2023)", 89, 142, 128, 2520),
    Peak("A100 80GB", ("A100", "80GB"), 19.5, 156, 312, 2039, 40, "NVIDIA A100 data sheet (2021)", 80, 108, 64, 1410),
    Peak("A100 40GB", ("A100",), 19.5, 156, 312, 1555, 40, "NVIDIA A100 data sheet (2021)"),
    Peak("A10G", ("A10G",), 31.2, 70, 70, 600, 6, "AWS EC2 G5 instances; NVIDIA A10 data sheet"),
    Peak("A10", ("A10",), 31.2, 62.5, 125, 600, 6, "NVIDIA A10 data sheet (2021)", 86, 72, 128, 1695),
    Peak("V100", ("V100",), 15.7, None, 125, 900, 6, "NVIDIA V100 data sheet (2020)", 70, 80, 64, 1530),
    Peak("H100 PCIe", ("H100", "PCIE"), 51.2, 378, 756, 2000, 50, "NVIDIA H100 data sheet (2023)", 90, 114, 128, 1755),
    Peak(
        "H100 SXM", ("H100",), 66.9, 494.7, 989.4, 3352, 50,
        "NVIDIA H100 architecture white paper, table 3", 90, 132, 128, 1980,
    ),
    Peak(
        "H200", ("H200",), 66.9, 494.7, 989.4, 4800, 60,
        "NVIDIA H200 data sheet (2024); L2 as the driver reports it", 90, 132, 128, 1980,
    ),
    Peak("B200", ("B200",), 75, 1100, 2250, 8000, 126, "NVIDIA DGX B200 data sheet (2025), dense, per GPU"),
    Peak(
        "RTX PRO 6000 Blackwell", ("RTX", "PRO", "6000"), 125, 252, 504, 1792, 128,
        "NVIDIA RTX Blackwell PRO GPU architecture white paper (2025)", 120, 188, 128, 2617,
    ),
    Peak("RTX 4090", ("RTX", "4090"), 82.6, 82.6, 165.2, 1008, 72, "NVIDIA Ada GPU architecture white paper", 89, 128, 128, 2520),
    Peak("RTX 3090", ("RTX", "3090"), 35.6, 35.6, 71, 936, 6, "NVIDIA GA102 architecture white paper", 86, 82, 128, 1695),
)  # fmt: skip
# Those whose units are known, older ones first.
CHIPS = tuple(sorted((row for row in PEAKS if row.sms), key=lambda row: row.arch))


@dataclass(frozen=True)
class Gpu:
    """A GPU as the driver describes it. `arch` is 10 * major + minor; sizes in bytes, clock in MHz."""

    name: str
    arch: int
    sms: int
    l2_bytes: int
    memory_bytes: int
    clock_mhz: int
    shared_per_block: int
    driver: str
    runtime: str

    @property
    def slug(self) -> str:
        """Name of its file in `results/`."""
        return slug(self.name)

    @property
    def peak(self) -> Peak | None:
        """Its row in the table of data-sheet limits."""
        return peak(self.name)


def slug(name: str) -> str:
    """ "NVIDIA H100 80GB HBM3" -> "nvidia-h100-80gb-hbm3"."""
    return "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split())


def peak(name: str) -> Peak | None:
    """The data-sheet limits of the GPU of this name, None when the table lacks it."""
    words = "".join(c if c.isalnum() else " " for c in name.upper()).split()
    fits = (row for row in PEAKS if all(word.upper() in words for word in row.match))
    return next(fits, None)


@lru_cache
def gpu() -> Gpu | None:
    """The current CUDA device, None without CuPy, a driver or a device."""
    try:
        import cupy

        if cupy.cuda.runtime.getDeviceCount() == 0:
            return None
        index = cupy.cuda.runtime.getDevice()
        about = cupy.cuda.runtime.getDeviceProperties(index)
    except Exception:  # no CuPy, or a CuPy whose driver is missing: each raises its own kind
        return None
    clock = about.get("clockRate") or cupy.cuda.Device(index).attributes.get("ClockRate", 0)
    return Gpu(
        name=about["name"].decode(),
        arch=10 * about["major"] + about["minor"],
        sms=about["multiProcessorCount"],
        l2_bytes=about["l2CacheSize"],
        memory_bytes=about["totalGlobalMem"],
        clock_mhz=clock // 1000,
        shared_per_block=about["sharedMemPerBlockOptin"],
        driver=_version(cupy.cuda.runtime.driverGetVersion()),
        runtime=_version(cupy.cuda.runtime.runtimeGetVersion()),
    )


def needed(for_what: str) -> Gpu:
    """The GPU that is here. UnsupportedGPU where there is none."""
    if (here := gpu()) is None:
        raise UnsupportedGPU(f"{for_what} needs an NVIDIA GPU and CuPy")
    return here


def live() -> Gpu | None:
    """The GPU to take times on: the one here, if any, unless $GEMM_TIMES is "recorded". So the
    chapters of one `make record` all show what it has just measured, and agree.
    """
    return None if os.environ.get("GEMM_TIMES") == "recorded" else gpu()


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


MACHINES = ("auto", "gpu", "emulator")


def choose(machine: str = "auto") -> str:
    """ "gpu" or "emulator" for "auto" and for either name. UnsupportedGPU for "gpu" where none is."""
    if machine not in MACHINES:
        raise ValueError(f"no machine {machine!r}: choose auto, gpu or emulator")
    if machine == "auto":
        return "gpu" if gpu() else "emulator"
    if machine == "gpu" and gpu() is None:
        raise UnsupportedGPU(
            "no GPU here (CuPy and an NVIDIA driver are needed): use machine='emulator'"
        )
    return machine


CLOCK_FIELDS = (
    "driver_version",
    "clocks.sm",
    "clocks.mem",
    "clocks.max.sm",
    "power.draw",
    "power.limit",
    "temperature.gpu",
)


def clocks() -> dict[str, str]:
    """Clocks (MHz), power (W), temperature (Celsius) that nvidia-smi reports now; {} without it."""
    query = ["nvidia-smi", f"--query-gpu={','.join(CLOCK_FIELDS)}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return {}
    values = done.stdout.splitlines()[0].split(", ")
    return dict(zip(CLOCK_FIELDS, values, strict=False))
