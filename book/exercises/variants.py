"""Variants of a reader's kernel, each with one small change in the lines that are the reader's, the more likely ones first."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from textwrap import shorten

_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|\s+|[A-Za-z_]\w*(?:\.[xyzw]\b)?|\.?\d[\w.]*|<<=|>>=|->|\+\+|--|&&|\|\||"
    r"[<>=!+\-*/%&|^]=|<<|>>|::|.",
    re.DOTALL,
)
_WORD = re.compile(r"[A-Za-z_]\w*(?:\.[xyzw])?\Z")
_NUMBER = re.compile(r"\d+\Z")
_CONSTANT = re.compile(r"(?:#\s*define|constexpr int)\s+(\w+)[ =]+(\d+)")
_KEYWORDS = frozenset(
    "for if else while do return const constexpr int float half unsigned auto void bool true false static struct "  # noqa: SIM905
    "template typename using namespace sizeof reinterpret_cast static_cast break continue switch case default extern "
    "__shared__ __global__ __device__ __restrict__ __align__ volatile long short char double min max".split()
)
_STATEMENT = frozenset("for if else while do return ; { } const auto float".split())  # noqa: SIM905
_OTHERS = {
    "<": ("<=", ">"), "<=": ("<",), ">": (">=", "<"), ">=": (">",), "==": ("!=",), "!=": ("==",), "+": ("-", "*"),
    "-": ("+",), "*": ("+", "/"), "/": ("%", "*"), "%": ("/",), "&&": ("||",), "||": ("&&",), "=": ("+=",),
    "+=": ("=", "-="), "-=": ("+=",), "^": ("+", "&"), "&": ("^", "|"), "|": ("^", "&"), "<<": (">>",), ">>": ("<<",),
    "++": ("--",), "--": ("++",), "min": ("max",), "max": ("min",), "fminf": ("fmaxf",), "fmaxf": ("fminf",),
}  # fmt: skip


@dataclass(frozen=True)
class Token:
    """A word of the source: where it stands, and in which line."""

    text: str
    start: int
    line: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True)
class Change:
    """A variant of the source, and what was changed, as a clause that ends "... it would be right".

    of_a_line: a whole line was replaced by another.
    """

    source: str
    words: str
    of_a_line: bool = False


def tokens_of(source: str) -> list[Token]:
    """The words of the source, without comments and white space."""
    found, line, start = [], 1, 0
    for match in _TOKEN.finditer(source):
        text, start = match[0], match.start()
        if not text.isspace() and not text.startswith(("//", "/*")):
            found.append(Token(text, start, line))
        line += text.count("\n")
    return found


def _distinct(found: Iterator[Change], source: str) -> Iterator[Change]:
    seen = {source}
    for change in found:
        if change.source not in seen:
            seen.add(change.source)
            yield change


def own_lines(source: str, given: str) -> set[int]:
    """The numbers of the lines that are the reader's, not given."""
    mine, theirs = ([line.strip() for line in text.splitlines()] for text in (source, given))
    found = set()
    for kind, low, high, *_ in difflib.SequenceMatcher(None, mine, theirs, False).get_opcodes():
        if kind in ("replace", "delete"):
            found |= set(range(low + 1, high + 1))
    return found


def changes(source: str, given: str, answer: str, suspected=()) -> Iterator[Change]:
    """The variants, each once. given, answer: what the reader was given, and a right answer. suspected: lines to begin with."""
    return _distinct(_changes(source, given, answer, suspected), source)


def _changes(source: str, given: str, answer: str, suspected) -> Iterator[Change]:
    tokens = tokens_of(source)
    mine = own_lines(source, given)
    own = [i for i, token in enumerate(tokens) if token.line in mine]
    integers = _integers(source, mine)
    yield from _as_answered(source, tokens, tokens_of(answer))
    yield from _other_sizes(source, tokens, own)
    some = [i for i in own if tokens[i].line in suspected]
    for part in (some, own):
        yield from _lines_as_answered(source, tokens, part, answer, given)
        yield from _like_a_neighbour(source, tokens, part)
        yield from _without(source, tokens, part)
        yield from _like_answered(source, {tokens[i].line for i in part}, answer, given)
        yield from _in_turn(
            _other_operators(source, tokens, part),
            _other_numbers(source, tokens, part, integers),
            _other_words(source, tokens, part, integers),
            _turned(source, tokens, part),
            _everywhere(source, tokens, part, integers),
            _without_statement(source, tokens, part, mine),
            _exchanged(source, tokens, part, integers),
            _with_more(source, tokens, part, integers),
            _other_terms(source, tokens, part, integers),
        )


