"""What the reader moves, in a real page: values as Python has them, by keyboard, and said to a screen reader."""

import random
import re

import numpy as np
import pytest
from tensor_layouts import Swizzle

import figures
from kernels.occupancy import occupancy
from tests.browser.visited import PHONE

LANES = np.arange(32)
SETTINGS = 200
# Sets the controls of one explorer to each of the settings (by position), and returns what it then says.
MOVE = """([kind, settings]) => {
  const root = document.querySelector(`.gl-explorer[data-kind="${kind}"]`).shadowRoot;
  const inputs = [...root.querySelectorAll(".controls input, .controls select")];
  return settings.map((values) => {
    values.forEach((value, i) => {
      if (value === null) return;
      inputs[i].value = value;
      inputs[i].dispatchEvent(new Event("input", { bubbles: true }));
    });
    const shapes = root.querySelectorAll(".picture svg rect, .picture svg text").length;
    return [root.querySelector(".finding").textContent, inputs.map((input) => input.value), shapes];
  });
}"""
OPTIONS = """(kind) => {
  const root = document.querySelector(`.gl-explorer[data-kind="${kind}"]`).shadowRoot;
  return [...root.querySelectorAll(".controls input, .controls select")].map((input) =>
    input.options
      ? [...input.options].map((option) => option.value)
      : Array.from({ length: (input.max - input.min) / input.step + 1 }, (_, i) => String(+input.min + i * input.step)),
  );
}"""


def plural(n: int, word: str) -> str:
    return f"{n} {word}{'' if n == 1 else 's'}"


def banks(pattern, width, row, pad, wave) -> str:
    width, step = int(width), 4 * (int(row) + int(pad))
    addresses = tuple((LANES * (step if pattern == "column" else width)).tolist())
    if any(at % width for at in addresses):
        return "Misaligned"
    access = figures.Access(addresses, width)
    return plural(access.wavefronts, "wavefront")


def coalescing(width, stride, offset) -> str:
    addresses = tuple(((int(offset) + LANES * int(stride)) * int(width)).tolist())
    return plural(len(figures.Access(addresses, int(width)).sectors), "sector")


