"""Every opcode of a small table with registers of every type in every place, for tests and for their recording.

`python tests/emulator/operand_types.py` asks ptxas and writes what it refuses to
`tests/data/ptxas_operand_types.json`.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

RECORDED = Path(__file__).parents[1] / "data" / "ptxas_operand_types.json"
TYPES = ("pred", "b16", "u16", "s16", "f16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64")
FORMS = {
    "add.s32": "rrr", "add.u64": "rrr", "add.f32": "rrr", "add.f64": "rrr", "add.u16": "rrr", "add.f16": "rrr",
    "sub.u32": "rrr", "mul.lo.s32": "rrr", "mul.wide.u16": "rrr", "mul.wide.s32": "rrr", "mul.f32": "rrr",
    "mad.lo.u32": "rrrr", "mad.wide.u32": "rrrr", "fma.rn.f32": "rrrr", "fma.rn.f64": "rrrr", "div.u32": "rrr",
    "rem.s64": "rrr", "min.s32": "rrr", "max.f32": "rrr", "abs.s32": "rr", "neg.f32": "rr", "abs.u32": "rr",
    "and.b32": "rrr", "or.b64": "rrr", "xor.b16": "rrr", "not.b32": "rr", "and.pred": "rrr", "shl.b32": "rrr",
    "shr.s64": "rrr", "shr.u16": "rrr", "popc.b32": "rr", "popc.b64": "rr", "clz.b64": "rr", "bfind.u32": "rr",
    "bfe.u32": "rrrr", "bfi.b32": "rrrrr", "prmt.b32": "rrrr", "brev.b64": "rr", "mov.u32": "rr", "mov.b64": "rr",
    "mov.f32": "rr", "mov.b16": "rr", "mov.pred": "rr", "setp.eq.s32": "rrr", "setp.lt.f32": "rrr",
    "setp.lo.u32": "rrr", "setp.lo.s32": "rrr", "setp.lt.b32": "rrr", "setp.eq.b64": "rrr", "selp.b32": "rrrr",
    "selp.f64": "rrrr", "rcp.rn.f32": "rr", "sqrt.rn.f64": "rr", "ex2.approx.f32": "rr",
    "ld.global.u32": "ra", "ld.global.b64": "ra", "ld.global.f32": "ra", "ld.global.u8": "ra", "ld.global.s16": "ra",
    "st.global.u32": "ar", "st.global.b64": "ar", "st.global.f32": "ar", "st.global.u8": "ar",
    "cvt.u32.u16": "rr", "cvt.rn.f32.s32": "rr", "cvt.f32.s32": "rr", "cvt.rzi.s32.f32": "rr", "cvt.s32.f32": "rr",
    "cvt.u64.u32": "rr", "cvt.f64.f32": "rr", "cvt.rn.f16.f32": "rr", "cvt.rn.u32.u64": "rr", "cvt.u8.u32": "rr",
}  # fmt: skip
# Opcodes with an operand's own type, or what else stands there, in every place.
SPELT = {
    "lop3.b32": "b32 b32 b32 b32 0x96", "shf.l.wrap.b32": "b32 b32 b32 u32", "shf.r.clamp.b32": "b32 b32 b32 u32",
    "dp4a.u32.s32": "s32 u32 s32 s32", "dp2a.lo.u32.u32": "u32 u32 u32 u32", "sad.s32": "s32 s32 s32 s32",
    "sad.u64": "u64 u64 u64 u64", "shfl.sync.idx.b32": "b32 b32 b32 b32 b32", "slct.b32.s32": "b32 b32 b32 s32",
    "slct.f64.f32": "f64 f64 f64 f32", "slct.u16.s32": "u16 u16 u16 s32", "vote.sync.any.pred": "pred pred b32",
    "vote.sync.ballot.b32": "b32 pred b32", "match.any.sync.b64": "b32 b64 b32", "redux.sync.add.s32": "s32 s32 b32",
    "redux.sync.xor.b32": "b32 b32 b32", "activemask.b32": "b32", "bar.warp.sync": "b32", "nanosleep.u32": "u32",
    "mul24.lo.s32": "s32 s32 s32", "mad24.lo.u32": "u32 u32 u32 u32", "bmsk.clamp.b32": "b32 b32 b32",
    "szext.clamp.s32": "s32 s32 u32", "fns.b32": "b32 b32 b32 s32", "cnot.b32": "b32 b32",
    "copysign.f32": "f32 f32 f32", "testp.finite.f64": "pred f64", "set.eq.u32.f32": "u32 f32 f32",
    "set.lt.f32.s32": "f32 s32 s32", "add.cc.u32": "u32 u32 u32", "addc.s64": "s64 s64 s64",
    "mad.lo.cc.u32": "u32 u32 u32 u32", "madc.hi.s64": "s64 s64 s64 s64", "cvt.pack.sat.u16.s32": "b32 s32 s32",
    "atom.global.add.u32": "u32 [%u64_1] u32",
    "atom.shared.cas.b64": "b64 [%u32_1] b64 b64", "atom.global.add.f64": "f64 [%u64_1] f64",
    "red.global.add.f32": "[%u64_1] f32", "red.global.max.s64": "[%u64_1] s64",
    "mapa.shared::cluster.u32": "u32 u32 u32", "mapa.u64": "u64 u64 u32", "getctarank.shared::cluster.u32": "u32 u32",
    "cvta.to.global.u64": "u64 u64", "isspacep.global": "pred u64", "mbarrier.init.shared::cta.b64": "[%u32_1] u32",
    "mbarrier.pending_count.b64": "u32 b64", "mbarrier.test_wait.parity.shared::cta.b64": "pred [%u32_1] u32",
    "mbarrier.expect_tx.relaxed.cta.shared::cta.b64": "[%u32_1] u32", "vadd.s32.u32.s32": "s32 u32 s32",
    "vmad.u32.u32.u32": "u32 u32 u32 u32", "vadd4.u32.u32.u32": "u32 u32 u32 u32",
    "vset2.s32.s32.eq": "s32 s32 s32 s32",
}  # fmt: skip


def instructions():
    """Each form with registers of its own types but one, which is of every type, or a constant, in turn."""
    for opcode, places in FORMS.items():
        own = _own(opcode, len(places))
        for place, sort in enumerate(places):
            if sort == "a":
                continue
            wrong = [f"%{kind}_0" for kind in TYPES] + (["1", "1.5"] if place else [])
            for register in wrong:
                operands = [f"%{kind}_1" for kind in own]
                operands[place] = register
                words = [f"[{o}]" if s == "a" else o for s, o in zip(places, operands, strict=True)]
                yield f"{opcode} {', '.join(words)};"
    for opcode, spelt in SPELT.items():
        own = [f"%{word}_1" if word in TYPES else word for word in spelt.split()]
        for place, word in enumerate(spelt.split()):
            constants = ["1", "1.5"] if place and not opcode.startswith(("vadd4", "vset2")) else []
            for register in [f"%{kind}_0" for kind in TYPES] + constants if word in TYPES else []:
                words = [*own[:place], register, *own[place + 1 :]]
                yield f"{opcode} {', '.join(words)};"


def _own(opcode: str, count: int) -> list[str]:
    parts = opcode.split(".")
    root, kind = parts[0], parts[-1]
    found = [kind] * count
    if "wide" in parts:
        found[0] = f"{kind[0]}{2 * int(kind[1:])}"
        found[3:] = [found[0]] * (count - 3)
    if root in ("shl", "shr"):
        found[2] = "u32"
    if root in ("popc", "clz", "bfind"):
        found[0] = "u32"
    if root in ("bfe", "bfi"):
        found[-2:] = ["u32", "u32"]
    if root == "setp":
        found[0] = "pred"
    if root == "selp":
        found[3] = "pred"
    if root == "cvt":
        found = [parts[-2], kind]
    if root in ("ld", "st"):
        found = ["u64" if (i == 1) == (root == "ld") else kind for i in range(2)]
    return ["u16" if kind in ("u8", "s8") else kind for kind in found]


def module(lines) -> str:
    """A kernel of these instructions, each on a line of its own from line 7 on."""
    registers = " ".join(f".reg .{kind} %{kind}_<2>;" for kind in TYPES)
    return "\n".join([".version 8.0", ".target sm_90", ".address_size 64", ".visible .entry k()", "{",
                      registers, *lines, "ret;", "}", ""])  # fmt: skip


def refused_by_ptxas(lines: list[str]) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "k.ptx"
        file.write_text(module(lines))
        command = ["ptxas", "-arch=sm_90", str(file), "-o", str(Path(folder) / "k.cubin")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    at = {int(number) for number in re.findall(r"line (\d+); error", done.stdout + done.stderr)}
    return [line for number, line in enumerate(lines, 7) if number in at]


if __name__ == "__main__":
    every = list(dict.fromkeys(instructions()))
    version = subprocess.run(
        ["ptxas", "--version"], capture_output=True, text=True, check=True
    ).stdout
    found = {
        "what": "instructions of operand_types.py that ptxas refuses",
        "ptxas": re.search(r"V[\d.]+", version).group(),
        "refused": refused_by_ptxas(every),
    }
    RECORDED.write_text(json.dumps(found, indent=1) + "\n")
    sys.stdout.write(f"{len(found['refused'])} of {len(every)} refused\n")