def _other_sizes(source: str, tokens, own) -> Iterator[Change]:
    """M, N and K in each other's place, where they are among the words."""
    sizes = [name for name in "MNK" if any(token.text == name for token in tokens)]
    for i in own:
        if tokens[i].text in sizes and not _declares(tokens, i):
            for other in sizes:
                if other != tokens[i].text:
                    yield _swap(source, tokens, i, i + 1, other)


def _in_turn(*kinds: Iterator[Change]) -> Iterator[Change]:
    """One of each kind, then the next of each."""
    for some in zip_longest(*kinds):
        yield from (change for change in some if change is not None)


def _replaced(source: str, tokens, first: int, last: int, text: str) -> str:
    """The source with the words first to last - 1 replaced; where there are none, text is put before word `first`."""
    if first == last:
        at = tokens[first].start
        return f"{source[:at]}{text} {source[at:]}"
    return source[: tokens[first].start] + text + source[tokens[last - 1].end :]


def _swap_words(source: str, tokens, first: int, last: int, text: str) -> str:
    """ "line 24: with `k * N` in place of `k * K`": as many neighbours as make the place plain."""
    line = tokens[first].line
    in_line = [i for i, token in enumerate(tokens) if token.line == line]
    low, high = first, last
    for _ in range(3):
        old = _text(source, tokens, low, high)
        here = source[tokens[in_line[0]].start : tokens[in_line[-1]].end]
        if len(re.findall(rf"(?<!\w){re.escape(old)}(?!\w)", here)) <= 1 and len(old) > 1:
            break
        low = max(low - 1, in_line[0])
        high = min(high + 1, in_line[-1] + 1)
    old = _text(source, tokens, low, high)
    before = source[tokens[low].start : tokens[first].start]
    after = source[tokens[last - 1].end : tokens[high - 1].end]
    return f"line {line}: with `{_short(before + text + after)}` in place of `{_short(old)}`"


def _text(source: str, tokens, low: int, high: int) -> str:
    return source[tokens[low].start : tokens[high - 1].end]


def _short(text: str) -> str:
    return shorten(" ".join(text.split()), 60, placeholder=" ...")


def _swap(source: str, tokens, first: int, last: int, text: str) -> Change:
    return Change(
        _replaced(source, tokens, first, last, text), _swap_words(source, tokens, first, last, text)
    )


def _as_answered(
    source: str, tokens, answer, low: int = 0, high: int | None = None
) -> Iterator[Change]:
    """Where a right answer reads differently: its words there, each place for itself. low, high: of these words only."""
    mine, theirs = [t.text for t in tokens[low:high]], [t.text for t in answer]
    same = [set(pair) for pair in _CONSTANT.findall(source)]
    places = [
        (op[0] + low, op[1] + low, *op[2:])
        for op in _balanced(mine, theirs)
        if op[1] - op[0] <= 10
        and op[3] - op[2] <= 12
        and not _STATEMENT.intersection(mine[op[0] : op[1]] + theirs[op[2] : op[3]])
    ]
    for first, last, start, end in sorted(places, key=lambda p: p[1] - p[0] + p[3] - p[2]):
        new = " ".join(theirs[start:end])
        if last - first == 1 and {tokens[first].text, new} in same:
            continue
        if first == last:
            if not 0 < first < len(tokens):
                continue
            where = f"line {tokens[first - 1].line}: with `{_short(new)}` after `{tokens[first - 1].text}`"
            yield Change(_replaced(source, tokens, first, first, new), where)
        elif start == end:
            where = (
                f"line {tokens[first].line}: without `{_short(_text(source, tokens, first, last))}`"
            )
            yield Change(_replaced(source, tokens, first, last, ""), where)
        else:
            yield _swap(source, tokens, first, last, new)


def _balanced(mine, theirs) -> Iterator[tuple[int, int, int, int]]:
    """Where two lists of words differ, each place taken so far that it opens as many brackets as it closes in both."""
    rows = list(difflib.SequenceMatcher(None, mine, theirs, False).get_opcodes())
    for at, (kind, low, _, start, _) in enumerate(rows):
        if kind == "equal":
            continue
        for _, _, high, _, end in rows[at : at + 5 : 2]:
            if _brackets(mine[low:high]) == _brackets(theirs[start:end]):
                yield low, high, start, end
                break


