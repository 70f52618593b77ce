"""CUDA source as HTML: each line with what it cost, and two versions of a kernel with the change marked."""

from __future__ import annotations

import difflib
import html
import re
import textwrap
from collections.abc import Mapping

from figures import carried, style
from figures.cuda import CSS, highlighted
from figures.drawing import Listing, number, plural

__all__ = ["annotated_source", "diff_source"]

# column: (heading, colour, what one unit is)
COLUMNS = {
    "warps": ("instructions", style.GREY, "warp instructions executed"),
    "sectors": ("sectors", style.SKY, "32-byte sectors of global memory"),
    "wavefronts": ("wavefronts", style.ORANGE, "wavefronts of shared memory"),
}
_CONFLICT = style.VERMILION
_FIELDS = {
    "warps": "warps",
    "sectors": "global_sectors",
    "wavefronts": "shared_wavefronts",
    "ideal": "shared_wavefronts_ideal",
}
_MARK = re.compile(r"^\s*//\s*\[(/?)(\w+)\]\s*$")  # marks the parts of a kernel's source

_CODE_CSS = (
    ".gl table.gl-code{table-layout:auto;border-collapse:collapse;width:100%;margin:0;font:12px/1.5 "
    + style.MONO_CSS
    + ";border:0;background:none}"
    # `table`: JupyterLab's own rule for cells, which sets them to the right, is as specific as one without it.
    ".gl table.gl-code :is(td,th){padding:0 .5em;height:22px;border:0;vertical-align:top;text-align:left;background:none;"
    "color:var(--gl-ink);white-space:pre;font-weight:400;font-size:inherit}"
    ".gl .gl-code tr{background:none!important;border:0}"
    ".gl table.gl-code th{font:600 12px/1.6 system-ui,sans-serif;text-align:right;color:var(--gl-muted);padding-bottom:.3em}"
    ".gl .gl-code th:last-child{text-align:left;padding-left:.8em}"
    ".gl .gl-code td.n{color:var(--gl-muted);text-align:right;user-select:none;width:1%;padding-left:0}"
    ".gl .gl-code td.c{width:99%;padding-left:.8em}"
    ".gl .gl-code td.v{min-width:72px;width:1%;line-height:17px;text-align:right;font-size:11.5px;"
    "font-variant-numeric:tabular-nums;"
    "background:var(--gl-soft);border-right:4px solid var(--gl-card)}"
    ".gl .gl-code td.v div{height:4px;display:flex;justify-content:flex-start;margin:0}"
    ".gl .gl-code td.v div b{display:block;height:4px}" + CSS
)


def _highlight(line: str) -> str:
    """One line of CUDA as HTML."""
    return highlighted(line)[0]


def line_costs(trace, file: str | None = None) -> dict[int, dict[str, int]]:
    """What each source line cost: {line: {"warps", "sectors", "wavefronts", "ideal"}}.

    trace: an `emulator.Trace`; code inlined from a header counts at the line that calls it.
    ValueError when the trace has no line information.
    """
    if not hasattr(trace, "by_line"):
        raise ValueError(
            f"costs come from a trace of the emulator, not from {trace!r:.40} (a run on a GPU has none)"
        )
    lines = trace.by_line(file)
    if not lines:
        raise ValueError("the trace names no source lines: build the kernel with -lineinfo")
    return {
        line: {ours: int(cost[theirs]) for ours, theirs in _FIELDS.items()}
        for line, cost in lines.items()
    }


