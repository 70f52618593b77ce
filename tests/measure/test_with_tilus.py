"""Tilus's published kernel: how its file is loaded without its search, and what was recorded of it."""

import sys
from types import SimpleNamespace

import pytest

from measure import with_tilus
from measure.provenance import recording

TUTORIAL = """import inspect
import tilus

@tilus.autotune("num_warps", [4, 8])
@tilus.autotune("block_m, block_n", [[128, 128], [128, 64], [64, 128]])
@tilus.autotune("block_k", [16, 32])
class MatmulV3(tilus.Script):
    def __init__(self, num_warps, block_m, block_n, block_k):
        self.setting = num_warps, block_m, block_n, block_k

    @staticmethod
    def own_source():
        return inspect.getsource(MatmulV3.__init__)
"""


@pytest.fixture
def tilus(monkeypatch):
    """A Tilus whose search replaces the class that it decorates, as the real one does."""
    searched = SimpleNamespace(autotune=lambda *_: lambda cls: None, Script=object)
    monkeypatch.setitem(sys.modules, "tilus", searched)


def test_the_class_comes_without_its_search_and_nothing_stays_behind(tilus, tmp_path):
    file = tmp_path / "matmul_v3.py"
    file.write_text(TUTORIAL, encoding="utf-8")
    with with_tilus.published(file) as kernel:
        assert kernel(**with_tilus.SPACE[1]).setting == (4, 128, 128, 32)
        assert "self.setting" in kernel.own_source()  # Tilus compiles a class from its source
    assert list(tmp_path.iterdir()) == [file]
    assert file.read_text(encoding="utf-8") == TUTORIAL


@pytest.mark.parametrize(
    "text, error, words",
    [
        (None, FileNotFoundError, r"no file .*matmul\.py: matmul_v3\.py is in the examples"),
        ("class MatmulV0: pass", ValueError, r"matmul\.py has no class MatmulV3"),
    ],
)
def test_another_file_is_refused_by_name(tmp_path, text, error, words):
    file = tmp_path / "matmul.py"
    if text:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(error, match=words), with_tilus.published(file):
        pytest.fail("another file was taken")


def test_the_recording_holds_every_point_and_each_was_right():
    rows = recording("tilus")["rows"]
    points = [row for row in rows if row["kernel"] == "matmul_v3"]
    assert [row["setting"] for row in points] == with_tilus.SPACE
    assert all(row["error"] < 1e-3 for row in points)
    assert {row["kernel"] for row in rows} == {"matmul_v3", with_tilus.RUNG, "torch.mm", "cublas"}
