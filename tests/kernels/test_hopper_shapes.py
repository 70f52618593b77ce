"""tma_mma, wgmma_split and wgmma_fp8: settings that compile, grids, refusals, and results on the emulator."""

import importlib
import sys
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest

from emulator import TensorMap
from kernels.build import build
from kernels.check import check_one
from kernels.errors import UnsupportedGPU
from kernels.rungs import find

ARCH = "90a"

# Settings that were measured, and one of every type and way to share.
SETTINGS = [
    ("tma_mma", {}),
    ("tma_mma", {"HALF_OUTPUT": 1, "BM": 128, "BN": 256}),
    ("tma_mma", {"STAGES": 4, "BUFFERS": 2}),
    ("wgmma_split", {}),
    ("wgmma_split", {"SPLIT": 0, "BF16_INPUT": 1, "BF16_OUTPUT": 1}),
    ("wgmma_split", {"SPLIT": 0, "BM": 256, "STAGES": 3, "HALF_OUTPUT": 1}),
    ("wgmma_split", {"SPLIT": 1, "STAGES": 2, "PER_SM": 2, "HALF_OUTPUT": 1}),
    ("wgmma_split", {"SPLIT": 2, "BM": 64, "A_BOX": 16, "STAGES": 4, "HALF_OUTPUT": 1}),
    ("wgmma_split", {"SPLIT": 8, "BM": 64, "BN": 256, "A_BOX": 64, "STAGES": 3}),
    ("wgmma_split", {"SPLIT": 0, "CLUSTER_M": 2, "CLUSTER_N": 2, "A_BOX": 64, "HALF_OUTPUT": 1}),
    ("wgmma_fp8", {}),
    ("wgmma_fp8", {"PROMOTE": 128}),
    ("wgmma_fp8", {"PROMOTE": 512, "BN": 128, "STAGES": 6, "FLOAT_OUTPUT": 1}),
    ("wgmma_fp8", {"CLUSTER": 1}),
    ("wgmma_fp8", {"TF32_INPUT": 1}),
    ("wgmma_fp8", {"INT8_INPUT": 1}),
    ("wgmma_fp8", {"BF16_INPUT": 1}),
]


@pytest.mark.parametrize(("name", "macros"), SETTINGS)
def test_compiles_without_spills_or_warnings(name, macros):
    rung = find(name)
    values = rung.resolve(macros)
    rung.check_needs(values)
    built = build(rung, values, ARCH)
    assert built.spills == 0 and not built.warnings
    assert "C75" not in built.log  # ptxas: wgmma serialized, setmaxnreg ignored
    _, _, shared = rung.geometry(values, 1, 1, 1)
    # ptxas does not count the 1024 bytes that alignment costs where barriers stand before the stages
    assert (shared + 1024) * values.get("PER_SM", 1) <= 227 * 1024


def test_clusters_finish_in_whole_rounds():
    # 16 x 16 tiles of two blocks, 66 such clusters at a time: four rounds, for which 64 do
    assert find("wgmma_fp8").geometry({}, 4096, 4096, 64)[0] == (128, 1, 1)
    assert find("wgmma_fp8").geometry({"CLUSTER": 1}, 100, 300, 64)[0] == (2, 1, 1)


def test_blocks_share_tiles_as_split_says():
    rung = find("wgmma_split")
    sizes = (256, 256, 65536)
    assert rung.geometry({"SPLIT": 8}, *sizes)[0] == (4 * 8, 1, 1)
    assert rung.geometry({"SPLIT": 0}, *sizes)[0] == (132, 1, 1)
    assert rung.geometry({"SPLIT": 0}, 16, 128, 200)[0] == (4, 1, 1)  # no block without a k-step
    assert rung.geometry({"SPLIT": 0, "CLUSTER_M": 2, "BLOCKS": 131}, *sizes)[0] == (130, 1, 1)
    assert rung.geometry({"SPLIT": 1}, *sizes)[0] == (4, 1, 1)
    assert rung.geometry({"SPLIT": 1, "PER_SM": 2}, 4096, 4096, 128)[0] == (264, 1, 1)


def test_a_launch_whose_blocks_would_wait_for_ever_is_refused(monkeypatch):
    """Clusters of four fit 30 times on an H200: its 132 multiprocessors are not 33 groups of four."""

    class Driver:
        CUfunction = staticmethod(lambda pointer: pointer)
        CUlaunchAttribute, CUlaunchConfig = MagicMock, SimpleNamespace
        CUfunction_attribute = CUlaunchAttributeID = MagicMock()
        CUresult = SimpleNamespace(CUDA_SUCCESS=0)
        cuFuncGetAttribute = staticmethod(lambda attribute, function: (0, 4))
        cuOccupancyMaxActiveClusters = staticmethod(lambda function, config: (0, 30))

    launch = importlib.import_module("kernels.launch")
    kernel = SimpleNamespace(kernel=SimpleNamespace(ptr=1))
    monkeypatch.setattr(launch, "gpu", lambda: SimpleNamespace(name="an H200"))
    monkeypatch.setattr(launch, "_kernel", lambda *_: kernel)
    monkeypatch.setattr(launch, "_arguments", lambda *_: [])
    monkeypatch.setitem(sys.modules, "cuda.bindings", SimpleNamespace(driver=Driver))
    rung = find("wgmma_split")
    quad = {"CLUSTER_M": 2, "CLUSTER_N": 2, "A_BOX": 64}

    def prepare(**macros):
        values = rung.resolve(quad | macros)
        grid, block, shared = rung.geometry(values, 4096, 4096, 4096)
        assert grid == (macros["BLOCKS"], 1, 1)
        launch.prepare_on_gpu(
            None, rung.entry, grid, block, [], shared, together=rung.together(**values)
        )

    prepare(SPLIT=0, BLOCKS=120)
    prepare(SPLIT=1, BLOCKS=132)  # nobody waits
    with pytest.raises(UnsupportedGPU, match=r"132 blocks of .* runs 120 of them at a time"):
        prepare(SPLIT=0, BLOCKS=132)


