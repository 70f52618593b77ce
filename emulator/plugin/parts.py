"""Modules and objects that stand for those of a package: what is not in them skips the test that asks for it."""

import types

from .device import Device

MODULES: dict[str, types.ModuleType] = {}


class Partial:
    """An object that stands for another. What it lacks skips the test that asks for it."""

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        Device.refuse(f"{type(self).__name__.removeprefix('Gpu')}.{name}")


class Part(types.ModuleType):
    """A module. What is not in it skips the test that asks for it."""

    def __init__(self, name: str, **contents):
        super().__init__(name)
        self.__path__ = []
        self.__dict__.update(contents)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        whole = f"{self.__name__}.{name}"
        return MODULES[whole] if whole in MODULES else Device.refuse(whole)

    def tree(self):
        """Makes it and the modules in it known."""
        MODULES[self.__name__] = self
        for inner in list(vars(self).values()):
            if isinstance(inner, Part) and inner.__name__ not in MODULES:
                inner.tree()


def module_of(name: str) -> types.ModuleType:
    return MODULES.setdefault(name, Part(name))
