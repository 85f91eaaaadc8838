"""Carts, checkouts and orders of the Universal Commerce Protocol, computed again exactly."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qwed_ucp.verifier import UCPVerifier

# Each is imported when it is first used, and its libraries when it is first asked.
_HOME = {
    "UCPVerifier": "qwed_ucp.verifier",
}

__all__ = ["UCPVerifier"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module `qwed_ucp` has no `{name}`")
    found = getattr(import_module(_HOME[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__]
