"""An inspection as one HTML file: no script, no network, light and dark."""

from __future__ import annotations

import html

import figures
from figures import style
from figures.access import as_accesses

PAGE_CSS = (
    ":root{"
    + ";".join(f"--gl-{name}:{light}" for name, (light, _) in style.PAGE.items())
    + "}body{font:16px/1.55 system-ui,sans-serif;max-width:940px;margin:2em auto;padding:0 1em;background:var(--gl-card);"
    "color:var(--gl-ink)}h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}li{margin:.15em 0}"
    ":root{color-scheme:light dark}"
)
# The page has no switch, so it follows the reader's system.
DARK_CSS = (
    "@media(prefers-color-scheme:dark){:root,.gl{"
    + ";".join(f"--gl-{name}:{dark}!important" for name, (_, dark) in style.PAGE.items())
    + "}}"
)
MOST = 8  # hazards drawn
HEADINGS = {
    "line": "the line in the source",
    "instruction": "the first PTX instruction of that line",
    "requests": "how often a warp executed it",
}


def page(found) -> str:
    parts = [f"<h1>{html.escape(found.name)}: {html.escape(found.entry)}</h1>"]
    parts.append(
        "<ul>" + "".join(f"<li>{html.escape(said)}</li>" for said in found.head()) + "</ul>"
    )
    parts += ["<h2>What each line cost</h2>", found.annotated().html()]
    parts.append("<h2>Bank conflicts</h2>")
    parts += _section(found.conflicts, "wavefronts", "No access to shared memory has a conflict.")
    parts += _drawn(conflict_figure(found))
    parts.append("<h2>Loads from shared memory as the machine code has them</h2>")
    parts.append(f"<pre>{html.escape(found.machine_text())}</pre>")
    parts.append("<h2>Sectors that are not used</h2>")
    parts += _section(found.wasted, "sectors", "The accesses to global memory use what they move.")
    parts += _drawn(sector_figure(found))
    parts += ["<h2>Bound</h2>", f"<p>{html.escape(found.bound_text())}</p>"]
    parts.append("<h2>Hazards</h2>")
    if not found.hazards:
        parts.append("<p>None were found.</p>")
    for hazard in found.hazards[:MOST]:
        parts.append(f"<p>{html.escape(str(hazard))}</p>")
        parts += _drawn(hazard_figure(found, hazard))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{html.escape(found.name)}</title><style>{PAGE_CSS}{DARK_CSS}</style></head><body>"
        + "\n".join(parts)
        + "</body></html>\n"
    )


def _drawn(figure) -> list[str]:
    return [] if figure is None else [figure.html()]


def findings_table(found, unit: str, title: str = ""):
    """A table of findings, as `Inspection.conflicts` or `.wasted` has them."""
    columns = {
        **HEADINGS,
        f"{unit} per request": f"{unit} that a warp's access takes, on average",
        "would do": f"{unit} that would do for the same bytes, on average",
        "source": "the line's text",
    }
    rows = [
        [str(f.line), f.opcode, f.requests, f.each(f.taken), f.each(f.needed), f"`{f.text[:60]}`"]
        for f in found
    ]
    return figures.table(columns, rows, title=title)


def _section(found, unit: str, none: str) -> list[str]:
    return [findings_table(found, unit).html()] if found else [f"<p>{none}</p>"]


def conflict_figure(found):
    """The banks of the worst access in the line that wastes most wavefronts; None where there is none."""
    return _worst(found, found.conflicts, "shared", figures.shared_banks, "wavefronts")


def sector_figure(found):
    """The sectors of the worst access in the line that wastes most of them; None where there is none."""
    return _worst(found, found.wasted, "global", figures.global_access, "sectors")


def _worst(found, lines, space: str, draw, counted: str):
    if not lines:
        return None
    accesses = [
        access
        for row in found.trace.instructions
        if found._line(row) == lines[0].line
        for access in found.trace.accesses(row)
        if access.space == space
    ]
    drawn = []
    for access in accesses:
        try:
            one = as_accesses(access)[""]
        except ValueError:  # an access that is no warp's own, such as a bulk copy
            continue
        number = one.wavefronts if counted == "wavefronts" else len(one.sectors)
        drawn.append((number, access))
    if not drawn:
        return None
    worst = max(drawn, key=lambda pair: pair[0])[1]
    return draw({f"line {lines[0].line}": worst})


def hazard_figure(found, hazard):
    """The two accesses of a hazard; None for a kind that is not drawn."""
    try:
        return figures.hazard(hazard, None if found.is_ptx else found.source)
    except ValueError:
        return None
