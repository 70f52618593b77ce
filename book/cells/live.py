"""A kernel under the reader's hands: `live.kernel("tiled", {"BLOCK": (8, 16, 32)})` as the last line of a cell.

In JupyterLab and Colab these are ipywidgets (7.7 and 8): a slider for each macro, boxes that take an expression of the
reader's own, and below them what the kernel, compiled anew and run on the emulator, asked of memory. Where no reader sits,
in a page, in the tests and when a chapter's outputs are stored, the same call shows `figures.SettingsExplorer`: the same
counts at all settings of the sliders, which moves without a kernel. $GEMM_LIVE is 1 or 0 to have the one or the other.
"""

from __future__ import annotations

import ctypes
import html
import itertools
import os
import re
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

import figures
import kernels
from book.cells import memory, variants
from kernels.errors import BuildError
from kernels.gemm import arch_on_emulator, gemm, plan
from kernels.machine import gpu
from measure.timing import cublas_launches, matrices, measure, rung_launches

SHAPE = (128, 128, 32)  # a few steps along K are enough to see what one asks
TIMED = (1024, 2048, 4096)
PATIENCE_S = 0.5  # a run that takes longer shows its progress
MOST_SETTINGS = 24
# Instructions whose addresses no lane has: how an opcode begins -> what it is called here.
UNADDRESSED = {
    "cp.async.bulk.tensor.2d.shared": "TMA reads",
    "cp.async.bulk.tensor.2d.global": "TMA writes C",
    "wgmma.mma_async": "wgmma reads",
}
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


class Stopped(BaseException):
    """The reader has moved on: raised in the thread whose run nobody waits for."""


@dataclass(frozen=True)
class Outcome:
    """What one run at one setting gave. `problem` says in words why there is none."""

    macros: Mapping[str, int]
    seconds: float = 0.0
    right: bool = False
    wrong: str = ""
    trace: object = field(default=None, repr=False)
    text: str = field(default="", repr=False)
    problem: str = ""
    block: str = ""  # what a block takes of a multiprocessor

    @cached_property
    def rows(self) -> list[tuple]:
        """(access, requests, sectors, wavefronts, ideal) for each kind of access; a copy from global into shared memory is
        two of them, what it reads and what it writes.
        """
        rows = []
        for name, row in memory.traffic(self.trace).items():
            if row.sectors and row.wavefronts:
                copy = ".".join(name.split()[0].split(".")[:2])
                rows.append((f"{copy} reads", row.instructions, row.sectors, 0, 0))
                rows.append((f"{copy} writes", row.instructions, 0, row.wavefronts, row.ideal))
            else:
                rows.append((name, row.instructions, row.sectors, row.wavefronts, row.ideal))
        return [*rows, *self._by_hardware()]

    def _by_hardware(self) -> list[tuple]:
        """The rows of what no lane addresses: TMA's tiles, and the operands of wgmma."""
        found: dict[str, list[int]] = {}
        for row in self.trace.instructions:
            name = next((n for start, n in UNADDRESSED.items() if row.opcode.startswith(start)), "")
            if not name or not row.warps:
                continue
            counts = (
                row.warps,
                row.global_sectors,
                row.shared_wavefronts,
                row.shared_wavefronts_ideal,
            )
            found[name] = [a + b for a, b in zip(found.get(name, [0] * 4), counts, strict=True)]
        return [(name, *counts) for name, counts in found.items()]

    @property
    def verdict(self) -> str:
        if self.problem:
            return self.problem
        hazards = len(self.trace.hazards or ())
        said = "The product is right" if self.right else f"The product is wrong: {self.wrong}"
        return said + (f", and {hazards} hazards were found." if hazards else ".")


def run(
    rung: str,
    macros: Mapping[str, int],
    shape: Sequence[int] = SHAPE,
    changes: Sequence[tuple[str, str]] = (),
) -> Outcome:
    """One run on the emulator, of the rung or of its source with `changes`; never raises for what a reader may choose."""
    M, N, K = shape
    rung = kernels.find(rung)
    started = time.perf_counter()
    types = rung.types(macros)
    A, B = kernels.random_inputs(types, M, N, K)[:2]
    text = rung.path.read_text(encoding="utf-8")
    try:
        built = None
        if changes:
            text = variants.source(rung.name, *changes)
            built = variants.build(
                rung.name, f"{rung.name}_yours", *changes,
                arch=rung.target(str(arch_on_emulator(rung))), macros=macros,
            )  # fmt: skip
        done = gemm(rung.name, A, B, macros=dict(macros), machine="emulator", built=built)
    except BuildError as refused:
        asserted = re.search(r'static assertion failed with "(.*?)"', str(refused))
        why = f"the kernel asks that {asserted[1]}" if asserted else str(refused)
        return Outcome(macros, problem=f"It does not compile: {why}")
    except Exception as refused:  # a setting that is refused, or a kernel that faults
        return Outcome(macros, problem=f"{type(refused).__name__}: {refused}")
    found = kernels.accuracy(done.C, A, B, np.zeros_like(done.C), 1.0, 0.0, types)
    seconds = time.perf_counter() - started
    return Outcome(macros, seconds, found.ok, str(found), done.trace, text, block=taken(done.plan))


