"""The launches that several exercises of this part share, and what these exercises ask for."""

from book.exercises.exercise import Need
from book.exercises.launches import ROW_SUSPECTS, row_sums


def sums_of_rows(rng):
    drawn = 64 * int(rng.integers(1, 4)), 16 * int(rng.integers(1, 20))
    return tuple(
        row_sums(
            rng, (M, K), (K,), 64, (64,),
            "there are fewer tiles than stages" if K < 64 else "slots are used again",
        )
        for M, K in ((64, 16), (128, 48), (64, 176), (64, 512), drawn)
    )  # fmt: skip


THROUGH_BUFFERS = {
    "cases": sums_of_rows,
    "at": "M=64, K=512",
    "needs": (
        Need("bytes copied by cp.async", 131_072, "each tile arrives by cp.async"),
        Need("bytes read from shared memory", 131_072, "the sums are formed from the buffers"),
    ),
    "suspects": ROW_SUSPECTS,
}