def _lines_as_answered(source: str, tokens, own, answer: str, given: str) -> Iterator[Change]:
    """The same, line by line: a line against the one of the answer that is most like it."""
    theirs = answer.splitlines()
    wanted = [theirs[n - 1].strip() for n in sorted(own_lines(answer, given))]
    for line in sorted({tokens[i].line for i in own}):
        places = [i for i in own if tokens[i].line == line]
        text = _text(source, tokens, places[0], places[-1] + 1)
        for other in difflib.get_close_matches(text, wanted, 2, 0.5):
            yield from _as_answered(source, tokens, tokens_of(other), places[0], places[-1] + 1)


def _like_a_neighbour(source: str, tokens, own) -> Iterator[Change]:
    """Where two of the reader's lines are nearly the same, what one has and the other has not: often one for A, one for B."""
    lines: dict[int, list[int]] = {}
    for i in own:
        lines.setdefault(tokens[i].line, []).append(i)
    for line, places in lines.items():
        mine = [tokens[i].text for i in places]
        for other, others in lines.items():
            theirs = [tokens[i].text for i in others]
            same = difflib.SequenceMatcher(None, mine, theirs, False).ratio()
            if other != line and 0.6 < same < 1 and len(mine) > 6:
                yield from _as_answered(
                    source, tokens, [tokens[i] for i in others], places[0], places[-1] + 1
                )


def _like_answered(source: str, mine, answer: str, given: str) -> Iterator[Change]:
    """One of the reader's lines replaced by one of the answer's, or a few lines by a few."""
    lines, theirs = source.splitlines(), answer.splitlines()
    wanted = [theirs[n - 1].strip() for n in sorted(own_lines(answer, given))]
    for n in sorted(mine):
        for other in difflib.get_close_matches(lines[n - 1].strip(), wanted, 2, 0.4):
            if _brackets(other) == _brackets(lines[n - 1]):
                changed = [*lines[: n - 1], other, *lines[n:]]
                yield Change(
                    "\n".join(changed),
                    f"line {n} is the wrong one. With a right line in its place",
                    True,
                )
    stripped = [[line.strip() for line in text] for text in (lines, theirs)]
    for kind, low, high, start, end in difflib.SequenceMatcher(
        None, *stripped, False
    ).get_opcodes():
        if kind == "replace" and high - low <= 6 and 2 * (high - low) <= len(mine):
            changed = [*lines[:low], *theirs[start:end], *lines[high:]]
            words = f"lines {low + 1} to {high} are wrong. With right ones in their place"
            if high - low == 1:
                words = f"line {high} is wrong. With a right one in its place"
            yield Change("\n".join(changed), words, True)


def _brackets(words) -> list[int]:
    """What is open after these words, of each kind of bracket."""
    return [words.count(one) - words.count(other) for one, other in ("()", "[]", "{}")]


def _integers(source: str, mine) -> list[str]:
    """What an index may be made of in these lines: whole numbers that have names in their functions, or are constants."""
    plain = _TOKEN.sub(
        lambda m: "\n" * m[0].count("\n") if m[0][:2] in ("//", "/*") else m[0], source
    )
    here = "\n".join(
        text for first, last, text in functions(plain) if any(first <= n <= last for n in mine)
    )
    names = re.findall(r"\bconstexpr\s+int\s+(\w+)", plain)
    for part in re.findall(r"\b(?:int|unsigned|size_t|auto)\s+([^;{}]*)", here):
        depth, start = 0, True
        for word in re.findall(r"\w+|.", part):
            depth += word in "([" if len(word) == 1 else 0
            depth -= word in ")]" if len(word) == 1 else 0
            if start and re.match(r"[A-Za-z_]", word):
                names.append(word)
                start = False
            if depth < 0:
                break
            start = (
                (start and not word.strip())
                or (word == "," and not depth)
                or (start and word == " ")
            )
    names += re.findall(r"\b(?:int|unsigned)\s+(\w+)\s*[,)]", here)
    calls = set(re.findall(r"\b(\w+)\s*\(", here))
    special = re.findall(r"\b(?:thread|block)Idx\.[xyz]", here)
    return [
        n for n in dict.fromkeys([*names, *special])
        if not n[0].isdigit() and n not in _KEYWORDS and n not in calls
    ]  # fmt: skip


