"""Runs a page's cells where there is no Jupyter: in the reader's browser, whose Python is WebAssembly.

`_static/run_worker.js` imports this there. A cell runs after those of its page that it needs, found by the names that they
bind; what it shows comes back as HTML or text, what fails as one short traceback. Nothing here knows of a browser, so tests
run it anywhere.
"""

import ast
import builtins
import contextlib
import gzip
import html
import importlib
import json
import linecache
import os
import sys
import time
import traceback
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

# What the set-up cell of every page binds; it does not run here, where the book is in its place.
SPACE = {
    "__name__": "__main__",
    "os": os,
    "sys": sys,
    "Path": Path,
    "root": Path(__file__).parents[1],
}
MOST_PRODUCTS = 512**3  # a matrix product of one second in a browser
SKIPPED = {"setup", "remove-cell", "remove-input"}  # run only where a cell in sight needs them


@dataclass(frozen=True)
class Cell:
    """One code cell: its place in the page, its source, its tags."""

    index: int
    source: str
    tags: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Names:
    """What a cell binds, what it takes from other cells, what it changes in place and what it imports; of what it takes, what
    only its functions take.
    """

    binds: frozenset[str] = frozenset()
    takes: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()
    imports: frozenset[str] = frozenset()
    late: frozenset[str] = frozenset()


def _root(node: ast.AST) -> set[str]:
    """`x` of `x`, `x[0]`, `x.y` and `x.y()`; nothing of what begins with no name."""
    while not isinstance(node, ast.Name):
        node = getattr(node, "value", None) or getattr(node, "func", None)
        if not isinstance(node, ast.AST):
            return set()
    return {node.id}


@cache
def names(source: str) -> Names:
    """The names of a cell's top level; none of one that is no Python.

    A `%%kernel NAME` cell binds "kernel NAME", which a cell takes that has this name in quotes, as in `check("NAME")`.
    """
    if source.startswith("%%"):
        first = source.partition("\n")[0]
        return Names(frozenset({first.removeprefix("%%").strip()}), frozenset({"%load_ext"}))
    try:
        tree = ast.parse(python_of(source))
    except (SyntaxError, ValueError, NotHere):
        return Names()
    binds, takes, changes, imports, late = set(), set(), set(), set(), set()
    if "%load_ext" in source:
        binds.add("%load_ext")
    for statement in tree.body:
        here = list(_of_this_level(statement))
        inside = [node for node in ast.walk(statement) if node not in here]
        loads = _named(ast.Load, ast.walk(statement))
        own = _named(ast.Store, inside) | {n.arg for n in inside if isinstance(n, ast.arg)}
        own |= {n.name for n in inside if isinstance(n, ast.FunctionDef | ast.ClassDef)}
        own |= {n.name for n in ast.walk(statement) if isinstance(n, ast.ExceptHandler) and n.name}
        # Its names are looked up when it is called.
        later = isinstance(statement, ast.FunctionDef | ast.ClassDef)
        (late if later else takes).update(loads - own - (set() if later else binds))
        for node in here:
            match node:
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                    binds.add(name)
                case ast.Import(names=found) | ast.ImportFrom(names=found):
                    imports |= {(one.asname or one.name).split(".")[0] for one in found}
                case ast.AugAssign(target=target):
                    changes |= _root(target)
                case ast.Subscript(ctx=ast.Store()) | ast.Attribute(ctx=ast.Store()):
                    changes |= _root(node)
                case ast.Expr(value=ast.Call(func=ast.Attribute() as called)):  # rows.append(...)
                    changes |= _root(called)
        binds |= _named((ast.Store, ast.Del), here) | imports
        quoted = {n.value for n in ast.walk(statement) if isinstance(n, ast.Constant)}
        takes |= {f"kernel {word}" for word in quoted if isinstance(word, str)}
    late -= binds | takes
    takes |= late
    takes |= (changes := changes - binds | (changes & takes))
    return Names(*map(frozenset, (binds, takes - set(dir(builtins)), changes, imports, late)))


def _named(contexts, nodes: Iterable[ast.AST]) -> set[str]:
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, contexts)}


