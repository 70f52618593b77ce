"""`python -m kernels.mistakes SEED COUNT`: a draw by the rule, to be judged by eye before anything has run it."""

import random
import sys

from ..rungs import RUNGS
from . import Seeded, seeded, source
from .rule import WAYS, changed, statements, words


def draw(seed: int, count: int):
    """(rung, way, statement, which) of so many changes, none of which a row makes already."""
    texts = {name: source(Seeded(name, "rung", "")) for name, rung in RUNGS.items() if rung.path}
    every = [(name, span) for name, text in texts.items() for span in statements(text)]
    there = {source(row) for row in seeded()}
    draws = random.Random(seed)
    for name, span in draws.sample(every, len(every)):
        way = draws.choice(WAYS)
        text = texts[name]
        new = changed(text, span, way)
        if count and new is not None and new not in there:
            lines = text.splitlines()
            alike = words(lines[span[0] : span[1] + 1])
            same = [s for s in statements(text) if words(lines[s[0] : s[1] + 1]) == alike]
            yield name, way, alike, same.index(span)
            count -= 1


if __name__ == "__main__":
    for rung, way, statement, which in draw(int(sys.argv[1]), int(sys.argv[2])):
        print(f"# {rung}\n[[drawn]]\nway = {way!r}\nstatement = {statement!r}\nwhich = {which}\n")
