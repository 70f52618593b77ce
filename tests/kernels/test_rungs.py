"""The table of rungs agrees with the CUDA files, and every rung compiles for every GPU it supports."""

import re
from dataclasses import replace

import numpy as np
import pytest

import kernels
from kernels import RUNGS, build, diff, find, source
from kernels.__main__ import settings_to_build
from kernels.occupancy import LIMITS
from kernels.rungs import ARCHITECTURES
from kernels.source import MARK, WIDTH, listing, parts

CUDA = [rung for rung in RUNGS.values() if rung.path is not None]
DEFAULT = re.compile(r"#ifndef (\w+)\n#define \1 (\S+)")
names = [rung.name for rung in CUDA]


def test_the_ladder_is_in_reading_order():
    assert next(iter(RUNGS)) == "cpu" and list(RUNGS)[-1] == "cublas"
    numbers = [rung.number for rung in CUDA]
    assert numbers == sorted(set(numbers)) and numbers[:20] == list(range(1, 21))
    assert all(rung.path.exists() for rung in CUDA)


@pytest.mark.parametrize("name", names)
def test_defaults_in_the_file_are_those_of_the_table(name):
    rung = find(name)
    written = dict(DEFAULT.findall(rung.path.read_text(encoding="utf-8")))
    numbers = {macro: int(value) for macro, value in written.items() if value.isdigit()}
    assert numbers == {macro: rung.macros[macro] for macro in numbers}
    # BLOCKS sets how many blocks a persistent kernel is launched with; the kernel reads gridDim.
    assert set(rung.macros) - {"BLOCKS"} <= set(written)


@pytest.mark.parametrize("name", names)
def test_a_file_starts_with_its_idea_and_marks_its_parts(name):
    text = find(name).path.read_text(encoding="utf-8")
    header = text[: text.index("\n#") if "\n#" in text else None].splitlines()
    comment = [line for line in header if line.startswith("//")]
    assert 2 <= len(comment) <= 5, "header comment: two to five lines"
    assert parts(text), "no [part] is marked"


