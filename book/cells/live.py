"""A kernel under the reader's hands: `live.kernel("tiled", {"BLOCK": (8, 16, 32)})` as the last line of a cell.

In JupyterLab and Colab these are ipywidgets (7.7 and 8): a slider for each macro, boxes that take an expression of the
reader's own, and below them what the kernel, compiled anew and run on the emulator, asked of memory. Where no reader sits,
in a page, in the tests and when a chapter's outputs are stored, the same call shows `figures.SettingsExplorer`: the same
counts at all settings of the sliders, which moves without a kernel. $GEMM_LIVE is 1 or 0 to have the one or the other.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Mapping, Sequence
from functools import cached_property

import figures
from book.cells.one_setting import SHAPE, run
from book.cells.panel import Panel, counts_table
from book.cells.subjects import subject

MOST_SETTINGS = 24
MOST_SIZE = 1024  # of M, N and K in a rendered page, where the emulator runs in the browser
# Keys belong to what has the focus: JupyterLab would take `d d` on a slider as an order to delete the cell. It asks the focused
# element itself, before any around it, so that one is marked, ahead of JupyterLab's own listener.
KEYS = """<script>(() => {
  if (window.gemmKeys) return;
  window.gemmKeys = true;
  const mark = (event) => {
    if (event.target.closest?.(".gl-live, .gl")) event.target.setAttribute("data-lm-suppress-shortcuts", "true");
  };
  window.addEventListener("keydown", mark, true);
})();</script>"""


def wanted() -> bool:
    """Whether a reader sits before this kernel, whose front end shows widgets."""
    if said := os.environ.get("GEMM_LIVE"):
        return said == "1"
    try:
        import ipywidgets  # noqa: F401
    except ImportError:
        return False
    return "google.colab" in sys.modules or "JPY_SESSION_NAME" in os.environ


class Live:
    """A rung, or a kernel of `measure.published`, whose macros, and a few of whose words, the reader changes: widgets for a
    reader at a kernel, else the figure that needs none.

    choices: {macro: values}; by default those of the rung's search space, of which a page takes at most 24 settings; {} for
    no slider.
    shape: M, N and K of the run. free: {label: words of the source} that the reader may replace, such as an index expression.
    start: macros other than the kernel's defaults. ValueError for words that the source does not contain.
    """

    def __init__(
        self,
        rung: str,
        choices: Mapping[str, Sequence[int]] | None = None,
        *,
        shape: Sequence[int] = SHAPE,
        free: Mapping[str, str] | None = None,
        start: Mapping[str, int] | None = None,
        title: str = "",
    ):
        self.subject = subject(rung)
        choices = self.subject.space if choices is None else choices
        self.choices = {name: tuple(values) for name, values in choices.items()}
        self.shape, self.free, self.title = tuple(shape), dict(free or {}), title
        base = self.subject.macros(start)
        for name, values in self.choices.items():
            if base[name] not in values:
                base[name] = values[0]
        self.base = base
        for label, old in self.free.items():
            if old not in self.subject.text:
                raise ValueError(f"{label}: {self.subject.name} does not contain {old!r}")

    @cached_property
    def figure(self):
        """The counts at every setting of the sliders, as a figure that moves by itself; a table where there is no slider."""
        M, N, K = self.shape
        yours = ["at your settings"] * bool(self.choices) + ["with expressions of your own"] * bool(
            self.free
        )
        caption = (
            f"Counted on the emulator for M, N, K = {M}, {N}, {K}. In JupyterLab and Colab this cell compiles and runs the "
            f"kernel {', '.join(yours)}."
        )
        if not self.choices:
            return counts_table(run(self.subject, self.base, self.shape), self.title, caption)
        settings = list(itertools.product(*self.choices.values()))
        if len(settings) > MOST_SETTINGS:
            raise ValueError(
                f"{len(settings)} settings of {', '.join(self.choices)}: a page shows at most {MOST_SETTINGS}"
            )
        counts, blocks, reports = {}, {}, {}
        for values in settings:
            done = run(
                self.subject,
                self.base | dict(zip(self.choices, values, strict=True)),
                self.shape,
            )
            counts[values], blocks[values] = done.problem or done.rows, done.block
            reports[values] = "" if done.problem else done.report
        start = tuple(self.base[name] for name in self.choices)
        return figures.SettingsExplorer(
            self.choices, counts, start, name=self.subject.words, title=self.title, caption=caption,
            blocks=blocks, reports=reports,
        )  # fmt: skip

    def _ipython_display_(self) -> None:
        from IPython import display as shows
        from IPython.display import HTML, display

        if not wanted():
            display(self.figure)
            if hasattr(shows, "form"):  # a rendered page whose Python runs: `book.page_cells`
                self._ask(shows.form)
            return
        if "google.colab" not in sys.modules:
            display(HTML(KEYS))
        display(Panel(self).box)

    def _ask(self, form) -> None:
        """Free sizes, at every setting whose build the book ships."""

        def count(values):
            from IPython.display import display

            shape = tuple(values.pop(name) for name in "MNK")
            done = run(self.subject, self.base | values, shape)
            said = f"{self.subject.name} at M, N, K = {', '.join(map(str, shape))}: {done.verdict}"
            if done.problem:
                print(said)
            else:
                display(counts_table(done, said))

        fields = {**self.choices, **dict.fromkeys("MNK", range(1, MOST_SIZE + 1))}
        start = {**self.base, **dict(zip("MNK", self.shape, strict=True))}
        form(fields, start, count, "The same kernel at sizes of your own:")


kernel = Live
