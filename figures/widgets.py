"""Figures that the reader moves.

Each explorer is one HTML fragment with its script inside: it needs no kernel, no network and no widget manager, so it
moves in the static page, in JupyterLab (a trusted notebook) and in Colab alike. What it shows is computed in the browser by
the same rules as here (`tests/figures` compares the two). Give `cases` recorded from a kernel's own trace, and re-running
the cell recomputes them from the real kernel.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from inspect import Parameter, Signature
from typing import NamedTuple

from tensor_layouts import MMAAtom
from tensor_layouts.atoms_nv import (
    SM70_8x8x4_F32F16F16F32_NT,
    SM75_16x8x8_F32F16F16F32_TN,
    SM80_16x8x8_F32TF32TF32F32_TN,
    SM80_16x8x16_F32F16F16F32_TN,
)

from figures import carried, style
from figures.access import as_accesses
from figures.drawing import Shown, frame
from figures.fragments import owners

__all__ = [
    "BankExplorer",
    "Choice",
    "CoalescingExplorer",
    "FragmentExplorer",
    "OccupancyExplorer",
    "PipelineExplorer",
    "SwizzleExplorer",
    "TileExplorer",
]

KIB = 1024
# What one multiprocessor has: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability". Bytes are of
# shared memory; `system` of them are taken for each block, which is rounded up to `unit`.
GPUS = {
    name: {
        "warps": w,
        "blocks": b,
        "shared": s * KIB,
        "sharedBlock": p * KIB,
        "system": r,
        "unit": u,
    }
    for name, w, b, s, p, r, u in (
        ("T4 (sm_75)", 32, 16, 64, 64, 0, 256),
        ("A100 (sm_80)", 64, 32, 164, 163, KIB, 128),
        ("L4 (sm_89)", 48, 24, 100, 99, KIB, 128),
        ("H100 (sm_90)", 64, 32, 228, 227, KIB, 128),
        ("RTX PRO 6000 (sm_120)", 48, 24, 100, 99, KIB, 128),
    )
}
ATOMS = (
    SM80_16x8x16_F32F16F16F32_TN,
    SM75_16x8x8_F32F16F16F32_TN,
    SM80_16x8x8_F32TF32TF32F32_TN,
    SM70_8x8x4_F32F16F16F32_NT,
)


@cache
def _script(kind: str) -> str:
    """The JavaScript of an explorer, colours first."""
    folder = files("figures") / "js"
    colors = {
        "lanes": [style.lane_color(lane) for lane in range(32)],
        "banks": [style.bank_color(bank) for bank in range(32)],
        "wavefronts": [style.wavefront_color(n) for n in range(8)],
        "kinds": {
            "load": style.KIND["load"],
            "compute": style.KIND["compute"],
            "wait": style.tint(style.GREY, 0.45),
        },
        "good": style.KIND["good"],
        "bad": style.KIND["bad"],
        "grey": style.GREY,
    }
    common, own = ((folder / f"{name}.js").read_text(encoding="utf-8") for name in ("common", kind))
    return f"const STYLE = {json.dumps(colors)};\n{common}\n{own}"


def mounting(kind: str) -> str:
    """The script that puts the explorer of this kind into every element that waits for it."""
    return f'{_script(kind)}\nmount("{kind}", explorer);'


def _explorers(html: str) -> str:
    kinds = dict.fromkeys(re.findall(r'class="gl-explorer"[^>]* data-kind="(\w+)"', html))
    return "".join(carried.element(mounting(kind)) for kind in kinds)


def _choice(html: str) -> str:
    return carried.element((files("figures") / "js" / "choice.js").read_text(encoding="utf-8"))


carried.SCRIPTS |= {'class="gl-explorer"': _explorers, 'class="gl-choice"': _choice}


class Span(NamedTuple):
    """What a slider reaches."""

    low: float
    high: float


class Explorer(Shown):
    """A figure that the reader moves; subclasses say what with.

    takes: (argument, start, what it may be): a `Span`, a sequence of values, or None for what the subclass looks at itself.
    asks: the title. says: the alternative text, with arguments in braces. carries: (name, value) that the script needs too.
    """

    kind = asks = says = ""
    takes: tuple[tuple, ...] = ()
    carries: tuple[tuple, ...] = ()

    def __init_subclass__(cls):
        if "__init__" in vars(cls):
            return  # its own signature says what it takes
        named = {"title": cls.asks, "caption": ""}
        cls.__signature__ = Signature(
            [
                *(
                    Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=start)
                    for name, start, _ in cls.takes
                ),
                *(Parameter(name, Parameter.KEYWORD_ONLY, default=named[name]) for name in named),
            ]
        )

    def __init__(self, *values, **named):
        bound = self.__signature__.bind(*values, **named)
        bound.apply_defaults()
        given = dict(bound.arguments)
        title, caption = given.pop("title"), given.pop("caption")
        for name, _, allowed in self.takes:
            if isinstance(allowed, Span):
                within(name, given[name], *allowed)
            elif allowed:
                one_of(name, given[name], allowed)
        start, data, words = self.begins(**given)
        self.put(title, self.says.format(**words), start, data, caption)

    def begins(self, **given) -> tuple[Mapping, Mapping, Mapping]:
        """The start as the script names it, what else the script needs, and the words of `says`."""
        return given, dict(self.carries), given

    def put(self, title: str, alt: str, start: Mapping, data: Mapping, caption: str) -> None:
        super().__init__(title=title, alt=alt, caption=caption, facts={"start": dict(start)})
        object.__setattr__(self, "data", {"start": dict(start), **data})

    @property
    def script(self) -> str:
        """The JavaScript that moves it, without mounting: `explorer.model(values, data)` computes what is shown."""
        return _script(self.kind)

    def bare(self) -> str:
        # The attribute keeps JupyterLab's shortcuts away: an arrow moves a slider, and `d d` deletes no cell.
        data = html.escape(json.dumps(self.data, separators=(",", ":")))
        body = (
            f'<div class="gl-explorer" data-lm-suppress-shortcuts="true" data-kind="{self.kind}" data-data="{data}">'
            f"<p>{html.escape(self.alt)} (Moving it needs JavaScript.)</p></div>"
        )
        return frame(body, self.title, self.alt, self.caption)


def within(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise ValueError(f"{name} = {value}: choose from {low} to {high}")


def one_of(name: str, value, options: Sequence) -> None:
    if value not in options:
        raise ValueError(f"{name} = {value!r}: choose one of {', '.join(map(str, options))}")


def _cases(cases, width: int) -> dict:
    """Recorded accesses, for the browser."""
    return {
        name or "recorded": {
            "addresses": [access.addresses[n] if n in access.lanes else -1 for n in range(32)],
            "width": access.bytes,
            "load": access.kind == "load",
        }
        for name, access in (as_accesses(cases, width) if cases is not None else {}).items()
    }


class _OfAccesses(Explorer):
    """cases: accesses recorded from a kernel, {name: access}, that the reader can choose as well."""

    def begins(self, cases, **given):
        recorded = _cases(cases, given["width"])
        source = {"source": next(iter(recorded))} if recorded else {}
        return {**given, **source}, {"cases": recorded}, given


class BankExplorer(_OfAccesses):
    """A warp's shared access: bytes per lane, row length and padding against banks and wavefronts.

    cases: accesses recorded from a kernel, {name: access}, that the reader can choose as well.
    """

    kind = "banks"
    asks = "Change the row length and the padding: when do lanes meet in a bank?"
    says = "An explorer of shared-memory banks, starting with {width} bytes per lane, rows of {row} words, padding {pad}."
    takes = (
        ("width", 4, (4, 8, 16)),
        ("row", 32, Span(1, 64)),
        ("pad", 0, Span(0, 8)),
        ("pattern", "column", ("column", "row")),
        ("cases", None, None),
    )


class CoalescingExplorer(_OfAccesses):
    """A warp's global access: element size, stride and offset against 32-byte sectors.

    cases: accesses recorded from a kernel, {name: access}, that the reader can choose as well.
    """

    kind = "coalescing"
    asks = "Change the stride: how many sectors does one request touch?"
    says = "An explorer of coalescing, starting with elements of {width} bytes, stride {stride}, offset {offset}."
    takes = (
        ("width", 4, (2, 4, 8, 16)),
        ("stride", 1, Span(0, 32)),
        ("offset", 0, Span(0, 16)),
        ("cases", None, None),
    )


class TileExplorer(Explorer):
    """Tile sizes against bytes, operations per byte, shared memory and blocks on a multiprocessor."""

    kind = "tiles"
    asks = "Change the tile: what does a byte from global memory buy?"
    says = "An explorer of tile sizes, starting with BM {bm}, BN {bn}, BK {bk}."
    takes = (
        ("bm", 128, (16, 32, 64, 128, 256)),
        ("bn", 128, (16, 32, 64, 128, 256)),
        ("bk", 16, (4, 8, 16, 32, 64, 128)),
        ("threads", 256, (64, 128, 256, 512, 1024)),
        ("stages", 1, Span(1, 6)),
        ("bytes", 4, (2, 4)),
        ("gpu", "H100 (sm_90)", tuple(GPUS)),
    )
    carries = (("gpus", GPUS),)


class FragmentExplorer(Explorer):
    """Who holds what in an MMA: choose a lane, or point at an element."""

    kind = "fragments"
    asks = "Choose a lane: which elements of A, B and C does it hold?"
    says = "An explorer of MMA fragments: {atoms}, starting with lane {lane}."
    takes = (("atoms", ATOMS, None), ("lane", 0, Span(0, 31)))

    def begins(self, atoms: Sequence[MMAAtom], lane: int):
        if not atoms:
            raise ValueError("no MMA atom was given: there is nothing to explore")
        tables = {_atom_name(atom): {"ptx": atom.ptx, "operands": _tables(atom)} for atom in atoms}
        start = {"atom": next(iter(tables)), "lane": lane}
        return start, {"atoms": tables}, {"atoms": ", ".join(tables), "lane": lane}


def _atom_name(atom: MMAAtom) -> str:
    m, n, k = atom.shape_mnk
    types = atom.ptx.split(".")[-3]
    return f"m{m}n{n}k{k} {types}" + (" (Volta)" if atom.name.startswith("SM70") else "")


def _tables(atom: MMAAtom) -> dict:
    tables = {}
    for operand in "ABC":
        held = owners(atom, operand)
        rows, columns = (max(place[axis] for place in held) + 1 for axis in (0, 1))
        cells = [held[row, column] for row in range(rows) for column in range(columns)]
        tables[operand] = {"rows": rows, "columns": columns, "cells": cells}
    return tables


class SwizzleExplorer(Explorer):
    """`Swizzle<B, M, S>` and padding on a shared tile: banks and wavefronts of its columns."""

    kind = "swizzles"
    asks = "Change B, M and S until every column takes one wavefront"
    says = "An explorer of swizzles, starting with Swizzle<{b}, {m}, {s}> on rows of {chunks} 16-byte chunks."
    takes = (
        ("b", 0, Span(0, 4)),
        ("m", 3, Span(0, 5)),
        ("s", 3, Span(0, 6)),
        ("chunks", 8, (2, 4, 8, 16)),
        ("pad", 0, Span(0, 2)),
        ("element", 2, (2, 4)),
    )


class PipelineExplorer(Explorer):
    """Stages of a pipeline against the time that loads and computations take.

    The model: a tile's load may start as soon as its stage is free, however many loads are under way; one tile is computed at
    a time, in order. In the steady state a tile takes max(compute, (load + compute) / stages).
    """

    kind = "pipeline"
    asks = "Add stages until the math units never wait"
    says = "An explorer of pipelines, starting with {stages} stages, a load of {load} and a computation of {compute}."
    takes = (
        ("stages", 2, Span(1, 8)),
        ("load", 3, Span(0, 12)),
        ("compute", 1, Span(0.5, 6)),
        ("tiles", 8, Span(4, 24)),
    )


class OccupancyExplorer(Explorer):
    """Threads, registers and shared memory of a block against the blocks that a multiprocessor holds."""

    kind = "occupancy"
    asks = "What keeps another block from running?"
    says = "An explorer of occupancy, starting with {threads} threads of {registers} registers and {shared} KiB per block."
    takes = (
        ("threads", 256, Span(32, 1024)),
        ("registers", 64, Span(16, 255)),
        ("shared", 16, Span(0, 227)),
        ("gpu", "H100 (sm_90)", tuple(GPUS)),
    )
    carries = (("gpus", GPUS),)

    def begins(self, **given):
        if given["threads"] % 32:
            raise ValueError(f"threads = {given['threads']}: choose a multiple of 32")
        return super().begins(**given)


_CHOICE_CSS = (
    ".gl-choice>label{display:flex;align-items:center;flex-wrap:wrap;gap:.4em .8em;font-size:13.5px;color:var(--gl-muted);"
    "margin:.2em 0 .5em}.gl-choice input{flex:1 1 160px;max-width:320px;accent-color:#0072b2}"
    ".gl-choice select{font:inherit;color:var(--gl-ink);background:var(--gl-soft);border:1px solid var(--gl-line);"
    "border-radius:6px;padding:.25em .4em}.gl-choice output{font-weight:650;color:var(--gl-ink)}"
    ".gl-choice .gl{border:0;padding:0;margin:0}.gl-choice [hidden]{display:none}"
)
carried.STYLES['class="gl-choice"'] = _CHOICE_CSS


class Choice(Shown):
    """Drawings to flip through with one control: run a kernel for each value of a parameter, and let the reader move it.

    pages: {label: drawing}, in order. name: what the labels are values of ("padding"). slider: a slider rather than a list.
    ValueError for fewer than two pages.
    """

    def __init__(
        self,
        pages: Mapping,
        name: str,
        title: str,
        slider: bool = True,
        start: int = 0,
    ):
        pages = {str(label): page for label, page in pages.items()}
        if len(pages) < 2:
            raise ValueError(f"a choice needs at least two drawings, not {len(pages)}")
        within("start", start, 0, len(pages) - 1)
        alt = f"{len(pages)} figures, one for each {name}. " + " ".join(
            f"{name} {label}: {page.title}." for label, page in pages.items()
        )
        facts = {label: page.facts for label, page in pages.items()}
        super().__init__(title=title, alt=alt, facts=facts)
        for key, value in (("pages", pages), ("name", name), ("slider", slider), ("start", start)):
            object.__setattr__(self, key, value)

    def bare(self) -> str:
        labels = list(self.pages)
        name = html.escape(self.name)
        if self.slider:
            control = (
                f'<label><span>{name}</span><input type="range" min="0" max="{len(labels) - 1}" step="1"'
                f' value="{self.start}"><output>{html.escape(labels[self.start])}</output></label>'
            )
        else:
            options = "".join(
                f'<option value="{at}"{" selected" if at == self.start else ""}>{html.escape(label)}</option>'
                for at, label in enumerate(labels)
            )
            control = f"<label><span>{name}</span><select>{options}</select></label>"
        pages = "".join(
            f'<div class="gl-page" data-label="{html.escape(label)}"{" hidden" if at != self.start else ""}>'
            f"{page.bare()}</div>"
            for at, (label, page) in enumerate(self.pages.items())
        )
        body = f'<div class="gl-choice">{control}{pages}</div>'
        return frame(body, self.title, self.alt, self.caption)
