"""The layout explorer computes in the browser what tensor-layouts computes here."""

import json
import random

import pytest
from tensor_layouts import Layout, Swizzle, compose, cosize, size

import figures
from figures.layouts import LAYOUTS, written
from tests import limited


def models(cases):
    """What `explorer.model` returns for each of the layouts in `cases`, from its own script."""
    asked = json.dumps([{"layout": text} for text in cases])
    script = f"{figures.LayoutExplorer().script}\nconsole.log(JSON.stringify({asked}.map(explorer.model)));"
    run = limited.run(["node", "-"], input=script)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def tree(rng, depth=2):
    """A random shape, a number or a tuple of shapes."""
    if depth == 0 or rng.random() < 0.3:
        return rng.randint(1, 3)
    return tuple(tree(rng, depth - 1) for _ in range(rng.randint(1, 2)))


def strides_like(shape, rng):
    if isinstance(shape, tuple):
        return tuple(strides_like(part, rng) for part in shape)
    return rng.choice([0, 1, 2, 3, 8, 9, 40])


@pytest.mark.node
def test_layouts_agree_with_tensor_layouts():
    rng, layouts = random.Random(7), []
    for number in range(200):
        shape = (tree(rng), tree(rng)) if number % 2 else tree(rng, 1)
        layouts.append(Layout(shape, strides_like(shape, rng)))
    layouts += [
        compose(Swizzle(b, m, 3), Layout((16, 32), (32, 1))) for b in (1, 2) for m in (2, 3)
    ]
    for layout, model in zip(layouts, models(map(written, layouts)), strict=True):
        assert "error" not in model, (written(layout), model)
        assert model["values"] == [layout(i) for i in range(size(layout))], written(layout)
        assert model["distinct"] == len(set(model["values"]))
        if isinstance(layout, Layout):
            assert model["cosize"] == cosize(layout)


@pytest.mark.node
def test_what_is_typed_is_read_or_refused():
    good = {
        "(4, 8) : (8, 1)": (4, 8, 32),
        "(4,8)": (4, 8, 32),
        "32:4": (1, 32, 125),
        "(Swizzle(2,3,3)) o ((16,32):(32,1))": (16, 32, 512),
        "Swizzle<2,3,3> o (16,32):(32,1)": (16, 32, 512),
        "((2,2),(2,4)):((1,8),(2,16))": (4, 8, 60),
    }
    bad = [
        "",
        "hello",
        "(4,8):(8)",
        "(4,8:(8,1)",
        "(2,8,2):(1,2,16)",
        "(128,2):(1,128)",
        "(0,4):(1,1)",
    ]
    answers = dict(zip([*good, *bad], models([*good, *bad]), strict=True))
    for text, expected in good.items():
        model = answers[text]
        assert (model["rows"], model["columns"], model["cosize"]) == expected, text
    for text in bad:
        assert "error" in answers[text], text


def test_it_starts_with_a_layout_of_its_own():
    explorer = figures.LayoutExplorer()
    assert explorer.data["start"]["layout"] == LAYOUTS["row-major"]
    mine = figures.LayoutExplorer({"mine": Layout((2, 8), (4, 0))}, color="bank 4", i=3)
    assert mine.data["start"]["layout"] == "(2,8):(4,0)" and "(2,8):(4,0)" in mine.alt
    with pytest.raises(ValueError):
        figures.LayoutExplorer(color="lane")
    with pytest.raises(ValueError, match="swizzle"):
        written(compose(Layout((4, 4), (2, 16)), compose(Swizzle(1, 0, 2), Layout(16, 1))))
