"""What the checker found, as it is printed."""

from dataclasses import dataclass, field
from textwrap import wrap

from .explain import QUOTED

RIGHT, WRONG = "✓", "✗"
PRINTED = 8  # lines


@dataclass(frozen=True)
class Verdict:
    """What the checker found. `lines` hold positions and counts; a value only where no cause was found.

    pictures: of the kernel's own accesses beside the goal, or of a hazard; each has a `drawing()`. findings: what
    `lines` say, as values (`finding.Finding`). printed: by the kernel.
    """

    name: str
    passed: bool
    headline: str
    lines: tuple[str, ...] = ()
    pictures: tuple = field(default=(), repr=False, compare=False)
    findings: tuple = field(default=(), repr=False, compare=False)
    printed: str = field(default="", repr=False, compare=False)

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        mark = RIGHT if self.passed else WRONG
        told = [line for text in self.lines for line in folded(text)]
        if shown := self.printed.splitlines()[:PRINTED]:
            told += [
                "  What the kernel printed (the first lines):",
                *(f"  | {line}" for line in shown),
            ]
        return "\n".join([f"{mark} {self.name}: {self.headline}", *told])


def folded(text: str) -> list[str]:
    """A line that fits a page; what a compiler quotes stays as it is."""
    if len(text) <= QUOTED or " | " in text:
        return [f"  {text}"]
    start = " " * (len(text) - len(text.lstrip()) + 2)
    return wrap(text, QUOTED, initial_indent=start, subsequent_indent=f"{start}  ")
