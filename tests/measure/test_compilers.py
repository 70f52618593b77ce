"""Two recordings side by side, by two compilers: what is stored has the shape of the file that the pages read."""

import json

import pytest

from measure import compilers, provenance
from measure.__main__ import main

STORED = json.loads((provenance.FOLDER / "compilers-nvidia-h200.json").read_text(encoding="utf-8"))


def recording(version, **changed):
    """A recording that holds what the stored file says of one version, and a row that only it has."""
    rows = [
        {"rung": row["rung"], "inputs": "float16", "config": row["config"], "tflops": row["tflops"][version]}
        | dict.fromkeys("mnk", row["size"])
        for row in STORED["rows"]
    ]  # fmt: skip
    rows.append(rows[0] | {"config": {}, "tflops": float(version)})
    rows.append(rows[0] | {"m": 16, "tflops": float(version)})
    machine = STORED["machine"] | {"nvrtc": version, "cupy": "14.2.0"}
    return {"machine": machine, "recorded": STORED["recorded"], "rows": rows[::-1]} | changed


def written(folder, *recordings):
    paths = [folder / f"{number}.json" for number, _ in enumerate(recordings)]
    for path, one in zip(paths, recordings, strict=True):
        path.write_text(json.dumps(one), encoding="utf-8")
    return [str(path) for path in paths]


def test_what_is_stored_can_be_made_again(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(provenance, "FOLDER", tmp_path)
    old, new = written(tmp_path, recording("13.0"), recording("13.5"))
    names = ["warp_tiled", "wmma_shared"]
    assert main(["compilers", old, new, *names]) == 0
    made = json.loads((tmp_path / "compilers-nvidia-h200.json").read_text(encoding="utf-8"))
    assert str(tmp_path) in capsys.readouterr().out
    assert made.keys() == STORED.keys()
    assert made["machine"] == STORED["machine"] and made["method"] == STORED["method"]
    by_place = {(row["rung"], row["size"]): row for row in made["rows"] if row["config"]}
    assert by_place == {(row["rung"], row["size"]): row for row in STORED["rows"]}
    assert [row["size"] for row in made["rows"]] == sorted(row["size"] for row in made["rows"])


def test_a_row_s_own_compiler_stands_before_its_machine_s():
    new = recording("13.5")
    for row in new["rows"]:
        row["nvrtc"] = "13.5"
    new["machine"]["nvrtc"] = "13.0"
    rows = compilers.compared(recording("13.0"), new, ["wmma_shared"])
    assert {row["rung"] for row in rows} == {"wmma_shared"}
    assert all(list(row["tflops"]) == ["13.0", "13.5"] for row in rows)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"recorded": "2026-01-01T00:00:00"}, "different days: 2026-11-22 and 2026-01-01"),
        ({"machine": {"gpu": "NVIDIA T4", "driver": "1", "nvrtc": "13.5"}}, "different gpus"),
        ({"machine": STORED["machine"] | {"nvrtc": "13.0"}}, "two compilers"),
        ({"rows": []}, "no row is in both"),
    ],
)
def test_what_cannot_be_compared_is_refused(changed, said, tmp_path, capsys):
    paths = written(tmp_path, recording("13.0"), recording("13.5", **changed))
    assert main(["compilers", *paths]) == 1
    assert said in capsys.readouterr().err
    assert not list(tmp_path.glob("compilers*"))
