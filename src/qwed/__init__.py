"""qwed decides, before an AI agent acts, whether the action may happen, and proves afterwards what it decided."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qwed.gate import Gate

__version__ = "0.1.0"

__all__ = ["open"]


def open(place: str | Path = ":memory:", **settings: Any) -> "Gate":  # noqa: A001 - `qwed.open` reads as it should
    """A Gate on a data directory, or on `:memory:`, with the verbs of the client and no HTTP."""
    # Imported here, because `import qwed.words` must stay free of the store and the engines.
    from qwed.gate import open_gate

    return open_gate(place, **settings)
