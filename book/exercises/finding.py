"""What a finder found, as a value: of which kind, where, by which evidence, and how sure it is. `words` says it last."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

CAUSE = "cause"  # what was done wrong
EFFECT = "effect"  # where the output is wrong, and no more
HINT = "hint"  # what to look at, where no cause is known


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong. kind: a key of `words.WORDS`, or the name of the finder whose sentence `says` holds.

    place: a mask of the elements that it is about; None where it is about all. evidence: what the words need.
    """

    kind: str
    place: np.ndarray | None = field(default=None, repr=False, compare=False)
    evidence: dict = field(default_factory=dict)
    certainty: str = CAUSE


def told(kind: str, sentences: str | Iterable[str] | None, certainty: str = CAUSE) -> list[Finding]:
    """The sentences of a finder as findings of this kind; None and "" are none."""
    if not sentences:
        return []
    several = [sentences] if isinstance(sentences, str) else sentences
    return [Finding(kind, None, {"says": one}, certainty) for one in several if one]


def explained(findings: Iterable[Finding]) -> bool:
    """Whether any of them names a cause, rather than only where the output is wrong."""
    return any(one.certainty == CAUSE for one in findings)
