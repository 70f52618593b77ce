"""Tables that wrap in a page: plain cells in, a Markdown table out."""

from collections.abc import Sequence

from IPython.display import Markdown


def grid(header: Sequence[str], rows: Sequence[Sequence], left: int = 1) -> Markdown:
    """The first `left` columns and the last, if it holds text, are aligned left; the others right."""
    aligned = [
        ":--" if i < left or isinstance(rows[0][i], str) else "--:"
        for i in range(len(header))
    ]
    lines = [header, aligned, *rows]
    return Markdown(
        "\n".join("| " + " | ".join(_text(c) for c in line) + " |" for line in lines)
    )


def _text(cell) -> str:
    if cell is None:
        return "-"
    return (
        f"{cell:,}"
        if isinstance(cell, int)
        else f"{cell:,g}"
        if isinstance(cell, float)
        else cell
    )


def runs(numbers: Sequence[int]) -> str:
    """[1, 2, 3, 7] -> "1-3, 7"."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(
        f"{p[0]}-{p[-1]}" if len(p) > 2 else ", ".join(map(str, p)) for p in parts
    )
