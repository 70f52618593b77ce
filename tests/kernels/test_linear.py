"""gelu(x @ w + bias) by the rung with a fused epilogue: right, at any sizes and on views, and in PyTorch."""

from math import erf

import numpy as np
import pytest

from kernels import linear as room
from kernels.linear import linear

SMALL = {"BM": 64, "BN": 64, "BK": 32, "WM": 32, "WN": 32, "STAGES": 3, "GROUP": 2, "BLOCKS": 3}


def run(x, w, bias=None, **how):
    return linear(x, w, bias, machine="emulator", macros=SMALL, **how)


def random(*shape):
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(np.float16)


def expected(x, w, bias=0.0, gelu=True):
    z = x.astype("f8") @ w.astype("f8") + bias
    return 0.5 * z * (1 + np.vectorize(erf)(z / np.sqrt(2))) if gelu else z


@pytest.mark.parametrize("size", [(64, 64, 32), (33, 72, 40), (1, 8, 8), (130, 136, 72)])
def test_right_at_any_size(size):
    M, N, K = size
    x, w, bias = random(M, K), random(K, N), random(N)
    found = run(x, w, bias, keep=True)
    assert np.allclose(found.y, expected(x, w, bias), atol=4e-3, rtol=2e-3)
    assert np.allclose(found.before, expected(x, w, bias, gelu=False), atol=4e-3, rtol=2e-3)
    assert not found.trace.hazards


def test_without_bias_and_without_gelu():
    x, w = random(40, 48), random(48, 64)
    assert np.allclose(run(x, w).y, expected(x, w), atol=4e-3)
    plain = run(x, w, gelu=False)
    assert np.allclose(plain.y, expected(x, w, gelu=False), atol=4e-3, rtol=2e-3)
    assert plain.before is None


@pytest.mark.parametrize("own", [False, True])
def test_batches(own):
    x, w, bias = random(3, 40, 24), random(3, 24, 72), random(72)
    w = w if own else w[0]
    found = run(x, w, bias)
    assert found.y.shape == (3, 40, 72)
    assert np.allclose(found.y, expected(x, w, bias), atol=4e-3, rtol=2e-3)


def test_views_are_read_where_they_lie():
    big_x, big_w = random(2, 50, 96), random(64, 200)
    x, w = big_x[:, 5:45, 16:56], big_w[:40, 8:80]  # 16-byte places, pitches of 96 and 200
    found = run(x, w)
    assert np.allclose(found.y, expected(x, w), atol=4e-3, rtol=2e-3)
    assert np.shares_memory(room._flat(np, x)[0], big_x)
    assert room._flat(np, w)[1:] == (200, 0)


@pytest.mark.parametrize(
    "view",
    [
        lambda: random(48, 40).T,  # columns side by side
        lambda: random(40, 50)[:, 1:49],  # rows at odd places
        lambda: random(40, 96)[:, ::2],  # every other element
        lambda: random(80, 48)[::-2],  # backwards
    ],
)
def test_other_views_are_copied(view):
    x, w = view(), random(48, 64)
    assert np.allclose(run(x, w).y, expected(x, w), atol=4e-3, rtol=2e-3)
    assert not np.shares_memory(room._flat(np, x)[0], x)


@pytest.mark.parametrize(
    ("args", "error", "said"),
    [
        ((np.zeros((8, 8)), np.zeros((8, 8), "f2")), TypeError, "float64"),
        ((random(8, 12), random(12, 8)), ValueError, "multiples of 8"),
        ((random(8, 16), random(8, 16)), ValueError, r"\(M, K\)"),
        ((random(2, 8, 16), random(3, 16, 8)), ValueError, "batch of 2"),
        ((random(8, 16), random(16, 8), random(16)), ValueError, r"\(8,\) is wanted"),
    ],
)
def test_what_does_not_fit_is_said(args, error, said):
    with pytest.raises(error, match=said):
        run(*args)


def test_the_rung_has_what_is_replaced_once():
    text = room.source()
    assert "store_atoms(C" not in text and "store_bias_gelu" in text
    assert "alpha" not in text.split("linear_bias_gelu(")[1].split(")")[0]


def test_nothing_spills():
    x = random(8, 8)
    assert run(x, x).build.spills == 0


class TestTorch:
    """The operator on the emulator; `python -m measure linear` tests it on a GPU."""

    @pytest.fixture(autouse=True)
    def small(self, monkeypatch):
        torch = pytest.importorskip("torch", reason="PyTorch is not installed here")
        from kernels import torch_linear

        monkeypatch.setattr(torch_linear, "linear", lambda *a, **k: run(*a, **k))
        self.torch, self.op = torch, torch_linear

    def tensors(self, *shapes):
        return [self.torch.from_numpy(random(*shape)).requires_grad_() for shape in shapes]

    def test_forward_and_backward_are_pytorchs(self):
        torch = self.torch
        x, w, b = self.tensors((2, 24, 32), (32, 40), (40,))
        y = self.op.linear_gelu(x, w, b)
        y.float().square().sum().backward()
        twins = [t.detach().float().requires_grad_() for t in (x, w, b)]
        z = torch.nn.functional.gelu(twins[0] @ twins[1] + twins[2])
        z.square().sum().backward()
        assert torch.allclose(y.float(), z, atol=4e-3)
        for ours, theirs in zip((x, w, b), twins, strict=True):
            scale = theirs.grad.abs().max()
            assert (ours.grad.float() - theirs.grad).abs().max() < 1e-2 * scale

    def test_the_operator_obeys_pytorchs_rules(self):
        x, w, b = self.tensors((16, 24), (24, 32), (32,))
        checks = ("test_schema", "test_autograd_registration", "test_faketensor")
        found = self.torch.library.opcheck(self.op._linear_gelu, (x, w, b), test_utils=checks)
        assert set(found.values()) == {"SUCCESS"}

    def test_a_module_learns(self):
        torch = self.torch
        torch.manual_seed(0)
        layer = self.op.LinearGelu(16, 8)
        x, wanted = torch.randn(32, 16).half(), torch.rand(32, 8).half()
        losses = []
        for _ in range(6):
            loss = (layer(x) - wanted).float().square().mean()
            losses.append(loss.item())
            layer.zero_grad()
            loss.backward()
            with torch.no_grad():
                for p in layer.parameters():
                    p -= 0.3 * p.grad
        assert losses[-1] < 0.8 * losses[0]
