"""What the chapters on Hopper call: small kernels, mistakes told, instructions sorted, events of roles."""

import numpy as np
import pytest

from book.cells import mistakes, moves, odd_shapes, probes, role_events, wgmma_clocks
from emulator import Deadlock
from kernels.gemm import gemm


def test_a_box_is_fetched_with_zeros_outside():
    matrix = np.arange(96, dtype=np.float16).reshape(6, 16)
    box, trace = probes.fetch(matrix, (4, 8), x=8, y=4)
    assert (box[:2] == matrix[4:, 8:]).all() and not box[2:].any()
    assert sum(row.threads for row in trace.rows("cp.async.bulk.tensor")) == 1
    swizzled, _ = probes.fetch(np.tile(np.arange(64, dtype=np.float16), (8, 1)), (8, 64), 0, 0, 128)
    for row in range(8):
        assert (swizzled[row, ::8] == 8 * (np.arange(8) ^ row)).all()
    with pytest.raises(Deadlock, match="48 announced"):
        probes.fetch(matrix, (4, 8), x=8, y=1, announce=48)


def test_mistakes_are_told_with_their_lines(capsys):
    assert mistakes.tell("wgmma", ("        wgmma_fence();\n", "")) == ["missing-wgmma-fence"]
    said = capsys.readouterr().out
    assert said.startswith("The result is right.") and "wgmma_k16<In, 0, 1>(acc, a, b" in said
    kinds = mistakes.tell(
        "wgmma", ("barrier_expect(full, A_BYTES + B_BYTES)", "barrier_expect(full, A_BYTES)")
    )
    assert kinds[0] == "deadlock"
    assert "16384 announced" in " ".join(capsys.readouterr().out.split())
    assert mistakes.tell("wgmma", ("k * PITCH, PANEL_BYTES)", "k * PITCH)")) == []
    assert capsys.readouterr().out.startswith("The result is wrong.")


@pytest.mark.parametrize(
    ("opcode", "name"),
    [
        ("cp.async.bulk.tensor.2d.shared::cluster.global", "copies into shared memory"),
        ("cp.async.bulk.tensor.2d.global.shared::cta", "stores of C"),
        ("cp.async.bulk.commit_group", "barriers, fences, waits"),
        ("cp.async.cg.shared.global", "copies into shared memory"),
        ("wgmma.mma_async.sync.aligned.m64n128k16", "products (mma, wgmma)"),
        ("wgmma.fence.sync.aligned", "barriers, fences, waits"),
        ("add.s32", moves.OTHERS),
    ],
)
def test_an_instruction_has_a_purpose(opcode, name):
    assert moves.purpose(opcode) == name


def test_a_loop_is_the_difference_of_two_runs():
    A, B = np.ones((128, 256), np.float16), np.ones((256, 128), np.float16)
    given = {"macros": {"BM": 128, "BN": 128}, "machine": "emulator"}
    short = gemm("wgmma", A[:, :128].copy(), B[:128].copy(), **given).trace
    found = moves.per_step(short, gemm("wgmma", A, B, **given).trace, 2)
    assert found["copies into shared memory"]["instructions"] == 3
    assert found["products (mma, wgmma)"]["wavefronts"] == 8 * wgmma_clocks.wavefronts(128) == 384
    assert found["copies into shared memory"]["sectors"] == 1024


def test_roles_wait_for_the_parities_of_the_table():
    found = role_events.events(steps=5, stages=2)
    for event in found:
        round_ = event.step // 2
        assert event.stage == event.step % 2
        if event.what != "releases":
            assert event.parity == (round_ + (event.who == -1)) % 2
    order = [(event.who, event.what, event.step) for event in found]
    for step in range(3):  # a stage is filled again after both have released it
        for who in (0, 1):
            assert order.index((who, "releases", step)) < order.index((-1, "copies", step + 2))
    assert {step for _, what, step in order if what == "multiplies"} == set(range(5))


def test_clocks_of_wgmma_are_the_recorded_ones():
    for n in (64, 128, 256):
        assert wgmma_clocks.clocks(n) == pytest.approx(n / 2, rel=1e-3)
        assert wgmma_clocks.wavefronts(n) == 16 + n // 4


def test_sums_are_counted_on_either_way_to_those_who_share_a_tile():
    put, sent = "sums put into the workspace", "sums sent through the cluster"
    through_memory = odd_shapes.moved(odd_shapes.run(128, 512, 128, SPLIT=0, BLOCKS=3).trace)
    assert (
        through_memory[put] == through_memory["sums read from the workspace"] == 2 * 128 * 128 * 4
    )
    through_cluster = odd_shapes.moved(odd_shapes.run(128, 256, 512, SPLIT=2).trace)
    assert (through_cluster[put], through_cluster[sent]) == (0, 2 * 128 * 128 * 4)
