"""Every exercise, in reading order. Each has a folder of its own, in the folder of its part."""

from dataclasses import replace
from importlib import import_module

from .exercise import Exercise

# Part: its folder, and the folders of its exercises.
_ORDER = {
    "Memory": ("memory", "first_guard coalesce place_barriers fill_with_zeros count_wavefronts"),
    "More work per thread": ("more_work", "coarsen count_blocks vectorize"),
    "Copies that do not wait": ("copies", "mend_pipeline two_stages pipeline_stages"),
    "Tensor cores": ("tensor_cores", "wmma_tile lane_map load_fragments transpose_operand"),
    "Bank conflicts and swizzles": (
        "banks",
        "compose_layout choose_padding swizzle_rows swizzle_parameters transpose_tile",
    ),
    "Everything at once": ("everything", "guard_epilogue fuse_gelu rasterise beat_the_clock"),
    "Sums across threads": (
        "sums",
        "shuffle_sum block_reduce split_k find_race keep_precision split_tf32",
    ),
    "The capstone": (
        "capstone",
        "tile_copy tile_swizzle tile_fragments tile_multiply tile_pipeline",
    ),
    "Hopper": (
        "hopper",
        "encode_map mend_parity write_descriptor place_fences balance_roles split_steps",
    ),
    "Blackwell": ("blackwell", "give_back instruction_bits two_sets mend_pair order_scales"),
}
PARTS = tuple(_ORDER)
EXERCISES: tuple[Exercise, ...] = tuple(
    replace(import_module(f".{folder}.{name}.exercise", __package__).EXERCISE, part=part)
    for part, (folder, names) in _ORDER.items()
    for name in names.split()
)
_BY_NAME = {exercise.name: exercise for exercise in EXERCISES}


def find(name: str) -> Exercise:
    """The exercise of this name. ValueError lists the names there are."""
    if not isinstance(name, str) or name not in _BY_NAME:
        raise ValueError(f"no exercise {name!r}; there are {', '.join(_BY_NAME)}")
    return _BY_NAME[name]
