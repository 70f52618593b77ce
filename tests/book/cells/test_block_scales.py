"""What few bits lose, with one scale and with one for each block."""

import numpy as np
import pytest

from book.cells import block_scales, mistakes


def test_a_scale_for_each_block_keeps_an_outlier_to_itself():
    plain, wild = block_scales.normal(8, 256), block_scales.normal(8, 256, outlier=1e5)
    for way in block_scales.WAYS:
        before, after = (block_scales.median_error(values, way) for values in (plain, wild))
        assert after > 3 * before if "one scale" in way else after < 1.3 * before


def test_nvfp4_s_own_scales_run_out_where_powers_of_two_do_not():
    wild = block_scales.normal(8, 256, outlier=1e6)
    errors = {way: block_scales.median_error(wild, way) for way in block_scales.WAYS}
    assert [way.split(":")[0] for way, one in errors.items() if one < 0.5] == ["mxfp8"]


@pytest.mark.parametrize("way", block_scales.WAYS)
def test_numbers_that_a_format_has_are_kept(way):
    values = np.zeros((2, 32))
    values[:, ::2] = 6.0
    assert block_scales.error(values, way) < 0.08
    assert (block_scales.rounded(-values, way) == -block_scales.rounded(values, way)).all()


def test_a_changed_rung_with_scales_is_judged_by_what_its_numbers_were_rounded_to(capsys):
    assert mistakes.tell("tcgen05_mxfp8", size=(128, 128, 128)) == []
    assert "The result is right" in capsys.readouterr().out
    wrong = ("b_scales = a_scales + BM / 32;", "b_scales = a_scales;")
    mistakes.tell("tcgen05_mxfp8", wrong, size=(128, 128, 128))
    assert "The result is wrong" in capsys.readouterr().out
