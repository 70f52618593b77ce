"""Python looks for garbage when as many objects are new as a large kernel's text makes, not at each 700."""

import gc

gc.set_threshold(500_000, 5, 5)
