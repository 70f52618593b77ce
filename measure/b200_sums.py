"""What a B200 answered, beside what the emulator adds up: `python -m measure elsewhere --b200-sums PATH`.

PATH is a checkout of Khattak and Mikaitis's MATLAB-tensor-core. Its folder `model_validation/B200` holds random operands and
the sums that a B200 gave for them, 5,000 for each type: by `wmma` for f16, bf16 and tf32, by `mma.sync` for e4m3 and e5m2
(`model_validation/CUDA`). They are of these two instructions, not of `tcgen05.mma`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from emulator.numbers import tensor_sums
from emulator.numbers.fp8 import VALUES

# folder there -> (instruction, type of A and B, types of D)
_CASES = {
    "fp16": ("wmma", "f16", ("fp32", "fp16")),
    "bf16": ("wmma", "bf16", ("fp32",)),
    "tf32": ("wmma", "tf32", ("fp32",)),
    "E4M3": ("mma", "e4m3", ("fp32", "fp16")),
    "E5M2": ("mma", "e5m2", ("fp32", "fp16")),
}


def encoded(bits: np.ndarray, type: str) -> np.ndarray:
    """Element bits of a type, from float32 bits that it can hold."""
    values = bits.view(np.float32)
    if type == "f16":
        return values.astype(np.float16).view(np.uint16)
    if type == "bf16":
        return (bits >> 16).astype(np.uint16)
    if type == "tf32":
        return bits
    order = np.argsort(VALUES[type][:256], kind="stable")
    known = VALUES[type][order]
    return order[np.searchsorted(known, values)].astype(np.uint8)


def _words(path: Path, base: int) -> np.ndarray:
    lines = path.read_text(encoding="utf-8").splitlines()
    return np.array([[int(word, base) for word in line.split()] for line in lines], np.uint32)


def compare(path: str | Path) -> Iterator[tuple[str, int, int]]:
    """(what was added, sums alike bit for bit, sums) of each kind. ValueError for a path without them."""
    root = Path(path) / "model_validation" / "B200"
    if not root.is_dir():
        raise ValueError(
            f"{path} has no model_validation/B200: give a checkout of north-numerical-computing/MATLAB-tensor-core"
        )
    for folder, (kind, type, results) in _CASES.items():
        a, b = (
            encoded(_words(root / folder / f"{x}_B200_{folder}.txt", 16), type) for x in ("a", "b")
        )
        c = _words(root / folder / "c_B200_fp32.txt", 2)[:, :, None]
        for result in results:
            wanted = _words(root / folder / f"d_B200_{result}.txt", 2)[:, 0]
            short = "f" + result[2:]
            addend = c.view(np.float32).astype(np.float16).view(np.uint16) if short == "f16" else c
            found = tensor_sums.product(
                a[:, None, :], b[:, :, None], addend, type, type, short, short, kind=kind, arch=100
            )[:, 0, 0]
            if short == "f16":
                found = found.view(np.float16).astype(np.float32).view(np.uint32)
            yield f"{kind} {type} to {short}", int((found == wanted).sum()), len(wanted)
