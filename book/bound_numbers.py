"""Numbers in prose, bound to the row of `results/` that they come from.

    python -m book.bound_numbers check     [PAGE ...]    is every bound number what its row says?
    python -m book.bound_numbers update    [PAGE ...]    write what the rows say into the pages
    python -m book.bound_numbers unbound   [PAGE ...]    speeds, times, clocks, powers and shares bound to nothing

An HTML comment behind a number binds it; neither the rendered page nor JupyterLab nor Colab shows it:

    `warp_tiled` reaches 53.3<!--= tflops("warp_tiled") --> TFLOP/s, 103%<!--= ratio("warp_tiled") --> of cuBLAS,
    twice<!--? 1.9 < ratio("warp_tiled", "vectorized") < 2.1 --> the speed ...

`<!--= EXPR -->` gives the number in front of it, at the precision that it is printed with; with a % behind the
number the value is a fraction. A unit may stand between the two (53.3 TFLOP/s<!--= ... -->). `<!--? EXPR -->` must hold.
EXPR is arithmetic and comparisons over the accessors of `book.facts` and abs, min, max, round. `<!--by cell-->` says that
the number in front is in the output of the code cell above, `<!--given-->` that it is supposed, or worked out by hand
beside it; a sentence that cites its source (`book.markdown`) needs nothing.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from book import chapters, facts, markdown

NAMES = {**facts.ACCESSORS, "abs": abs, "min": min, "max": max, "round": round}
ALLOWED = (
    *(ast.Expression, ast.Constant, ast.Name, ast.Load, ast.Call, ast.keyword),
    *(ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Compare, ast.cmpop),
    *(ast.BoolOp, ast.boolop, ast.Dict, ast.Tuple, ast.List),
)

NUMBER = r"(?<![\w.,])[-−]?\d+(?:,\d{3})*(?:\.\d+)?(?![\w.]*\d)"
COMMENT = re.compile(r"<!--(?P<kind>[=?])(?P<expr>.*?)-->", re.S)
# What a comment binds: the number before it, and a unit without digits between the two.
BOUND = re.compile(
    rf"(?P<number>{NUMBER})(?P<unit>%?[*`]*(?: ?[A-Za-zµ/%×*`]+)?(?: of [A-Za-z]+)?)$"
)
QUOTED = re.compile(
    rf"(?P<number>{NUMBER})(?P<unit>%?[*`]*(?: ?[A-Za-zµ/%×*`]+)?)<!--by cell-->", re.S
)
UNITS = (
    *("TFLOP/s", "GFLOP/s", "TFLOPS", "TB/s", "GB/s", "MB/s", "GHz", "MHz", "ms", "µs", "us", "ns"),
    *("seconds?", "clocks?", "cycles?", "W", "watts?"),
    *("% of (?:cuBLAS|the (?:peak|ceiling|limit|data sheet))", "%? ?times (?:as|the speed|faster)"),
)
MEASURED = re.compile(rf"{NUMBER}[*`]*[  ]?(?:{'|'.join(UNITS)})(?![\w/])")


@dataclass(frozen=True)
class Passage:
    """Text of a page: a Markdown cell with what the code cell above it printed, or a whole Markdown page."""

    page: str
    place: str
    text: str
    output: str = ""


@dataclass(frozen=True)
class Finding:
    """Something that is not as it should be, and where."""

    page: str
    place: str
    words: str

    def __str__(self) -> str:
        return f"{self.page}, {self.place}: {self.words}"


def evaluate(expression: str):
    """The value of an expression over `NAMES`. ValueError when it is not one, LookupError when nothing was recorded."""
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except SyntaxError as error:
        raise ValueError(f"{expression.strip()!r} is not an expression: {error.msg}") from None
    for node in ast.walk(tree):
        if not isinstance(node, ALLOWED):
            raise ValueError(f"{type(node).__name__} may not stand in {expression.strip()!r}")
        if isinstance(node, ast.Name) and node.id not in NAMES:
            raise ValueError(f"no accessor {node.id!r}; there are {', '.join(NAMES)}")
    return eval(compile(tree, "<bound number>", "eval"), {"__builtins__": {}}, dict(NAMES))


def _value(number: str) -> float:
    return float(number.replace(",", "").replace("−", "-"))


def _decimals(number: str) -> int:
    return len(number.partition(".")[2])


def agrees(number: str, value: float) -> bool:
    """Whether `value`, rounded to the decimals that `number` is printed with, is that number."""
    return abs(_value(number) - value) <= 0.5 * 10 ** -_decimals(number) * (1 + 1e-9)


def printed(value: float, like: str) -> str:
    """`value` as `like` is printed: as many decimals, thousands separated where they were."""
    commas = "," in like or len(re.match(r"\D?(\d*)", like).group(1)) < 4
    return f"{value:{',' if commas else ''}.{_decimals(like)}f}"


def _bindings(text: str) -> Iterator[tuple[re.Match, re.Match | None]]:
    """Each comment, with the number that it binds (None for a claim, or where no number stands before it)."""
    for comment in COMMENT.finditer(text):
        before = text[max(0, comment.start() - 80) : comment.start()]
        yield comment, BOUND.search(before) if comment["kind"] == "=" else None


def _right(comment: re.Match, bound: re.Match | None) -> tuple[float | None, str | None]:
    """(the number that should stand there, what is wrong)."""
    if comment["kind"] == "=" and bound is None:
        return None, f"no number stands before <!--={comment['expr']}-->"
    try:
        value = evaluate(comment["expr"])
    except (ValueError, LookupError, TypeError, ArithmeticError) as error:
        words = error.args[0] if error.args else error
        return None, f"{comment['expr'].strip()}: {words}"
    if comment["kind"] == "?":
        wrong = None if value is True else f"does not hold: {comment['expr'].strip()}"
        return None, wrong
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None, f"{comment['expr'].strip()} is {value!r}, not a number"
    value = value * 100 if bound["unit"].lstrip("*`").startswith("%") else value
    if agrees(bound["number"], value):
        return value, None
    if (
        value * _value(bound["number"]) < 0
    ):  # what was 3% faster is 85% slower: a new number would not do
        told = f"{bound['number']} stands there, and {value:.3g} has another sign: the sentence has to change"
        return None, f"{told}: {comment['expr'].strip()}"
    right = printed(value, bound["number"])
    return value, f"{bound['number']} stands there, {right} is right: {comment['expr'].strip()}"


def wrong_in(passage: Passage) -> list[Finding]:
    """Bound numbers of a passage that differ from their row, claims that do not hold, comments that bind nothing."""
    found = []
    for comment, bound in _bindings(passage.text):
        _, words = _right(comment, bound)
        found += [words] if words else []
        line = passage.text[: comment.start()].rpartition("\n")[2]
        if not line.strip():
            # CommonMark 4.6: such a line is a block of HTML, and what follows in it is not shown as text
            found.append(
                f"a comment may not begin a line: <!--{comment['kind']}{comment['expr']}-->"
            )
    for quote in QUOTED.finditer(passage.text):
        if not re.search(
            rf"(?<![\d.,]){re.escape(quote['number'])}(?![\d]|[.,]\d)", passage.output
        ):
            found.append(f"{quote['number']} is not in the output of the cell above")
    return [Finding(passage.page, passage.place, words) for words in found]


def updated(text: str) -> str:
    """The text with every bound number as its row has it. What cannot be computed stays as it is."""
    pieces, end = [], 0
    for comment, bound in _bindings(text):
        value, words = _right(comment, bound)
        if bound and words and value is not None:
            start = max(0, comment.start() - 80)
            first, last = start + bound.start("number"), start + bound.end("number")
            pieces += [text[end:first], printed(value, bound["number"])]
            end = last
    return "".join([*pieces, text[end:]])


def _bare(text: str) -> str:
    """The text with code, mathematics, links' targets, directives' heads and option lines blanked out."""

    def blank(match: re.Match) -> str:
        return re.sub(r"[^\n]", " ", match.group())

    for pattern in (
        r"(?ms)^(`{3,}|~{3,}).*?^\1[^\n]*$",
        r"(?m)^:[\w-]+:.*$",
        r"(?<![`}])`+[^`\n]+`+",
        r"\$[^$\n]+\$",
        r"\]\([^)\n]*\)",
    ):
        text = re.sub(pattern, blank, text)
    return text


def unbound_in(passage: Passage) -> list[Finding]:
    """Measured-looking numbers of a passage that neither a comment nor a citation in the sentence explains."""
    text, found = _bare(markdown.myst(passage.text)), []
    for match in MEASURED.finditer(text):
        before, rest = text[: match.start()], text[match.end() :]
        if before.rfind("<!--") > before.rfind("-->"):
            continue  # the name of a row, in a comment
        if re.match(r"[*`]*(?: of [A-Za-z]+)?<!--(?:[=]|by cell|given)", rest):
            continue
        start = max((m.end() for m in re.finditer(r"[.!?]\s|\n\s*\n|\|", before)), default=0)
        ends = re.search(r"[.!?](?:\s|$)|\n\s*\n|\|", rest)
        sentence = text[start : match.end() + (ends.end() if ends else len(rest))]
        if "{cite" in sentence:
            continue
        found.append(Finding(passage.page, passage.place, f"{match.group()!r} is bound to nothing"))
    return found


def _between(text: str) -> str:
    """MEASURED looks at a number and its unit: a comment between the two is moved behind the unit."""
    unit = "|".join(UNITS)
    pattern = rf"(<!--(?:=|by cell|given)(?:(?!-->)[\s\S])*-->)([*`]*[  ]?(?:{unit})(?![\w/]))"
    return re.sub(pattern, r"\2\1", text)


def _output(cell) -> str:
    parts = []
    for output in cell.get("outputs", []):
        parts.append(output.get("text", ""))
        parts.append(output.get("data", {}).get("text/plain", ""))
    return "\n".join("".join(part) for part in parts)


def markdown_pages() -> list[Path]:
    return [*sorted((chapters.ROOT / "book").glob("*.md")), chapters.ROOT / "README.md"]


def pages() -> list[Path]:
    """Every page with prose: the notebooks in reading order, the Markdown pages, the README."""
    return [*chapters.paths(), *markdown_pages()]


def passages(path: Path) -> list[Passage]:
    """The prose of a page. PATH is a notebook or a Markdown file."""
    name = path.name
    if path.suffix == ".md":
        return [Passage(name, "text", path.read_text(encoding="utf-8"))]
    found, above = [], ""
    for number, cell in enumerate(chapters.read(path).cells):
        if cell.cell_type == "code":
            above = _output(cell) or above
        elif cell.cell_type == "markdown":
            found.append(Passage(name, f"cell {number}", cell.source, above))
    return found


def check(paths: Sequence[Path]) -> list[Finding]:
    """What is wrong on these pages."""
    return [f for path in paths for passage in passages(path) for f in wrong_in(passage)]


def unbound(paths: Sequence[Path]) -> list[Finding]:
    """Numbers on these pages that are bound to nothing."""
    found = []
    for path in paths:
        for passage in passages(path):
            moved = Passage(passage.page, passage.place, _between(passage.text), passage.output)
            found += unbound_in(moved)
    return found


def update(paths: Sequence[Path]) -> list[Finding]:
    """Writes what the rows say into the pages; returns what is wrong even so."""
    for path in paths:
        if path.suffix == ".md":
            text = path.read_text(encoding="utf-8")
            if (new := updated(text)) != text:
                path.write_text(new, encoding="utf-8")
            continue
        notebook = chapters.read(path)
        changed = False
        for cell in notebook.cells:
            if cell.cell_type == "markdown" and (new := updated(cell.source)) != cell.source:
                cell.source, changed = new, True
        if changed:
            chapters.write(notebook, path)
    return check(paths)


DOES: dict[str, Callable[[Sequence[Path]], list[Finding]]] = {
    "check": check,
    "update": update,
    "unbound": unbound,
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m book.bound_numbers", description=__doc__.split("\n")[0]
    )
    parser.add_argument("do", choices=DOES)
    parser.add_argument("pages", nargs="*", type=Path, help="default: every page")
    asked = parser.parse_args(arguments)
    missing = [str(path) for path in asked.pages if not path.is_file()]
    if missing:
        print(f"book.bound_numbers: there is no {', '.join(missing)}", file=sys.stderr)
        return 2
    found = DOES[asked.do](asked.pages or pages())
    for finding in found:
        print(finding)
    print(f"{len(found)} found" if found else "all is as it should be")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