def taken(how) -> str:
    """What a block of a plan takes of a multiprocessor, in words."""
    threads = int(np.prod(how.block))
    shared = how.shared_bytes + how.build.report.shared_bytes
    registers = how.build.report.registers
    return (
        f"A block of {threads} threads takes {shared:,} bytes of shared memory"
        f" and {registers} registers a thread."
    )


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
    """What `kernel` returns: widgets for a reader at a kernel, else the figure that needs none."""

    def __init__(self, rung, choices, shape, free, start, title, caption):
        self.rung = kernels.find(rung)
        self.choices = {name: tuple(values) for name, values in choices.items()}
        self.shape, self.free = tuple(shape), dict(free or {})
        self.title, self.caption = title, caption
        base = self.rung.resolve(start)
        for name, values in self.choices.items():
            if base[name] not in values:
                base[name] = values[0]
        self.base = base
        for label, old in self.free.items():
            if old not in variants.source(self.rung.name):
                raise ValueError(f"{label}: {self.rung.name} does not contain {old!r}")

    @cached_property
    def figure(self):
        """The counts at every setting of the sliders, as a figure that moves by itself."""
        settings = list(itertools.product(*self.choices.values()))
        if len(settings) > MOST_SETTINGS:
            raise ValueError(
                f"{len(settings)} settings of {', '.join(self.choices)}: a page shows at most {MOST_SETTINGS}"
            )
        counts, blocks = {}, {}
        for values in settings:
            done = run(
                self.rung.name,
                self.base | dict(zip(self.choices, values, strict=True)),
                self.shape,
            )
            counts[values], blocks[values] = done.problem or done.rows, done.block
        start = tuple(self.base[name] for name in self.choices)
        M, N, K = self.shape
        return figures.SettingsExplorer(
            self.choices, counts, start, name=self.rung.name, title=self.title,
            caption=self.caption or f"Counted on the emulator for M, N, K = {M}, {N}, {K}. In JupyterLab and Colab this cell "
            "compiles and runs the kernel at your settings, with expressions of your own.",
            blocks=blocks,
        )  # fmt: skip

    def _ipython_display_(self) -> None:
        from IPython.display import HTML, display

        if not wanted():
            display(self.figure)
            return
        if "google.colab" not in sys.modules:
            display(HTML(KEYS))
        display(Panel(self).box)


