"""Tables whose columns explain themselves: HTML in a page, plain text in a terminal and in tests."""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from figures import carried
from figures.drawing import Shown, frame, number

__all__ = ["Table", "table"]

_CSS = (
    ".gl table.gl-table{border-collapse:collapse;margin:.2em 0!important;font-size:13.5px;font-variant-numeric:tabular-nums;"
    "width:auto;display:table;color:var(--gl-ink);background:none}"
    ".gl table.gl-table th,.gl table.gl-table td{padding:.28em 1.1em .28em 0;border:0;border-bottom:1px solid var(--gl-line);"
    "text-align:left;vertical-align:top;font-weight:400;color:var(--gl-ink);background:none}"
    ".gl table.gl-table thead th{font-weight:650;vertical-align:bottom;border-bottom:1.5px solid var(--gl-muted)}"
    + "".join(
        f".gl table.gl-table.n{n} tr>:nth-child({n}){{text-align:right}}"
        f".gl table.gl-table.n{n} td:nth-child({n}){{white-space:nowrap}}"
        for n in range(2, 25)
    )
    + ".gl table.gl-table tr:last-child td,.gl table.gl-table tr:last-child th{border-bottom:0}"
    ".gl-means{border-bottom:1px dotted var(--gl-muted);cursor:help}"
    ".gl-means:focus-visible,.gl-scroll:focus-visible{outline:2px solid #0072b2;outline-offset:2px}"
    ".gl-columns{font-size:13px;color:var(--gl-muted);margin:.5em 0 0}.gl-columns summary{cursor:pointer}"
    ".gl-columns dl{margin:.4em 0 0;display:grid;grid-template-columns:max-content 1fr;gap:.15em 1em}"
    ".gl-columns dt{font-weight:600;margin:0;color:var(--gl-ink)}.gl-columns dd{margin:0}"
    "@media (max-width:520px){.gl-columns dl{grid-template-columns:1fr}.gl-columns dd{margin-bottom:.35em}"
    ".gl table.gl-table{font-size:12.5px}.gl table.gl-table th,.gl table.gl-table td{padding-right:.8em}}"
    "@media print{.gl-columns:not([open])>:not(summary){display:block}}"
)
carried.STYLES['class="gl-table'] = _CSS
_NUMERIC = re.compile(r"[-+−]?[\d.,]+(e[-+]?\d+)?( ?[%x×]| of [\d,]+| ?\+ ?[\d.,]+)?|-|")


@dataclass(frozen=True, repr=False)
class Table(Shown):
    """Rows of cells under columns that say what they mean. `columns`: {name: meaning}; `rows`: cells as text."""

    columns: tuple[tuple[str, str], ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()

    @property
    def _numeric(self) -> list[bool]:
        """Which columns hold numbers only, and are aligned right."""
        cells = zip(*self.rows, strict=True) if self.rows else [() for _ in self.columns]
        return [i > 0 and all(map(_NUMERIC.fullmatch, cell)) for i, cell in enumerate(cells)]

    def bare(self) -> str:
        mark = hashlib.sha256(repr((self.title, self.columns, self.rows)).encode()).hexdigest()[:8]
        numeric = self._numeric
        classes = ["gl-table", *(f"n{i + 1}" for i, right in enumerate(numeric) if right)]
        explained = [(i, *column) for i, column in enumerate(self.columns) if column[1]]
        head = "".join(
            f'<th scope="col">{_head(name, meaning, f"col-{mark}-{i}")}</th>'
            if name
            else "<td></td>"
            for i, (name, meaning) in enumerate(self.columns)
        )
        body = "".join(f"<tr>{_cells(row)}</tr>" for row in self.rows)
        meanings = "".join(
            f'<dt>{_markup(name)}</dt><dd id="col-{mark}-{i}">{_markup(meaning)}</dd>'
            for i, name, meaning in explained
        )
        table = (
            f'<table class="{" ".join(classes)}" aria-label="{html.escape(self.alt)}"><thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table>"
        )
        framed = frame(table, self.title, self.alt, self.caption)
        framed = framed.replace(
            '<div class="gl-scroll">', '<div class="gl-scroll" tabindex="0">', 1
        )
        details = f'<details class="gl-columns"><summary>What the columns mean</summary><dl>{meanings}</dl></details>'
        return framed.replace("</figure>", f"{details if explained else ''}</figure>")

    def plain(self) -> str:
        names = tuple(name for name, _ in self.columns)
        grid = [tuple(cell.replace("`", "") for cell in row) for row in (names, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
        numeric = self._numeric
        lines = [
            "  ".join(
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(row, widths, numeric, strict=True)
            ).rstrip()
            for row in grid
        ]
        return "\n".join(part for part in (self.title, *lines, self.caption) if part)


def table(
    columns: Mapping[str, str],
    rows: Sequence[Sequence],
    title: str = "",
    caption: str = "",
) -> Table:
    """A table: `columns` is {heading: what it means}, each row has a cell for each.

    A number is shown with thousands separators or three digits, None as "-", text as it is, with `words` in backticks as
    code; columns of numbers are aligned right. A heading without words needs no meaning, every other one does: ValueError
    names those that lack one, and a row that has more or fewer cells than there are columns.
    """
    silent = [name for name, meaning in columns.items() if name and not meaning]
    if silent:
        raise ValueError(f"columns without a meaning: {', '.join(silent)}")
    for row in rows:
        if len(row) != len(columns):
            raise ValueError(f"{len(columns)} columns, but {len(row)} cells in {list(row)}")
    named = ", ".join(name for name in columns if name)
    return Table(
        title=title,
        alt=f"A table{f': {title}' if title else ''}. Columns: {named}.".replace("`", ""),
        caption=caption,
        facts={"rows": [list(row) for row in rows]},
        columns=tuple(columns.items()),
        rows=tuple(tuple(_text(cell) for cell in row) for row in rows),
    )


def _text(cell) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return number(cell) if isinstance(cell, int | float) else str(cell)


def _head(name: str, meaning: str, where: str) -> str:
    if not meaning:
        return _markup(name)
    return f'<span class="gl-means" tabindex="0" aria-describedby="{where}">{_markup(name)}</span>'


def _cells(row: Sequence[str]) -> str:
    first, *rest = row
    cells = "".join(f"<td>{_markup(cell)}</td>" for cell in rest)
    return f'<th scope="row">{_markup(first)}</th>{cells}'


def _markup(text: str) -> str:
    pieces = html.escape(text).split("`")
    return "".join(f"<code>{piece}</code>" if i % 2 else piece for i, piece in enumerate(pieces))
