"""The widgets of `live.kernel`, for a reader at a kernel."""

from __future__ import annotations

import ctypes
import html
import threading
import time

import figures
from book.cells import memory
from book.cells.one_setting import Outcome, run
from kernels.gpus import gpu
from measure.timing import measure

TIMED = (1024, 2048, 4096)
PATIENCE_S = 0.5  # a run that takes longer shows its progress


class Stopped(BaseException):
    """The reader has moved on: raised in the thread whose run nobody waits for."""


class Panel:
    """The widgets. Each change starts a run in a thread of its own and stops the one before."""

    def __init__(self, live):
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
        self.size = slider(live.subject.sizes(M), M, "M = N" if M == N else "M")
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
                widgets.HTML(f"<b>{html.escape(live.title or live.subject.name)}</b>"),
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
        done = run(self.live.subject, self.macros(), shape, self.changes())
        self.show(done)

    def take_time(self) -> None:
        """The setting against cuBLAS on the GPU."""
        size = self.timed_at.value
        try:
            found = measure(self.live.subject.launches(self.macros(), size, self.changes()))
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
        table = counts_table(done, "What this setting asks of memory", first=self.first)
        self.counts.value = table.html()
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


def counts_table(done: Outcome, title: str, caption: str = "", first: Outcome | None = None):
    """What a run asked of memory, a row for each kind of access; `first`: another run, whose counts stand beside."""
    heads = {
        "access": "what was accessed, and how",
        "requests": "instructions executed by a warp",
        "sectors": "32-byte pieces of global memory",
        "wavefronts": "passes of shared memory",
        "conflicts": "wavefronts that bank conflicts add",
    }
    rows = [
        [name, requests, sectors or "", wavefronts or "", (wavefronts - ideal) or ""]
        for name, requests, sectors, wavefronts, ideal in done.rows
    ]
    if first is not None:
        heads["at first"] = "sectors or wavefronts of the setting that was shown first"
        before = {row[0]: row for row in first.rows}
        for row in rows:
            unit = 2 if row[2] else 3
            row.append(before[row[0]][unit] if row[0] in before else None)
    return figures.table(heads, rows, title=title, caption=caption)


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
