"""DeepGEMM's products for sm_100, instantiated from its headers as its host code does, and what each is to give.

Its templates take sizes, tiles, majors, multicast and types as arguments; `_SOURCE` names eight instances. Tensor maps
are those of its `runtime_utils.hpp`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np

import emulator
from emulator import TensorMap
from emulator.numbers.fp8 import VALUES

from .nvcc_ptx import bf16, ptx_of, wide

_HEADERS = ("sm100_bf16_gemm", "sm100_fp8_fp4_gemm_1d1d", "sm100_bmk_bnk_mn", "sm100_tf32_hc_prenorm_gemm")  # fmt: skip
# name -> the template and its arguments, with the majors' and types' names shortened
_BF16 = "0, 0, 0, 128, 128, 64, 1, 128, 128, 128, 4, 128, 128"  # sizes at run time; tile, groups, swizzles, stages, threads
_FP8 = "0, 0, 0, 128, 128, 128, 1, 128, 128, 128, 4, 128, 128"
_INSTANCES = {
    "bf16": f"bf16_gemm_impl<K, K, {_BF16}, 1, false, 4, 128, false, false, PLAIN, false, BF16, 100>",
    "bf16, pair": f"bf16_gemm_impl<K, K, {_BF16}, 2, false, 4, 128, false, false, PLAIN, false, BF16, 100>",
    "bf16, pair, A and B swapped": f"bf16_gemm_impl<K, K, {_BF16}, 2, true, 4, 128, true, false, PLAIN, false, BF16, 100>",
    "bf16, M- and N-major, added to C": (
        f"bf16_gemm_impl<MN, MN, {_BF16}, 1, false, 4, 128, false, false, PLAIN, true, float, 100>"
    ),
    "fp8, scales of 32": (
        f"fp8_fp4_gemm_1d1d_impl<K, K, 32, 32, 128, {_FP8}, 1, false, 4, false, false, PLAIN, false, E4M3, E4M3, BF16, SAME>"
    ),
    "fp8, scales of 128, pair": (
        f"fp8_fp4_gemm_1d1d_impl<K, K, 128, 128, 128, {_FP8}, 2, false, 4, false, false, PLAIN, false, E4M3, E4M3, BF16, SAME>"
    ),
    "batches added up": "bmn_bnk_mn_gemm_impl<128, 128, 128, 128, 128, 64, 1, 128, 128, 4, 128>",
    "tf32 and squares": "tf32_hc_prenorm_gemm_impl<32, 256, 64, 32, 64, 1, 128, 6, 128, 128>",
}  # fmt: skip
_NAMES = """using namespace deep_gemm;
constexpr auto K = cute::UMMA::Major::K, MN = cute::UMMA::Major::MN;
constexpr auto PLAIN = GemmType::Normal;
using BF16 = cutlass::bfloat16_t; using E4M3 = cutlass::float_e4m3_t; using SAME = epilogue::transform::EpilogueIdentity;
"""
_SHARED = 226 * 1024
_SIZE = 256  # M, N, and K but where scales are far apart


def _source() -> str:
    lines = [f"#include <deep_gemm/impls/{name}.cuh>" for name in _HEADERS]
    taken = ",\n".join(f"(void*)&sm100_{one}" for one in _INSTANCES.values())
    return "\n".join(lines) + f"\n{_NAMES}void instantiate() {{ void* all[] = {{{taken}}}; }}\n"


def _map(array: np.ndarray, box: tuple[int, int], format: str | None = None, swizzle: int = 128):
    return TensorMap(array, box, format, swizzle=swizzle, promotion=256)


def _launch(module, entry, grid, threads, args, pair: bool = False):
    cluster = 2 if pair else None
    return module.launch(entry, grid, threads, args, shared_bytes=_SHARED, cluster=cluster)


def _bf16(module, entry: str, boxes, store, pair=False, turned=False, added=False):
    rng, n = np.random.default_rng(0), _SIZE
    a, b = (bf16(rng.normal(size=(n, n))) for _ in range(2))
    wanted = wide(a) @ wide(b).T
    c = np.zeros((n, n), np.uint16)
    if added:
        c = rng.normal(size=(n, n)).astype(np.float32)
        wanted = wanted + c
    sides = [np.ascontiguousarray(x.T) if turned else x for x in (a, b)]
    maps = [_map(x, box, "bfloat16") for x, box in zip(sides, boxes, strict=True)]
    maps.append(_map(c, store, "float32" if added else "bfloat16"))
    trace = _launch(module, entry, 4, 256, [None, n, n, n, *maps], pair)
    return (c if added else wide(c)), wanted, trace


def _fp8(module, entry: str, block: int, pair: bool):
    rng, n, k = np.random.default_rng(0), _SIZE, 8 * block
    codes = [rng.integers(0, 256, (n, k)).astype(np.uint8) for _ in range(2)]
    for one in codes:
        one[(one & 127) > 0x60] = 0x30  # no NaN, and nothing that outweighs all else
    scales = [rng.integers(124, 130, (n, k // block)).astype(np.uint8) for _ in range(2)]
    left, right = (
        VALUES["e4m3"][c].astype(float) * np.repeat(np.exp2(s - 127.0), block, axis=1)
        for c, s in zip(codes, scales, strict=True)
    )
    packed = []  # four scales along k to an integer, rows run fastest
    for one in scales:
        words = np.zeros((one.shape[1] // 4, n), np.int32)
        words[:] = np.ascontiguousarray(one).view(np.int32).T
        packed.append(_map(words, (1, 128), swizzle=0))
    c = np.zeros((n, n), np.uint16)
    maps = [_map(codes[0], (128, 128)), _map(codes[1], (64 if pair else 128, 128)), *packed]
    args = [None, n, n, k, *maps, _map(c, (128, 64), "bfloat16")]
    trace = _launch(module, entry, 4, 256, args, pair)
    return wide(c), left @ right.T, trace


def _batches(module, entry: str):
    rng, batches, n = np.random.default_rng(0), 4, 128
    a, b = (bf16(rng.normal(size=(batches, n, n))) for _ in range(2))
    d = rng.normal(size=(n, n)).astype(np.float32)
    wanted = d + np.einsum("smk,snk->mn", wide(a).astype(float), wide(b).astype(float))
    maps = [_map(x.reshape(-1, n), (128, 64), "bfloat16") for x in (a, b)]
    blocks = batches * n // 64  # each adds up 64 of k
    return d, wanted, _launch(module, entry, blocks, 128, [batches, *maps, _map(d, (128, 32))])


def _squares(module, entry: str):
    rng, m, n, k = np.random.default_rng(0), 128, 32, 256
    a, b = bf16(rng.normal(size=(m, k))), rng.normal(size=(n, k)).astype(np.float32)
    d, squares = np.zeros((m, n), np.float32), np.zeros(m, np.float32)
    maps = [_map(a, (64, 64), "bfloat16"), _map(b, (32, 32), "tf32"), _map(d, (64, 32))]
    trace = _launch(module, entry, m // 64, 256, [m, *maps, squares])
    rows = wide(a).astype(float)
    found = np.concatenate([d, squares[:, None]], axis=1)
    return found, np.concatenate([rows @ b.T, (rows**2).sum(1)[:, None]], axis=1), trace


# name -> (what runs it, what else that takes)
_RUNS: dict[str, tuple] = {
    "bf16": (_bf16, ((128, 64), (128, 64)), (128, 64)),
    "bf16, pair": (_bf16, ((128, 64), (64, 64)), (128, 64), True),
    "bf16, pair, A and B swapped": (_bf16, ((64, 64), (128, 64)), (16, 64), True),
    "bf16, M- and N-major, added to C": (_bf16, ((64, 64), (64, 64)), (128, 32), False, True, True),
    "fp8, scales of 32": (_fp8, 32, False),
    "fp8, scales of 128, pair": (_fp8, 128, True),
    "batches added up": (_batches,),
    "tf32 and squares": (_squares,),
}


def cases(path: Path, cutlass: Path, at: Path) -> Iterator[tuple[str, Callable]]:
    """(name, run) of each instance; compiled once, below `at`. ValueError for a path without DeepGEMM's headers."""
    include = path / "deep_gemm" / "include"
    if not (include / "deep_gemm" / "impls" / f"{_HEADERS[0]}.cuh").exists():
        raise ValueError(f"{path} has no sm_100 headers: give a checkout of deepseek-ai/DeepGEMM")

    @cache
    def module():
        source = at / "deep_gemm.cu"
        source.write_text(_source(), encoding="utf-8")
        text = ptx_of(
            source, at / "deep_gemm.ptx", "-std=c++20", "--expt-extended-lambda",
            f"-I{include}", f"-I{cutlass / 'include'}",
        )  # fmt: skip
        return emulator.Module(text), re.findall(r"\.entry (\w+)", text)

    for name, (run, *more) in _RUNS.items():

        def case(name=name, run=run, more=tuple(more)):
            found, entries = module()
            return run(found, _entry(name, entries), *more)

        yield name, case


def _entry(name: str, entries: list[str]) -> str:
    """The mangled name of an instance: its template's, with all its numbers in their order."""
    template, arguments = _INSTANCES[name].split("<")
    wanted = [
        {"true": "Lb1E", "false": "Lb0E"}.get(word, f"L[jm]{word}E")
        for word in re.findall(r"\b(?:\d+|true|false)\b", arguments)
    ]
    pattern = ".*".join(wanted)
    return next(one for one in entries if template in one and re.search(pattern, one))
