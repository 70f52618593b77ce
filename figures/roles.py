"""Producer and consumers over time, by a model small enough to check by hand."""

from __future__ import annotations

from dataclasses import dataclass

from figures.drawing import Drawing
from figures.timeline import bar, timeline
from figures.widgets import Explorer, Span

__all__ = ["RolesExplorer", "role_schedule", "roles_timeline"]


@dataclass(frozen=True)
class Turn:
    """One k-step: its stage, when its copy was asked for and had landed, and (from, to) of each consumer's product."""

    step: int
    stage: int
    asked: float
    landed: float
    products: tuple[tuple[float, float], ...]


def role_schedule(
    stages: int = 4,
    steps: int = 12,
    consumers: int = 2,
    latency: float = 700,
    transfer: float = 768,
    multiply: float = 512,
    gap: float = 80,
    running: int = 1,
) -> list[Turn]:
    """When each k-step is copied and multiplied, in clocks.

    The model: the producer asks for a k-step as soon as all consumers have released its stage. Data begin to come
    `latency` after that, one k-step after the other, each for `transfer`. The tensor core takes the consumers' products in turn,
    each for `multiply`. A consumer starts a product when its stage is full and, with `running` = 1, the product before the
    last one is done; with 0, the last one. A product that had to be waited for is followed by `gap` clocks in which the
    consumer does not start another. It releases a stage when it knows that the product has read it.
    ValueError for what is not positive, and for one stage with `running` = 1, which is a deadlock.
    """
    if min(stages, steps, consumers) < 1 or min(latency, transfer, gap) < 0 or multiply <= 0:
        raise ValueError("there is at least one stage, step and consumer, and products take time")
    if running not in (0, 1):
        raise ValueError(f"running = {running}: 0 or 1 products are left running")
    if running and stages == 1:
        raise ValueError(
            "deadlock: the only stage is released after the next product has begun, which needs it"
        )
    turns: list[Turn] = []
    released = [[0.0] * steps for _ in range(consumers)]
    asked = landed = tensor = 0.0
    for step in range(steps):
        if step >= stages:
            asked = max(asked, *(released[c][step - stages] for c in range(consumers)))
        landed = max(landed, asked + latency) + transfer
        products = []
        for c in range(consumers):
            begin = landed
            known = step - 1 - running  # the product that this consumer has waited for
            if known >= 0:
                begin = max(begin, turns[known].products[c][1] + gap)
            if running and step:
                released[c][step - 1] = max(turns[step - 1].products[c][1], begin)
            begin = max(begin, tensor)
            tensor = begin + multiply
            products.append((begin, tensor))
            if not running:
                released[c][step] = tensor
        turns.append(Turn(step, step % stages, asked, landed, tuple(products)))
    return turns


def roles_timeline(caption: str = "", **model) -> Drawing:
    """The model of `role_schedule` (its arguments) as a timeline: copies, each consumer, and the tensor core of all."""
    turns = role_schedule(**model)
    events = [bar("copies", t.asked, t.landed, "load", t.stage) for t in turns]
    for c in range(len(turns[0].products)):
        for turn in turns:
            events.append(bar(f"consumer {c}", *turn.products[c], "compute", turn.stage))
    for turn in turns:
        events += [bar("tensor core", *span, "compute") for span in turn.products]
    return timeline(events, caption=caption)


class RolesExplorer(Explorer):
    """Stages, consumers and times against how busy the tensor core is, by the model of `role_schedule`."""

    kind = "roles"
    asks = "Give out the roles: what keeps the tensor core waiting?"
    says = (
        "An explorer of roles, starting with {stages} stages and {consumers} consumers; a copy takes {latency} + "
        "{transfer} clocks, a product {multiply}."
    )
    takes = (
        ("stages", 4, Span(1, 8)),
        ("consumers", 2, Span(1, 3)),
        ("latency", 700, Span(0, 2000)),
        ("transfer", 768, Span(0, 2000)),
        ("multiply", 512, Span(64, 1024)),
        ("running", 1, (0, 1)),
    )
