"""PTX of `wgmma` probes: one instruction repeated, operands anywhere in shared memory.

Entry points take (times, out): they execute `UNROLLED` instructions `times` times, wait, and store
the clocks that passed. Shared memory holds A from 0 on and B from `B_AT` on, in the layout that the
swizzle mode and the major dimension ask for (PTX ISA 9.7.15.5.1); its contents do not matter.
"""

from dataclasses import dataclass

B_AT = 16384
UNROLLED = 8  # instructions per turn of the loop
SHARED_BYTES = B_AT + 65536
DEPTH = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32}
BYTES = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "s8": 1}
SWIZZLE_MODE = {0: 0, 128: 1, 64: 2, 32: 3}


@dataclass(frozen=True)
class Wgmma:
    """m64nNk with 32 bytes of k; swizzles in bytes; `a` is `registers` or `shared`."""

    n: int
    type: str = "f16"
    d: str = "f32"
    a: str = "shared"
    a_swizzle: int = 128
    b_swizzle: int = 128
    a_major: str = "k"
    b_major: str = "k"

    @property
    def name(self):
        """The entry point's name."""
        a = "rs" if self.a == "registers" else f"a{self.a_swizzle}{self.a_major}"
        return f"wgmma_n{self.n}_{self.d}_{self.type}_{a}_b{self.b_swizzle}{self.b_major}"

    @property
    def k(self):
        """Depth of the product."""
        return DEPTH[self.type]


