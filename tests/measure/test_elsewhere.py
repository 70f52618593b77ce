"""Blackwell kernels of others: what the command says of right, wrong and refused ones."""

import subprocess
from types import SimpleNamespace

import numpy as np
import pytest

import emulator
from measure import b200_sums, deep_gemm_kernels, elsewhere


def _run(error):
    wanted = np.array([1.0, -4.0])
    return lambda: (wanted + np.array([0, error]), wanted, SimpleNamespace(hazards=[]))


def test_an_outcome_says_right_wrong_and_what_was_missing(capsys):
    def refused():
        raise emulator.Unsupported("tcgen05.mma.ws is not supported", 7, "tcgen05.mma.ws")

    runs = {"a": _run(0.001), "b": _run(1.0), "c": refused}
    found = [elsewhere._outcome("some", name, run) for name, run in runs.items()]
    assert [one.said for one in found] == ["right", "wrong", "refused"]
    assert found[1].error == 0.25
    assert elsewhere.show(iter(found)) == found
    assert "tcgen05.mma.ws is not supported" in capsys.readouterr().out


def test_what_is_stored_names_kernels_and_their_sources(tmp_path, monkeypatch):
    monkeypatch.setattr(elsewhere, "STORED", tmp_path / "elsewhere.json")
    made = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "a"]
    for words in (["init", "-q"], made):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    one = elsewhere._outcome("some", "a", _run(1.0))
    elsewhere.record([one], False, cutlass=tmp_path, learn_cuda=None)
    found = elsewhere.stored()
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert found["sources"] == {"cutlass": head.stdout.strip()}
    assert elsewhere.Outcome(**{**found["kernels"][0], "hazards": ()}) == one


def test_nothing_asked_for_is_said():
    with pytest.raises(ValueError, match="give --cutlass PATH"):
        elsewhere.asked(False)
    with pytest.raises(ValueError, match="needs CUTLASS's headers"):
        elsewhere.asked(False, deep_gemm="there")


def test_a_path_without_the_kernels_is_named(tmp_path):
    with pytest.raises(ValueError, match="02e_matmul_sm100"):
        list(elsewhere.learn_cuda(tmp_path))


def test_paths_of_the_other_projects_are_checked(tmp_path):
    with pytest.raises(ValueError, match="a checkout of NVIDIA/cutlass"):
        list(elsewhere.asked(False, cutlass=tmp_path))
    with pytest.raises(ValueError, match="a checkout of deepseek-ai/DeepGEMM"):
        list(elsewhere._CHECKOUTS["deep_gemm"](tmp_path, tmp_path))
    with pytest.raises(ValueError, match="a checkout of HazyResearch/ThunderKittens"):
        list(elsewhere.asked(False, thunder_kittens=tmp_path))


def test_sums_of_a_b200_are_compared_bit_by_bit(tmp_path):
    """One sum of each kind as the files have it, and a wrong one."""
    with pytest.raises(ValueError, match="MATLAB-tensor-core"):
        list(elsewhere.b200_sums(tmp_path))
    for folder, (_, _, results) in b200_sums._CASES.items():
        at = tmp_path / "model_validation" / "B200" / folder
        at.mkdir(parents=True)
        terms = {"tf32": 4, "fp16": 16, "bf16": 16}.get(folder, 32)
        for name in "ab":  # 1.5 and 0.5
            word = {"a": "3fc00000", "b": "3f000000"}[name]
            (at / f"{name}_B200_{folder}.txt").write_text(f"{word} " * terms + "\n")
        (at / "c_B200_fp32.txt").write_text(f"{0x3F800000:032b}\n")
        total = np.float32(1 + 0.75 * terms + (folder == "E5M2"))
        for result in results:
            (at / f"d_B200_{result}.txt").write_text(f"{int(total.view(np.uint32)):032b}\n")
    found = {one.kernel: one.said for one in elsewhere.b200_sums(tmp_path)}
    assert len(found) == 8
    assert {k for k, said in found.items() if said == "wrong"} == {
        "mma e5m2 to f32",
        "mma e5m2 to f16",
    }


def test_each_instance_of_deep_gemm_is_told_from_the_others():
    """Entries as nvcc mangles them, of which each name finds its own."""

    def mangled(text):
        template, words = text.split("<")
        words = words.rstrip(">").split(", ")
        known = {"true": "Lb1E", "false": "Lb0E", "K": "LMajorE0E", "MN": "LMajorE1E"}
        return f"_Z_sm100_{template}I" + "".join(
            f"Lj{word}E" if word.isdigit() else known.get(word, "N_") for word in words
        )

    entries = {name: mangled(text) for name, text in deep_gemm_kernels._INSTANCES.items()}
    assert len(set(entries.values())) == 8
    for name, entry in entries.items():
        assert deep_gemm_kernels._entry(name, list(entries.values())) == entry


def test_every_version_has_its_own_case():
    cases = elsewhere._learn_cuda_cases()
    assert len({case.name for case in cases}) == len(cases) == 13
    assert all(case.shared <= 227 * 1024 for case in cases)


def test_what_triton_makes_is_right():
    pytest.importorskip("triton")
    found = list(elsewhere.asked(True))
    assert len(found) == 14 and all(one.said == "right" for one in found)
