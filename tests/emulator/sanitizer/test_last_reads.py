"""Who read what when, kept small, beside a column for every warp."""

import numpy as np
import pytest

from emulator.sanitizer.last_reads import LastReads

COUNT, WARPS = 64, 20
RANK = np.repeat(np.arange(4, dtype=np.int8), COUNT // 4)


@pytest.mark.parametrize("rank", [None, RANK], ids=["a block", "a cluster of four"])
def test_each_warps_last_read_is_known_whoever_else_read(rank):
    """Warps of other blocks too: more of them than there are columns at first."""
    rng = np.random.default_rng(0)
    reads, every = LastReads(COUNT, WARPS, rank), np.zeros((COUNT, WARPS), np.int32)
    for time in range(1, 60):
        index = rng.permutation(COUNT)[:12].reshape(3, 4)
        # mostly its own block's
        warp = rng.integers(0, WARPS, 3)[:, None] if time % 5 == 0 else RANK[index] * 5
        reads.put(index, warp, time)
        every[index, warp] = time
        some = rng.permutation(COUNT)[:9]
        assert (reads.of(some) == every[some]).all()
        assert (reads.last(some) == every[some].max(axis=1)).all()
        assert (reads.by(index, warp) == every[index, warp]).all()
    reads.refine(2)
    assert (reads.of(np.arange(2 * COUNT)) == np.repeat(every, 2, axis=0)).all()


def test_a_cluster_whose_blocks_read_their_own_takes_little_more_than_a_block():
    reads = LastReads(COUNT, WARPS, RANK)
    reads.put(np.arange(COUNT), RANK * 5 + np.arange(COUNT) % 5, 1)
    assert reads.times.nbytes < LastReads(COUNT, WARPS).times.nbytes / 2
