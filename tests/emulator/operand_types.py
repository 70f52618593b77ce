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
# The operands of each: its own type, or what else stands there, in every place.
FORMS = {
    "add.s32": "s32 s32 s32", "add.u64": "u64 u64 u64", "add.f32": "f32 f32 f32", "add.f64": "f64 f64 f64",
    "add.u16": "u16 u16 u16", "add.f16": "f16 f16 f16", "sub.u32": "u32 u32 u32", "mul.lo.s32": "s32 s32 s32",
    "mul.wide.u16": "u32 u16 u16", "mul.wide.s32": "s64 s32 s32", "mul.f32": "f32 f32 f32",
    "mad.lo.u32": "u32 u32 u32 u32", "mad.wide.u32": "u64 u32 u32 u64", "fma.rn.f32": "f32 f32 f32 f32",
    "fma.rn.f64": "f64 f64 f64 f64", "div.u32": "u32 u32 u32", "rem.s64": "s64 s64 s64", "min.s32": "s32 s32 s32",
    "max.f32": "f32 f32 f32", "abs.s32": "s32 s32", "neg.f32": "f32 f32", "abs.u32": "u32 u32",
    "and.b32": "b32 b32 b32", "or.b64": "b64 b64 b64", "xor.b16": "b16 b16 b16", "not.b32": "b32 b32",
    "and.pred": "pred pred pred", "shl.b32": "b32 b32 u32", "shr.s64": "s64 s64 u32", "shr.u16": "u16 u16 u32",
    "popc.b32": "u32 b32", "popc.b64": "u32 b64", "clz.b64": "u32 b64", "bfind.u32": "u32 u32",
    "bfe.u32": "u32 u32 u32 u32", "bfi.b32": "b32 b32 b32 u32 u32", "prmt.b32": "b32 b32 b32 b32",
    "brev.b64": "b64 b64", "mov.u32": "u32 u32", "mov.b64": "b64 b64", "mov.f32": "f32 f32", "mov.b16": "b16 b16",
    "mov.pred": "pred pred", "setp.eq.s32": "pred s32 s32", "setp.lt.f32": "pred f32 f32",
    "setp.lo.u32": "pred u32 u32", "setp.lo.s32": "pred s32 s32", "setp.lt.b32": "pred b32 b32",
    "setp.eq.b64": "pred b64 b64", "selp.b32": "b32 b32 b32 pred", "selp.f64": "f64 f64 f64 pred",
    "rcp.rn.f32": "f32 f32", "sqrt.rn.f64": "f64 f64", "ex2.approx.f32": "f32 f32", "ld.global.u32": "u32 [%u64_1]",
    "ld.global.b64": "b64 [%u64_1]", "ld.global.f32": "f32 [%u64_1]", "ld.global.u8": "u16 [%u64_1]",
    "ld.global.s16": "s16 [%u64_1]", "st.global.u32": "[%u64_1] u32", "st.global.b64": "[%u64_1] b64",
    "st.global.f32": "[%u64_1] f32", "st.global.u8": "[%u64_1] u16", "cvt.u32.u16": "u32 u16",
    "cvt.rn.f32.s32": "f32 s32", "cvt.f32.s32": "f32 s32", "cvt.rzi.s32.f32": "s32 f32", "cvt.s32.f32": "s32 f32",
    "cvt.u64.u32": "u64 u32", "cvt.f64.f32": "f64 f32", "cvt.rn.f16.f32": "f16 f32", "cvt.rn.u32.u64": "u32 u64",
    "cvt.u8.u32": "u16 u32",
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
    for opcode, spelt in FORMS.items():
        own = [f"%{word}_1" if word in TYPES else word for word in spelt.split()]
        for place, word in enumerate(spelt.split()):
            constants = ["1", "1.5"] if place and not opcode.startswith(("vadd4", "vset2")) else []
            for register in [f"%{kind}_0" for kind in TYPES] + constants if word in TYPES else []:
                words = [*own[:place], register, *own[place + 1 :]]
                yield f"{opcode} {', '.join(words)};"


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
