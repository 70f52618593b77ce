"""The launches that several exercises of this part share."""

from functools import partial

from book.exercises.hopper import launches

ARCH = "100a"
tile_products = partial(launches.tile_products, rows=128, numbers=3, most=(280, 24, 20))