def _of_this_level(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement, without those inside functions and comprehensions, which bind names of their own."""
    yield node
    own = ast.FunctionDef | ast.Lambda | ast.ClassDef | ast.ListComp | ast.SetComp
    if isinstance(node, own | ast.DictComp | ast.GeneratorExp):
        return
    for child in ast.iter_child_nodes(node):
        yield from _of_this_level(child)


def needed(cells: Sequence[Cell], place: int) -> list[int]:
    """Places in `cells` of those above `place` that it needs, in order: for each name that it takes, or that a cell which it
    needs takes, the last cell above that binds it, and those below that one that change what it names.
    """
    known = [names(cell.source) for cell in cells[: place + 1]]
    # A call of a module's function changes no module.
    modules = frozenset().union(*(one.imports for one in known))
    found, open_ = set(), [place]
    while open_:
        cell = open_.pop()
        for name in known[cell].takes:
            # What a function takes is looked up when it is called.
            above = range(place if name in known[cell].late else cell)
            bind = max((p for p in above if p != cell and name in known[p].binds), default=-1)
            change = {p for p in above[bind + 1 :] if name in known[p].changes - modules}
            new = (change | ({bind} if bind >= 0 else set())) - found - {cell, place}
            found |= new
            open_ += new
    return sorted(found)


class NotHere(Exception):
    """What Python in a browser cannot do, in one line."""


def python_of(source: str) -> str:
    """The cell as Python, its lines where they were. NotHere for a line that only a shell can run."""
    lines = []
    for line in source.split("\n"):
        if line.startswith("%load_ext "):
            line = f"__import__('IPython').load({line.split()[1]!r})"
        elif line.startswith(("%", "!")):
            raise NotHere(f"A browser has no shell for this line: {line}")
        lines.append(line)
    return "\n".join(lines)


# Kinds of errors that no change of the reader's caused: the stored output stays, with the line above it.
ELSEWHERE = {"NoCompiler", "NotHere"}


@dataclass
class Page:
    """A page's cells, the names they have bound, and which of them have run with which source.

    told("begins", index, None) and told("ran", index, {"outputs", "well", "elsewhere", "seconds"}) say how it goes.
    """

    cells: list[Cell]
    told: Callable[[str, int, Any], None] = lambda what, index, more: None
    space: dict[str, Any] = field(default_factory=lambda: {**SPACE, "display": _display})
    ran: dict[int, tuple[str, int]] = field(default_factory=dict)  # index: (source, how manieth)
    missing: set[str] = field(default_factory=set)  # names that a cell did not bind here
    count: int = 0

    def change(self, index: int, source: str) -> None:
        """The reader's words for the cell of this index."""
        self.cells = [Cell(index, source, c.tags) if c.index == index else c for c in self.cells]

    def fresh(self, place: int) -> bool:
        """Whether a cell ran as it is now, after all that it needs."""
        when = self._when(place)
        above = [self._when(p) for p in needed(self.cells, place)]
        return when is not None and all(a is not None and a < when for a in above)

    def _when(self, place: int) -> int | None:
        cell = self.cells[place]
        source, when = self.ran.get(cell.index, (None, None))
        return when if source == cell.source else None

    def run(self, index: int) -> bool:
        """Runs a cell, and before it those that it needs and that did not run as they are now; whether all went well."""
        place = next(p for p, cell in enumerate(self.cells) if cell.index == index)
        return all(self._run(p) for p in needed(self.cells, place) if not self.fresh(p)) and (
            self._run(place)
        )

    def run_all(self) -> bool:
        """Runs all cells in sight, and of the others those that they need. Stops at one that fails."""
        self.ran.clear()
        places = [p for p, cell in enumerate(self.cells) if not cell.tags & SKIPPED]
        return all(self.fresh(p) or self.run(self.cells[p].index) for p in places)

    def call(self, number: int, values: Mapping[str, int]) -> list[dict[str, str]]:
        """What the function of a `form` shows for the values that the reader put into it."""
        return _showing(lambda: _FORMS[number](dict(values)))[0]

    def _run(self, place: int) -> bool:
        cell = self.cells[place]
        self.told("begins", cell.index, None)
        start = time.perf_counter()
        bound = names(cell.source).binds
        shown, error = ([], None) if "setup" in cell.tags else execute(cell, self.space)
        uncompiled = {n for n in names(cell.source).takes & self.missing if n.startswith("kernel ")}
        elsewhere = (
            type(error).__name__ in ELSEWHERE
            or (isinstance(error, NameError) and error.name in self.missing)
            or (isinstance(error, KeyError) and bool(uncompiled))  # it asked for that kernel
        )
        self.missing = (
            self.missing | (bound - self.space.keys()) if elsewhere else self.missing - bound
        )
        self.count += 1
        if error is None or elsewhere:
            self.ran[cell.index] = (cell.source, self.count)
        well = error is None or "raises-exception" in cell.tags
        about = {"outputs": shown, "well": well, "elsewhere": elsewhere}
        self.told("ran", cell.index, about | {"seconds": time.perf_counter() - start})
        # A cell out of sight settles what the text says of unchanged cells: it may fail where the reader changed one.
        return well or elsewhere or "remove-cell" in cell.tags


class Shown(list):
    """What a cell shows: {"html": ...} or {"text": ...}, prints that follow one another as one text."""

    def write(self, words: str) -> int:
        if self and "text" in self[-1]:
            self[-1]["text"] += words
        elif words:
            self.append({"text": words})
        return len(words)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False

    def display(self, *objects: Any, **_: Any) -> None:
        for one in objects:
            if (own := getattr(one, "_ipython_display_", None)) is not None:
                own()
            else:
                self.append(bundle(one))


def bundle(one: Any) -> dict[str, str]:
    """An object as Jupyter would show it: as HTML where it can, else as text."""
    if (every := getattr(one, "_repr_mimebundle_", None)) is not None:
        found = every()
        if "text/html" in found:
            return {"html": found["text/html"]}
        return {"text": found["text/plain"] + "\n"}
    if (own := getattr(one, "_repr_html_", None)) is not None and (said := own()) is not None:
        return {"html": said}
    return {"text": f"{one!r}\n"}


_SHOWN: list[Shown] = []  # of the cell that runs


def _display(*objects: Any, **more: Any) -> None:
    _SHOWN[0].display(*objects, **more)


def execute(cell: Cell, space: dict[str, Any]) -> tuple[list[dict[str, str]], BaseException | None]:
    """Runs one cell in `space`: what it shows, its error at the end if it fails, and that error."""
    name = f"<cell {cell.index}>"
    linecache.cache[name] = (len(cell.source), None, cell.source.splitlines(True), name)
    if cell.source.startswith("%%"):
        return _showing(lambda: _magic(cell.source))
    return _showing(lambda: _statements(cell.source, name, space))


def _showing(act: Callable[[], None]) -> tuple[list[dict[str, str]], BaseException | None]:
    shown = Shown()
    _SHOWN[:] = [shown]
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        try:
            act()
        except BaseException as error:
            shown.append(failure(error))
            return list(shown), error
    return list(shown), None


def _statements(source: str, name: str, space: dict[str, Any]) -> None:
    tree = ast.parse(python_of(source), name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), space)
    quiet = source.rstrip().endswith(";")
    if last is not None:
        value = eval(compile(ast.Expression(last.value), name, "eval"), space)
        if value is not None and not quiet:
            _display(value)


