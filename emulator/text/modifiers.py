"""Which words may follow an opcode (PTX ISA 9.0), so that a typing mistake is not another instruction.

An opcode has one or more *forms*. A form is a line of groups: `sat u32|s32` takes at most one word of
each of the two groups, in any order (ptxas is as free, and compilers use it). A group with a star may be
drawn from several times: the types of `cvt`, the two layouts of `mma`. One with an exclamation mark may
not be left out. Only what this machine executes is listed, and what its factories refuse with a reason
of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, lru_cache

# Words of the PTX ISA that make another instruction of it, which this machine does not have.
OUTSIDE = {
    "multimem", "sp", "sp::ordered_metadata", "block_scale", "mxf8f6f4", "BoolOp", "im2col",
    "im2col::w", "im2col::w::128", "im2col_no_offs", "tile::gather4", "tile::scatter4",
    "cta_group::1", "cta_group::2", "e2m1", "e2m3", "e3m2",
}  # fmt: skip


@lru_cache(maxsize=4096)
def fitting(forms: tuple[str, ...], words: tuple[str, ...]) -> str | None:
    """The first of these forms that has a place for each word, and lacks none; None for no such form."""
    return next((form for form in forms if _fits(words, _groups(form))), None)


def problem(opcode: str, forms: tuple[str, ...], words: tuple[str, ...]) -> str:
    """What is wrong with words that fit none of the forms."""
    divided = [_groups(form) for form in forms]
    known = sorted({word for form in divided for group in form for word in group.words})
    for word in words:
        if word not in known:
            near = _nearest(word, known)
            hint = f"; did you mean .{near}?" if near else ""
            return f"{opcode} takes no .{word} here{hint}"
    lacking: dict[str, None] = {}  # in the order of the table
    for form in forms:
        empty = [g for g in _groups(form) if g.needed and not g.words.intersection(words)]
        if len(empty) == 1 and _fits((*words, min(empty[0].words)), _groups(form)):
            lacking.update(dict.fromkeys(_choices(form, empty[0])))
    if lacking:
        return f"{opcode} needs one of {', '.join(f'.{word}' for word in lacking)}"
    written = " or ".join(_written(form) for form in forms)
    return f"its modifiers do not go together; {opcode} takes {written}"


def _nearest(word: str, known: list[str]) -> str | None:
    """The known word with the same letters in another order or case; else one that is much alike."""
    letters = sorted(word.lower())
    same = [other for other in known if sorted(other.lower()) == letters]
    near = get_close_matches(word, same, 1, 0) or get_close_matches(word, known, 1)
    return next(iter(near), None)


@dataclass(frozen=True)
class Group:
    """Words of which one may be taken; `several` if more than one may, `needed` if one must."""

    words: frozenset[str]
    several: bool
    needed: bool


@cache
def _groups(form: str) -> tuple[Group, ...]:
    return tuple(
        Group(frozenset(group.rstrip("*!").split("|")), "*" in group, "!" in group)
        for group in form.split()
    )


def _fits(words: tuple[str, ...], form: tuple[Group, ...]) -> bool:
    """Whether each word has a group of its own, the first that is free, which suffices here; and
    whether no group is left that is needed.
    """
    free = list(form)
    for word in words:
        group = next((group for group in free if word in group.words), None)
        if group is None:
            return False
        if not group.several:
            free.remove(group)
    return not any(group.needed for group in free if not group.words.intersection(words))


def _choices(form: str, group: Group) -> list[str]:
    """The words of a group in the order of the table."""
    written = (one.rstrip("*!").split("|") for one in form.split())
    return next(words for words in written if group.words == set(words))


def _written(form: str) -> str:
    """A form as PTX manuals write choices: `{.lo,.hi}{.u32,.s32}`."""
    return "".join(
        "{" + ",".join(f".{word}" for word in group.rstrip("*!").split("|")) + "}"
        for group in form.split()
    )
