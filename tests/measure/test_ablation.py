"""Each idea of `warp_tiled` can be taken out, and what is left is right and counts as it should."""

import dataclasses

import numpy as np
import pytest

from kernels.gemm import gemm
from measure import ablation
from measure.ablation import IDEAS, NEXT_FRAGMENTS, NEXT_TILE, REUSE, SQUARE_WARP, ZIGZAG

VARIANTS = dict(ablation.variants())


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_is_right_and_has_no_hazards(name):
    rng = np.random.default_rng(0)
    A = rng.uniform(-1, 1, (130, 44)).astype(np.float32)
    B = rng.uniform(-1, 1, (44, 140)).astype(np.float32)
    ideas = VARIANTS[name]
    how = {"macros": ablation.macros(ideas), "built": ablation.build(ideas)}
    run = gemm("warp_tiled", A, B, machine="emulator", **how)
    assert np.allclose(run.C, A @ B, atol=1e-4)
    assert not run.trace.hazards


def test_all_ideas_are_the_rung_and_no_two_variants_have_the_same_source():
    from kernels.source import source

    assert ablation.variant(IDEAS) == source("warp_tiled")
    # the square warp tile is a setting, so variants are told apart by source and macros
    kinds = {(ablation.variant(i), str(ablation.macros(i))) for i in VARIANTS.values()}
    assert len(kinds) == len(VARIANTS) == 2 * len(IDEAS) + 2


def test_what_each_idea_changes_is_what_is_counted():
    none, full = ablation.counts(frozenset()), ablation.counts(frozenset(IDEAS))
    assert none.loads == 1 / 8 and full.loads == 3 / 32
    assert none.barriers == 2 and full.barriers == 1
    without = {idea: ablation.counts(frozenset(IDEAS) - {idea}) for idea in IDEAS}
    assert without[ZIGZAG].loads == 1 / 8
    assert without[SQUARE_WARP].loads == full.loads, "the shape alone changes no wavefront"
    assert without[NEXT_TILE].barriers == 2
    assert without[NEXT_FRAGMENTS].barriers == 1
    assert without[REUSE].register_reads > full.register_reads


def test_a_rung_that_no_longer_has_an_idea_is_an_error(monkeypatch):
    gone = dataclasses.replace(ZIGZAG, out=(("lane / 3", "lane"),))
    ideas = tuple(gone if idea is ZIGZAG else idea for idea in IDEAS)
    monkeypatch.setattr(ablation, "IDEAS", ideas)
    with pytest.raises(ValueError, match="warp_tiled contains 'lane / 3' 0 times"):
        ablation.variant([])


def test_a_variant_can_be_shown_in_parts():
    assert "load_fragments(0, k)" in ablation.variant([], "loop")
    assert "lane / LANES_N" in ablation.variant([], "lanes")