def functions(plain: str) -> list[tuple[int, int, str]]:
    """(first line, last line, text) of what ends with each closing bracket that is inside of none."""
    found, depth, start, line, first = [], 0, 0, 1, 1
    for at, letter in enumerate(plain):
        line += letter == "\n"
        depth += letter == "{"
        if letter == "}":
            depth -= 1
            if not depth:
                found.append((first, line, plain[start : at + 1]))
                start, first = at + 1, line
    return found


def _other_words(source: str, tokens, own, integers) -> Iterator[Change]:
    """Another name of a whole number in a name's place; another name of the same beginning (a, a_low) in any place."""
    everything = {t.text for t in tokens if _WORD.match(t.text)} - _KEYWORDS
    for i in own:
        text = tokens[i].text
        if not _WORD.match(text) or text in _KEYWORDS or _declares(tokens, i):
            continue
        if text in integers:
            for other in integers:
                if other != text:
                    yield _swap(source, tokens, i, i + 1, other)
            continue
        near = [w for w in sorted(everything) if w != text and w not in integers and _kin(w, text)]
        for other in near[:4]:
            yield _swap(source, tokens, i, i + 1, other)


def _kin(one: str, other: str) -> bool:
    if "." in one and "." in other:
        return one.split(".")[0] == other.split(".")[0] or one[-2:] == other[-2:]
    if len(one) <= 2 and len(other) <= 2:
        return one[1:] == other[1:]
    if "_" in one or "_" in other:
        return (
            one.split("_")[0] == other.split("_")[0] or one.split("_")[-1] == other.split("_")[-1]
        )
    return one[1:] == other[1:]


def _declares(tokens, i: int) -> bool:
    return i > 0 and tokens[i - 1].text in (
        "int",
        "float",
        "unsigned",
        "half",
        "auto",
        "float4",
        "float*",
        "*&",
    )


def _other_operators(source: str, tokens, own) -> Iterator[Change]:
    for i in own:
        for other in _OTHERS.get(tokens[i].text, ()):
            yield _swap(source, tokens, i, i + 1, other)


