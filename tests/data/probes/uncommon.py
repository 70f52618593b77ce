"""Video instructions, and products of 4-bit, 1-bit and sparse operands, on a GPU and on the emulator.

    python tests/data/probes/uncommon.py run WORDS.npz              # on a GPU of compute capability 9.0
    python tests/data/probes/uncommon.py record WORDS.npz OUT.json  # anywhere: what tests compare with

Each probe is one instruction, executed by many threads on the words of `Probe.inputs`, which are the same on
every machine. `record` keeps a checksum of each probe's inputs and of the GPU's words. `run` needs the driver and `ptxas`,
nothing else.
"""

import ctypes
import json
import subprocess
import sys
import tempfile
import zlib
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
for folder in (HERE, HERE.parents[2]):
    sys.path.insert(0, str(folder))

from numerics import _RECIPES, Bits, operand  # noqa: E402
from products import BITS as _BITS  # noqa: E402

from emulator.numbers.sparse import ORDERED  # noqa: E402

BITS = {**_BITS, "s4": 4, "u4": 4, "b1": 1}
UNORDERED = [bits for bits in range(16) if bits & 3 != bits >> 2]
THREADS = 512  # of a video probe
WARPS = 96  # of a product


@dataclass
class Probe:
    """One instruction `body` on %x0.. (inputs, (threads, n) uint32), which writes %y0.. (`outputs` words)."""

    name: str
    body: str
    inputs: np.ndarray
    outputs: int


# --- Video instructions ---------------------------------------------------------------------------


