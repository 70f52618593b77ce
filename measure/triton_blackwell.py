"""What Triton makes of products for cuda:100 and cuda:120, run on the emulator. Imported only where Triton is installed.

Triton reads this file's text to compile it; `cases` compiles (no GPU is needed), and gives a name and a run for each.
"""

from collections.abc import Callable, Iterator

import numpy as np
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import emulator
from emulator.numbers.fp8 import VALUES

from .triton_kernels import tiled

SIZE = 256


@triton.jit
def scaled(
    A, A_SCALE, B, B_SCALE, C, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PACK: tl.constexpr, VEC: tl.constexpr,
    FORMAT: tl.constexpr,
):  # fmt: skip
    """C = (A * its scales) @ (B * its scales)^T; A (M, K / PACK), B (N, K / PACK), a scale for VEC elements along K."""
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    cols = tl.program_id(0) * BN + tl.arange(0, BN)
    ks, scales = tl.arange(0, BK // PACK), tl.arange(0, BK // VEC)
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        a = tl.load(A + rows[:, None] * (K // PACK) + (k // PACK + ks)[None, :])
        b = tl.load(B + cols[:, None] * (K // PACK) + (k // PACK + ks)[None, :])
        a_scale = tl.load(A_SCALE + rows[:, None] * (K // VEC) + (k // VEC + scales)[None, :])
        b_scale = tl.load(B_SCALE + cols[:, None] * (K // VEC) + (k // VEC + scales)[None, :])
        sums = tl.dot_scaled(a, a_scale, FORMAT, b.T, b_scale, FORMAT, sums)
    tl.store(C + rows[:, None] * N + cols[None, :], sums)


@triton.jit
def attention(Q, K, V, O, N, SCALE, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):  # noqa: E741
    """O = softmax(Q K^T * SCALE) V, (N, D) each, by blocks of keys with a running maximum."""
    rows, ds = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    q = tl.load(Q + rows[:, None] * D + ds[None, :])
    most = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    out = tl.zeros((BM, D), tl.float32)
    for start in range(0, N, BN):
        keys = start + tl.arange(0, BN)
        k = tl.load(K + keys[:, None] * D + ds[None, :])
        v = tl.load(V + keys[:, None] * D + ds[None, :])
        s = tl.dot(q, k.T) * SCALE
        now = tl.maximum(most, tl.max(s, 1))
        p = tl.exp(s - now[:, None])
        shrink = tl.exp(most - now)
        total = total * shrink + tl.sum(p, 1)
        out = tl.dot(p.to(tl.float16), v, out * shrink[:, None])
        most = now
    tl.store(O + rows[:, None] * D + ds[None, :], out / total[:, None])


def _compiled(fn, signature: dict, constants: dict, warps: int, stages: int, arch: int = 100):
    """(module, entry, threads, shared bytes, further arguments) of a kernel."""
    divisible = {
        (at,): [["tt.divisibility", 16]]
        for at, kind in enumerate(signature.values())
        if kind != "fp32"
    }
    source = ASTSource(
        fn=fn,
        signature={**signature, **dict.fromkeys(constants, "constexpr")},
        constexprs=constants,
        attrs=divisible,
    )
    made = triton.compile(
        source,
        target=GPUTarget("cuda", arch, 32),
        options={"num_warps": warps, "num_stages": stages},
    )
    found = emulator.Module(made.asm["ptx"])
    given = len(signature)
    count = made.asm["ptx"].split(".entry")[1].split(")")[0].count(".param")
    threads = 32 * getattr(made.metadata, "num_warps", warps)
    return found, made.metadata.name, threads, made.metadata.shared, [None] * (count - given)


def _drawn(rng, type: str, shape):
    """(what is passed, float32 values)."""
    if type in ("fp16", "fp32"):
        array = rng.normal(size=shape).astype({"fp16": "f2", "fp32": "f4"}[type])
        return array, array.astype(np.float32)
    if type == "bf16":
        bits = rng.normal(size=shape).astype(np.float32).view(np.uint32) & 0xFFFF0000
        return (bits >> 16).astype(np.uint16), bits.view(np.float32)
    codes = rng.integers(0, 0x60, shape).astype(np.uint8)
    return codes, VALUES["e4m3" if type == "fp8e4nv" else "e5m2"][codes]


def _product(type: str, bm: int, bn: int, bk: int, warps: int, stages: int) -> Callable:
    def run():
        n = SIZE
        rng = np.random.default_rng(0)
        (a, left), (b, right) = (_drawn(rng, type, (n, n)) for _ in range(2))
        c = np.zeros((n, n), np.float32)
        signature = {"A": f"*{type}", "B": f"*{type}", "C": "*fp32", **dict.fromkeys("MNK", "i32")}
        tile = {"BM": bm, "BN": bn, "BK": bk}
        module, entry, threads, shared, more = _compiled(tiled, signature, tile, warps, stages)
        sizes = [np.int32(n)] * 3
        grid = (-(-n // bn), -(-n // bm))
        trace = module.launch(entry, grid, threads, [a, b, c, *sizes, *more], shared_bytes=shared)
        return c, left @ right, trace

    return run


def _scaled(format: str, vector: int, arch: int = 100) -> Callable:
    def run():
        n = SIZE
        rng = np.random.default_rng(0)
        pack = 2 if format == "e2m1" else 1
        sides = []
        for _ in range(2):
            if pack == 2:
                bytes_ = rng.integers(0, 256, (n, n // 2)).astype(np.uint8)
                codes = np.stack([bytes_ & 15, bytes_ >> 4], axis=-1).reshape(n, n)
            else:
                bytes_ = codes = rng.integers(0, 0x60, (n, n)).astype(np.uint8)
            of_four = vector == 16  # nvfp4's scales are e4m3
            scale = rng.integers(*((0x30, 0x48) if of_four else (124, 130)), (n, n // vector))
            factor = VALUES["e4m3"][scale] if of_four else np.exp2(scale - 127.0)
            values = VALUES[format][codes] * np.repeat(factor, vector, axis=1)
            sides.append((bytes_, scale.astype(np.uint8), values))
        c = np.zeros((n, n), np.float32)
        data = "*u8" if pack == 2 else "*fp8e4nv"
        scales = "*fp8e4nv" if vector == 16 else "*u8"
        signature = {"A": data, "A_SCALE": scales, "B": data, "B_SCALE": scales, "C": "*fp32"}
        signature |= dict.fromkeys("MNK", "i32")
        constants = {"BM": 128, "BN": 128, "BK": 128, "PACK": pack, "VEC": vector, "FORMAT": format}
        module, entry, threads, shared, more = _compiled(scaled, signature, constants, 4, 2, arch)
        (a, a_scale, left), (b, b_scale, right) = sides
        args = [a, a_scale, b, b_scale, c, *[np.int32(n)] * 3, *more]
        trace = module.launch(entry, (n // 128, n // 128), threads, args, shared_bytes=shared)
        return c, left @ right.T, trace

    return run


def _attention(warps: int) -> Callable:
    def run():
        n, d = SIZE, 64
        rng = np.random.default_rng(0)
        q, k, v = (rng.normal(size=(n, d)).astype(np.float16) for _ in range(3))
        out = np.zeros((n, d), np.float32)
        signature = {**dict.fromkeys("QKV", "*fp16"), "O": "*fp32", "N": "i32", "SCALE": "fp32"}
        constants = {"BM": 128, "BN": 64, "D": d}
        module, entry, threads, shared, more = _compiled(attention, signature, constants, warps, 2)
        args = [q, k, v, out, np.int32(n), np.float32(d**-0.5), *more]
        trace = module.launch(entry, n // 128, threads, args, shared_bytes=shared)
        s = q.astype(np.float64) @ k.T.astype(np.float64) * d**-0.5
        p = np.exp(s - s.max(1, keepdims=True))
        return out, p @ v / p.sum(1, keepdims=True), trace

    return run


def cases() -> Iterator[tuple[str, Callable]]:
    """(name, run) of each kernel."""
    for type, bm, bn, bk, warps, stages in (
        ("fp16", 128, 128, 64, 4, 3), ("fp16", 128, 256, 64, 8, 3), ("fp16", 64, 128, 64, 4, 2), ("bf16", 128, 128, 64, 4, 3),
        ("fp32", 128, 128, 32, 4, 2), ("fp8e4nv", 128, 128, 64, 4, 3), ("fp8e5", 128, 128, 128, 4, 2),
    ):  # fmt: skip
        yield f"{type} {bm}x{bn}x{bk}, {warps} warps", _product(type, bm, bn, bk, warps, stages)
    for arch in (100, 120):  # by tcgen05.mma, and by the block-scaled mma of sm_120a
        yield f"dot_scaled mxfp8, sm_{arch}", _scaled("e4m3", 32, arch)
        yield f"dot_scaled mxfp4, sm_{arch}", _scaled("e2m1", 32, arch)
        yield f"dot_scaled nvfp4, sm_{arch}", _scaled("e2m1", 16, arch)
    yield "attention, 4 warps", _attention(4)
