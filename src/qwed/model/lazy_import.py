"""Imports: on first use (PEP 562), and without what takes long."""

import gc
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any


def lazy_names(package: str, home: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package whose names are imported from `home` on first use."""

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module `{package}` has no `{name}`")
        value = getattr(import_module(home[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: [*sys.modules[package].__all__]


def skip_httpx_command() -> None:
    """Keep httpx from importing rich and click for its own command, which takes longer than the rest of it."""
    if "httpx" not in sys.modules:
        sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type] # None makes the import fail


@contextmanager
def paused_collector() -> Iterator[None]:
    """Pause the garbage collector: while modules are imported it finds nothing, and takes up to a fifth of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
