"""Which instructions were compared with a GPU: `tests/data/` and `results/accesses/` of the book's repository have the data.

A row is words that an opcode has, in any place: `cvt.tf32` stands for `cvt.rna.tf32.f32`, too.
"""

# Results: of an H200, bit for bit; of approximate functions, within the ulps that the README's list says.
MEASURED = (
    "mma", "wmma.mma", "wgmma.mma_async", "add.cc", "addc", "sub.cc", "subc", "mad.cc", "madc",
    "atom.add.f32", "atom.add.f64", "atom.add.f16", "atom.add.bf16", "atom.add.f16x2", "atom.add.bf16x2", "atom.exch.b32",
    "red.add.f32", "red.add.f16x2", "red.add.bf16x2", "cvt.e4m3x2", "cvt.e5m2x2", "cvt.tf32", "shfl",
    "cos.approx.f32", "sin.approx.f32", "div.approx.f32", "div.full.f32", "ex2.approx", "lg2.approx.f32", "rcp.approx.f32",
    "rsqrt.approx.f32", "sqrt.approx.f32", "tanh.approx",
    *(f"v{name}{lanes}" for lanes in ("2", "4") for name in ("add", "sub", "absdiff", "min", "max", "avrg", "set")),
)  # fmt: skip
# Memory traffic: of an H100 and an H200, by Nsight Compute. Loads and stores by the bytes of a lane.
LANES = {
    "ld.global": (4, 8, 16),
    "st.global": (4, 8, 16),
    "ld.shared": (2, 4, 8, 16),
    "st.shared": (2, 4, 8, 16),
}
COUNTED = (
    "ldmatrix", "stmatrix", "cp.async", "mbarrier.init", "mbarrier.arrive", "mbarrier.test_wait", "mbarrier.try_wait",
    "mbarrier.expect_tx", "wgmma.mma_async", "fence.proxy.async", "red.async", "st.async", "atom.shared.add.u32",
    "red.shared.add.u32", "atom.shared.cas.b32", "ld.shared::cluster", "st.shared::cluster",
)  # fmt: skip
_WIDTH = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16}


def result_measured(opcode: str) -> bool:
    return _among(opcode, MEASURED)


def traffic_measured(opcode: str) -> bool:
    words = opcode.split(".")
    spaces = (word.split("::")[0] for word in words if word[:6] in ("global", "shared"))
    allowed = LANES.get(f"{words[0]}.{next(spaces, '')}")
    if allowed and "shared::cluster" not in words:
        return _bytes(words) in allowed
    return _among(opcode, COUNTED)


def _among(opcode: str, rows: tuple[str, ...]) -> bool:
    words = opcode.split(".")
    return any(row.split(".")[0] == words[0] and set(row.split(".")) <= set(words) for row in rows)


def _bytes(words: list[str]) -> int:
    """Of a lane: its elements times their size."""
    count = next((int(w[1:]) for w in words if w in ("v2", "v4", "v8")), 1)
    return count * _WIDTH.get(words[-1].lstrip("bfsux"), 0)
