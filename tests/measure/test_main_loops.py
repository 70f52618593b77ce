"""Main loops in machine code, as pages show them."""

import re
from collections import Counter

import pytest

from book import chapters
from kernels.gemm import plan
from kernels.rungs import find
from kernels.settings import configuration
from measure.machine_code import NEVER, words
from measure.main_loops import ARCH, MOST, SIZE, opcode, shortened
from measure.model.code import main_span

OPCODES = {
    "FFMA": (0x223,),
    "HMMA": (0x23C,),
    "LDS": (0x984,),
    "LDSM": (0x83B,),
    "LDGSTS": (0xFAE,),
}


@pytest.mark.parametrize(
    ("line", "code"), [("@!P0 LDS.128 R4, [R8]", "LDS"), ("BAR.SYNC 0x0", "BAR"), ("@UP1 UTMALDG.2D [UR4], [UR8]", "UTMALDG")]
)  # fmt: skip
def test_an_opcode_is_found_behind_a_predicate(line, code):
    assert opcode(line) == code


def test_a_loop_is_shortened_from_where_most_kinds_stand_together():
    ffma, lds = ["FFMA R1, R2, R3, R1"], ["LDS R2, [R4]"]
    loop = [
        "IADD3 R4, R4, 1, RZ",
        "@!PT LDS RZ, [RZ]",
        *(lds + ffma) * 20,
        "BAR.SYNC 0x0",
        "STS [R5], R6",
        "@P0 BRA `(.L_1)",
    ]
    shown = shortened(loop)
    assert (
        len(shown) <= MOST + 1 and shown[0] == "..." and not any("IADD3" in line for line in shown)
    )
    assert "BAR.SYNC 0x0;  // barrier of the block" in shown
    assert shown[-1] == "// 44 instructions: 20 LDS, 20 FFMA, 1 BAR, 1 STS"
    assert (
        shortened(["LDS R1, [R4]", "LDS R2, [R4]", "BRA `(.L_1)"])[0]
        == "LDS R1, [R4];  // load from shared memory, and 1 more"
    )


def folds() -> dict[str, str]:
    """{rung: the last line of its listing} over all pages."""
    found = {}
    for path in chapters.paths():
        for cell in chapters.read(path).cells:
            if cell.cell_type == "markdown" and "measure.main_loops" in cell.source:
                rungs = re.search(r"measure\.main_loops ([\w ]+)`", cell.source)[1].split()
                counts = re.findall(r"(?m)^// (\d+ instructions: .*)$", cell.source)
                found |= dict(zip(rungs, counts, strict=True))
    return found


def test_pages_show_the_loops_of_todays_kernels():
    """As many instructions of each kind as this compiler makes at the settings that are timed."""
    shown = folds()
    assert len(shown) > 20
    for name in shown:
        rung = find(name)
        built = plan(rung, SIZE, SIZE, SIZE, configuration(rung, SIZE, ARCH).macros, ARCH).build
        start, end = main_span(built, rung.entry)
        turn = [
            low for low, _ in words(built, rung.entry)[start : end + 1] if low >> 12 & 15 != NEVER
        ]
        made = Counter(low & 0xFFF for low in turn)
        said = {code: int(n) for n, code in re.findall(r"(\d+) (\w+)", shown[name])}
        assert said["instructions"] == len(turn), name
        for code, numbers in OPCODES.items():
            assert said.get(code, 0) == sum(made[n] for n in numbers), (name, code)


def test_a_page_counts_the_loop_at_a_rungs_defaults_too():
    """*ldmatrix* speaks of `mma_tiled` with warp tiles of 64 x 64, which is not the setting that is timed."""
    page = next(path for path in chapters.paths() if path.stem == "13_ldmatrix")
    text = "\n".join(cell.source for cell in chapters.read(page).cells)
    said = re.search(r"warp tiles of 64 x 64 has (\d+)<!--given--> instructions \(and five", text)
    rung = find("mma_tiled")
    macros = dict(rung.macros)
    assert (macros["WM"], macros["WN"]) == (64, 64)
    built = plan(rung, SIZE, SIZE, SIZE, macros, ARCH).build
    start, end = main_span(built, rung.entry)
    turn = [low >> 12 & 15 for low, _ in words(built, rung.entry)[start : end + 1]]
    assert (len(turn) - turn.count(NEVER), turn.count(NEVER)) == (int(said[1]), 5)
