"""`python -m emulator run`, in this process."""

from pathlib import Path

import numpy as np
import pytest

from emulator.__main__ import argument, main

NAIVE = Path(__file__).parents[2] / "emulator" / "samples" / "naive.ptx"


def test_run_computes_saves_and_reports(tmp_path, capsys):
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 32, 32)).astype("f4")
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    words = [
        "run",
        str(NAIVE),
        "--grid",
        "1x1",
        "--block",
        "32x32",
        "--instructions",
        "--save",
        f"2={tmp_path / 'c.npy'}",
    ]
    for text in (
        f"f32[32,32]={tmp_path / 'a.npy'}",
        f"f32[32,32]={tmp_path / 'b.npy'}",
        "f32[32,32]",
    ):
        words += ["--arg", text]
    for text in ("s32=32", "s32=32", "s32=32", "f32=2", "f32=0"):
        words += ["--arg", text]
    assert main(words) == 0
    assert np.allclose(np.load(tmp_path / "c.npy"), 2 * a @ b, rtol=1e-4, atol=1e-4)
    shown = capsys.readouterr().out
    assert "global_sectors" in shown and "fma.rn.f32" in shown and "total" in shown


def test_errors_go_to_stderr_with_status_1(tmp_path, capsys):
    path = tmp_path / "bad.ptx"
    path.write_text(
        ".version 9.0\n.target sm_80\n.address_size 64\n.entry k(.param .u64 p) {\n  nonsense.u32 %r1;\n}\n"
    )
    assert main(["run", str(path), "--arg", "f32[4]"]) == 1
    assert "PTX line 5" in capsys.readouterr().err
    assert main(["run", str(NAIVE), "--arg", "f32[4]"]) == 1
    assert "takes 8 arguments" in capsys.readouterr().err


def test_arguments():
    assert argument("s32=-5") == np.int32(-5) and argument("u64=0x10").dtype == "u8"
    assert (
        argument("f16[2,3]=ones").tolist() == [[1, 1, 1], [1, 1, 1]] and argument("f32=1.5") == 1.5
    )
    assert (argument("f32[8]=random:3") == argument("f32[8]=random:3")).all()
    with pytest.raises(ValueError, match="expected TYPE=VALUE"):
        argument("quad=1")


def test_opcodes_prints_what_the_readme_shows(capsys):
    assert main(["opcodes"]) == 0
    assert "| bits | and or xor not" in capsys.readouterr().out


def test_a_tensor_map_is_an_argument():
    found = argument("map:8x32:64:f16[64,96]=random")
    assert (found.box, found.swizzle, found.array.shape) == ((8, 32), 64, (64, 96))
    assert argument("map:8x32:f16[64,96]=zeros").swizzle == 0
    with pytest.raises(ValueError, match="a tensor map is map:BOX:TYPE"):
        argument("map:f16[64,96]=zeros")
    with pytest.raises(ValueError, match="--arg map:8x300:f16"):
        argument("map:8x300:f16[64,960]=zeros")
