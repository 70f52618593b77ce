"""The explorers compute in the browser what the rooms compute here."""

import itertools
import json

import numpy as np
import pytest
from tensor_layouts import Swizzle

import figures
from figures.widgets import GPUS
from kernels.occupancy import LIMITS, occupancy
from tests import limited

LANES = np.arange(32)


def models(explorer, cases):
    """What `explorer.model` returns for each of the control values in `cases`, from its own script."""
    script = (
        f"{explorer.script}\nconst data = {json.dumps(explorer.data)};\n"
        f"console.log(JSON.stringify({json.dumps(cases)}.map((p) => explorer.model(p, data))));"
    )
    run = limited.run(["node", "-e", script])
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.node
def test_banks_agree_with_the_emulator():
    cases = [
        {"pattern": pattern, "width": width, "row": row, "pad": pad}
        for pattern in ("column", "row")
        for width in (4, 8, 16)
        for row in (1, 2, 3, 4, 8, 17, 20, 32, 48, 64)
        for pad in (0, 1, 2, 4)
    ]
    for case, model in zip(cases, models(figures.BankExplorer(), cases), strict=True):
        step = 4 * (case["row"] + case["pad"]) if case["pattern"] == "column" else case["width"]
        addresses = tuple(int(step * lane) for lane in LANES)
        if step % case["width"]:
            assert model["stray"] == next(lane for lane in LANES if addresses[lane] % case["width"])
            continue
        access = figures.Access(addresses, case["width"])
        served = access.wavefront_of_lane()
        assert model["total"] == access.wavefronts, case
        assert model["ideal"] == access.wavefronts_ideal
        assert model["served"] == [served[lane] for lane in LANES]


@pytest.mark.node
def test_recorded_accesses_agree_with_the_emulator():
    rng = np.random.default_rng(5)
    cases = {}
    for number in range(60):
        width = int(rng.choice([4, 8, 16]))
        units = (
            rng.integers(0, 64, 8)[rng.integers(0, 8, 32)]
            if number % 2
            else np.repeat(rng.integers(0, 64, 16), 2)
        )
        active = rng.random(32) < 0.8
        active[3] = True
        kind = "load" if number % 3 else "store"
        cases[f"case {number}"] = figures.Access(
            tuple(np.where(active, units * width, -1).tolist()), width, kind
        )
    cases["ldmatrix"] = figures.Access(tuple((64 * LANES).tolist()), 16, "ldmatrix", 2)
    explorer = figures.BankExplorer(cases=cases)
    assert explorer.facts["start"]["source"] == "case 0"
    for access, model in zip(
        cases.values(), models(explorer, [{"source": name} for name in cases]), strict=True
    ):
        assert model["total"] == access.wavefronts


@pytest.mark.node
def test_coalescing_agrees_with_the_emulator():
    cases = [
        {"width": width, "stride": stride, "offset": offset}
        for width in (2, 4, 8, 16)
        for stride in (0, 1, 2, 3, 8, 32)
        for offset in (0, 1, 5)
    ]
    for case, model in zip(cases, models(figures.CoalescingExplorer(), cases), strict=True):
        addresses = (case["offset"] + LANES * case["stride"]) * case["width"]
        access = figures.Access(tuple(addresses.tolist()), case["width"])
        assert [sector * 32 for sector in model["sectors"]] == list(access.sectors)
        assert model["used"] == access.used_bytes and model["ideal"] == access.sectors_ideal