@pytest.mark.parametrize("name", names)
def test_a_grid_covers_the_output_and_a_block_fits(name):
    rung = find(name)
    for setting in rung.configurations():
        for M, N, K in ((1, 1, 1), (1000, 17, 3), (129, 4097, 33)):
            padded = [-(-n // p) * p for n, p in zip((M, N, K), rung.padding(setting), strict=True)]
            grid, block, shared = rung.geometry(setting, *padded)
            values = rung.resolve(setting)
            assert min(grid) >= 1 and block[0] * block[1] * block[2] <= 1024
            assert shared <= LIMITS[90].shared_per_block
            if "BM" in values and "BLOCKS" not in values:
                assert grid[0] * values["BN"] >= N and grid[1] * values["BM"] >= M


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", names)
def test_compiles_without_spills_or_warnings(name, arch):
    rung = find(name)
    if not rung.runs_on(arch):
        pytest.skip("an instruction that it needs is not there")
    for setting in settings_to_build(
        rung, arch, {}, False
    ):  # what `python -m kernels build` builds
        built = build(rung, setting, arch)
        assert rung.entry in built.entries
        assert not built.warnings, built.warnings
        assert built.spills == 0, f"{built.spills} bytes spilled under {setting}"
        _, _, dynamic = rung.geometry(built.macros, 1, 1, 1)
        needed = dynamic + built.reports[rung.entry].shared_bytes
        assert needed <= LIMITS[arch].shared_per_block


@pytest.mark.parametrize("name", names)
def test_a_macro_takes_the_values_of_its_domain_and_refuses_others_by_their_names(name):
    rung = find(name)
    for macro, default in rung.macros.items():
        domain = rung.domain(macro)
        assert default in domain, macro
        assert all(value in domain for value in rung.space.get(macro, ())), macro
        for setting, _ in rung.variants:
            assert setting.get(macro, default) in domain, macro
        for value in (-1, 0, 1, 3, 7, 1 << 31):
            if value in domain:
                assert rung.resolve({macro: value})[macro] == value
                continue
            legal = (
                "at least"
                if isinstance(domain, range)
                else f"{macro} is .*{domain[0]}.*{domain[-1]}"
            )
            with pytest.raises(ValueError, match=f"{legal}.*, not {value}"):
                rung.resolve({macro: value})


def test_a_macro_that_chooses_a_number_format_is_0_or_1():
    flags = {
        (rung.name, macro) for rung in CUDA for macro in rung.macros
        if macro.endswith(("_INPUT", "_OUTPUT"))
    }  # fmt: skip
    assert len(flags) > 20 and {find(rung).domain(macro) for rung, macro in flags} == {(0, 1)}


def test_a_variant_changes_types_and_defaults_unless_told_otherwise():
    tiled = find("tiled")
    assert tiled.resolve() == {"BLOCK": 32, "HALF_INPUT": 0}
    assert tiled.resolve({"HALF_INPUT": 1}) == {"BLOCK": 16, "HALF_INPUT": 1}
    assert tiled.resolve({"HALF_INPUT": 1, "BLOCK": 32})["BLOCK"] == 32
    assert tiled.types().inputs == "float32"
    assert tiled.types({"HALF_INPUT": 1}).inputs == "float16"


def test_a_gpu_with_less_shared_memory_gets_a_smaller_default():
    rung = find("mma_multistage")
    big, small = rung.resolve(arch=90), rung.resolve(arch=75)
    assert big == rung.resolve()
    assert rung.shared(**small) <= LIMITS[75].shared_per_block < rung.shared(**big)
    assert rung.resolve({"STAGES": 2}, arch=75)["STAGES"] == 2


def test_unknown_names_are_answered_with_the_known_ones():
    with pytest.raises(ValueError, match=r"no rung 'nave'.*naive"):
        find("nave")
    with pytest.raises(ValueError, match="naive has no macro BN; it has BLOCK"):
        find("naive").resolve({"BN": 64})


def test_source_shows_a_part_without_marks():
    assert "As[" in source("tiled", "load") and "sum +=" not in source("tiled", "load")
    assert not any(MARK.match(line) for line in source("tiled").splitlines())
    with pytest.raises(ValueError, match="no part 'lode'; it has index, load, compute, store"):
        source("tiled", "lode")
    with pytest.raises(ValueError, match=r"kernels/cpu\.py"):
        source("cpu")


def test_a_part_is_shown_level_and_its_comments_within_the_page():
    words = "word " * 30
    shown = listing(
        f"  // {words}\n#pragma unroll\n    for (;;)\n        go();  // {words}\n"
    ).split("\n")
    assert max(map(len, shown)) <= WIDTH
    assert [line for line in shown if "word" not in line] == [
        "  #pragma unroll",
        "  for (;;)",
        "      go();",
        "",
    ]
    assert " ".join(shown).count("word") == 60
    assert shown[0].startswith("// word") and shown[-3].startswith("      // word")


def test_what_a_part_says_is_what_the_file_says():
    def code(text):
        return " ".join(line.split("//")[0] for line in text.splitlines()).split()

    for rung in CUDA:
        for name, text in parts(rung.path.read_text(encoding="utf-8")).items():
            assert code(source(rung, name)) == code(text), (rung.name, name)
    shown = source("mma_swizzled", "layout")
    assert "\n    return row * PITCH" in shown and max(map(len, shown.splitlines())) <= WIDTH


def test_marks_must_pair():
    assert parts("// [a]\n  x\n// [/a]\ny\n  // [a]\nz\n  // [/a]\n") == {"a": "  x\nz\n"}
    for broken in ("// [a]\nx\n", "x\n// [/a]\n", "// [a]\n// [a]\n// [/a]\n"):
        with pytest.raises(ValueError, match="a"):
            parts(broken)


def test_diff_shows_the_one_idea_between_two_rungs():
    changed = [
        line
        for line in diff("uncoalesced", "naive").splitlines()
        if line[0] in "+-" and line[:3] not in ("---", "+++")
    ]
    assert len(changed) == 4
    assert all("threadIdx" in line for line in changed)


def test_a_row_without_a_grid_needs_the_macros_of_one():
    rung = replace(find("naive"), grid=find("vectorized").grid)
    with pytest.raises(
        ValueError, match="naive has no macros BM and BN: its row has to give a grid"
    ):
        rung.geometry({}, 64, 64, 64)


def test_a_number_format_that_is_none_is_refused_before_a_launch():
    A = np.ones((16, 16), np.float16)
    with pytest.raises(ValueError, match="wgmma: BF16_INPUT is 0 or 1, not 7"):
        kernels.gemm("wgmma", A, A, macros={"BF16_INPUT": 7}, machine="emulator")
