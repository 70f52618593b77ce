"""What a test imports: a stand-in for CuPy, and Numba, Triton and cuda.core with the emulator below them."""

import importlib
import importlib.abc
import importlib.machinery
import sys

STAND_INS = {
    "cupy": ".cupy",
    "cupyx": ".cupy",
    "cupy_backends": ".cupy",
    "cuda.core": ".cuda_core",
}  # package -> which module of ours has its modules
CHANGED = {
    "numba.cuda.cudadrv.driver": ".numba",
    "numba.cuda.dispatcher": ".numba",
    "numba.cuda.codegen": ".numba",
    "triton.runtime.driver": ".triton",
    "triton.compiler.compiler": ".triton",
    "triton.runtime.autotuner": ".triton",
    "torch": ".triton",
}  # module -> which of ours changes it once it is imported


def _stand_in(name: str) -> str | None:
    found = (ours for package, ours in STAND_INS.items() if f"{name}.".startswith(f"{package}."))
    return next(found, None)


class _Made(importlib.abc.Loader):
    """Gives a module that is there already."""

    def create_module(self, spec):
        importlib.import_module(_stand_in(spec.name), __package__)
        return importlib.import_module(".parts", __package__).module_of(spec.name)

    def exec_module(self, module):
        pass


class _Changing(importlib.abc.Loader):
    """Loads a module as its own loader does, then changes it."""

    def __init__(self, loader, name: str):
        self.loader, self.name = loader, name

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        importlib.import_module(CHANGED[self.name], __package__).change(module)

    def __getattr__(self, name):
        return getattr(self.loader, name)


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if _stand_in(name):
            return importlib.machinery.ModuleSpec(name, _Made(), is_package=True)
        if name in CHANGED:
            others = (finder for finder in sys.meta_path if finder is not self)
            found = (finder.find_spec(name, path, target) for finder in others)
            spec = next(filter(None, found), None)
            if spec is not None:
                spec.loader = _Changing(spec.loader, name)
            return spec


def install() -> Finder:
    """From now on. RuntimeError where one of these packages is imported already."""
    early = sorted((STAND_INS.keys() | CHANGED.keys()) & sys.modules.keys())
    if early:
        raise RuntimeError(
            f"{', '.join(early)} was imported before --emulate-gpu could take its place. Where a project's filterwarnings "
            "name its classes, pytest imports them first: add -o filterwarnings=default"
        )
    finder = Finder()
    sys.meta_path.insert(0, finder)
    return finder


def remove(finder: Finder) -> None:
    """The stand-ins go, so that another run in this process begins anew."""
    sys.meta_path.remove(finder)
    for name in [n for n in sys.modules if _stand_in(n)]:
        del sys.modules[name]