class Panel:
    """The widgets. Each change starts a run in a thread of its own and stops the one before."""

    def __init__(self, live: Live):
        import ipywidgets as widgets

        self.live, self.job, self.first, self.outcome = live, None, None, None
        wide = widgets.Layout(width="98%")
        own = {"description_width": "initial"}

        def slider(options, value, description):
            made = widgets.SelectionSlider(
                options=options, value=value, description=description,
                continuous_update=False, style=own,
            )  # fmt: skip
            made.observe(self.changed, "value")
            return made

        self.sliders = {
            name: slider(values, live.base[name], name) for name, values in live.choices.items()
        }
        M, N, _ = live.shape
        self.size = slider(sorted({64, M, 128, 256}), M, "M = N" if M == N else "M")
        self.boxes = {}
        for label, old in live.free.items():
            box = widgets.Text(
                value=old, description=label, continuous_update=False, style=own, layout=wide
            )
            box.observe(self.changed, "value")
            self.boxes[label] = box
        self.state, self.took = widgets.HTML(), widgets.HTML()
        self.bar = widgets.IntProgress(min=0, max=100, layout=widgets.Layout(width="180px"))
        self.stop = widgets.Button(description="Stop", disabled=True)
        self.stop.on_click(lambda _: self.stopped())
        self.reset = widgets.Button(description="Reset")
        self.reset.on_click(lambda _: self.begin_again())
        buttons = [self.reset, self.stop, self.bar, self.took]
        if gpu() is not None:
            self.timed_at = widgets.Dropdown(options=TIMED, value=4096, description="time at")
            button = widgets.Button(
                description=f"Time it on {gpu().name}"[:40], layout={"width": "auto"}
            )
            button.on_click(lambda _: self.start(self.take_time))
            buttons += [self.timed_at, button]
        self.counts = widgets.HTML(layout=wide)
        self.access = widgets.Dropdown(description="access", style=own)
        self.step = widgets.IntSlider(min=0, max=0, description="k step", continuous_update=False)
        self.lane = widgets.IntSlider(min=0, max=31, description="lane")
        for chosen in (self.access, self.step, self.lane):
            chosen.observe(self.look, "value")
        self.picture, self.said = widgets.HTML(layout=wide), widgets.HTML(layout=wide)
        self.source = widgets.HTML(layout=wide)
        source = widgets.Accordion(children=[self.source], selected_index=None)
        source.set_title(0, "The source, and what each line cost")
        self.box = widgets.VBox(
            [
                widgets.HTML(f"<b>{html.escape(live.title or live.rung.name)}</b>"),
                widgets.HBox([*self.sliders.values(), self.size], layout={"flex_flow": "row wrap"}),
                *self.boxes.values(),
                widgets.HBox(buttons, layout={"flex_flow": "row wrap"}),
                self.state,
                self.counts,
                widgets.HBox([self.access, self.step, self.lane], layout={"flex_flow": "row wrap"}),
                self.said,
                self.picture,
                source,
            ]
        )
        self.box.add_class("gl-live")
        self.start(self.count)

    # What the reader has chosen.

    def macros(self) -> dict[str, int]:
        return self.live.base | {name: slider.value for name, slider in self.sliders.items()}

    def changes(self) -> list[tuple[str, str]]:
        """(old, new) for each box that holds something else than the kernel's own words."""
        pairs = ((old, self.boxes[label].value.strip()) for label, old in self.live.free.items())
        return [(old, new) for old, new in pairs if new != old]

    # Running: one thread at a time, which the next one stops.

    def changed(self, _=None) -> None:
        if not getattr(self, "quiet", False):
            self.start(self.count)

    def start(self, work) -> None:
        before, self.job = self.job, Job(work)
        self.job.before = before
        self.stop.disabled = False
        self.job.start()
        threading.Thread(target=self.watch, args=(self.job,), daemon=True).start()

    def watch(self, job: Job) -> None:
        """Shows how long a run has taken, against the time of the last one, until it ends."""
        started, expected = time.perf_counter(), max(2.0, getattr(self.outcome, "seconds", 0))
        job.join(PATIENCE_S)
        while job.is_alive() and job is self.job:
            took = time.perf_counter() - started
            self.bar.value = int(min(95, 100 * took / expected))
            self.took.value = f"<i>compiling and running ... {took:.0f} s</i>"
            job.join(0.3)
        if job is self.job:
            self.bar.value, self.stop.disabled = 0, True
            self.took.value = "<i>stopped</i>" if job.stopped else ""

    def stopped(self) -> None:
        if self.job is not None:
            self.job.stop()

    def begin_again(self) -> None:
        self.quiet = True
        for name, slider in self.sliders.items():
            slider.value = self.live.base[name]
        for label, old in self.live.free.items():
            self.boxes[label].value = old
        self.size.value = self.live.shape[0]
        self.quiet = False
        self.start(self.count)

    def count(self) -> None:
        M, (least, N, K) = self.size.value, self.live.shape
        shape = (M, M if least == N else N, K)
        done = run(self.live.rung.name, self.macros(), shape, self.changes())
        self.show(done)

    def take_time(self) -> None:
        """The setting against cuBLAS on the GPU."""
        size, rung = self.timed_at.value, self.live.rung
        macros, changes = self.macros(), self.changes()
        try:
            built = None
            if changes:
                built = variants.build(
                    rung.name, f"{rung.name}_yours", *changes, arch=None, macros=macros
                )
            how = plan(rung, size, size, size, macros, built=built)
            sets = matrices(how.types, how.shapes())
            against = {"this setting": rung_launches(how, sets)}
            if how.padded == how.size:
                against["cuBLAS"] = cublas_launches(sets, how.types, rung.a_major, rung.b_major)
            found = measure(against)
        except Exception as refused:  # the reader's kernel may do anything
            self.state.value = _problem(f"{type(refused).__name__}: {refused}")
            return
        speeds = ", ".join(
            f"{name} {time_.tflops(size, size, size):.1f} TFLOP/s" for name, time_ in found.items()
        )
        self.state.value = f"<b>{speeds}</b> at {size}, on {html.escape(gpu().name)}."

    # Showing.

    def show(self, done: Outcome) -> None:
        self.outcome = done
        if done.problem:
            self.state.value = _problem(done.problem)
            return
        self.first = self.first or done
        colour = "inherit" if done.right else "#d55e00"
        said = f'<span style="color:{colour}">{html.escape(done.verdict)}</span>'
        self.state.value = f"{said} {done.block} <i>{done.seconds:.1f} s</i>"
        self.counts.value = self.table(done).html()
        self.source.value = figures.annotated_source(done.trace, done.text).html()
        named = list(memory._named(done.trace))
        options = [
            (f"{name}, line {row.source[1] if row.source else '?'}, {row.opcode}", at)
            for at, (name, row) in enumerate(named)
        ]
        self.named = named
        kept = self.access.value if self.access.value in range(len(options)) else None
        if kept is None:  # begin with a read of shared memory, where there is one
            kept = next((at for at, (name, _) in enumerate(named) if name == "load shared"), 0)
        self.quiet = True
        self.access.options = options
        self.access.value = kept
        self.quiet = False
        self.look()

    def table(self, done: Outcome):
        before = {row[0]: row for row in self.first.rows}
        rows = []
        for name, requests, sectors, wavefronts, ideal in done.rows:
            unit = 2 if sectors else 3
            then = before[name][unit] if name in before else None
            rows.append(
                [name, requests, sectors or "", wavefronts or "", (wavefronts - ideal) or "", then]
            )
        return figures.table(
            {
                "access": "what was accessed, and how",
                "requests": "instructions executed by a warp",
                "sectors": "32-byte pieces of global memory",
                "wavefronts": "passes of shared memory",
                "conflicts": "wavefronts that bank conflicts add",
                "at first": "sectors or wavefronts of the setting that was shown first",
            },
            rows,
            title="What this setting asks of memory",
        )

    def look(self, _=None) -> None:
        """Draws the chosen access, at the chosen step, and says what the chosen lane asks."""
        if self.outcome is None or self.outcome.problem or getattr(self, "quiet", False):
            return
        if not self.named:  # TMA and wgmma have no addresses of lanes
            self.picture.value = self.said.value = ""
            return
        name, row = self.named[self.access.value or 0]
        found = [one for one in self.outcome.trace.accesses(row, 0) if one.active.any()]
        if not found:
            self.picture.value = "<i>Warp 0 of the first block takes no part in this access.</i>"
            return
        self.step.max = len(found) - 1
        access = memory._drawable(found[min(self.step.value, len(found) - 1)])
        shared = found[0].space == "shared"
        draw = figures.shared_banks if shared else figures.global_access
        self.picture.value = draw({name: access}).html()
        self.said.value = html.escape(_lane(access, self.lane.value, shared))


