"""Which cells of a chapter are plumbing, and how a page folds them: `chapters.write` sets the tags.

| cell | tag | in the page |
|---|---|---|
| asks a question: `answers.predict("...")`, `answers.check("...")` | `remove-input` | only the form |
| the ladder in miniature: `steps.strip("...")` | `remove-input` | only the picture |
| settles an answer: `answers.settle("...", ...)` | `remove-cell` | nothing |
| imports only | `hide-input` | one line to unfold |
| one call of a tool that draws or tabulates: `figures.x(...)`, `limits.show(...)` | `hide-input` | its output, the call folded |

A cell with the tag `shown` stays in sight: what the reader is to read or change.
"""

import ast
import copy

SHOWN = "shown"
ASKS, SETTLES = ("answers.predict", "answers.check"), ("answers.settle",)
FURNITURE = "steps.strip"
# Rooms and modules whose functions show something; `kernels` is what the reader came for.
TOOLS = {
    *("figures", "addresses", "answers", "climb", "dictionary", "equal_tiles", "faithful"),
    *("few_bits", "limits", "live", "measured", "memory", "odd_shapes", "one_type"),
    *("profile_terms", "reports", "schedule", "search", "setting", "shared_clocks"),
    *("small_tiles", "steps", "thread_work", "timing", "trials", "triton_ptx", "tuned", "use"),
    "warp_ablation",
}
FOLDING = ("remove-input", "remove-cell", "hide-input", "hide-cell")


def _called(statement: ast.stmt) -> str | None:
    """ "limits.show" for the statement `limits.show(...)`, also as `_ = limits.show(...)`."""
    value = getattr(statement, "value", None)
    if isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") != "_":
        return None
    if not (isinstance(statement, ast.Expr | ast.Assign) and isinstance(value, ast.Call)):
        return None
    made = value.func
    if isinstance(made, ast.Attribute) and isinstance(made.value, ast.Name):
        return f"{made.value.id}.{made.attr}"
    return None


def wanted(source: str) -> str | None:
    """The tag that folds a cell with this source, None for one that stays in sight."""
    try:
        statements = ast.parse(source).body
    except SyntaxError:  # a cell that is not plain Python
        return None
    if not statements:
        return None
    if all(isinstance(one, ast.Import | ast.ImportFrom) for one in statements):
        return "hide-input"
    called = [_called(one) for one in statements]
    if any(one in SETTLES for one in called):
        return "remove-cell"
    if all(one in ASKS for one in called) or called == [FURNITURE]:
        return "remove-input"
    if len(called) == 1 and called[0] and called[0].split(".")[0] in TOOLS:
        return "hide-input"
    return None


def tag(notebook) -> None:
    """Gives every code cell the tag that folds it, unless it has one, or is tagged `shown`; and folds what tells an answer."""
    _part(notebook)
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        tags = list(cell.metadata.get("tags", []))
        fold = wanted(cell.source)
        if fold and SHOWN not in tags and not set(tags) & set(FOLDING):
            cell.metadata["tags"] = [*tags, fold]
        _fold(cell.metadata)
    _seal(notebook)


def _fold(metadata) -> None:
    """Says in the words of JupyterLab and of Colab, which know no tags, what the tags say of a cell."""
    folds = set(metadata.get("tags", [])) & set(FOLDING)
    known = {"source_hidden": bool(folds), "outputs_hidden": "hide-cell" in folds}
    metadata.pop("jupyter", None)
    metadata.pop("cellView", None)
    metadata.pop("collapsed", None)
    if folds:
        metadata["jupyter"] = {key: True for key, hidden in known.items() if hidden}
        metadata["cellView"] = "form"


def _part(notebook) -> None:
    """Cuts in two, at the heading, a cell whose text tells an answer and whose heading begins the next section."""
    from book import telling

    for place, end in reversed(telling.unparted(notebook)):
        cell = notebook.cells[place]
        rest = copy.deepcopy(cell)
        cell.source, rest.source = cell.source[:end].rstrip("\n"), cell.source[end:]
        rest.id = f"{cell.id}-behind"
        notebook.cells.insert(place + 1, rest)


def _seal(notebook) -> None:
    """Folds the text and the outputs that tell a prediction's answer (`book.telling`): JupyterLab shows a line to open, Colab
    of outputs too (its text is folded by `book.publish`)."""
    from book import telling

    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.metadata.pop("jupyter", None)
    for place, asked in telling.behind(notebook):
        cell = notebook.cells[place]
        if not telling.tells(cell, asked):
            continue
        if cell.cell_type == "code":
            cell.metadata["jupyter"] = cell.metadata.get("jupyter", {}) | {"outputs_hidden": True}
            cell.metadata["collapsed"] = True
        else:
            cell.metadata["jupyter"] = {"source_hidden": True}
