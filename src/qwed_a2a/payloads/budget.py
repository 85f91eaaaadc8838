"""How much of a message is read: whatever is over a limit refuses it."""

from dataclasses import dataclass

MAX_PARTS = 100
MAX_CHARACTERS = 4_194_304
"""Read in all, what is inside other texts counted again."""
MAX_DEPTH = 64
"""Of objects and lists in one another."""
MAX_INSIDE = 8
"""Texts in texts: a fence in a fence, JSON in a member of JSON."""
MAX_VALUES = 100_000
MAX_FENCES = 500
MAX_OBJECTS = 2_000
"""JSON objects that begin in prose, whether they end there or not."""
MAX_PAYLOADS = 200
MAX_PARSED = 131_072
"""Characters that are tried as a program."""


class Over(Exception):
    """The message cannot be read whole; the text says what to change."""


@dataclass(slots=True)
class Budget:
    """What may still be read of one message."""

    characters: int = MAX_CHARACTERS
    values: int = MAX_VALUES
    fences: int = MAX_FENCES
    objects: int = MAX_OBJECTS
    payloads: int = MAX_PAYLOADS
    parsed: int = MAX_PARSED

    def take(self, what: str, amount: int = 1) -> None:
        """Use some of it up; Over where there is no more."""
        left = getattr(self, what) - amount
        if left < 0:
            raise Over(f"the message holds more than {_NAMES[what]}, split it")
        setattr(self, what, left)


_NAMES = {
    "characters": f"{MAX_CHARACTERS} characters of text in one another",
    "values": f"{MAX_VALUES} values",
    "fences": f"{MAX_FENCES} fenced blocks",
    "objects": f"{MAX_OBJECTS} objects in its prose",
    "payloads": f"{MAX_PAYLOADS} payloads",
    "parsed": f"{MAX_PARSED} characters of what may be programs",
}


def require_depth(depth: int) -> None:
    """Over where values are in one another too deep."""
    if depth > MAX_DEPTH:
        raise Over(f"values are nested deeper than {MAX_DEPTH}, send them flat")


def require_inside(inside: int) -> None:
    """Over where texts are in one another too deep."""
    if inside > MAX_INSIDE:
        raise Over(f"texts are inside one another deeper than {MAX_INSIDE}, send them plainly")
