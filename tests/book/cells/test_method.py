"""How the times were taken: each file of results/ is told by what it holds."""

import pytest

from book.cells import method
from measure.results import FOLDER, recordings


def test_only_recordings_hold_times_of_the_rungs():
    names = {path.stem for path in FOLDER.glob("*.json")} - {"settings"}
    of_rungs = {name for name in names if method.holds(name) == method.WHAT[""]}
    assert of_rungs == {name for name in recordings() if name.startswith("nvidia-")}
    with pytest.raises(KeyError, match="songs-nvidia-h200"):
        method.holds("songs-nvidia-h200")