@pytest.mark.parametrize(
    ("name", "macros", "words"),
    [
        ("wgmma_split", {"SPLIT": 3}, "SPLIT is 0, 1, 2, 4 or 8"),
        ("wgmma_split", {"BM": 64}, "A_BOX to divide BM"),
        ("wgmma_split", {"SPLIT": 4, "HALF_OUTPUT": 1}, "slices of whole panels of C"),
        ("wgmma_split", {"CLUSTER_M": 2}, "SPLIT of 0 or 1 for clusters"),
        ("tma_mma", {"BM": 128}, "eight warps"),
        ("wgmma_fp8", {"TF32_INPUT": 1, "INT8_INPUT": 1}, "one type of input"),
        ("wgmma_fp8", {"PROMOTE": 100}, "PROMOTE to be a multiple of the k-step"),
    ],
)
def test_settings_that_would_be_wrong_are_refused(name, macros, words):
    rung = find(name)
    with pytest.raises(ValueError, match=words):
        rung.check_needs(rung.resolve(macros))


def test_tf32_is_a_float_that_the_copy_rounds():
    one = TensorMap(np.zeros((8, 32), np.float32), (8, 32), format="tf32", swizzle=128)
    assert one.itemsize == 4
    with pytest.raises(ValueError, match="tf32 has 4 bytes, the array's elements 2"):
        TensorMap(np.zeros((8, 64), np.float16), (8, 32), format="tf32", swizzle=128)


# Shapes that hang over tiles and clusters in ways that the sizes of `check` do not.
SIZES = [
    ("tma_mma", {"BLOCKS": 2, "GROUP": 1}, (300, 264, 136)),
    ("tma_mma", {"HALF_OUTPUT": 1}, (1, 8, 8)),
    ("wgmma_split", {"SPLIT": 2}, (100, 200, 40)),  # one k-step for two blocks
    ("wgmma_split", {"SPLIT": 4, "BM": 64, "A_BOX": 64, "STAGES": 5}, (130, 264, 200)),
    (
        "wgmma_split",
        {"SPLIT": 2, "BM": 64, "A_BOX": 16, "STAGES": 4, "HALF_OUTPUT": 1},
        (17, 136, 456),
    ),
    (
        "wgmma_split",
        {"SPLIT": 1, "BLOCKS": 2, "BN": 192, "STAGES": 4, "HALF_OUTPUT": 1},
        (257, 400, 72),
    ),
    ("wgmma_split", {"SPLIT": 0, "BLOCKS": 7}, (257, 136, 200)),
    # clusters whose second row or column of tiles is outside of C
    ("wgmma_split", {"SPLIT": 0, "BLOCKS": 8, "CLUSTER_M": 2}, (257, 136, 840)),
    (
        "wgmma_split",
        {"SPLIT": 0, "BLOCKS": 9, "CLUSTER_M": 2, "CLUSTER_N": 2, "A_BOX": 64},
        (130, 264, 840),
    ),
    ("wgmma_split", {"SPLIT": 1, "BLOCKS": 4, "CLUSTER_M": 2, "HALF_OUTPUT": 1}, (130, 264, 200)),
    ("wgmma_split", {"SPLIT": 0, "BLOCKS": 5}, (130, 264, 136)),  # others poll while one resets
    ("wgmma_split", {"SPLIT": 0, "BLOCKS": 3, "BF16_INPUT": 1, "BF16_OUTPUT": 1}, (64, 136, 456)),
    ("wgmma_fp8", {"BLOCKS": 2}, (300, 272, 144)),
    (
        "wgmma_fp8",
        {"BLOCKS": 2, "PROMOTE": 128},
        (300, 400, 272),
    ),  # an odd number of panels per tile
    ("wgmma_fp8", {"CLUSTER": 1, "FLOAT_OUTPUT": 1}, (130, 272, 144)),
    ("wgmma_fp8", {"TF32_INPUT": 1}, (130, 136, 40)),
    ("wgmma_fp8", {"INT8_INPUT": 1}, (130, 144, 144)),
    ("wgmma_fp8", {"BF16_INPUT": 1}, (130, 136, 72)),
    ("wgmma_persistent", {"PINGPONG": 1, "BM": 64, "BN": 128, "STAGES": 3}, (200, 392, 200)),
    ("wgmma_cluster", {"CLUSTER_M": 2, "CLUSTER_N": 2, "BN": 128, "STAGES": 3}, (456, 392, 200)),
]


@pytest.mark.parametrize("beta", [0.0, 1.5])
@pytest.mark.parametrize(("name", "macros", "size"), SIZES)
def test_a_setting_is_right_without_a_hazard(name, macros, size, beta):
    found, hazards = check_one(name, size, macros, -0.75, beta)
    assert found.ok and not hazards
