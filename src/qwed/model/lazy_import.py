"""Lazy package attributes (PEP 562)."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_getattr(package: str, home: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package whose names are imported from `home` on first use."""

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module `{package}` has no `{name}`")
        value = getattr(import_module(home[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