def failure(error: BaseException) -> dict[str, str]:
    """An error as the page shows it: its kind, and its text from the cell's first line on, without this file's own lines.

    {"error": kind, "line": one line for whoever only wants to know what to do, "text": the whole}
    """
    own = getattr(error, "_render_traceback_", None)
    if own is not None:
        text = "\n".join(own())
    else:
        frames = error.__traceback__
        while frames is not None and not frames.tb_frame.f_code.co_filename.startswith("<cell"):
            frames = frames.tb_next
        text = "".join(traceback.format_exception(type(error), error, frames))
    line = f"{type(error).__name__}: {error}".partition("\n")[0]
    return {"error": type(error).__name__, "line": line, "text": text.rstrip() + "\n"}


class _Shell:
    """The little of IPython's shell that the book asks for: to register a magic for whole cells."""

    kernel = True  # what it is given can be displayed

    def __init__(self):
        self.magics: dict[str, Callable[[str, str], None]] = {}

    def register_magic_function(self, function, magic_kind: str, magic_name: str):
        self.magics[magic_name] = function


_SHELL = _Shell()


def _magic(source: str) -> None:
    first, _, rest = source.partition("\n")
    name, _, line = first.removeprefix("%%").partition(" ")
    if name not in _SHELL.magics:
        raise NameError(f"no cell above made %%{name}")
    _SHELL.magics[name](line, rest)


