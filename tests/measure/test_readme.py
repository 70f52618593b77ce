"""`kernels/README.md` is what the table and the recordings say."""

import re

from kernels import RUNGS
from measure import recorded
from measure.readme import README, SIZE, _three_digits, text


def test_the_page_is_true():
    assert README.read_text(encoding="utf-8") == text(), "run `python -m measure readme`"


def test_every_rung_has_its_row_and_its_recorded_speed():
    page = text()
    for name, rung in RUNGS.items():
        rows = recorded().select(name, SIZE)
        link = f"[`{rung.file or name + '.py'}`]({rung.file or name + '.py'})"
        row = next(line for line in page.splitlines() if link in line)
        assert f"| {rung.idea} |" in row
        assert (README.parent / re.search(r"\]\((.+?)\)", row)[1]).exists()
        if rows:
            assert f"| {_three_digits(rows[0]['tflops'])} |" in row


def test_another_recording_gives_another_page():
    recording = recorded()
    faster = [{**row, "tflops": 2 * row["tflops"]} for row in recording.rows]
    other = type(recording)(**{**vars(recording), "rows": tuple(faster)})
    assert text(other) != text()


def test_a_large_speed_is_written_without_an_exponent():
    assert [_three_digits(x) for x in (0.4983, 21.52, 805.1, 1347.2)] == [
        "0.498",
        "21.5",
        "805",
        "1,350",
    ]