def _other_numbers(source: str, tokens, own, integers) -> Iterator[Change]:
    there = sorted({int(t.text) for t in tokens if _NUMBER.match(t.text)} | {0, 1, 2, 4, 8, 16, 32})
    for i in own:
        if _NUMBER.match(tokens[i].text):
            n = int(tokens[i].text)
            near = [n + 1, n - 1, 2 * n, n // 2, *there]
            for other in dict.fromkeys(near):
                if other != n and other >= 0:
                    yield _swap(source, tokens, i, i + 1, str(other))
            if tokens[i - 1].text in ("[", "(") and tokens[i + 1].text in ("]", ")"):
                for other in integers:
                    yield _swap(source, tokens, i, i + 1, other)


def _operand(tokens, i: int) -> int:
    """The end of the operand that begins at word i: a name or number with the brackets that follow, or a bracket."""
    if i >= len(tokens):
        return i
    if tokens[i].text != "(":
        i += 1
    while i < len(tokens) and tokens[i].text in ("(", "["):
        depth = 0
        for j in range(i, len(tokens)):
            depth += tokens[j].text in ("(", "[")
            depth -= tokens[j].text in (")", "]")
            if not depth:
                i = j + 1
                break
        else:
            return i
    return i


def _without(source: str, tokens, own) -> Iterator[Change]:
    """Without `+ x`, `* x` and the like, and without `x *`."""
    for i in own:
        if tokens[i].text in ("+", "-", "*", "/", "%", "^", "&", "&&", "||") and i + 1 < len(
            tokens
        ):
            end = _operand(tokens, i + 1)
            if end > i + 1 and end - i < 16:
                gone = _short(_text(source, tokens, i, end))
                yield Change(
                    _replaced(source, tokens, i, end, ""),
                    f"line {tokens[i].line}: without `{gone}`",
                )
            if i and (_WORD.match(tokens[i - 1].text) or _NUMBER.match(tokens[i - 1].text)):
                gone = _short(_text(source, tokens, i - 1, i + 1))
                yield Change(
                    _replaced(source, tokens, i - 1, i + 1, ""),
                    f"line {tokens[i].line}: without `{gone}`",
                )


def _turned(source: str, tokens, own) -> Iterator[Change]:
    """Two neighbours of a list, two indices [a][b], or two operands the other way round."""
    for i in own:
        if tokens[i].text not in (",", "-", "/", "%", "<", "["):
            continue
        if tokens[i].text == "[":
            middle = _operand_close(tokens, i)
            if middle is None or middle + 1 >= len(tokens) or tokens[middle + 1].text != "[":
                continue
            end = _operand_close(tokens, middle + 1)
            if end is None:
                continue
            one, two = (
                _text(source, tokens, i, middle + 1),
                _text(source, tokens, middle + 1, end + 1),
            )
            yield _swap(source, tokens, i, end + 1, two + one)
            continue
        first = _before(tokens, i)
        end = _operand(tokens, i + 1)
        if tokens[i].text == ",":
            while end < len(tokens) and tokens[end].text in "+-*/%^&.":
                end = _operand(tokens, end + 1)
        if first is None or end >= len(tokens) or end - first > 24:
            continue
        one, two = _text(source, tokens, first, i), _text(source, tokens, i + 1, end)
        between = source[tokens[i - 1].end : tokens[i + 1].start]
        yield _swap(source, tokens, first, end, two + between + one)


def _operand_close(tokens, i: int) -> int | None:
    depth = 0
    for j in range(i, min(i + 30, len(tokens))):
        depth += tokens[j].text in ("(", "[")
        depth -= tokens[j].text in (")", "]")
        if not depth:
            return j
    return None


def _before(tokens, i: int) -> int | None:
    """Where what stands before word i begins, back to a bracket or a comma."""
    depth = 0
    for j in range(i - 1, max(i - 24, -1), -1):
        text = tokens[j].text
        if text in (")", "]"):
            depth += 1
        elif text in ("(", "["):
            if not depth:
                return j + 1
            depth -= 1
        elif not depth and text in (",", "=", ";", "{", "}", "return", "+=", "?", ":", "<"):
            return j + 1
    return None


def _everywhere(source: str, tokens, own, integers) -> Iterator[Change]:
    """One name in place of another in a whole line or in all of the reader's lines; two names the other way round."""
    used = [w for w in dict.fromkeys(tokens[i].text for i in own) if w in integers]
    lines = sorted({tokens[i].line for i in own})
    yield from _operators_everywhere(source, tokens, own)
    for one in dict.fromkeys(tokens[i].text for i in own):
        for other in dict.fromkeys(tokens[i].text for i in own):
            if not (one < other and "." in one and "." in other and _kin(one, other)):
                continue
            if found := _renamed(source, tokens, own, {one: other, other: one}, lines, 2):
                yield Change(found, f"with `{one}` and `{other}` the other way round in your lines")
    for one in used:
        for other in integers:
            if one == other:
                continue
            for where in ([line] for line in lines):
                if found := _renamed(source, tokens, own, {one: other}, where, 2):
                    yield Change(found, f"line {where[0]}: with `{other}` in place of each `{one}`")
            if found := _renamed(source, tokens, own, {one: other}, lines, 2):
                yield Change(found, f"with `{other}` in place of each `{one}` in your lines")
            for where in ([line] for line in lines):
                if one < other and (
                    found := _renamed(source, tokens, own, {one: other, other: one}, where, 2)
                ):
                    yield Change(
                        found, f"line {where[0]}: with `{one}` and `{other}` the other way round"
                    )
            if one < other and (
                found := _renamed(source, tokens, own, {one: other, other: one}, lines, 2)
            ):
                yield Change(found, f"with `{one}` and `{other}` the other way round in your lines")


def _operators_everywhere(source: str, tokens, own) -> Iterator[Change]:
    """An operator before names of the same beginning (b.x, b.y), in all places together."""
    groups: dict[tuple, list[int]] = {}
    for i in own:
        if tokens[i].text in _OTHERS and i + 1 < len(tokens):
            groups.setdefault((tokens[i].text, tokens[i + 1].text.split(".")[0]), []).append(i)
    for (one, _), places in groups.items():
        if len(places) < 2:
            continue
        for other in _OTHERS[one]:
            changed = source
            for i in reversed(places):
                changed = changed[: tokens[i].start] + other + changed[tokens[i].end :]
            after = " ".join(t.text for t in tokens[places[0] : places[0] + 2])
            yield Change(
                changed,
                f"line {tokens[places[0]].line}, and wherever `{after}` stands like this: with `{other}` in place of `{one}`",
            )


def _renamed(source: str, tokens, own, names: dict, lines, least: int) -> str | None:
    places = [
        i
        for i in own
        if tokens[i].text in names and tokens[i].line in lines and not _declares(tokens, i)
    ]
    if len(places) < least:
        return None
    for i in reversed(places):
        source = source[: tokens[i].start] + names[tokens[i].text] + source[tokens[i].end :]
    return source


def _without_statement(source: str, tokens, own, mine) -> Iterator[Change]:
    """Without one of the statements, and with two lines the other way round."""
    owned = set(own)
    for end in own:
        if tokens[end].text != ";":
            continue
        first, depth = end, 0
        while first > 0:
            text = tokens[first - 1].text
            depth += text in (")", "]")
            depth -= text in ("(", "[")
            if depth < 0 or (not depth and text in (";", "{", "}")):
                break
            first -= 1
        if depth < 0 or first == end or first not in owned:
            continue
        text = _text(source, tokens, first, end + 1)
        if not re.match(
            r"(?:const|int|float|half|auto|unsigned|wmma::fragment|__shared__|return|double)\b",
            text,
        ):
            yield Change(
                _replaced(source, tokens, first, end + 1, ";"),
                f"line {tokens[first].line}: without `{_short(text)}`",
            )
    for i in own:
        if tokens[i].text == "if" and tokens[i + 1].text == "(":
            end = _operand_close(tokens, i + 1)
            if end is not None:
                gone = _short(_text(source, tokens, i, end + 1))
                yield Change(
                    _replaced(source, tokens, i, end + 1, ""),
                    f"line {tokens[i].line}: without `{gone}`",
                )
    lines = source.splitlines()
    for n in sorted(mine):
        if n + 1 in mine and any(
            lines[m].split("//")[0].rstrip().endswith(";") for m in (n - 1, n)
        ):
            rest = [*lines[: n - 1], lines[n], lines[n - 1], *lines[n + 1 :]]
            yield Change("\n".join(rest), f"with lines {n} and {n + 1} the other way round")


def _exchanged(source: str, tokens, own, integers) -> Iterator[Change]:
    """Two names, numbers or operators that are near each other change places."""
    for at, i in enumerate(own):
        one = tokens[i].text
        for j in own[at + 1 : at + 24]:
            other = tokens[j].text
            if (
                one == other
                or tokens[j].line - tokens[i].line > 1
                or _declares(tokens, i)
                or _declares(tokens, j)
            ):
                continue
            alike = (
                (one in integers and other in integers)
                or (_NUMBER.match(one) and _NUMBER.match(other))
                or (one in "%/*+-" and other in "%/*+-")
                or (_WORD.match(one) and _WORD.match(other) and "." in one and _kin(one, other))
            )
            if alike:
                new = other + source[tokens[i].end : tokens[j].start] + one
                changed = source[: tokens[i].start] + new + source[tokens[j].end :]
                lines = f"line {tokens[i].line}"
                if tokens[j].line != tokens[i].line:
                    lines = f"lines {tokens[i].line} and {tokens[j].line}"
                yield Change(changed, f"{lines}: with `{one}` and `{other}` in each other's place")


def _other_terms(source: str, tokens, own, integers) -> Iterator[Change]:
    """A whole product or bracket replaced by a name; a call left out, and what it was given kept."""
    for i in own:
        if i + 1 < len(tokens) and _WORD.match(tokens[i].text) and tokens[i + 1].text == "(":
            end = _operand_close(tokens, i + 1)
            if end is not None and tokens[i].text not in _KEYWORDS:
                inside = _short(_text(source, tokens, i + 1, end + 1))
                yield Change(
                    _replaced(source, tokens, i, i + 1, ""),
                    f"line {tokens[i].line}: without the call of `{tokens[i].text}` around `{inside}`",
                )
        if tokens[i - 1].text in ("(", "[", "+", "=", ",") and (
            _WORD.match(tokens[i].text) or tokens[i].text == "("
        ):
            end = _operand(tokens, i)
            while end < len(tokens) and tokens[end].text in ("*", "/", "%"):
                end = _operand(tokens, end + 1)
            if end - i > 2:
                for other in integers:
                    yield _swap(source, tokens, i, end, other)


def _with_more(source: str, tokens, own, integers) -> Iterator[Change]:
    """With a factor or a term more after a name."""
    factors = ["2", "4", "8", "16", "32", *integers]
    for i in own:
        text = tokens[i].text
        if not (text in integers or _NUMBER.match(text)) or _declares(tokens, i):
            continue
        if text in integers:
            yield _swap(source, tokens, i, i + 1, f"({text} + 1)")
            yield _swap(source, tokens, i, i + 1, f"({text} - 1)")
        for factor in factors:
            if factor != text:
                yield _swap(source, tokens, i, i + 1, f"{text} * {factor}")
        for term in integers:
            if term != text:
                yield _swap(source, tokens, i, i + 1, f"({text} + {term})")
