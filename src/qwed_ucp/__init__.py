"""Carts, checkouts and orders of the Universal Commerce Protocol, computed again exactly."""

from typing import TYPE_CHECKING

from qwed.words.lazy import lazily

if TYPE_CHECKING:
    from qwed_ucp.verifier import UCPVerifier

# Each is imported when it is first used, and its libraries when it is first asked.
_HOME = {
    "UCPVerifier": "qwed_ucp.verifier",
}

__all__ = ["UCPVerifier"]

__getattr__ = lazily(__name__, _HOME)


def __dir__() -> list[str]:
    return [*__all__]