def swizzles(b, m, s, chunks, pad, element) -> str:
    b, m, s, chunks, pad, element = map(int, (b, m, s, chunks, pad, element))
    if s < b:
        return "the bits it reads would overlap"
    move, pitch = Swizzle(b, m, s), (chunks + pad) * 16
    starts = [
        [(row * pitch + chunk * 16) // element for row in range(8)] for chunk in range(chunks)
    ]
    if any(
        move(start + e) != move(start) + e or move(start) * element % 16
        for column in starts
        for start in column
        for e in range(16 // element)
    ):
        return "is torn apart"
    waves = [
        figures.Access(
            tuple([move(start) * element for start in column] + [-1] * 24), 16, "ldmatrix", 1
        ).wavefronts
        for column in starts
    ]
    return plural(max(waves), "wavefront") + " a column"


def occupied(gpu, threads, registers, shared) -> str:
    known = occupancy(
        gpu.split("sm_")[1].rstrip(")"), int(threads), int(registers), int(shared) * 1024
    )
    return f": {known.warps} of" if known.blocks else f"No block fits: {known.limited_by}"


def tensor_box(rows, columns, box_rows, box_chunks, y, x, swizzle) -> str:
    rows, columns, box_rows, box_chunks = map(int, (rows, columns, box_rows, box_chunks))
    try:
        place = (int(y), int(x))
        chunks = figures.box_chunks((rows, columns), (box_rows, box_chunks), place, int(swizzle))
    except ValueError:
        return "The driver refuses"
    inside = sum(chunk.inside for chunk in chunks)
    return f"brings {16 * len(chunks):,} bytes: {plural(inside, 'chunk')}"


def core_matrices(major, start, stride, leading, swizzle) -> str:
    bits = figures.descriptor_bits(int(start), int(leading), int(stride), int(swizzle))
    return f"Descriptor {bits:#018x}"


def tensor_memory(columns, sets, warp) -> str:
    found = figures.tensor_reach(int(warp), int(columns), int(sets))
    return f"lanes {found['lane']} to {found['lane'] + 31}; the sums take {found['taken']:,} column"


def tcgen_bits(which, m, n, pair, types, major, start, leading, stride, swizzle) -> str:
    if which == "matrix":
        return f"{figures.matrix_bits(int(start), int(leading), int(stride), int(swizzle)):#018x}"
    try:
        bits = figures.instruction_bits(
            int(m), int(n), pair == "yes", types == "bf16", types == "f16 to f16", major
        )
    except ValueError:
        return "No such product"
    return f"{bits:#010x}"


def scales(block, row, k) -> str:
    found = figures.scale_place(int(row), int(k), int(block))
    return f"Scale {found['scale']} of row {row}: lane {found['lane']}, column {found['column']}, byte {found['part']}"


def cta_pair(pair, n) -> str:
    found = figures.pair_loads(int(n), pair == "yes")
    return f"loads {(found['a'] + found['b']) // 1024} KiB per k-step: {found['perByte']:.0f} operations"


def roles(stages, consumers, latency, transfer, multiply, running) -> str:
    given = {"consumers": int(consumers), "multiply": int(multiply), "running": int(running)}
    try:
        turns = figures.role_schedule(
            int(stages), latency=int(latency), transfer=int(transfer), **given
        )
    except ValueError:
        return "Deadlock"
    return f"{turns[-1].products[-1][1]:,.0f} clocks"


@pytest.mark.parametrize(
    ("page", "kind", "python"),
    [
        ("book/04_tiles_in_shared_memory", "banks", banks),
        ("book/03_one_thread_one_output", "coalescing", coalescing),
        ("book/15_swizzles", "swizzles", swizzles),
        ("book/19_tuning", "occupancy", occupied),
        ("book/20_tiles_by_tma", "tensor_box", tensor_box),
        ("book/21_wgmma", "core_matrices", core_matrices),
        ("book/22_roles_and_pipelines", "roles", roles),
        ("book/26_tensor_memory", "tensor_memory", tensor_memory),
        ("book/26_tensor_memory", "tcgen_bits", tcgen_bits),
        ("book/28_two_blocks_as_one", "cta_pair", cta_pair),
        ("book/29_scales_by_block", "scales", scales),
    ],
)
def test_an_explorer_says_what_python_computes(tab, site, page, kind, python):
    tab.goto(f"{site}{page}.html")
    options = tab.evaluate(OPTIONS, kind)
    recorded = "by hand" in options[0]  # accesses of a kernel can be chosen too
    chooser = random.Random(kind)
    settings = [[chooser.choice(values) for values in options] for _ in range(SETTINGS)]
    if recorded:
        settings = [["by hand", *values[1:]] for values in settings]
    said = tab.evaluate(MOVE, [kind, settings])
    wrong = []
    for setting, (finding, shown, shapes) in zip(settings, said, strict=True):
        assert shown == setting
        assert shapes > 1, f"{setting} draws nothing"
        wanted = python(*setting[1:] if recorded else setting)
        if not re.search(rf"(?<!\d){re.escape(wanted)}(?!\d)", finding):
            wrong.append((setting, wanted, finding))
    assert wrong == []
    assert len({finding for finding, *_ in said}) > 5


def test_a_view_can_be_sent_and_reset(tab, site):
    page = f"{site}book/15_swizzles.html"
    tab.goto(page)
    b = tab.locator('.gl-explorer[data-kind="swizzles"] .controls input').first
    b.focus()
    start = b.input_value()
    b.press("End")
    tab.wait_for_url(re.compile(r"\?swizzles\.b=4"))
    sent = tab.url
    tab.goto("about:blank")
    tab.goto(sent)
    assert b.input_value() == "4"
    tab.locator('.gl-explorer[data-kind="swizzles"] .tools button', has_text="Reset").click()
    assert b.input_value() == start
    tab.wait_for_url(page)
    step = tab.locator('.gl-explorer[data-kind="swizzles"] .tools button', has_text="Step")
    step.click()
    assert b.input_value() != start


def test_a_lane_that_is_pointed_at_lights_up(tab, site):
    tab.goto(f"{site}book/04_tiles_in_shared_memory.html")
    tab.eval_on_selector_all("details", "all => all.forEach((fold) => (fold.open = true))")
    explorer = tab.locator('.gl-explorer[data-kind="banks"]').first
    explorer.locator('[data-lane="5"] rect').first.hover()
    faded = "(e) => getComputedStyle(e).opacity"
    assert float(explorer.locator('g[data-lane="6"]').evaluate(faded)) < 0.5
    assert float(explorer.locator('g[data-lane="5"]').evaluate(faded)) == 1


def test_a_tap_shows_what_a_term_means_and_a_second_one_follows_it(chromium, site):
    context = chromium.new_context(viewport=PHONE, has_touch=True, is_mobile=True)
    tab = context.new_page()
    tab.goto(f"{site}book/03_one_thread_one_output.html")
    here, term, tip = tab.url, tab.locator("article a.term:visible").first, tab.locator(".term-tip")
    assert not tip.is_visible()
    term.tap()
    tip.wait_for()
    assert len(tip.inner_text()) > 40
    assert tab.url == here
    term.tap()
    tab.wait_for_url("**/glossary.html#*")
    context.close()


@pytest.mark.parametrize("asked", ["banks.width=3", "banks.sideways=1"])
def test_an_explorer_says_what_its_address_asks_for_in_vain(tab, site, asked):
    said = []
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.goto(f"{site}book/04_tiles_in_shared_memory.html?{asked}")
    explorer = tab.locator('.gl-explorer[data-kind="banks"]')
    tab.eval_on_selector_all("details", "all => all.forEach((fold) => (fold.open = true))")
    name, value = asked.removeprefix("banks.").split("=")
    explorer.get_by_text(f"The address asks for {name} = {value}").wait_for()
    explorer.get_by_role("button", name="Reset").wait_for()
    assert said == []
