"""The order of events in a kernel, as the emulator executes it: variants that say what they do, and bars of what they said.

One thread of each kind of warp prints a word at each event. The place of the word in the output is its time: the
emulator knows the order of events, not how long they take. A copy is drawn from where it is started to the wait behind
which it has landed for sure.
"""

from collections.abc import Mapping, Sequence

from book.cells import variants
from figures.timeline import bar

WORD = 'if (threadIdx.x == {thread}) printf("{word} %d\\n", {number});'
START, LANDED, DONE = "start", "landed", "done"


def _say(word: str, number: str, thread: str = "0") -> str:
    return WORD.format(word=word, number=number, thread=thread)


def _heard(rung: str, changes: Sequence[tuple[str, str]], A, B, macros: Mapping[str, int]) -> list:
    """[(word, tile)] in the order in which they were said, by a launch of one block."""
    words = variants.heard(rung, f"{rung}_says", changes, A, B, macros)
    return [(word, int(tile)) for word, tile in words]


def _bars(heard: list, tiles: int, stages: int, rows: Sequence[str]) -> list[dict]:
    """A bar for each tile's copy, from its start to where it has landed, and one for its products."""
    at = {(word, tile): time for time, (word, tile) in enumerate(heard) if tile < tiles}
    bars = []
    for tile in range(tiles):
        start, landed, done = (at[word, tile] for word in (START, LANDED, DONE))
        bars.append(bar(rows[0], start, landed, "load", tile % stages))
        bars.append(bar(rows[1], landed, done, "compute", tile % stages))
    return sorted(bars, key=lambda one: rows.index(one["row"]))


def async_copy(A, B, tiles: int = 6) -> list[dict]:
    """Events of warp 0 for `figures.timeline`."""
    first, last = "        copy_tile<BM>(As[0], A, M);", "        __syncthreads();\n    }"
    changes = [
        (first, f"        {_say(START, 'k0 / BK')}\n{first}"),
        ("so have everybody's", f"so have everybody's\n        {_say(LANDED, 'k0 / BK')}"),
        (last, f"        {_say(DONE, 'k0 / BK')}\n{last}"),
    ]
    heard = _heard("async_copy", changes, A, B, {})
    return _bars(heard, tiles, 1, ("copies", "products"))


def async_pipeline(A, B, macros: Mapping[str, int], tiles: int = 6) -> list[dict]:
    """Events of warp 0 for `figures.timeline`."""
    changes = [
        ("        pipe.producer_acquire();", f"        pipe.producer_acquire();\n        {_say(START, 'fetched / BK')}"),
        ("        __syncthreads();", f"        __syncthreads();\n        {_say(LANDED, 'k0 / BK')}"),
        ("        pipe.consumer_release();", f"        {_say(DONE, 'k0 / BK')}\n        pipe.consumer_release();"),
    ]  # fmt: skip
    heard = _heard("async_pipeline", changes, A, B, macros)
    return _bars(heard, tiles, macros["STAGES"], ("copies", "products"))


def warp_specialized(A, B, macros: Mapping[str, int], tiles: int = 6) -> list[dict]:
    """Events of the first producer warp and of the first consumer warp, for `figures.timeline`."""
    changes = [
        (
            "            pipe.producer_acquire();",
            f"            pipe.producer_acquire();\n            {_say(START, 'k0 / BK', 'CONSUMERS')}",
        ),
        ("        pipe.consumer_wait();", f"        pipe.consumer_wait();\n        {_say(LANDED, 'k0 / BK')}"),
        ("        pipe.consumer_release();", f"        {_say(DONE, 'k0 / BK')}\n        pipe.consumer_release();"),
    ]  # fmt: skip
    heard = _heard("warp_specialized", changes, A, B, macros)
    return _bars(heard, tiles, macros["STAGES"], ("producer: copies", "consumer: products"))
