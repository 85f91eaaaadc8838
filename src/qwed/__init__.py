"""Decides whether an AI agent's action may happen before it happens, and proves each decision afterwards."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qwed.gate import Gate

__version__ = "0.1.0"

__all__ = ["open"]


def open(place: str | Path = ":memory:", **settings: Any) -> "Gate":  # noqa: A001 - `qwed.open` reads as it should
    """Open a Gate on a data directory, or on `:memory:`: the methods of the client, without HTTP."""
    # Imported here, because `import qwed.model` must stay free of the store and the engines.
    from qwed.gate import open_gate

    return open_gate(place, **settings)
