"""How long before it is needed a fragment is loaded, counted in `mma`, in the order of the PTX."""

import re

REGISTER = re.compile(r"%r\d+")


def mma_before_use(ptx: str) -> list[int]:
    """For each register that an `ldmatrix` fills: how many `mma` stand between it and the first that reads it.

    The order is that of the text, which is the order of issue in straight code. What is read only after the loop
    has jumped back is left out, as its reader stands above it.
    """
    waiting: dict[str, int] = {}
    found: list[int] = []
    passed = 0
    for line in ptx.splitlines():
        if "ldmatrix" in line:
            loaded = REGISTER.findall(line.split("}")[0])
            waiting |= dict.fromkeys(loaded, passed)
        elif "mma.sync" in line:
            read = [r for r in REGISTER.findall(line) if r in waiting]
            found += [passed - waiting.pop(r) for r in read]
            passed += 1
    return found
