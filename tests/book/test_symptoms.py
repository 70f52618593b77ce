"""Each message of the emulator and of the checker leads to an entry of the page of symptoms."""

import pytest

from book import reading, symptoms
from book.exercises.words import WORDS
from emulator import errors
from emulator.sanitizer.report import KINDS

PAGE = symptoms.PAGE.read_text(encoding="utf-8")
BASES = {"EmulatorError", "ExecutionError"}  # nobody meets these two themselves
ERRORS = {
    name
    for name, one in vars(errors).items()
    if isinstance(one, type) and issubclass(one, Exception)
} - BASES
OUTPUT = '<div class="output stream highlight-myst-ansi notranslate"><div class="highlight"><pre><span></span>{}\n</pre>'


def test_every_message_has_one_entry_and_every_entry_is_about_messages_that_exist():
    named = [
        name for line in symptoms.MESSAGES.findall(PAGE) for name in symptoms.NAMED.findall(line)
    ]
    assert sorted(named) == sorted({*KINDS, *ERRORS, *WORDS})
    assert reading.words(PAGE) <= 1500


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_emulator_prints_is_linked(kind):
    body = symptoms.linked(
        OUTPUT.format(f"{kind} in block (0, 0, 0): thread (1, 0, 0) reads"), "symptoms.html"
    )
    assert (
        f'<a class="gl-symptom" href="symptoms.html#{symptoms.anchors()[kind]}">{kind}</a> in block'
        in body
    )


def test_what_the_checker_prints_is_linked():
    said = "wrong at M=64: Every element is 2 times what it must be: is something\n    added or multiplied"
    body = symptoms.linked(OUTPUT.format(said), "../symptoms.html")
    assert '#too-large-or-too-small-by-a-factor">times what it must be: is</a> something' in body
    body = symptoms.linked(
        OUTPUT.format("\N{BALLOT X} mend_parity: it hangs, and was stopped"), "../symptoms.html"
    )
    assert '#hangs-in-a-wait">it hangs, and was stopped</a>' in body


def test_a_listing_and_prose_stay_as_they_are():
    for body in ("<p>read-after-write in block</p>", "<pre>// read-after-write in block</pre>"):
        assert symptoms.linked(body, "symptoms.html") == body
