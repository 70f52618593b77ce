"""CUDA kernels with one wgmma each, and shared memory as CUTLASS's layouts would fill it."""

from dataclasses import dataclass

import numpy as np
from tensor_layouts import Layout, Swizzle

SWIZZLE_BITS = {0: 0, 128: 1, 64: 2, 32: 3}
_XOR = {0: None, 32: Swizzle(1, 4, 3), 64: Swizzle(2, 4, 3), 128: Swizzle(3, 4, 3)}


@dataclass(frozen=True)
class Form:
    """One wgmma.mma_async. from_registers: A; a_major, b_major: "K", or "M" and "N"."""

    n: int
    d: str = "f32"
    a: str = "f16"
    b: str = "f16"
    a_major: str = "K"
    b_major: str = "K"
    scale_a: int = 1
    scale_b: int = 1
    from_registers: bool = False
    satfinite: bool = False

    @property
    def k(self):
        return 32 // SIZE[self.a]

    @property
    def registers(self):
        return self.n // 4 if self.d == "f16" else self.n // 2

    @property
    def name(self):
        parts = [self.d, self.a, self.b, self.a_major, self.b_major]
        parts += [f"{self.scale_a}{self.scale_b}".replace("-", "m"), "r" * self.from_registers]
        return f"n{self.n}_{'_'.join(parts)}{'sat' * self.satfinite}"


SIZE = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "s8": 1, "u8": 1}


def source(form: Form) -> str:
    """A kernel: copies an image into shared memory, multiplies, returns the accumulators.

    Arguments: image, its 16-byte pieces, A's and B's descriptors (start relative to the image), the
    fragment of A as (4, 128) words, accumulators as (registers, 128), whether to add.
    """
    r, kind = form.registers, "float" if form.d == "f32" else "unsigned"
    letter = "f" if form.d == "f32" else "r"
    names = ", ".join(f"%{i}" for i in range(r))
    outputs = ", ".join(f'"+{letter}"(d[{i}])' for i in range(r))
    if form.from_registers:
        a_operand = "{" + ", ".join(f"%{r + i}" for i in range(4)) + "}"
        inputs = ", ".join(f'"r"(f[{i}])' for i in range(4))
        b, add = r + 4, r + 5
    else:
        a_operand, inputs, b, add = f"%{r}", '"l"(a)', r + 1, r + 2
    tail = ""
    if form.d != "s32":
        tail = f", {form.scale_a}, {form.scale_b}"
        if form.a in ("f16", "bf16"):
            turns = [] if form.from_registers else [int(form.a_major == "M")]
            tail += "".join(f", {t}" for t in [*turns, int(form.b_major == "N")])
    shape = f"m64n{form.n}k{form.k}{'.satfinite' * form.satfinite}"
    return f"""
extern "C" __global__ void __launch_bounds__(128) {form.name}(const uint4* image, int pieces,
        unsigned long long a, unsigned long long b, const unsigned* fragment, {kind}* out, int add) {{
    extern __shared__ __align__(1024) uint4 tiles[];
    const int t = threadIdx.x;
    for (int i = t; i < pieces; i += 128) tiles[i] = image[i];
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    const unsigned long long base = __cvta_generic_to_shared(tiles) >> 4;
    a += base;
    b += base;
    unsigned f[4];
    for (int i = 0; i < 4; ++i) f[i] = fragment[i * 128 + t];
    {kind} d[{r}];
    for (int i = 0; i < {r}; ++i) d[i] = out[i * 128 + t];
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("{{.reg .pred p; setp.ne.b32 p, %{add}, 0;\\n"
        "wgmma.mma_async.sync.aligned.{shape}.{form.d}.{form.a}.{form.b} "
        "{{{names}}}, {a_operand}, %{b}, p{tail};}}"
        : {outputs} : {inputs}, "l"(b), "r"(add));
    asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int i = 0; i < {r}; ++i) out[i * 128 + t] = d[i];
}}
"""


