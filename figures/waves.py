"""How tiles are dealt out to multiprocessors: whole, split along K, or as one list of k-steps."""

from __future__ import annotations

from dataclasses import dataclass

from figures.widgets import Explorer, Span, one_of

__all__ = ["WaveExplorer", "deal"]

WHOLE, SPLIT_2, SPLIT_4, STREAM = "whole tiles", "split in 2", "split in 4", "stream-K"
WAYS = (WHOLE, SPLIT_2, SPLIT_4, STREAM)


@dataclass(frozen=True)
class Deal:
    """`pieces`: (multiprocessor, begin, end, tile) in k-steps of time, tile -1 where sums are put together; `time`: when
    the last one ends; `busy`: the share of all multiprocessors' time that k-steps take."""

    pieces: tuple[tuple[int, float, float, int], ...]
    time: float
    busy: float


def shares(units: int, blocks: int) -> list[int]:
    """Where each block's piece of a list begins, and where the last one ends: pieces differ by one unit at most, the
    longer ones first, as in `Shares` of `wgmma_split`."""
    return [b * (units // blocks) + min(b, units % blocks) for b in range(blocks + 1)]


def deal(tiles: int, sms: int, steps: int, way: str = WHOLE, cost: float = 0) -> Deal:
    """A model of a launch of one block per multiprocessor: every k-step takes one unit of time, and putting a tile's
    parts together `cost` units in each block that has one. ValueError for a way that is not in `WAYS`."""
    one_of("way", way, WAYS)
    if min(tiles, sms, steps) < 1:
        raise ValueError("at least one tile, one multiprocessor and one k-step")
    if way == STREAM:
        pieces = _stream(tiles, sms, steps, cost)
    else:
        pieces = _split(tiles, sms, steps, {WHOLE: 1, SPLIT_2: 2, SPLIT_4: 4}[way], cost)
    time = max(end for _, _, end, _ in pieces)
    return Deal(tuple(pieces), time, tiles * steps / (sms * time))


def _split(tiles: int, sms: int, steps: int, parts: int, cost: float) -> list:
    pieces, free = [], [0.0] * sms
    for piece in range(tiles * parts):
        tile, part, sm = piece // parts, piece % parts, piece % sms
        length = steps * (part + 1) // parts - steps * part // parts
        begin = free[sm]
        pieces.append((sm, begin, begin + length, tile))
        if parts > 1 and cost:
            pieces.append((sm, begin + length, begin + length + cost, -1))
        free[sm] = pieces[-1][2]
    return pieces


def _stream(tiles: int, sms: int, steps: int, cost: float) -> list:
    pieces, blocks = [], min(sms, tiles * steps)
    begins = shares(tiles * steps, blocks)
    for block in range(blocks):
        at, end, now, shared = begins[block], begins[block + 1], 0.0, False
        while at < end:
            tile = at // steps
            stop = min(end, (tile + 1) * steps)
            pieces.append((block, now, now + stop - at, tile))
            shared |= stop - at < steps
            now += stop - at
            at = stop
        if shared and cost:
            pieces.append((block, now, now + cost, -1))
    return pieces


class WaveExplorer(Explorer):
    """Tiles, multiprocessors and ways to share them, against the time of the slowest, by the model of `deal`."""

    kind = "waves"
    asks = "Change the way tiles are dealt out: who waits for whom?"
    says = "An explorer of waves, starting with {tiles} tiles of {steps} k-steps on {sms} multiprocessors, {way}."
    takes = (
        ("tiles", 9, Span(1, 300)),
        ("sms", 8, (4, 8, 16, 108, 132)),
        ("steps", 8, Span(1, 64)),
        ("way", WHOLE, WAYS),
        ("cost", 1, Span(0, 8)),
    )
    carries = (("ways", WAYS),)
