"""From a message of the emulator or of the checker to its entry in the page of symptoms, which names the messages."""

import html
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PAGE = Path(__file__).with_name("symptoms.md")
NAME = "book/symptoms"
ENTRY = re.compile(r"^### (?P<title>.+)$(?P<text>(?:(?!^#).*\n?)*)", re.MULTILINE)
MESSAGES = re.compile(r"^Messages: (.+)$", re.MULTILINE)
NAMED = re.compile(r"`([^`]+)`")
OUTPUT = re.compile(r'(<div class="output[^>]*>\s*(?:<div[^>]*>)*<pre>)(.*?)(</pre>)', re.DOTALL)
WORDS_OF_A_LINK = 6
STOPPED = {
    "out of bounds": "OutOfBounds",
    "it hangs, and was stopped": "Deadlock",
}  # a verdict's headlines


@cache
def anchors() -> dict[str, str]:
    """{message: the entry's place in the page}: kinds of hazards, names of errors, kinds of the checker's findings."""
    found = {}
    for entry in ENTRY.finditer(PAGE.read_text(encoding="utf-8")):
        place = re.sub(r"[^a-z0-9]+", "-", entry["title"].lower()).strip("-")
        for line in MESSAGES.findall(entry["text"]):
            found |= dict.fromkeys(NAMED.findall(line), place)
    return found


def told() -> Iterator[tuple[str, str]]:
    """(message, what its text matches): how each message reads where it is printed."""
    from book.exercises.hazard_words import HAZARDS
    from book.exercises.words import WORDS

    headlines = {words: kind for kind, (words, _) in reversed(HAZARDS.items())} | STOPPED
    for message in anchors():
        if message in WORDS:
            pieces = re.split(r"\{[^}]*\}", WORDS[message])
            words = max(pieces, key=len).split()[:WORDS_OF_A_LINK]
            if len(words) > 2:
                escaped = (re.escape(html.escape(word, quote=False)) for word in words)
                yield message, r"\s+".join(escaped)
        else:
            places = (rf"\b{message}(?= in block|: )", rf"(?<=hazards: ){message}")
            yield message, "|".join([*places, rf"(?<=, ){message}(?=[,\n])"])
    for words, kind in headlines.items():
        yield kind, rf"(?<=: ){re.escape(words)}(?=\n|$)"


@cache
def _pattern() -> tuple[re.Pattern, tuple[str, ...]]:
    messages, patterns = zip(*told(), strict=True)
    return re.compile("|".join(f"({one})" for one in patterns)), messages


def linked(body: str, page: str) -> str:
    """A rendered page in whose outputs each message leads to its entry; `page` is the way to the page of symptoms."""
    pattern, messages = _pattern()

    def link(found: re.Match) -> str:
        place = anchors()[messages[found.lastindex - 1]]
        return f'<a class="gl-symptom" href="{page}#{place}">{found[0]}</a>'

    return OUTPUT.sub(lambda out: out[1] + pattern.sub(link, out[2]) + out[3], body)
