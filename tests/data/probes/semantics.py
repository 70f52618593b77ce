"""What PTX leaves open, or what is easily mistaken, run on a GPU and on the emulator.

    python tests/data/probes/semantics.py run WORDS.npz              # on a GPU of compute capability 9.0
    python tests/data/probes/semantics.py compare WORDS.npz OUT.json # anywhere

Each probe is a few lines of PTX executed by many threads; every thread has four 32-bit inputs (or
two of 64 bits) and stores up to four words. The file lists, for every probe, how many threads' words
differ between the GPU and the emulator, examples, and what the GPU alone shows (subnormals that are
flushed, lanes that are read though they have exited, and so on).
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
for folder in (HERE, HERE.parents[2]):
    sys.path.insert(0, str(folder))

from semantic_rules import rule_of  # noqa: E402

_HEADER = """.version 8.8
.target sm_90a
.address_size 64
.extern .shared .align 16 .b8 tile[];
"""
_FRAME = """.visible .entry {name}(.param .u64 pin, .param .u64 pout, .param .u64 pmem)
{{
    .reg .b32 %x<4>, %y<4>, %t<8>, %me, %cta, %all;
    .reg .b64 %at, %to, %mem, %l<8>, %smem64;
    .reg .b16 %h<8>;
    .reg .f32 %f<8>;
    .reg .f64 %d<4>;
    .reg .pred %p, %q;
    .reg .b32 %smem;
    ld.param.u64 %at, [pin];
    ld.param.u64 %to, [pout];
    ld.param.u64 %mem, [pmem];
    mov.u32 %me, %tid.x;
    mov.u32 %cta, %ctaid.x;
    mov.u32 %all, %ntid.x;
    mad.lo.u32 %all, %cta, %all, %me;
    mul.wide.u32 %l0, %all, 16;
    add.u64 %at, %at, %l0;
    add.u64 %to, %to, %l0;
    add.u64 %mem, %mem, %l0;
    mov.u32 %smem, tile;
    mad.lo.u32 %smem, %me, 16, %smem;
    ld.global.u32 %x0, [%at];
    ld.global.u32 %x1, [%at + 4];
    ld.global.u32 %x2, [%at + 8];
    ld.global.u32 %x3, [%at + 12];
    mov.u32 %y0, 0;
    mov.u32 %y1, 0;
    mov.u32 %y2, 0;
    mov.u32 %y3, 0;
{body}
done:
    st.global.u32 [%to], %y0;
    st.global.u32 [%to + 4], %y1;
    st.global.u32 [%to + 8], %y2;
    st.global.u32 [%to + 12], %y3;
    ret;
}}
"""


def ptx(bodies):
    """A module with one entry point per name in `bodies`."""
    text = _HEADER
    for name, body in bodies.items():
        indented = "\n".join("    " + line for line in body.splitlines())
        text += _FRAME.format(name=name, body=indented)
    return text


# --- Inputs -------------------------------------------------------------------------------------------

_EDGES = np.array(
    [0, 1, 2, 0x7FFFFFFE, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF, 0x12345678],
    np.uint32,
)


def edges():
    """All quadruples of edge values: (10000, 4)."""
    return np.stack(np.meshgrid(*[_EDGES] * 4, indexing="ij"), -1).reshape(-1, 4)


_FLOATS = np.array(
    [0, 0x80000000, 1, 0x80000001, 0x7FFFFF, 0x807FFFFF, 0x800000, 0x80800000, 0x400000, 0x3F800000,
     0xBF800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00001, 0xFFC12345, 0x7F800001, 0x33800000,
     0x00C00000, 0x80C00000, 0x01000000, 0x4B800000],
    np.uint32,
)  # fmt: skip
_HALVES = np.array(
    [0, 0x8000, 1, 0x8001, 0x3FF, 0x83FF, 0x400, 0x8400, 0x3C00, 0xBC00, 0x7BFF, 0xFBFF, 0x7C00,
     0xFC00, 0x7E01, 0x7D55, 0x200, 0x1400],
    np.uint32,
)  # fmt: skip


def float_pairs():
    """Pairs of float32: subnormals, zeros, infinities, NaN and ordinary ones."""
    x, y = (v.ravel() for v in np.meshgrid(_FLOATS, _FLOATS, indexing="ij"))
    return np.stack([x, y, y, x], -1)


def half_pairs():
    """Pairs of packed f16 (bits that serve as bf16 too)."""
    x, y = (v.ravel() for v in np.meshgrid(_HALVES, _HALVES, indexing="ij"))
    return np.stack([x | np.roll(x, 5) << 16, y | np.roll(y, 5) << 16] * 2, -1)


def doubles():
    """Pairs of float64 as four words."""
    values = np.array([0.0, -0.0, 5e-324, -5e-324, 2e-308, -1e-308, 1.0, np.inf, -np.inf, np.nan])
    x, y = (v.ravel() for v in np.meshgrid(values, values, indexing="ij"))
    return np.stack([x, y], -1).view(np.uint32)


def samples(count=1 << 16, seed=1):
    """Random float32 bits, and all that lies near 0, 1 and the ends."""
    bits = np.random.PCG64(seed).random_raw(count)
    x = (bits >> 32).astype(np.uint32)
    x[: count // 2] = (0x3F000000 + (x[: count // 2] >> 7)).astype(np.uint32)  # 0.5 to 4
    x[: len(_FLOATS)] = _FLOATS
    return np.stack([x, np.roll(x, 7), x, x], -1)


def every_half():
    """Every f16, as packed f16 and as the float32 of the same value, shifted a little."""
    bits = np.arange(65536, dtype=np.uint32)
    with np.errstate(all="ignore"):
        single = bits.astype(np.uint16).view(np.float16).astype(np.float32)
    return np.stack([bits, bits ^ 0x8001, single.view(np.uint32), single.view(np.uint32) + 1], -1)


# --- Probes -------------------------------------------------------------------------------------------


def carries():
    first = {
        "add.cc": "{op}.{t} {d}, {a}, {b};",
        "sub.cc": "{op}.{t} {d}, {a}, {b};",
        "mad.lo.cc": "{op}.{t} {d}, {a}, {b}, {c};",
        "mad.hi.cc": "{op}.{t} {d}, {a}, {b}, {c};",
    }
    second = {
        "addc": "{op}.{t} {d}, {a}, {b};",
        "subc": "{op}.{t} {d}, {a}, {b};",
        "madc.lo": "{op}.{t} {d}, {a}, {b}, {c};",
        "madc.hi": "{op}.{t} {d}, {a}, {b}, {c};",
    }
    for one, form in first.items():
        for two, other in second.items():
            body = form.format(op=one, t="u32", d="%y0", a="%x0", b="%x1", c="%x2") + "\n"
            body += other.format(op=two, t="u32", d="%y1", a="%x2", b="%x3", c="%x0")
            yield f"{one} {two}", body, edges()
    # a chain: does the second instruction's own .cc hand on a carry of the same kind?
    for one in ("add.cc", "sub.cc"):
        for two in ("addc.cc", "subc.cc"):
            for three in ("addc", "subc"):
                body = f"{one}.u32 %y0, %x0, %x1;\n{two}.u32 %y1, %x2, %x3;\n{three}.u32 %y2, %x1, %x2;"
                yield f"{one} {two} {three}", body, edges()
    for one in ("add.cc", "sub.cc"):
        for two in ("addc", "subc"):
            body = (
                "mov.b64 %l1, {%x0, %x1};\nmov.b64 %l2, {%x2, %x3};\n"
                f"{one}.u64 %l3, %l1, %l2;\n{two}.u64 %l4, %l2, %l1;\n"
                "mov.b64 {%y0, %y1}, %l3;\nmov.b64 {%y2, %y3}, %l4;"
            )
            yield f"{one}.u64 {two}.u64", body, edges()


_ATOMIC_SPACE = {"global": "%mem", "shared": "%smem"}


def atomics():
    """The word at an address of its own is set to the first input, the second is added."""
    for space, at in _ATOMIC_SPACE.items():
        for op in ("add.f32", "exch.b32", "add.noftz.f16x2", "add.noftz.bf16x2"):
            inputs = float_pairs() if "32" in op else half_pairs()
            if "f32" in op:
                atom = f"mov.b32 %f0, %x1;\natom.{space}.{op} %f1, [{at}], %f0;\nmov.b32 %y0, %f1;"
                red = f"mov.b32 %f0, %x1;\nred.{space}.{op} [{at}], %f0;"
            else:
                atom = f"atom.{space}.{op} %y0, [{at}], %x1;"
                red = f"red.{space}.{op} [{at}], %x1;"
            before, after = f"st.{space}.u32 [{at}], %x0;\n", f"\nld.{space}.u32 %y1, [{at}];"
            yield f"atom.{space}.{op}", before + atom + after, inputs
            if "exch" not in op:
                yield f"red.{space}.{op}", before + red + after, inputs
        for op in ("add.noftz.f16", "add.noftz.bf16"):
            body = (
                f"st.{space}.u32 [{at}], %x0;\ncvt.u16.u32 %h0, %x1;\n"
                f"atom.{space}.{op} %h1, [{at}], %h0;\ncvt.u32.u16 %y0, %h1;\nld.{space}.u32 %y1, [{at}];"
            )
            yield f"atom.{space}.{op}", body, half_pairs()
        body = (
            "mov.b64 %d0, {%x0, %x1};\nmov.b64 %d1, {%x2, %x3};\n"
            f"st.{space}.f64 [{at}], %d0;\natom.{space}.add.f64 %d2, [{at}], %d1;\n"
            f"ld.{space}.f64 %d3, [{at}];\nmov.b64 {{%y0, %y1}}, %d2;\nmov.b64 {{%y2, %y3}}, %d3;"
        )
        yield f"atom.{space}.add.f64", body, doubles()
    store = "st.global.v4.u32 [%mem], {%x0, %x1, %x2, %x3};\n"
    load = "\nld.global.v4.u32 {%y0, %y1, %y2, %y3}, [%mem];"
    move = "mov.b32 %f0, %x3;\nmov.b32 %f1, %x2;\nmov.b32 %f2, %x1;\nmov.b32 %f3, %x0;\n"
    yield (
        "red.global.add.v2.f32",
        store + move + "red.global.v2.f32.add [%mem], {%f0, %f1};" + load,
        float_pairs(),
    )
    yield (
        "red.global.add.v4.f32",
        store + move + "red.global.v4.f32.add [%mem], {%f0, %f1, %f2, %f3};" + load,
        float_pairs(),
    )
    for type in ("f16x2", "bf16x2"):
        for op in ("add", "min", "max"):
            yield (
                f"red.global.{op}.noftz.v4.{type}",
                store + f"red.global.v4.{type}.{op}.noftz [%mem], {{%x3, %x2, %x1, %x0}};" + load,
                half_pairs(),
            )


def shuffles():
    """Every lane reads lane x0 % 32 in some way; lanes of 16 and above have gone in some probes."""
    lanes = np.arange(32, dtype=np.uint32)
    table = np.stack([lanes * 7 % 32, 100 + lanes, lanes, lanes], -1)
    gone = "setp.ge.u32 %p, %me, 16;\n@%p exit;\n"
    away = "setp.ge.u32 %p, %me, 16;\n@%p bra done;\n"
    for kind, lane, clamp in (
        ("idx", "%x0", 31),
        ("up", "5", 0),
        ("down", "20", 31),
        ("bfly", "16", 31),
        ("down", "5", 31),
    ):
        take = f"shfl.sync.{kind}.b32 %y0|%q, %x1, {lane}, {clamp}, "
        flag = "\nselp.u32 %y1, 1, 2, %q;"
        yield f"shfl.{kind} {lane}, all lanes", take + "-1;" + flag, table
        yield f"shfl.{kind} {lane}, upper half exited, full mask", gone + take + "-1;" + flag, table
        yield (
            f"shfl.{kind} {lane}, upper half exited, mask 0xffff",
            gone + take + "0xffff;" + flag,
            table,
        )
        yield (
            f"shfl.{kind} {lane}, upper half elsewhere, mask 0xffff",
            away + take + "0xffff;" + flag,
            table,
        )


def conversions():
    for type in ("e4m3x2", "e5m2x2"):
        for relu in ("", ".relu"):
            yield (
                f"cvt.rn.satfinite{relu}.{type}.f32",
                f"mov.b32 %f0, %x2;\nmov.b32 %f1, %x3;\ncvt.rn.satfinite{relu}.{type}.f32 %h0, %f0, %f1;\ncvt.u32.u16 %y0, %h0;",
                every_half(),
            )
            yield (
                f"cvt.rn.satfinite{relu}.{type}.f32, any bits",
                f"mov.b32 %f0, %x0;\nmov.b32 %f1, %x1;\ncvt.rn.satfinite{relu}.{type}.f32 %h0, %f0, %f1;\ncvt.u32.u16 %y0, %h0;",
                samples(),
            )
            yield (
                f"cvt.rn.satfinite{relu}.{type}.f16x2",
                f"prmt.b32 %t0, %x0, %x1, 0x5410;\ncvt.rn.satfinite{relu}.{type}.f16x2 %h0, %t0;\ncvt.u32.u16 %y0, %h0;",
                every_half(),
            )
            yield (
                f"cvt.rn{relu}.f16x2.{type}",
                f"cvt.u16.u32 %h0, %x0;\ncvt.rn{relu}.f16x2.{type} %y0, %h0;",
                every_half(),
            )
    for rounding in ("rna", "rn", "rz", "rna.satfinite", "rn.relu"):
        yield (
            f"cvt.{rounding}.tf32.f32",
            f"mov.b32 %f0, %x0;\ncvt.{rounding}.tf32.f32 %y0, %f0;",
            samples(),
        )


def approximations():
    for name in ("ex2.approx.f32", "ex2.approx.ftz.f32", "lg2.approx.f32", "lg2.approx.ftz.f32",
                 "rcp.approx.f32", "rcp.approx.ftz.f32", "rsqrt.approx.f32", "rsqrt.approx.ftz.f32",
                 "sqrt.approx.f32", "sqrt.approx.ftz.f32", "sin.approx.f32", "cos.approx.f32",
                 "sin.approx.ftz.f32", "cos.approx.ftz.f32", "tanh.approx.f32"):  # fmt: skip
        yield name, f"mov.b32 %f0, %x0;\n{name} %f1, %f0;\nmov.b32 %y0, %f1;", samples()
    for name in ("div.approx.f32", "div.approx.ftz.f32", "div.full.f32"):
        yield (
            name,
            f"mov.b32 %f0, %x0;\nmov.b32 %f1, %x1;\n{name} %f2, %f0, %f1;\nmov.b32 %y0, %f2;",
            samples(),
        )
    for name in (
        "ex2.approx.f16x2",
        "tanh.approx.f16x2",
        "tanh.approx.bf16x2",
        "ex2.approx.ftz.bf16x2",
    ):
        yield name, f"{name} %y0, %x0;", every_half()


FAMILIES = {
    "carry": carries,
    "atomics": atomics,
    "shuffles": shuffles,
    "conversions": conversions,
    "approximations": approximations,
}


def probes():
    """(family, name, body, inputs (threads, 4) uint32)."""
    for family, make in FAMILIES.items():
        for name, body, inputs in make():
            yield family, name, body, np.ascontiguousarray(inputs, np.uint32)


# --- Running ------------------------------------------------------------------------------------------


def shape(inputs):
    """Blocks of 32 threads for shuffles, else of 128: (grid, block, padded inputs)."""
    block = 32 if len(inputs) <= 32 else 128
    grid = -(-len(inputs) // block)
    padded = np.zeros((grid * block, 4), np.uint32)
    padded[: len(inputs)] = inputs
    return grid, block, padded


def run(out):
    """Words that every probe stores on the GPU, to an .npz file."""
    import cupy

    chosen = list(probes())
    with tempfile.TemporaryDirectory() as folder:
        text, code = Path(folder, "p.ptx"), Path(folder, "p.cubin")
        text.write_text(
            ptx({f"p{i:03}": probe[2] for i, probe in enumerate(chosen)}), encoding="utf-8"
        )
        subprocess.run(["ptxas", "-arch=sm_90a", text, "-o", code], check=True)
        module = cupy.RawModule(path=str(code))
        assert module.module  # CuPy reads the file only when it is asked for this
    kept = {}
    for i, (_, _, _, inputs) in enumerate(chosen):
        grid, block, padded = shape(inputs)
        given = cupy.asarray(padded)
        stored, memory = cupy.full_like(given, 0xEEEEEEEE), cupy.zeros_like(given)
        kernel = module.get_function(f"p{i:03}")
        kernel((grid,), (block,), (given, stored, memory), shared_mem=4096)
        kept[f"p{i:03}"] = cupy.asnumpy(stored)[: len(inputs)]
    np.savez_compressed(out, **kept)


def on_emulator(body, inputs):
    """The same words by the emulator; a string where it refuses."""
    import emulator

    grid, block, padded = shape(inputs)
    stored, memory = np.full_like(padded, 0xEEEEEEEE), np.zeros_like(padded)
    args = [padded, stored, memory]
    try:
        module = emulator.Module(ptx({"probe": body}))
        module.launch("probe", (grid, 1, 1), (block, 1, 1), args=args, shared_bytes=4096)
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}".splitlines()[0][:200]
    return stored[: len(inputs)]


def ulps(gpu, emulated):
    """Largest distance in units of the last place between finite float32 words, and where."""
    x, y = (v.view(np.int32).astype(np.int64) for v in (gpu, emulated))
    x, y = (np.where(v < 0, -(v & 0x7FFFFFFF), v) for v in (x, y))
    finite = np.isfinite(gpu.view(np.float32)) & np.isfinite(emulated.view(np.float32))
    distance = np.where(finite, np.abs(x - y), 0)
    at = int(distance.argmax())
    return int(distance[at]), at


def compare(words, out):
    """The GPU's words against the emulator's, as JSON: counts, examples, distances."""
    recorded, report = np.load(words), []
    for i, (family, name, body, inputs) in enumerate(probes()):
        gpu, emulated = recorded[f"p{i:03}"], on_emulator(body, inputs)
        row = {"family": family, "name": name, "threads": len(inputs)}
        if isinstance(emulated, str):
            row["emulator"] = emulated
        else:
            wrong = (gpu != emulated).any(axis=1)
            row["differ"] = int(wrong.sum())
            row["examples"] = [
                [" ".join(f"{v:08x}" for v in stored[t]) for stored in (inputs, gpu, emulated)]
                for t in np.flatnonzero(wrong)[:6]
            ]
            if family == "approximations" and "x2" not in name:
                row["max_ulps"], at = ulps(gpu[:, 0].copy(), emulated[:, 0].copy())
                row["at"] = [f"{v:08x}" for v in (*inputs[at, :2], gpu[at, 0], emulated[at, 0])]
        rule = rule_of(family, name)
        if rule:
            words = np.stack([w.astype(np.uint32) for w in rule(name, inputs)], -1)
            row["rule"] = rule.__name__
            row["broken"] = int((words != gpu[:, : words.shape[1]]).any(axis=1).sum())
        report.append(row)
    Path(out).write_text(
        "[\n" + ",\n".join(json.dumps(row) for row in report) + "\n]\n", encoding="utf-8"
    )
    for row in report:
        told = row.get("differ", row.get("emulator", ""))
        print(
            row["name"],
            "|",
            told,
            "|",
            row.get("rule", ""),
            row.get("broken", ""),
            row.get("max_ulps", ""),
        )


if __name__ == "__main__":
    {"run": run, "compare": compare}[sys.argv[1]](*sys.argv[2:])