@pytest.mark.node
def test_swizzles_agree_with_tensor_layouts():
    cases = [
        {"b": b, "m": m, "s": s, "chunks": chunks, "pad": pad, "element": element}
        for b in (0, 1, 2, 3)
        for m in (2, 3, 4)
        for s in (3, 4)
        for chunks in (4, 8)
        for pad in (0, 1)
        for element in (2, 4)
    ]
    whole = 0
    for case, model in zip(cases, models(figures.SwizzleExplorer(), cases), strict=True):
        move = Swizzle(case["b"], case["m"], case["s"])
        element, pitch = case["element"], (case["chunks"] + case["pad"]) * 16
        if "error" in model:
            assert case["b"] and (1 << case["m"]) * element < 16
            continue
        whole += 1
        expected = [
            [
                move((row * pitch + chunk * 16) // element) * element
                for chunk in range(case["chunks"])
            ]
            for row in range(8)
        ]
        assert model["rows"] == expected
        for chunk, count in enumerate(model["waves"]):
            lanes = [expected[row][chunk] for row in range(8)] + [-1] * 24
            assert count == figures.Access(tuple(lanes), 16, "ldmatrix", 1).wavefronts
    assert whole > 100


@pytest.mark.node
def test_a_pipeline_never_overlaps_what_it_must_not_and_reaches_its_steady_state():
    cases = [
        {"stages": stages, "load": load, "compute": compute, "tiles": 40}
        for stages in (1, 2, 3, 5, 8)
        for load, compute in ((3, 1), (0, 2), (7, 2), (1, 4))
    ]
    for case, model in zip(cases, models(figures.PipelineExplorer(), cases), strict=True):
        slots, stages = model["slots"], case["stages"]
        for now, then in itertools.pairwise(slots):
            assert then["computeStart"] >= now["computeEnd"]
        for slot, reuse in zip(slots, slots[stages:], strict=False):
            assert reuse["loadStart"] >= slot["computeEnd"]
        steady = (slots[-1]["computeEnd"] - slots[-1 - stages]["computeEnd"]) / stages
        bound = max(case["compute"], (case["load"] + case["compute"]) / stages)
        assert steady == pytest.approx(bound)


def test_the_multiprocessors_are_those_that_kernels_knows():
    for name, gpu in GPUS.items():
        limits = LIMITS[int(name.split("sm_")[1].rstrip(")"))]
        assert gpu == {
            "warps": limits.warps,
            "blocks": limits.blocks,
            "shared": limits.shared,
            "sharedBlock": limits.shared_per_block,
            "system": limits.system,
            "unit": limits.shared_unit,
        }


@pytest.mark.node
def test_occupancy_agrees_with_kernels():
    cases = [
        {"gpu": gpu, "threads": threads, "registers": registers, "shared": shared}
        for gpu in GPUS
        for threads in (128, 256, 640, 1024)
        for registers in (16, 41, 64, 128, 255)
        for shared in (0, 1, 33, 99, 227)
    ]
    for case, model in zip(cases, models(figures.OccupancyExplorer(), cases), strict=True):
        known = occupancy(
            case["gpu"].split("sm_")[1].rstrip(")"),
            case["threads"],
            case["registers"],
            case["shared"] * 1024,
        )
        assert (model["blocks"], model["warps"], model["limited"]) == (
            known.blocks,
            known.warps,
            known.limited_by,
        ), case


@pytest.mark.node
def test_registers_of_a_lone_warp_are_not_rounded_up_to_four_warps():
    """cuda_occupancy.h: blocks by registers are warps that fit, divided by the block's warps."""
    case = {"gpu": "H100 (sm_90)", "threads": 32, "registers": 64, "shared": 0}
    (model,) = models(figures.OccupancyExplorer(), [case])
    assert model["by"]["registers"] == 32


@pytest.mark.node
def test_tiles_and_fragments():
    (tile,) = models(
        figures.TileExplorer(),
        [
            {
                "bm": 128,
                "bn": 64,
                "bk": 16,
                "threads": 256,
                "stages": 2,
                "bytes": 4,
                "gpu": "T4 (sm_75)",
            }
        ],
    )
    assert tile["step"] == (128 + 64) * 16 * 4 and tile["shared"] == 2 * tile["step"]
    assert tile["operations"] == 2 * 128 * 64 * 16 and tile["outputs"] == 32
    assert tile["blocks"] == 2 and tile["limit"] == "shared memory"
    explorer = figures.FragmentExplorer()
    name = next(iter(explorer.data["atoms"]))
    (held,) = models(explorer, [{"atom": name, "lane": 5}])
    assert [(cell["row"], cell["column"]) for cell in held["C"]] == [(1, 2), (1, 3), (9, 2), (9, 3)]


@pytest.mark.parametrize(
    ("explorer", "options"),
    [
        (figures.BankExplorer, {"width": 3}),
        (figures.BankExplorer, {"row": 0}),
        (figures.BankExplorer, {"pattern": "diagonal"}),
        (figures.CoalescingExplorer, {"stride": 99}),
        (figures.TileExplorer, {"bm": 100}),
        (figures.TileExplorer, {"gpu": "H1000"}),
        (figures.FragmentExplorer, {"lane": 32}),
        (figures.FragmentExplorer, {"atoms": ()}),
        (figures.SwizzleExplorer, {"b": 9}),
        (figures.PipelineExplorer, {"stages": 0}),
        (figures.OccupancyExplorer, {"threads": 100}),
    ],
)
def test_a_start_that_no_control_can_reach_is_refused(explorer, options):
    with pytest.raises(ValueError):
        explorer(**options)


def test_a_choice_of_drawings_names_each():
    pages = {pad: figures.shared_banks(4 * (32 + pad) * LANES) for pad in (0, 1)}
    choice = figures.Choice(pages, "padding", "One word of padding ends the conflict", start=1)
    assert (
        "padding 0: A 32-way bank conflict" in choice.alt
        and "padding 1: No bank conflict" in choice.alt
    )
    assert choice.facts["0"][""]["wavefronts"] == 32
    assert choice.html().count("<svg") == 2
    with pytest.raises(ValueError, match="at least two"):
        figures.Choice({0: pages[0]}, "padding", "One")
    with pytest.raises(ValueError, match="start"):
        figures.Choice(pages, "padding", "Two", start=2)


def test_keys_pressed_in_an_explorer_are_no_shortcuts_of_jupyterlab():
    """Lumino passes by what lies below this attribute (its CommandRegistry), so arrows move sliders and edit no cell."""
    assert ' data-lm-suppress-shortcuts="true"' in figures.BankExplorer().html()