def _lane(access, lane: int, shared: bool) -> str:
    at = access.addresses[lane]
    if at < 0:
        return f"Lane {lane} takes no part."
    if shared:
        return f"Lane {lane}: {access.bytes} bytes at {at}, from bank {at // 4 % 32} on."
    mates = sum(1 for other in access.addresses if other >= 0 and other // 32 == at // 32)
    return f"Lane {lane}: {access.bytes} bytes at {at}, in a sector that {mates} lanes want."


def _problem(words: str) -> str:
    return (
        '<pre style="color:#d55e00;white-space:pre-wrap;line-height:1.35">'
        f"{html.escape(words)}</pre>"
    )


class Job(threading.Thread):
    """Work in a thread that can be stopped: at the next line of Python that it comes to."""

    def __init__(self, work):
        super().__init__(daemon=True)
        self.work, self.before, self.stopped = work, None, False

    def run(self) -> None:
        try:
            if self.before is not None:
                self.before.stop()
                self.before.join()
                self.before = None
            self.work()
        except Stopped:
            self.stopped = True

    def stop(self) -> None:
        if self.is_alive():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self.ident), ctypes.py_object(Stopped)
            )


def kernel(
    rung: str,
    choices: Mapping[str, Sequence[int]] | None = None,
    *,
    shape: Sequence[int] = SHAPE,
    free: Mapping[str, str] | None = None,
    start: Mapping[str, int] | None = None,
    title: str = "",
    caption: str = "",
) -> Live:
    """A rung whose macros, and a few of whose words, the reader changes.

    choices: {macro: values}; by default those of the rung's search space, of which a page takes at most 24 settings.
    shape: M, N and K of the run. free: {label: words of the source} that the reader may replace, such as an index expression.
    start: macros other than the row's. ValueError for words that the source does not contain.
    """
    if choices is None:
        choices = kernels.find(rung).space
    return Live(rung, choices, shape, free, start, title, caption)
