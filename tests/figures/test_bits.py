"""The bits of number formats, drawn."""

import pytest

import figures


def test_a_format_has_the_bits_that_were_given():
    drawn = figures.bit_fields({"float32": (1, 8, 23), "TF32": (1, 8, 10, 13)})
    assert drawn.facts == {"float32": 32, "TF32": 32}
    assert "13 ignored" in drawn.alt and "23 bits after the point" in drawn.alt
    assert [words for _, words in drawn.legend][-1] == "ignored"


@pytest.mark.parametrize("formats", [{}, {"none": (0, 0, 0)}, {"long": (1, 20, 60)}])
def test_what_cannot_be_drawn_is_refused(formats):
    with pytest.raises(ValueError, match=r"nothing to draw|can be drawn"):
        figures.bit_fields(formats)
