"""Coalesce a kernel."""

from book.exercises.exercise import GIVEN, Exercise, Goal
from book.exercises.launches import products

EXERCISE = Exercise.read(
    __file__,
    cases=products(((64, 96, 32), (33, 65, 17), (1, 40, 3), (50, 7, 20)), (32, 32), (32, 32)),
    goals=(Goal("global_sectors", 31_500, "M=64, N=96, K=32"),),
    twin=lambda run: run.sectors_per_request(0, GIVEN),
)
