"""What a kernel's accesses cost at each setting of its macros: recorded once, chosen by the reader."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from figures.widgets import Explorer

__all__ = ["SettingsExplorer"]


class SettingsExplorer(Explorer):
    """Sectors and wavefronts of a kernel at each setting of its macros, as bars on one scale.

    choices: {macro: values}. counts: {values, in the order of the macros: rows}, where a row is (access, requests, sectors,
    wavefronts, wavefronts without conflicts), or a sentence that says why the kernel cannot be run so. start: the values
    shown first, against which the others are marked. blocks: a sentence for each setting, shown below the bars. reports: what
    the emulator found wrong at a setting, in a few words, shown above them. ValueError where a setting has no counts.
    """

    kind = "settings"

    def __init__(
        self,
        choices: Mapping[str, Sequence[int]],
        counts: Mapping[tuple, Sequence[Sequence] | str],
        start: Sequence[int],
        *,
        name: str = "the kernel",
        title: str = "",
        caption: str = "",
        blocks: Mapping[tuple, str] | None = None,
        reports: Mapping[tuple, str] | None = None,
    ):
        wanted = set(itertools.product(*choices.values()))
        if not wanted or wanted - set(counts):
            lacking = sorted(wanted - set(counts))[:3]
            raise ValueError(
                f"no counts for {lacking}" if lacking else "no macros: nothing to choose"
            )
        if tuple(start) not in wanted or isinstance(counts[tuple(start)], str):
            raise ValueError(f"start = {tuple(start)}: choose a setting that runs")
        data = {
            "choices": [[macro, list(values)] for macro, values in choices.items()],
            "counts": {
                ",".join(map(str, values)): rows
                if isinstance(rows, str)
                else [list(r) for r in rows]
                for values, rows in counts.items()
            },
            "first": ",".join(map(str, start)),
            "blocks": {",".join(map(str, values)): said for values, said in (blocks or {}).items()},
            "reports": {
                ",".join(map(str, at)): said for at, said in (reports or {}).items() if said
            },
        }
        setting = ", ".join(f"{m} = {v}" for m, v in zip(choices, start, strict=True))
        self.put(
            title or f"Change {' or '.join(choices)}: what does {name} ask of memory?",
            f"An explorer of {name} at {len(wanted)} settings of {', '.join(choices)}, starting with {setting}.",
            dict(zip(choices, start, strict=True)),
            data,
            caption,
        )