def annotated_source(costs, source: str, title: str | None = None) -> Listing:
    """CUDA source with what each line cost: warp instructions, global sectors, shared wavefronts.

    costs: an `emulator.Trace`, or {line: {"warps", "sectors", "wavefronts", "ideal"}}. source: its text,
    of which the lines from the first to the last that cost something are shown. `facts` holds {"lines": their costs,
    "totals": sums}. Raises ValueError where the costs and the text cannot belong together.
    """
    if not isinstance(costs, Mapping):
        costs = line_costs(costs)
    text = source.splitlines()
    if not costs:
        raise ValueError("no line has a cost: there is nothing to draw")
    first, last = max(min(costs) - 1, 1), min(max(costs) + 1, len(text))
    if first > last:
        raise ValueError(f"lines {first}..{last} are not in the source, which has 1..{len(text)}")
    totals = {
        column: sum(int(cost.get(column, 0)) for cost in costs.values()) for column in _FIELDS
    }
    columns = [column for column in COLUMNS if totals[column]]
    peak = {column: max(int(cost.get(column, 0)) for cost in costs.values()) for column in columns}

    head = "".join(f"<th>{COLUMNS[column][0]}</th>" for column in columns)
    body, plain = [], []
    for at in range(first, last + 1):
        if _MARK.match(text[at - 1]):
            continue
        cost = costs.get(at, {})
        code = text[at - 1].expandtabs(4)
        cells = "".join(_cell(column, cost, peak[column]) for column in columns)
        body.append((at, cells, code))
        numbers = "".join(
            f"{number(cost[column]) if cost.get(column) else '':>14}" for column in columns
        )
        plain.append(f"{at:>4} {numbers}  {code}".rstrip())
    level = _levelled([code for _, _, code in body])
    rows = "".join(
        f'<tr><td class="n">{at}</td>{cells}<td class="c">{_highlight(code) or " "}</td></tr>'
        for (at, cells, _), code in zip(body, level, strict=True)
    )
    heading = "     " + "".join(f"{COLUMNS[column][0]:>14}" for column in columns)
    finding = title or _costliest(costs, totals, columns)
    legend = [(COLUMNS[column][1], COLUMNS[column][2]) for column in columns]
    if "wavefronts" in columns and totals["wavefronts"] > totals["ideal"] > 0:
        legend.append((_CONFLICT, "wavefronts that bank conflicts add"))
    return Listing(
        title=finding,
        alt=f"CUDA source, lines {first} to {last}, with the cost of each line. {finding}.",
        legend=tuple(legend),
        facts={
            "lines": {line: dict(cost) for line, cost in costs.items() if first <= line <= last},
            "totals": totals,
        },
        body='<table class="gl-code"><thead><tr><th></th>'
        + head
        + "<th>CUDA source</th></tr></thead><tbody>"
        + rows
        + "</tbody></table>",
        text="\n".join([heading.rstrip(), *plain]),
    )


def _levelled(code: list[str]) -> list[str]:
    """Lines for the page: directives stand with what they direct, and what all are indented by is left out."""
    lines = list(code)
    for at in reversed(range(len(lines) - 1)):
        if lines[at].startswith("#pragma"):
            below = next((line for line in lines[at + 1 :] if line.strip()), "")
            lines[at] = " " * (len(below) - len(below.lstrip())) + lines[at]
    return textwrap.dedent("\n".join(lines)).split("\n")


def _cell(column: str, cost: Mapping[str, int], peak: int) -> str:
    value = int(cost.get(column, 0))
    if not value:
        return '<td class="v"></td>'
    ideal = min(int(cost.get("ideal", value)) or value, value) if column == "wavefronts" else value
    bars = f'<b style="width:{100 * ideal / peak:.1f}%;background:{COLUMNS[column][1]}"></b>'
    if ideal < value:
        bars += f'<b style="width:{100 * (value - ideal) / peak:.1f}%;background:{_CONFLICT}"></b>'
    return f'<td class="v">{number(value)}<div>{bars}</div></td>'


def _costliest(costs, totals, columns) -> str:
    column = next((c for c in ("wavefronts", "sectors", "warps") if c in columns), None)
    if "wavefronts" in columns and totals["wavefronts"] <= totals["ideal"] and "sectors" in columns:
        column = "sectors"
    if column is None:
        return "None of these lines cost anything"
    line = max(costs, key=lambda at: (costs[at].get(column, 0), -at))
    share = costs[line].get(column, 0) / totals[column]
    return f"Line {line} takes {share:.0%} of the {COLUMNS[column][2]}"