def descriptor(rows, type, swizzle, major, address):
    """Descriptor bits without the start address: a constant, for `address` 1024-byte aligned."""
    if major == "k":
        leading, stride = (128, 256) if swizzle == 0 else (16, 8 * swizzle)
    else:
        span = max(swizzle, 16)  # bytes of a row of the major dimension within one pattern
        pattern = 8 * span
        across = rows * BYTES[type] // span
        # the pattern's repeats along rows, then along k; without swizzle the roles are exchanged
        leading, stride = pattern, pattern * across
        if swizzle == 0:
            leading, stride = stride, leading
    encoded = (leading // 16) << 16 | (stride // 16) << 32 | SWIZZLE_MODE[swizzle] << 62
    return encoded | address // 16


def ptx(chosen):
    """A module with an entry point per probe."""
    return ".version 9.0\n.target sm_90a\n.address_size 64\n" + "\n".join(map(_entry, chosen))


def _entry(probe):
    d_count = probe.n // 2 if probe.d != "f16" else probe.n // 4
    type = {"f32": "f32", "f16": "b32", "s32": "b32"}[probe.d]
    d = ", ".join(f"%d{i}" for i in range(d_count))
    zero = "0f00000000" if probe.d == "f32" else "0"
    flags = "p"
    if probe.type != "s8":
        flags += ", 1, 1"
    if probe.type in ("f16", "bf16"):
        if probe.a == "shared":
            flags += f", {int(probe.a_major != 'k')}"
        flags += f", {int(probe.b_major != 'k')}"
    a = "%a" if probe.a == "shared" else "{%q0, %q1, %q2, %q3}"
    desc_a = descriptor(64, probe.type, probe.a_swizzle, probe.a_major, 0)
    desc_b = descriptor(probe.n, probe.type, probe.b_swizzle, probe.b_major, B_AT)
    shape = f"m64n{probe.n}k{probe.k}"
    lines = [
        ".extern .shared .align 1024 .b8 tile[];",
        f".visible .entry {probe.name}(.param .u32 times, .param .u64 out)",
        "{",
        f"    .reg .{type} %d<{d_count}>;",
        "    .reg .b32 %r<4>;",
        "    .reg .b64 %a, %b, %at, %from, %to;",
        "    .reg .pred p, %more;",
        "    ld.param.u32 %r1, [times];",
        "    ld.param.u64 %at, [out];",
        "    .reg .b32 %q<4>;",
        # values that the compiler cannot know: it would write constants anew before each use, and wait
        "    ld.global.v4.u32 {%q0, %q1, %q2, %q3}, [%at + 16];",
        "    setp.eq.u32 p, 0, 0;",
        "    mov.u32 %r2, tile;",
        "    shr.u32 %r2, %r2, 4;",
        "    cvt.u64.u32 %a, %r2;",
        f"    add.u64 %b, %a, {desc_b};"
        if desc_b < 1 << 63
        else f"    add.u64 %b, %a, {hex(desc_b)};",
        f"    add.u64 %a, %a, {hex(desc_a)};",
        *(f"    mov.{type} %d{i}, {zero};" for i in range(d_count)),
        "    bar.sync 0;",
        "    mov.u64 %from, %clock64;",
        "    wgmma.fence.sync.aligned;",
        "again:",
        *[
            f"    wgmma.mma_async.sync.aligned.{shape}.{probe.d}.{probe.type}.{probe.type}"
            f" {{{d}}}, {a}, %b, {flags};"
        ]
        * UNROLLED,
        "    sub.u32 %r1, %r1, 1;",
        "    setp.ne.u32 %more, %r1, 0;",
        "    @%more bra again;",
        "    wgmma.commit_group.sync.aligned;",
        "    wgmma.wait_group.sync.aligned 0;",
        "    mov.u64 %to, %clock64;",
        "    sub.u64 %to, %to, %from;",
        "    mov.u32 %r2, %tid.x;",
        "    mov.u32 %r3, %ctaid.x;",
        "    or.b32 %r2, %r2, %r3;",
        "    setp.eq.u32 %more, %r2, 0;",
        "    @%more st.global.u64 [%at], %to;",
        # the sums must be used, or the instruction would go
        f"    .reg .{type} %sum;",
        f"    mov.{type} %sum, %d0;",
        *(
            f"    {'add.f32' if probe.d == 'f32' else 'xor.b32'} %sum, %sum, %d{i};"
            for i in range(1, d_count)
        ),
        "    .reg .b32 %bits;",
        "    mov.b32 %bits, %sum;",
        "    setp.eq.u32 %more, %bits, 12345;",
        "    @%more st.global.u32 [%at + 8], %bits;",
        "    ret;",
        "}",
        "",
    ]
    return "\n".join(lines)


def counted():
    """The probes whose accesses are counted."""
    for n in (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256):
        for a in ("shared", "registers"):
            yield Wgmma(n, a=a)
    for n in (8, 64, 128, 256):
        for swizzle in (0, 32, 64):
            yield Wgmma(n, a_swizzle=swizzle, b_swizzle=swizzle)
            yield Wgmma(n, a="registers", b_swizzle=swizzle)
        for type, d in (
            ("f16", "f16"),
            ("bf16", "f32"),
            ("tf32", "f32"),
            ("e4m3", "f32"),
            ("e5m2", "f16"),
            ("s8", "s32"),
        ):
            yield Wgmma(n, type, d)
            yield Wgmma(n, type, d, a="registers")
    for n in (64, 128, 256):
        for swizzle in (0, 32, 64, 128):
            yield Wgmma(n, b_major="mn", b_swizzle=swizzle)
            yield Wgmma(n, a_major="mn", a_swizzle=swizzle)
    yield Wgmma(64, a_major="mn", b_major="mn")
    yield Wgmma(64, a_swizzle=0, b_swizzle=128)
    yield Wgmma(64, a_swizzle=128, b_swizzle=0)


def timed():
    """The probes whose clocks are measured."""
    for type, d in (
        ("f16", "f32"),
        ("f16", "f16"),
        ("tf32", "f32"),
        ("e4m3", "f32"),
        ("e4m3", "f16"),
        ("s8", "s32"),
    ):
        for n in (8, 16, 32, 64, 96, 128, 160, 192, 256):
            for a in ("shared", "registers"):
                yield Wgmma(n, type, d, a=a)
    for n in (64, 128, 256):
        for swizzle in (0, 32, 64):
            yield Wgmma(n, a_swizzle=swizzle, b_swizzle=swizzle)
        yield Wgmma(n, b_major="mn")
        yield Wgmma(n, a_major="mn")


def probes():
    """All of them, once each."""
    return list(dict.fromkeys([*counted(), *timed()]))


if __name__ == "__main__":
    print(ptx(probes()))
