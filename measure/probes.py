"""Which GPUs have which instruction: asked of the assembler, one small kernel at a time."""

from __future__ import annotations

from collections.abc import Iterable

from kernels.build import build
from kernels.errors import BuildError
from kernels.rungs import ARCHITECTURES

# One instruction each; %0 is the address of 2048 bytes of shared memory.
PROBES = {
    "wmma m16n16k16 fp16": (
        "{.reg .b32 a<8>; wmma.load.a.sync.aligned.row.m16n16k16.shared.f16"
        " {a0,a1,a2,a3,a4,a5,a6,a7}, [%0], 16;}"
    ),
    "mma m8n8k4 fp16": (
        "{.reg .b32 a<4>; .reg .f32 d<8>; mov.b32 a0,%0; mov.b32 a1,%0; mov.b32 a2,%0; mov.b32 a3,%0;"
        " mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {d0,d1,d2,d3,d4,d5,d6,d7}, {a0,a1}, {a2,a3},"
        " {d0,d1,d2,d3,d4,d5,d6,d7};}"
    ),
    "ldmatrix": "{.reg .b32 a; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {a}, [%0];}",
    "mma m16n8k8 fp16": (
        "{.reg .b32 a<2>; .reg .f32 d<4>; mov.b32 a0,%0; mov.b32 a1,%0;"
        " mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {d0,d1,d2,d3}, {a0,a1}, {a0}, {d0,d1,d2,d3};}"
    ),
    "mma m16n8k16 fp16": (
        "{.reg .b32 a<4>; .reg .f32 d<4>; mov.b32 a0,%0; mov.b32 a1,%0; mov.b32 a2,%0; mov.b32 a3,%0;"
        " mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {d0,d1,d2,d3}, {a0,a1,a2,a3}, {a0,a1},"
        " {d0,d1,d2,d3};}"
    ),
    "mma m16n8k8 tf32": (
        "{.reg .b32 a<4>; .reg .f32 d<4>; mov.b32 a0,%0; mov.b32 a1,%0; mov.b32 a2,%0; mov.b32 a3,%0;"
        " mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {d0,d1,d2,d3}, {a0,a1,a2,a3}, {a0,a1},"
        " {d0,d1,d2,d3};}"
    ),
    "cp.async": "{.reg .b64 g; mov.b64 g, 0; cp.async.cg.shared.global [%0], [g], 16;}",
    "mbarrier": "mbarrier.init.shared.b64 [%0], 1;",
    "stmatrix": "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%0};",
    "cp.async.bulk (TMA)": (
        "{.reg .b64 g; mov.b64 g, 0;"
        " cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [g], 16, [%0];}"
    ),
    "wgmma": "wgmma.fence.sync.aligned;",
    "tcgen05": "tcgen05.fence::before_thread_sync;",
}  # fmt: skip


def exists(instruction: str, arch: int | str) -> bool:
    """Whether a kernel that holds this instruction assembles for `arch` (80, "90a" ...)."""
    text = PROBES[instruction]
    source = (
        'extern "C" __global__ void probe() {\n'
        "    __shared__ __align__(128) unsigned words[512];\n"
        "    unsigned at = (unsigned)__cvta_generic_to_shared(words);\n"
        f'    asm volatile("{text}" :: "r"(at) : "memory");\n'
        "}\n"
    )
    try:
        build(source, arch=arch, name="probe.cu")
    except BuildError:
        return False
    return True


def support(arches: Iterable[int] = ARCHITECTURES) -> dict[str, dict[int, str]]:
    """`{instruction: {arch: "yes", "no", or "sm_90a"}}`. The suffix "a" stands for what an architecture
    alone has: code compiled so runs on no other, a later one included.
    """
    found: dict[str, dict[int, str]] = {}
    for instruction in PROBES:
        found[instruction] = {}
        for arch in arches:
            answer = "yes" if exists(instruction, arch) else "no"
            if answer == "no" and arch >= 90 and exists(instruction, f"{arch}a"):
                answer = f"sm_{arch}a"
            found[instruction][arch] = answer
    return found
