"""Limits on the parsing of a message; a message over a limit is refused."""

from dataclasses import dataclass

MAX_PARTS = 100
MAX_CHARACTERS = 4_194_304
"""Characters read in total; nested texts count again."""
MAX_DEPTH = 64
"""Nesting of objects and lists."""
MAX_TEXT_NESTING = 8
"""Texts in texts: a fence in a fence, JSON in a member of JSON."""
MAX_VALUES = 100_000
MAX_FENCES = 500
MAX_OBJECTS = 2_000
"""JSON objects that begin in prose, including those that do not end."""
MAX_PAYLOADS = 200
MAX_PARSED = 131_072
"""Characters that are parsed as possible programs."""


class MessageParseError(Exception):
    """Message that cannot be read completely or unambiguously; the text says what to change."""


@dataclass(slots=True)
class ParseBudget:
    """Remaining limits for one message."""

    characters: int = MAX_CHARACTERS
    values: int = MAX_VALUES
    fences: int = MAX_FENCES
    objects: int = MAX_OBJECTS
    payloads: int = MAX_PAYLOADS
    parsed: int = MAX_PARSED

    def take(self, resource: str, amount: int = 1) -> None:
        """Use part of the budget; raise MessageParseError if it is exhausted."""
        remaining = getattr(self, resource) - amount
        if remaining < 0:
            raise MessageParseError(f"the message holds more than {_LIMITS[resource]}, split it")
        setattr(self, resource, remaining)


_LIMITS = {
    "characters": f"{MAX_CHARACTERS} characters of text",
    "values": f"{MAX_VALUES} values",
    "fences": f"{MAX_FENCES} fenced blocks",
    "objects": f"{MAX_OBJECTS} objects in its prose",
    "payloads": f"{MAX_PAYLOADS} payloads",
    "parsed": f"{MAX_PARSED} characters of possible programs",
}


def require_depth(depth: int) -> None:
    """Raise MessageParseError if values are nested too deeply."""
    if depth > MAX_DEPTH:
        raise MessageParseError(f"values are nested deeper than {MAX_DEPTH}, send them flat")


def require_text_nesting(inside: int) -> None:
    """Raise MessageParseError if texts are nested too deeply."""
    if inside > MAX_TEXT_NESTING:
        raise MessageParseError(f"texts are nested deeper than {MAX_TEXT_NESTING}, send them flat")
