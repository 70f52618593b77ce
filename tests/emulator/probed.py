"""Scripts of tests/data/probes as modules, for tests that execute what they hold."""

import importlib.util
import sys
from pathlib import Path

PROBES = Path(__file__).parents[1] / "data" / "probes"


def load(name: str):
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, PROBES / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]
