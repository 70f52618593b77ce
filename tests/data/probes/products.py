"""PTX of one matrix product each: registers in, one `mma`, `wmma.mma` or `wgmma`, registers out.

Every entry point takes four global pointers a, b, c, d. Registers lie as arrays (registers, warps,
32): register r of lane l of warp w at index (r * warps + w) * 32 + l, so that a probe can hand any
bits to the instruction and see every bit that it returns. `wgmma` takes its shared-memory operands
as ready images (core matrices of 8 rows of 16 bytes, no swizzle) and one warpgroup per block.
"""

from dataclasses import dataclass

# Bits of one element, and the PTX register type that a fragment's registers have.
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8}
BITS |= {"f32": 32, "s32": 32, "f64": 64}


@dataclass(frozen=True)
class Entry:
    """One instruction: D (m, n) = A (m, k) @ B (k, n) + C, and how it takes its operands.

    kind: `mma`, `wmma`, `wgmma_rs` (A in registers) or `wgmma_ss` (A in shared memory).
    """

    kind: str
    m: int
    n: int
    k: int
    a: str
    b: str
    c: str
    d: str
    a_layout: str = "row"
    b_layout: str = "col"
    satfinite: bool = False

    @property
    def name(self):
        """A name that PTX accepts for the entry point."""
        layouts = (
            ""
            if (self.a_layout, self.b_layout) == ("row", "col")
            else (f"_{self.a_layout}_{self.b_layout}")
        )
        clamp = "_satfinite" if self.satfinite else ""
        types = f"{self.d}_{self.a}_{self.b}_{self.c}"
        return f"{self.kind}_m{self.m}n{self.n}k{self.k}{layouts}_{types}{clamp}"

    def registers(self, role):
        """How many registers a lane holds of operand `a`, `b`, `c` or `d`."""
        if self.kind == "wmma" and role in "ab" and self.a == "f16":
            return 8  # PTX ISA 9.7.14.4.1: always eight, the later ones repeat the earlier
        type = getattr(self, role)
        rows, cols = {"a": (self.m, self.k), "b": (self.k, self.n)}.get(role, (self.m, self.n))
        lanes = 128 if self.kind.startswith("wgmma") else 32
        bits = rows * cols * BITS[type] // lanes
        if (self.kind, self.m, self.k, self.a) == ("mma", 8, 4, "f16"):
            bits *= 4  # four quad-pairs work on matrices of their own
        return max(1, bits // max(32, BITS[type]))


def entries():
    """Every floating-point and 8-bit product of sm_90 that the models describe."""
    for d, c in (("f32", "f32"), ("f16", "f16"), ("f32", "f16")):
        yield Entry("mma", 8, 8, 4, "f16", "f16", c, d)
    for k in (8, 16):
        yield Entry("mma", 16, 8, k, "f16", "f16", "f32", "f32")
        yield Entry("mma", 16, 8, k, "f16", "f16", "f16", "f16")
        yield Entry("mma", 16, 8, k, "bf16", "bf16", "f32", "f32")
    for k in (4, 8):
        yield Entry("mma", 16, 8, k, "tf32", "tf32", "f32", "f32")
    for a in ("e4m3", "e5m2"):
        for b in ("e4m3", "e5m2"):
            for k in (16, 32):
                for d in ("f32", "f16"):
                    yield Entry("mma", 16, 8, k, a, b, d, d)
    for m, k in ((8, 16), (16, 16), (16, 32)):
        for a, b in (("s8", "s8"), ("u8", "s8"), ("u8", "u8")):
            for clamp in (False, True):
                yield Entry("mma", m, 8, k, a, b, "s32", "s32", satfinite=clamp)
    for m, k in ((8, 4), (16, 4), (16, 8), (16, 16)):
        yield Entry("mma", m, 8, k, "f64", "f64", "f64", "f64")
    for m, n in ((16, 16), (32, 8), (8, 32)):
        for d in ("f32", "f16"):
            for c in ("f32", "f16"):
                yield Entry("wmma", m, n, 16, "f16", "f16", c, d)
        yield Entry("wmma", m, n, 16, "bf16", "bf16", "f32", "f32")
        yield Entry("wmma", m, n, 16, "s8", "s8", "s32", "s32")
    yield Entry("wmma", 16, 16, 8, "tf32", "tf32", "f32", "f32")
    yield Entry("wmma", 8, 8, 4, "f64", "f64", "f64", "f64")
    for n in (8, 64):
        for kind in ("wgmma_ss", "wgmma_rs"):
            for d in ("f32", "f16"):
                yield Entry(kind, 64, n, 16, "f16", "f16", d, d)
            yield Entry(kind, 64, n, 16, "bf16", "bf16", "f32", "f32")
            yield Entry(kind, 64, n, 8, "tf32", "tf32", "f32", "f32")
            for a in ("e4m3", "e5m2"):
                for b in ("e4m3", "e5m2"):
                    for d in ("f32", "f16"):
                        yield Entry(kind, 64, n, 32, a, b, d, d)
            for clamp in (False, True):
                yield Entry(kind, 64, n, 32, "s8", "s8", "s32", "s32", satfinite=clamp)


_HEADER = """.version 9.0
.target sm_90a
.address_size 64
"""


def module(chosen):
    """PTX text with one entry point per product."""
    return _HEADER + "\n".join(_warpgroup(e) if "wgmma" in e.kind else _warp(e) for e in chosen)


def _vector(names):
    return "{" + ", ".join(names) + "}"


def _instruction(entry):
    suffix = ".satfinite" * entry.satfinite
    shape = f"m{entry.m}n{entry.n}k{entry.k}"
    layouts = f"{entry.a_layout}.{entry.b_layout}"
    if entry.kind == "mma":
        types = f"{entry.d}.{entry.a}.{entry.b}.{entry.c}"
        return f"mma.sync.aligned.{shape}.{layouts}{suffix}.{types}"
    types = (
        f"{entry.d}.{entry.c}" if entry.a == "f16" else (f"{entry.d}.{entry.a}.{entry.b}.{entry.c}")
    )
    rounding = ".rn" if entry.a == "f64" else ""
    return f"wmma.mma.sync.aligned.{layouts}.{shape}{rounding}.{types}{suffix}"


_STARTS = """.visible .entry {name}(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd)
{{
    .reg .b64 %base<4>, %at;
    .reg .b32 %lane, %warp, %warps, %threads, %index, %stride;
    ld.param.u64 %base0, [pa];
    ld.param.u64 %base1, [pb];
    ld.param.u64 %base2, [pc];
    ld.param.u64 %base3, [pd];
    mov.u32 %threads, %ntid.x;
    mov.u32 %index, %ctaid.x;
    mov.u32 %lane, %tid.x;
    mad.lo.u32 %index, %index, %threads, %lane;
    mov.u32 %warps, %nctaid.x;
    mul.lo.u32 %stride, %warps, %threads;"""


def _moves(entry, role, store=False):
    """Loads of an operand's registers %{role}0.., or stores of them: `stride` lanes to the next."""
    base = {"a": 0, "b": 1, "c": 2, "d": 3}[role]
    size = 8 if BITS[getattr(entry, role)] == 64 else 4
    yield f"    mad.wide.u32 %at, %index, {size}, %base{base};"
    for r in range(entry.registers(role)):
        if store:
            yield f"    st.global.b{size * 8} [%at], %{role}{r};"
        else:
            yield f"    ld.global.b{size * 8} %{role}{r}, [%at];"
        yield f"    mad.wide.u32 %at, %stride, {size}, %at;"


def _declared(entry, roles):
    for role in roles:
        type = getattr(entry, role)
        register = "f64" if type == "f64" else "f32" if type == "f32" else "b32"
        yield f"    .reg .{register} %{role}<{entry.registers(role)}>;"


def _names(entry, role):
    return [f"%{role}{r}" for r in range(entry.registers(role))]


def _warp(entry):
    lines = [_STARTS.format(name=entry.name), *_declared(entry, "abcd")]
    for role in "abc":
        lines += _moves(entry, role)
    operands = ", ".join(_vector(_names(entry, role)) for role in "dabc")
    lines += [f"    {_instruction(entry)} {operands};", *_moves(entry, "d", store=True)]
    return "\n".join([*lines, "    ret;", "}", ""])


# Descriptor of an image without swizzle (PTX ISA 9.7.15.5.1): K-adjacent core matrices 128 bytes
# apart, the next eight rows 256 bytes apart, all in units of 16 bytes.
_DESCRIPTOR = (128 // 16) << 16 | (256 // 16) << 32


def _warpgroup(entry):
    a_bytes, b_bytes = 64 * 32, entry.n * 32
    lines = [
        _STARTS.format(name=entry.name),
        *_declared(entry, "ad" if "rs" in entry.kind else "d"),
    ]
    lines += [
        f"    .shared .align 128 .b8 image_a[{a_bytes}];",
        f"    .shared .align 128 .b8 image_b[{b_bytes}];",
        "    .reg .pred %more;",
        "    .reg .b32 %block, %byte, %word, %place;",
        "    .reg .b64 %desc_a, %desc_b;",
        "    mov.u32 %block, %ctaid.x;",
    ]
    images = [("b", 1, b_bytes)] + ([("a", 0, a_bytes)] if "ss" in entry.kind else [])
    for role, base, size in images:
        lines += [
            f"    mov.u32 %place, image_{role};",
            "    shl.b32 %byte, %lane, 2;",
            f"copy_{role}:",
            f"    mad.lo.u32 %word, %block, {size}, %byte;",
            "    cvt.u64.u32 %at, %word;",
            f"    add.u64 %at, %at, %base{base};",
            f"    setp.lt.u32 %more, %byte, {size};",
            "    @%more ld.global.b32 %warp, [%at];",
            "    add.u32 %word, %place, %byte;",
            "    @%more st.shared.b32 [%word], %warp;",
            "    add.u32 %byte, %byte, 512;",
            f"    setp.lt.u32 %more, %byte, {size};",
            f"    @%more bra copy_{role};",
            "    shr.u32 %place, %place, 4;",
            f"    cvt.u64.u32 %desc_{role}, %place;",
            f"    or.b64 %desc_{role}, %desc_{role}, {_DESCRIPTOR};",
        ]
    lines += ["    fence.proxy.async;", "    bar.sync 0;"]
    if "rs" in entry.kind:
        lines += _moves(entry, "a")
    lines += [line.replace("%base3", "%base2") for line in _moves(entry, "d")]
    a = "%desc_a" if "ss" in entry.kind else _vector(_names(entry, "a"))
    suffix = ".satfinite" * entry.satfinite
    flags = {"s8": "p", "f16": "p, 1, 1, 0, 0", "bf16": "p, 1, 1, 0, 0"}.get(entry.a, "p, 1, 1")
    if "rs" in entry.kind:
        flags = flags.replace("1, 1, 0, 0", "1, 1, 0")
    shape = f"m{entry.m}n{entry.n}k{entry.k}"
    lines += [
        "    .reg .pred p;",
        "    setp.eq.u32 p, 0, 0;",
        "    wgmma.fence.sync.aligned;",
        f"    wgmma.mma_async.sync.aligned.{shape}{suffix}.{entry.d}.{entry.a}.{entry.b}"
        f" {_vector(_names(entry, 'd'))}, {a}, %desc_b, {flags};",
        "    wgmma.commit_group.sync.aligned;",
        "    wgmma.wait_group.sync.aligned 0;",
        *_moves(entry, "d", store=True),
    ]
    return "\n".join([*lines, "    ret;", "}", ""])


if __name__ == "__main__":
    print(module(entries()))
