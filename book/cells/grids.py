"""Tables that wrap in a page: plain cells in, an HTML table out."""

import html
from collections.abc import Mapping, Sequence

from IPython.display import HTML

import figures


def grid(header: Sequence[str] | Mapping[str, str], rows: Sequence[Sequence], left: int = 1):
    """A table of cells; with {heading: what it means} as header, a `figures.table`.

    The first `left` columns and columns of text are aligned left; numbers right. A table wider
    than the page scrolls. In cells, `a word in backticks` is code.
    """
    if isinstance(header, Mapping):
        return figures.table(header, rows)
    sides = [
        "left" if i < left or isinstance(rows[0][i], str) else "right" for i in range(len(header))
    ]
    lines = [_line("th", header, sides), *(_line("td", row, sides) for row in rows)]
    body = f"<thead>{lines[0]}</thead><tbody>{''.join(lines[1:])}</tbody>"
    # the class keeps the theme's own colours, light and dark
    return HTML(f'<div style="overflow-x:auto"><table class="dataframe">\n{body}</table></div>')


def _line(tag: str, cells: Sequence, sides: Sequence[str]) -> str:
    parts = [
        f'<{tag} style="text-align:{side}">{_markup(_text(cell))}</{tag}>'
        for cell, side in zip(cells, sides, strict=True)
    ]
    return f"<tr>{''.join(parts)}</tr>\n"


def _markup(text: str) -> str:
    pieces = html.escape(text).split("`")
    return "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(pieces))


def _text(cell) -> str:
    if cell is None:
        return "-"
    return (
        f"{cell:,}" if isinstance(cell, int) else f"{cell:,g}" if isinstance(cell, float) else cell
    )


def runs(numbers: Sequence[int]) -> str:
    """[1, 2, 3, 7] -> "1-3, 7"."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{p[0]}-{p[-1]}" if len(p) > 2 else ", ".join(map(str, p)) for p in parts)