_DIFF_CSS = (
    ".gl .gl-code tr.add td{background:#009e7326}.gl .gl-code tr.del td{background:#d55e001f}"
    ".gl .gl-code tr.del td.c{text-decoration:line-through;text-decoration-color:var(--gl-muted)}"
    ".gl .gl-code td.g{width:1%;font-weight:700;padding:0 .3em;text-align:center}"
    ".gl .gl-code tr.add td.g{border-left:3px solid #009e73}.gl .gl-code tr.del td.g{border-left:3px solid #d55e00}"
    ".gl .gl-code tr.skip td{color:var(--gl-muted)}"
)
carried.STYLES['class="gl-code"'] = _CODE_CSS + _DIFF_CSS


def diff_source(
    before: str,
    after: str,
    names: tuple[str, str] = ("before", "after"),
    context: int | None = None,
    title: str | None = None,
) -> Listing:
    """Two versions of a kernel as one listing: + marks what is new, - what is gone.

    before, after: source texts. context: how many unchanged lines to keep round a change; all when left out.
    `facts` holds {"added": lines, "removed": lines}.
    """
    if context is not None and context < 0:
        raise ValueError(f"context is how many lines to keep round a change, not {context}")
    old, new = (textual.expandtabs(4).splitlines() for textual in (before, after))
    if not old and not new:
        raise ValueError("both sources are empty: there is nothing to compare")
    rows: list[tuple[str, int | None, str]] = []
    for tag, a0, a1, b0, b1 in difflib.SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        if tag == "equal":
            rows += [(" ", at + 1, new[at]) for at in range(b0, b1)]
        else:
            rows += [("-", None, old[at]) for at in range(a0, a1)]
            rows += [("+", at + 1, new[at]) for at in range(b0, b1)]
    added = sum(mark == "+" for mark, _, _ in rows)
    removed = sum(mark == "-" for mark, _, _ in rows)
    if context is not None:
        rows = _near_changes(rows, min(context, len(rows)))
    classes = {"+": ("add", "added"), "-": ("del", "removed"), " ": ("", ""), "…": ("skip", "")}
    body, plain = [], []
    level = _levelled_diff(rows)
    for (mark, at, code), line in zip(rows, level, strict=True):
        kind, spoken = classes[mark]
        label = f' aria-label="{spoken}"' if spoken else ""
        shown = _highlight(line) if mark != "…" else html.escape(code)
        body.append(
            f'<tr{f" class={kind}" if kind else ""}><td class="n">{at or ""}</td><td class="g"{label}>{mark.strip()}</td>'
            f'<td class="c">{shown or " "}</td></tr>'
        )
        plain.append(f"{mark} {code}".rstrip())
    finding = title or (
        f"From {names[0]} to {names[1]}: {plural(added, 'line')} added, {number(removed)} removed"
        if added or removed
        else f"{names[0]} and {names[1]} are the same"
    )
    return Listing(
        title=finding,
        alt=f"Source of {names[1]} with its changes since {names[0]} marked: {added} added, {removed} removed.",
        facts={"added": added, "removed": removed},
        body=f'<table class="gl-code"><tbody>{"".join(body)}</tbody></table>',
        text="\n".join(plain),
    )


def _levelled_diff(rows) -> list[str]:
    """The lines of a listing of changes for the page, old and new each levelled by themselves."""
    shown = [code for _, _, code in rows]
    for marks in ("-", " +"):
        places = [at for at, row in enumerate(rows) if row[0] in marks]
        levelled = _levelled([shown[at] for at in places]) if places else []
        for at, line in zip(places, levelled, strict=True):
            shown[at] = line
    return shown


def _near_changes(rows, context: int):
    changed = [at for at, row in enumerate(rows) if row[0] != " "]
    keep = {
        at + d for at in changed for d in range(-context, context + 1) if 0 <= at + d < len(rows)
    }
    out, skipped = [], 0
    for at, row in enumerate(rows):
        if at in keep:
            if skipped:
                out.append(("…", None, f"{skipped} unchanged line{'s' if skipped > 1 else ''}"))
            out.append(row)
            skipped = 0
        else:
            skipped += 1
    if skipped:
        out.append(("…", None, f"{skipped} unchanged line{'s' if skipped > 1 else ''}"))
    return out
