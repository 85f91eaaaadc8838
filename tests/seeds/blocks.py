"""The code blocks of the documents, as they are printed there."""

from collections.abc import Callable
from pathlib import Path

PRINTED = Path(__file__).parent / "printed"
Run = Callable[[str], list[str]]
"""Runs a block by its name, and tells the lines that it printed."""


def block(name: str, **instead: str) -> str:
    """The text of a block; what it names as an example is replaced by the real thing."""
    text = (PRINTED / f"{name}.txt").read_text()
    for example, real in instead.items():
        text = text.replace(example, real)
    return text
