"""`linear` as an operator of PyTorch, with a backward pass. Imported only where PyTorch is installed.

On CUDA tensors the kernel runs on the GPU, in PyTorch's current stream; on CPU tensors it runs on the emulator,
which is slow, and for tests.
"""

import contextlib
import math

import torch

from .linear import linear


@torch.library.custom_op("gemm_ladder::linear_gelu", mutates_args=())
def _linear_gelu(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """gelu(x @ weight + bias) and x @ weight + bias."""
    arrays = [_array(tensor) for tensor in (x, weight, bias)]
    with _stream(x):
        found = linear(*arrays, keep=True)
    return _tensor(found.y), _tensor(found.before)


@_linear_gelu.register_fake
def _shapes(x, weight, bias):
    shape = (*x.shape[:-1], weight.shape[-1])
    return x.new_empty(shape), x.new_empty(shape)


def _keep(ctx, inputs, output):
    x, weight, _bias = inputs
    ctx.save_for_backward(x, weight, output[1])
    ctx.mark_non_differentiable(output[1])


def _backward(ctx, grad, _grad_before):
    """The derivative of gelu is its distribution's value plus x times its density; the rest are two products."""
    x, weight, before = ctx.saved_tensors
    z = before.float()
    density = torch.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    slope = 0.5 * (1 + torch.erf(z / math.sqrt(2))) + z * density
    inner = (grad.float() * slope).to(x.dtype)
    grad_x = inner @ weight.transpose(-1, -2)
    grad_weight = x.transpose(-1, -2) @ inner
    if weight.dim() < grad_weight.dim():
        grad_weight = grad_weight.sum(0)
    return grad_x, grad_weight, inner.sum(tuple(range(inner.dim() - 1)))


_linear_gelu.register_autograd(_backward, setup_context=_keep)


def linear_gelu(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """gelu(x @ weight + bias), differentiable. x (..., M, K), weight (K, N) or a batch, bias (N,); all float16."""
    return _linear_gelu(x, weight, bias)[0]


class LinearGelu(torch.nn.Module):
    """A linear layer with its activation. The weight is (inputs, outputs), row-major: what the kernel reads."""

    def __init__(self, inputs: int, outputs: int, device=None):
        super().__init__()
        how = {"device": device, "dtype": torch.float16}
        self.weight = torch.nn.Parameter(torch.randn(inputs, outputs, **how) / math.sqrt(inputs))
        self.bias = torch.nn.Parameter(torch.zeros(outputs, **how))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return linear_gelu(x, self.weight, self.bias)


def _array(tensor: torch.Tensor):
    """The same memory as a CuPy or a NumPy array."""
    if tensor.is_cuda:
        import cupy

        return cupy.from_dlpack(tensor.detach())
    return tensor.detach().numpy()


def _tensor(array) -> torch.Tensor:
    return torch.from_dlpack(array)


def _stream(tensor: torch.Tensor):
    """CuPy's launches in PyTorch's stream."""
    if not tensor.is_cuda:
        return contextlib.nullcontext()
    import cupy

    return cupy.cuda.ExternalStream(torch.cuda.current_stream(tensor.device).cuda_stream)
