"""A check draws the student's own accesses beside the goal, or the hazard that it found, and says the same in words."""

from types import SimpleNamespace

import pytest

from book.exercises import find, judge
from book.exercises.cell import check, kernel
from book.exercises.hazards import explain_hazards
from emulator.sanitizer.report import KINDS, Hazard


def drawings(name, edits=(), given=False):
    text = find(name).skeleton if given else find(name).solution
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return [picture.drawing() for picture in judge(find(name), text).pictures]


def test_a_missed_goal_is_drawn_beside_neighbours():
    (drawing,) = drawings("coalesce", given=True)
    assert drawing.title == "Your access takes 32 sectors; neighbours would take 4"
    assert drawing.facts["yours"]["sectors"] == 32 and drawing.facts["neighbours"]["sectors"] == 4
    (shared,) = drawings("transpose_tile", given=True)
    assert (
        shared.facts["yours"]["wavefronts"] == 32 and shared.facts["neighbours"]["wavefronts"] == 1
    )


def test_a_right_answer_is_drawn_too():
    (drawing,) = drawings("swizzle_rows")
    assert drawing.title == "Your access takes 4 wavefronts, as few as can be"
    assert list(drawing.facts) == ["yours"]


def test_what_did_not_fail_is_not_drawn():
    assert drawings("first_guard", [("a * x[i]", "x[i]")]) == []
    assert (
        drawings("wmma_tile", given=True) == []
    )  # nothing is multiplied: its accesses are not at fault


def test_a_race_is_drawn():
    (drawing,) = drawings("place_fences", [("    async_fence();\n", "")])
    assert drawing.facts["kind"] == "missing-proxy-fence"


def test_in_a_terminal_it_is_said_in_words(capsys):
    kernel("coalesce", find("coalesce").skeleton)
    check("coalesce")
    told = capsys.readouterr().out
    assert "Your access takes 32 sectors; neighbours would take 4" in told
    assert "128 bytes apart, touch 32 sectors" in told


def hazard(kind, message=""):
    frames = (("k.cu", 2),)
    return Hazard(
        kind, message, ("k.cu", 2), ("k.cu", 1), 20, 10, (0, 0, 0), (1, 0, 0), None, 0, "As", 0, 1, frames, (("k.cu", 1),),
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_hazard_has_words(kind):
    trace = SimpleNamespace(
        hazards=[hazard(kind)], instructions=[], rows=lambda opcode: [], block=(32, 1, 1), blocks=1
    )
    headline, *lines = explain_hazards(trace, "first();\nsecond();\n", "k.cu")
    assert headline and any("first()" in line or "second()" in line for line in lines)
    assert kind not in " ".join((headline, *lines))
