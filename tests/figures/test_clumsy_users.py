"""What cannot be drawn is refused in words; a part that was never run is drawn without costs."""

import pytest

import figures

CUDA = "int a;\nint b;\nint c;\n"


def test_lines_that_cost_nothing_are_shown():
    shown = figures.annotated_source({2: {"warps": 0}}, CUDA)
    assert "None of these lines cost anything" in shown.title


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda: figures.annotated_source(None, CUDA), "a run on a GPU has none"),
        (lambda: figures.hazard([]), "one hazard"),
        (lambda: figures.hazard(None), "one hazard"),
        (lambda: figures.diff_source("a", "b", context=-1), "context"),
        (lambda: figures.swizzle_grid(chunks=10**12), "at most 64"),
        (lambda: figures.swizzle_grid(swizzled=(2, 3)), "three integers"),
    ],
)
def test_what_cannot_be_drawn(draw, words):
    with pytest.raises(ValueError, match=words):
        draw()


def test_a_context_larger_than_the_text_is_all_of_it():
    assert figures.diff_source(CUDA, CUDA + "int d;", context=10**12).facts["added"] == 1


# What an explorer cannot do without.
NEEDED = {"SettingsExplorer": ({"PAD": (0,)}, {(0,): []}, (0,))}
EXPLORERS = [getattr(figures, name) for name in figures.__all__ if name.endswith("Explorer")]


@pytest.mark.parametrize("explorer", EXPLORERS)
def test_a_misspelt_keyword_is_refused(explorer):
    given = NEEDED.get(explorer.__name__, ())
    assert explorer(*given, title="Mine", caption="yours").title == "Mine"
    for wrong in ("widthh", "headline", "captions"):
        with pytest.raises(TypeError, match=wrong):
            explorer(*given, **{wrong: 8})


def test_settings_without_counts():
    with pytest.raises(ValueError, match="no counts for"):
        figures.SettingsExplorer({"PAD": (0, 1)}, {(0,): []}, (0,))
    with pytest.raises(ValueError, match="choose a setting that runs"):
        figures.SettingsExplorer({"PAD": (0,)}, {(0,): "It does not compile."}, (0,))


def test_every_explorer_is_tried():
    assert len(EXPLORERS) >= 12
