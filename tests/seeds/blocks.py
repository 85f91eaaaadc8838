"""Code blocks of the documents, as printed."""

from collections.abc import Callable
from pathlib import Path

PRINTED = Path(__file__).parent / "printed"
Run = Callable[[str], list[str]]
"""Runs a block by its name, and tells the lines that it printed."""


def block(name: str, **instead: str) -> str:
    """Return the text of a block with example names replaced by real ones."""
    text = (PRINTED / f"{name}.txt").read_text()
    for example, real in instead.items():
        text = text.replace(example, real)
    return text