# --- Shared memory ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Placed:
    """An operand's place: descriptor bits relative to the image, and byte addresses (rows, k)."""

    descriptor: int
    bytes: np.ndarray


def place(rows, k, size, swizzle, major, start, leading=None, stride=None) -> Placed:
    """Where elements of an operand (rows, k) stand: CUTLASS's canonical layouts, in 16-byte units.

    start, leading, stride: bytes. Without leading and stride, the densest that fits.
    """
    per = 16 // size  # elements in a unit
    wide = max(swizzle // 16, 1)
    if major == "K":
        leading = leading or (16 if swizzle else 8 * 16 * (rows // 8))
        stride = stride or 8 * 16 * wide
        units = ((8, rows // 8), 2)
        steps = ((wide, stride // 16), 1 if swizzle else leading // 16)
        grid = Layout(units, steps)
        unit = np.array([[grid(r, c // per) for c in range(k)] for r in range(rows)])
        inside = np.arange(k) % per * size
        address = start + unit * 16 + inside
    else:
        count = rows // per
        if swizzle:
            inner = min(wide, count)
            stride = stride or 8 * swizzle
            leading = leading or 2 * stride
            grid = Layout(
                ((inner, max(count // inner, 1)), (8, 2)),
                ((1, leading // 16), (wide, stride // 16)),
            )
        else:
            leading = leading or 8 * 16
            stride = stride or 2 * leading
            grid = Layout(((1, count), (8, 2)), ((0, stride // 16), (1, leading // 16)))
        unit = np.array([[grid(r // per, c) for c in range(k)] for r in range(rows)])
        inside = (np.arange(rows) % per * size)[:, None]
        address = start + unit * 16 + inside
    if swizzle:
        address = np.vectorize(lambda x: _XOR[swizzle](int(x)))(address)
    bits = start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | SWIZZLE_BITS[swizzle] << 62
    return Placed(bits, address)


def fill(image: np.ndarray, placed: Placed, elements: np.ndarray) -> None:
    """Writes elements (rows, k), unsigned integers, to their places in a uint8 image."""
    size = elements.dtype.itemsize
    raw = np.ascontiguousarray(elements).view(np.uint8).reshape(*elements.shape, size)
    for i in range(size):
        image[placed.bytes + i] = raw[..., i]


# --- Fragments: PTX ISA 9.7.15.5.2, figures of D and A ----------------------------------------------


def rows_and_columns(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of each accumulator of each thread, (n // 2, 128)."""
    t = np.arange(128)
    rows, cols = [], []
    for i in range(n // 2):
        rows.append(16 * (t // 32) + t % 32 // 4 + 8 * (i // 2 % 2))
        cols.append(8 * (i // 4) + 2 * (t % 4) + i % 2)
    return np.array(rows), np.array(cols)


def to_accumulators(d: np.ndarray, half: bool) -> np.ndarray:
    """(64, n) of element bits as threads hold them, (registers, 128)."""
    rows, cols = rows_and_columns(d.shape[1])
    held = d[rows, cols]
    if not half:
        return held
    return (held[0::2].astype(np.uint32) | held[1::2].astype(np.uint32) << 16).astype(np.uint32)


def from_accumulators(words: np.ndarray, n: int, half: bool) -> np.ndarray:
    """The reverse, (64, n)."""
    rows, cols = rows_and_columns(n)
    if half:
        pair = words.view(np.uint16).reshape(*words.shape, 2)
        words = pair.transpose(0, 2, 1).reshape(n // 2, 128)
    out = np.zeros((64, n), words.dtype)
    out[rows, cols] = words
    return out


def to_fragment(a: np.ndarray) -> np.ndarray:
    """A (64, k) of element bits as threads hold it, (4, 128) words."""
    words = np.ascontiguousarray(a).view(np.uint32)  # (64, 8)
    t = np.arange(128)
    row, word = 16 * (t // 32) + t % 32 // 4, t % 4
    return np.stack([words[row + 8 * (i % 2), word + 4 * (i // 2)] for i in range(4)])