def video_forms():
    """Opcodes and operands: every opcode with every type, selectors and second operations in turn."""
    raw = Bits(11)

    def pick(choices):
        choices = list(choices)
        return choices[int(raw.below(len(choices), 1)[0])]

    parts = ("", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1")
    types = list(product(("u32", "s32"), repeat=3))
    for root in ("vadd", "vsub", "vabsdiff", "vmin", "vmax"):
        for kinds in types:
            for saturated, second in product(("", ".sat"), ("", ".add", ".min", ".max", "merge")):
                for whole in (True, False):
                    a, b = ("", "") if whole else (pick(parts[1:]), pick(parts[1:]))
                    into = pick(parts[1:]) if second == "merge" else ""
                    words = (
                        f"{root}.{'.'.join(kinds)}{saturated}{second if second != 'merge' else ''}"
                    )
                    third = ", %x2" if second else ""
                    yield f"{words} %y0{into}, %x0{a}, %x1{b}{third};"
    for root, (to, of) in product(("vshl", "vshr"), product(("u32", "s32"), repeat=2)):
        for mode, saturated, second in product(
            (".clamp", ".wrap"), ("", ".sat"), ("", ".add", ".max", "merge")
        ):
            for a in ("", pick(parts[1:])):
                into = pick(parts[1:]) if second == "merge" else ""
                words = (
                    f"{root}.{to}.{of}.u32{saturated}{mode}{second if second != 'merge' else ''}"
                )
                third = ", %x2" if second else ""
                yield f"{words} %y0{into}, %x0{a}, %x3{pick(('', '.b0'))}{third};"
    for a, b in product(("u32", "s32"), repeat=2):
        for saturated, scale, form in product(
            ("", ".sat"), ("", ".shr7", ".shr15"), ("", "po", "a", "b", "ab", "c")
        ):
            for whole in (True, False):
                selected = ("", "") if whole else (pick(parts[1:]), pick(parts[1:]))
                signed = "s32" in (a, b) or form in ("a", "b", "c")
                words = f"vmad.{'s32' if signed else 'u32'}.{a}.{b}{'.po' * (form == 'po')}{saturated}{scale}"
                signs = ["-" if name in form and form != "po" else "" for name in "abc"]
                yield f"{words} %y0, {signs[0]}%x0{selected[0]}, {signs[1]}%x1{selected[1]}, {signs[2]}%x2;"
    for a, b in product(("u32", "s32"), repeat=2):
        for compared in ("eq", "ne", "lt", "le", "gt", "ge"):
            for second in ("", ".add", ".min", ".max", "merge"):
                selected = (pick(parts), pick(parts))
                into = pick(parts[1:]) if second == "merge" else ""
                third = ", %x2" if second else ""
                words = f"vset.{a}.{b}.{compared}{second if second != 'merge' else ''}"
                yield f"{words} %y0{into}, %x0{selected[0]}, %x1{selected[1]}{third};"
    for count, letter in ((2, "h"), (4, "b")):
        digits = [str(i) for i in range(2 * count)]
        masks = ["", *(m for m in _masks(count, letter))]
        for root in ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vavrg"):
            for kinds in types:
                for ending in ("", ".sat", ".add"):
                    for usual in (True, False):
                        a, b = (
                            ""
                            if usual
                            else f".{letter}{''.join(pick(digits) for _ in range(count))}"
                            for _ in range(2)
                        )
                        mask = "" if usual else pick(masks)
                        yield f"{root}{count}.{'.'.join(kinds)}{ending} %y0{mask}, %x0{a}, %x1{b}, %x2;"
        for kinds in product(("u32", "s32"), repeat=2):
            for compared, ending in product(("eq", "ne", "lt", "le", "gt", "ge"), ("", ".add")):
                a, b = (f".{letter}{''.join(pick(digits) for _ in range(count))}" for _ in range(2))
                words = f"vset{count}.{'.'.join(kinds)}.{compared}{ending}"
                yield f"{words} %y0{pick(masks)}, %x0{a}, %x1{b}, %x2;"


def _masks(count, letter):
    for bits in range(1, 1 << count):
        yield f".{letter}{''.join(str(i) for i in reversed(range(count)) if bits >> i & 1)}"


def video_words(seed, threads=THREADS):
    """(threads, 4): random words, edges of bytes, halves and words, and in the last column shifts of 0 to 40."""
    raw = Bits(seed)
    words = raw.words(threads, 4).astype(np.uint32)
    edges = np.array([0, 1, 0x7F, 0x80, 0xFF, 0xFE, 0x81], np.uint32)
    halves = np.array([0, 1, 0x7FFF, 0x8000, 0xFFFF, 0xFFFE, 0x80], np.uint32)
    whole = np.array([0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFE, 0x80000001], np.uint32)
    quads = sum(edges[raw.below(7, threads, 4)] << np.uint32(8 * i) for i in range(4))
    pairs = sum(halves[raw.below(7, threads, 4)] << np.uint32(16 * i) for i in range(2))
    kind = raw.below(4, threads, 4)
    choices = [
        words,
        quads.astype(np.uint32),
        pairs.astype(np.uint32),
        whole[raw.below(7, threads, 4)],
    ]
    found = np.choose(kind, choices).astype(np.uint32)
    found[:, 3] = np.where(raw.below(8, threads) > 0, raw.below(41, threads), found[:, 3])
    return found


def video():
    for number, body in enumerate(video_forms()):
        yield Probe(body, body, video_words(1000 + number), 1)


# --- Products -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tile:
    """A product: opcode up to its operands, element types and how many registers each operand has."""

    opcode: str
    types: tuple  # of d, a, b, c
    registers: tuple
    selector: int | None = None
    tf32: bool = False
    ordered: bool = True


def products():
    """Every product of 4-bit and 1-bit integers, and every sparse one, with every selector."""
    for (m, k), (a, b), clamp in product(
        ((8, 32), (16, 32), (16, 64)), product(("s4", "u4"), repeat=2), ("", ".satfinite")
    ):
        count = (2 if m == 8 else 4, m * k // 256, k // 32, 2 if m == 8 else 4)
        opcode = f"mma.sync.aligned.m{m}n8k{k}.row.col{clamp}.s32.{a}.{b}.s32"
        yield Tile(opcode, ("s32", a, b, "s32"), count)
    for (m, k), operation in product(((8, 128), (16, 128), (16, 256)), ("and", "xor")):
        count = (2 if m == 8 else 4, m * k // 1024, k // 128, 2 if m == 8 else 4)
        opcode = f"mma.sync.aligned.m{m}n8k{k}.row.col.s32.b1.b1.s32.{operation}.popc"
        yield Tile(opcode, ("s32", "b1", "b1", "s32"), count)
    floating = [
        *[(k, "f16", "f16", d, 4 if k == 16 else 2) for k in (16, 32) for d in ("f32", "f16")],
        *[(k, "bf16", "bf16", "f32", 4 if k == 16 else 2) for k in (16, 32)],
        (8, "tf32", "tf32", "f32", 4),
        (16, "tf32", "tf32", "f32", 2),
        *[(64, a, b, "f32", 1) for a, b in product(("e4m3", "e5m2"), repeat=2)],
    ]
    integers = [
        *[(k, a, b, "s32", 64 // k) for k in (32, 64) for a, b in product(("s8", "u8"), repeat=2)],
        *[
            (k, a, b, "s32", 128 // k)
            for k in (64, 128)
            for a, b in product(("s4", "u4"), repeat=2)
        ],
    ]
    for (k, a, b, d, selectors), form in product(
        [*floating, *integers], ("sp", "sp::ordered_metadata")
    ):
        for selector in range(selectors):
            for clamp in ("", ".satfinite") if d == "s32" else ("",):
                count = (2 if d == "f16" else 4, 8 * k * BITS[a] // 1024, 8 * k * BITS[b] // 1024)
                opcode = f"mma.{form}.sync.aligned.m16n8k{k}.row.col{clamp}.{d}.{a}.{b}.{d}"
                yield Tile(
                    opcode, (d, a, b, d), (*count, count[0]), selector, a == "tf32", form != "sp"
                )


def elements(raw, type, registers, warps, role):
    """Registers (registers, warps, 32) of one operand; warp w is of class w % 12 of `numerics.cases`."""
    if type[0] in "sub" and type != "bf16":
        words = raw.words(registers, warps, 32).astype(np.uint32)
        if type == "s32":  # half of them where sums overflow
            edge = np.uint32(0x7FFFFFFF) + raw.below(2, *words.shape).astype(np.uint32)
            close = edge + (raw.below(4000, *words.shape) - 2000).astype(np.uint32)
            words = np.where(np.arange(warps)[:, None] % 2 == 0, words, close)
        return words
    per = 32 // BITS[type]
    found = np.empty((registers, warps, 32, per), f"u{BITS[type] // 8}")
    known = {"wild", "small", "large", "round", "zeros", "ladder", "special"}
    for number, recipe in enumerate(_RECIPES):
        kind = recipe[role] if recipe[role] in known else "near"
        shape = found[:, number::12].shape
        found[:, number::12] = operand(raw, type, shape, kind)
    return np.ascontiguousarray(found).view(np.uint32)[..., 0]


def metadata(raw, tile, warps):
    """(1, warps, 32): four bits for each chunk that mean something."""
    good = (0b0100, 0b1110) if tile.tf32 else ORDERED if tile.ordered else UNORDERED
    picked = np.array(good, np.uint32)[raw.below(len(good), 8, 1, warps, 32)]
    return sum(picked[i] << np.uint32(4 * i) for i in range(8)).astype(np.uint32)


def tile_probe(number, tile, warps=WARPS):
    raw = Bits(5000 + number)
    names, lines, words, first = [], [], [], 0
    for role, (letter, type, count) in enumerate(
        zip("dabc", tile.types, tile.registers, strict=True)
    ):
        wide = type == "f32"
        names.append([f"%{'f' if wide else 'r'}{letter}{i}" for i in range(count)])
        lines.append(f".reg .{'f32' if wide else 'b32'} {', '.join(names[-1])};")
        if letter != "d":
            words.append(elements(raw, type, count, warps, role - 1))
            lines += [f"mov.b32 {name}, %x{first + i};" for i, name in enumerate(names[-1])]
            first += count
    last = ""
    if tile.selector is not None:
        words.append(metadata(raw, tile, warps))
        last = f", %x{first}, {tile.selector}"
    vectors = ", ".join("{" + ", ".join(group) + "}" for group in names)
    lines += [f"{tile.opcode} {vectors}{last};"]
    lines += [f"mov.b32 %y{i}, {name};" for i, name in enumerate(names[0])]
    inputs = np.concatenate(words).reshape(-1, warps * 32).T
    name = tile.opcode + ("" if tile.selector is None else f" {tile.selector}")
    return Probe(name, "\n".join(lines), np.ascontiguousarray(inputs), tile.registers[0])


def probes():
    yield from video()
    for number, tile in enumerate(products()):
        yield tile_probe(number, tile)


# --- Running --------------------------------------------------------------------------------------

_ENTRY = """.visible .entry {name}(.param .u64 pin, .param .u64 pout)
{{
    .reg .b32 %x<{inputs}>, %y<{outputs}>, %me, %cta, %all;
    .reg .b64 %at, %to, %step;
    ld.param.u64 %at, [pin];
    ld.param.u64 %to, [pout];
    mov.u32 %me, %tid.x;
    mov.u32 %cta, %ctaid.x;
    mov.u32 %all, %ntid.x;
    mad.lo.u32 %me, %cta, %all, %me;
    mul.wide.u32 %step, %me, {in_bytes};
    add.u64 %at, %at, %step;
    mul.wide.u32 %step, %me, {out_bytes};
    add.u64 %to, %to, %step;
{loads}
{body}
{stores}
    ret;
}}
"""


def entry(name, probe):
    count = probe.inputs.shape[1]
    return _ENTRY.format(
        name=name,
        inputs=count,
        outputs=probe.outputs,
        in_bytes=4 * count,
        out_bytes=4 * probe.outputs,
        loads="\n".join(f"ld.global.u32 %x{i}, [%at + {4 * i}];" for i in range(count)),
        body=probe.body,
        stores="\n".join(f"st.global.u32 [%to + {4 * i}], %y{i};" for i in range(probe.outputs)),
    )


def module(entries, target="sm_90a"):
    return f".version 9.0\n.target {target}\n.address_size 64\n" + "\n".join(entries)


def on_emulator(probe, target="sm_90a"):
    """The words that the emulator stores, (threads, outputs)."""
    import emulator

    stored = np.full((len(probe.inputs), probe.outputs), 0xEEEEEEEE, np.uint32)
    program = emulator.Module(module([entry("probe", probe)], target))
    block = 128
    program.launch(
        "probe", (len(stored) // block, 1, 1), (block, 1, 1), args=[probe.inputs, stored]
    )
    return stored


def run(out):
    """Words that every probe stores on the GPU, to an .npz file."""
    from cuda_driver import Driver

    driver, chosen, kept = Driver(), list(probes()), {}
    for start in range(0, len(chosen), 200):  # ptxas is slow with thousands of entries in one file
        part = {f"p{start + i:04}": probe for i, probe in enumerate(chosen[start : start + 200])}
        with tempfile.TemporaryDirectory() as folder:
            text, code = Path(folder, "p.ptx"), Path(folder, "p.cubin")
            text.write_text(module(entry(name, probe) for name, probe in part.items()))
            subprocess.run(
                ["ptxas", "-arch=sm_90a", text, "-o", code], check=True, capture_output=True
            )
            loaded = driver.module(code)
        for name, probe in part.items():
            size = 4 * len(probe.inputs) * probe.outputs
            given, stored = driver.allocate(probe.inputs.nbytes), driver.allocate(size)
            driver.upload(given, probe.inputs.tobytes())
            function = driver.function(loaded, name, 0)
            arguments = [ctypes.c_uint64(given.value), ctypes.c_uint64(stored.value)]
            driver.launch(function, arguments, len(probe.inputs) // 128, 128)
            found = np.frombuffer(driver.download(stored, size), np.uint32)
            kept[name] = found.reshape(-1, probe.outputs)
    np.savez_compressed(out, **kept)
    print(f"{len(kept)} probes, {sum(x.size for x in kept.values())} words")


def checksum(array):
    return zlib.crc32(np.ascontiguousarray(array).tobytes())


def record(words, out):
    """[name, checksum of the inputs, checksum of the GPU's words] of every probe, as JSON."""
    recorded = np.load(words)
    rows = [
        [probe.name, checksum(probe.inputs), checksum(recorded[f"p{number:04}"])]
        for number, probe in enumerate(probes())
    ]
    Path(out).write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


if __name__ == "__main__":
    {"run": run, "record": record}[sys.argv[1]](*sys.argv[2:])
