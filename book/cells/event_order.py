"""The order of events in a kernel, as the emulator executes it: variants that say what they do, and bars of what they said.

One thread of each kind of warp prints a word at each event. The place of the word in the output is its time: the
emulator knows the order of events, not how long they take. A copy is drawn from where it is started to the wait behind
which it has landed for sure.
"""

from collections.abc import Mapping

from book.cells import variants
from figures.timeline import bar

WORD = 'if (threadIdx.x == {thread}) printf("{word} %d\\n", {number});'
START, LANDED, DONE = "start", "landed", "done"


def _say(
    line: str, word: str, number: str, thread: str = "0", before: bool = False
) -> tuple[str, str]:
    """The change that says a word behind a line of a kernel, or before it."""
    indent = line[: len(line) - len(line.lstrip())]
    said = indent + WORD.format(word=word, number=number, thread=thread)
    return line, f"{said}\n{line}" if before else f"{line}\n{said}"


def _bars(
    rung: str, changes, A, B, macros: Mapping[str, int], tiles: int, rows=("copies", "products")
) -> list[dict]:
    """A bar for each tile's copy, from its start to where it has landed, and one for its products, of one block."""
    heard = variants.heard(rung, f"{rung}_says", changes, A, B, macros)
    at = {(word, int(tile)): time for time, (word, tile) in enumerate(heard)}
    bars = []
    for tile in range(tiles):
        start, landed, done = (at[word, tile] for word in (START, LANDED, DONE))
        stage = tile % macros.get("STAGES", 1)
        bars.append(bar(rows[0], start, landed, "load", stage))
        bars.append(bar(rows[1], landed, done, "compute", stage))
    return sorted(bars, key=lambda one: rows.index(one["row"]))


def async_copy(A, B, tiles: int = 6) -> list[dict]:
    """Events of warp 0 for `figures.timeline`."""
    changes = [
        _say("        copy_tile<BM>(As[0], A, M);", START, "k0 / BK", before=True),
        _say("        __syncthreads();     // so have everybody's", LANDED, "k0 / BK"),
        _say("        __syncthreads();\n    }", DONE, "k0 / BK", before=True),
    ]
    return _bars("async_copy", changes, A, B, {}, tiles)


def async_pipeline(A, B, macros: Mapping[str, int], tiles: int = 6) -> list[dict]:
    """Events of warp 0 for `figures.timeline`."""
    changes = [
        _say("        pipe.producer_acquire();", START, "fetched / BK"),
        _say("        __syncthreads();", LANDED, "k0 / BK"),
        _say("        pipe.consumer_release();", DONE, "k0 / BK", before=True),
    ]
    return _bars("async_pipeline", changes, A, B, macros, tiles)


def warp_specialized(A, B, macros: Mapping[str, int], tiles: int = 6) -> list[dict]:
    """Events of the first producer warp and of the first consumer warp, for `figures.timeline`."""
    changes = [
        _say("            pipe.producer_acquire();", START, "k0 / BK", "CONSUMERS"),
        _say("        pipe.consumer_wait();", LANDED, "k0 / BK"),
        _say("        pipe.consumer_release();", DONE, "k0 / BK", before=True),
    ]
    rows = ("producer: copies", "consumer: products")
    return _bars("warp_specialized", changes, A, B, macros, tiles, rows)
