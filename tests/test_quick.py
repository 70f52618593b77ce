"""What `make quick` runs is there, and each file belongs to the room that it should."""

import pytest

from tests import quick


@pytest.mark.parametrize("room", quick.ROOMS)
def test_every_name_is_there(room):
    tests, slow = quick.ROOMS[room]
    for name in [*tests, *(f"{tests[0]}/{one}" for one in slow)]:
        assert (quick.ROOT / name.split("::")[0]).exists(), name


@pytest.mark.parametrize(
    ("file", "room"),
    [
        ("emulator/ops/bits.py", "emulator"),
        ("tests/emulator/ops/test_table.py", "emulator"),
        ("book/05_more_work_per_thread.ipynb", "book"),
        ("book/cells/timing.py", "book/cells"),
        ("book/cells_of_others.py", "book"),
        ("Makefile", None),
    ],
)
def test_a_file_belongs_to_a_room(file, room):
    assert quick.room_of(file) == room


def test_a_room_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match="no room 'emulators'; the rooms are emulator, "):
        quick.arguments(["emulators"])
