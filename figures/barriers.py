"""An mbarrier over time: what is pending, which phase it is in, and what a wait for either parity says."""

from __future__ import annotations

from dataclasses import dataclass

from figures.widgets import Explorer, Span

__all__ = ["BarrierExplorer", "barrier_steps"]

COPY = 1024  # bytes that an `e` announces and that a `c` brings
EVENTS = {"a": "arrive", "e": "arrive, expect 1,024 bytes", "c": "a copy lands, 1,024 bytes"}


@dataclass(frozen=True)
class Moment:
    """An mbarrier after an event. waits: whether a wait for parity 0, and one for parity 1, would return."""

    event: str
    arrivals: int
    bytes: int
    phase: int
    waits: tuple[bool, bool]


def barrier_steps(count: int, events: str) -> list[Moment]:
    """What an mbarrier initialised for `count` arrivals goes through: "a", "e" and "c" as in `EVENTS`, in order.

    The first moment is before any event. ValueError for another letter, and for an arrival in a phase that has all of its own
    and waits for bytes: what a barrier then does is undefined.
    """
    arrivals, pending, phase = count, 0, 0
    found = [Moment("", count, 0, 0, (False, True))]
    for event in events.replace(" ", ""):
        if event not in EVENTS:
            raise ValueError(f"{event!r} is no event: use {', '.join(EVENTS)}")
        if event in "ae":
            if arrivals == 0:
                raise ValueError(
                    "one arrival too many: the phase has all of its own, and waits for bytes"
                )
            arrivals -= 1
        pending += {"a": 0, "e": COPY, "c": -COPY}[event]
        if arrivals == 0 and pending == 0:
            arrivals, phase = count, phase + 1
        waits = (phase % 2 == 1, phase % 2 == 0)
        found.append(Moment(event, arrivals, pending, phase, waits))
    return found


class BarrierExplorer(Explorer):
    """An mbarrier: a count and a sequence of events against arrivals, bytes, phase and the two waits."""

    kind = "barriers"
    asks = "Write a sequence of events: when does a wait return?"
    says = (
        "An explorer of an mbarrier, starting with {count} expected arrivals and the events {events}: a for arrive, "
        "e for arrive and expect 1,024 bytes, c for a copy of 1,024 bytes that lands."
    )
    takes = (("count", 1, Span(1, 4)), ("events", "e c e c", None))

    def begins(self, count: int, events: str):
        barrier_steps(count, events)  # a ValueError says what is wrong with them
        return super().begins(count=count, events=events)
