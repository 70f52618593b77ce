"""Random arrays; large ones are zeros, and take no time."""

import numpy as np

from . import LARGE, _device


class _Generator:
    def __init__(self, seed=None):
        self._rng = np.random.default_rng(seed)

    def random(self, shape=None, dtype=np.float64):
        large = int(np.prod(shape)) > LARGE
        return _device(np.zeros(shape, dtype) if large else self._rng.random(shape, dtype))

    def standard_normal(self, shape=None, dtype=np.float64):
        large = int(np.prod(shape)) > LARGE
        return _device(np.zeros(shape, dtype) if large else self._rng.standard_normal(shape, dtype))


def default_rng(seed=None):
    return _Generator(seed)


def standard_normal(shape, dtype=np.float64):
    large = int(np.prod(shape)) > LARGE
    rng = np.random.default_rng()
    return _device(np.zeros(shape, dtype) if large else rng.standard_normal(shape, dtype))