class HTML:
    """IPython.display.HTML, which some cells show."""

    def __init__(self, data: str):
        self.data = data

    def _repr_html_(self) -> str:
        return self.data


_FORMS: list[Callable[[dict[str, int]], None]] = []


def form(
    fields: Mapping[str, Sequence[int] | range],
    start: Mapping[str, int],
    act: Callable[[dict[str, int]], None],
    title: str,
) -> None:
    """Shows a form of numbers, whose button calls `act` with them: what it displays stands below. A field is a sequence to choose
    from, or a range.
    """
    parts = []
    for name, allowed in fields.items():
        word = html.escape(name)
        if isinstance(allowed, range):
            least, most = allowed[0], allowed[-1]
            field = f'<input type="number" name="{word}" min="{least}" max="{most}" value="{start[name]}" required>'
        else:
            options = "".join(
                f"<option{' selected' if one == start[name] else ''}>{one}</option>"
                for one in allowed
            )
            field = f'<select name="{word}">{options}</select>'
        parts.append(f"<label>{word} {field}</label>")
    _FORMS.append(act)
    _display(
        HTML(
            f'<form class="run-form" data-call="{len(_FORMS) - 1}" aria-label="{html.escape(title)}">'
            f"<p>{html.escape(title)}</p>{''.join(parts)}<button>Count</button>"
            '<div class="run-answer" role="status"></div></form>'
        )
    )


def stand_in_for_ipython() -> None:
    """Puts a module `IPython` there that shows what this page shows; Jupyter's own is larger than all of the book."""
    module, shows = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    shows.HTML = HTML
    shows.display, shows.form = _display, form
    shows.Markdown = lambda text: HTML(f"<p>{html.escape(text)}</p>")
    module.display, module.get_ipython = shows, lambda: _SHELL
    module.load = lambda name: importlib.import_module(name).load_ipython_extension(_SHELL)
    sys.modules["IPython"], sys.modules["IPython.display"] = module, shows


class Builds(dict):
    """The builds that a page ships; one of another page is fetched when it is asked for. `at`: {key: file}."""

    def __init__(
        self, own: Mapping[str, dict], at: Mapping[str, str], fetch: Callable[[str], Mapping]
    ):
        super().__init__(own)
        self._at, self._fetch = at, fetch

    def get(self, key, default=None):
        if key not in self and key in self._at:
            self.update(self._fetch(self._at[key]))
        return super().get(key, default)


def _small(function: Callable, name: str) -> Callable:
    """`kernels.cpu.name` for products that end within seconds where NumPy has neither threads nor a BLAS."""

    def within(A, B, *more, **options):
        if A.shape[0] * B.shape[1] * A.shape[1] > MOST_PRODUCTS:
            size = f"{A.shape[0]} x {B.shape[1]} x {A.shape[1]}"
            why = "in a browser, NumPy has neither threads nor a BLAS"
            raise NotHere(f"cpu.{name} of {size}: {why}.")
        return function(A, B, *more, **options)

    return within


def in_browser(
    cells: str, at: str, fetch: Callable[[str], bytes], tell: Callable[[str], None]
) -> Page:
    """The page that the worker runs. `cells`, `at`: JSON; `fetch`: a page's name -> its builds, packed; `tell` takes JSON."""
    stand_in_for_ipython()
    os.environ |= {"GEMM_COMPILER": "none", "GEMM_TIMES": "recorded", "GEMM_LIVE": "0"}
    os.chdir(SPACE["root"] / "book")

    def of(name: str) -> Mapping:
        return json.loads(gzip.decompress(fetch(name)))["builds"]

    shipped = importlib.import_module("kernels.shipped").shipped
    # `kernels.build` is the function; the module of this name holds the reference.
    importlib.import_module("kernels.build")
    every = Builds(shipped(), json.loads(at), of)
    sys.modules["kernels.build"].shipped = lambda: every
    cpu = importlib.import_module("kernels.cpu")
    cpu.blas, cpu.threads = _small(cpu.blas, "blas"), _small(cpu.threads, "threads")
    return Page(
        [Cell(one["index"], one["source"], frozenset(one["tags"])) for one in json.loads(cells)],
        lambda what, index, more: tell(json.dumps({"what": what, "index": index, "more": more})),
    )
