"""What the doctor says of one thing."""

from enum import StrEnum
from typing import NamedTuple


class State(StrEnum):
    """How it is."""

    FINE = "fine"
    WARNING = "warning"
    BROKEN = "broken"


class Finding(NamedTuple):
    """One line: what was looked at, how it is and, where something is to be done, what."""

    name: str
    state: State
    message: str
    advice: str = ""


def fine(name: str, message: str) -> Finding:
    """Nothing to do."""
    return Finding(name, State.FINE, message)


def warning(name: str, message: str, advice: str) -> Finding:
    """It works, and could be better."""
    return Finding(name, State.WARNING, message, advice)


def broken(name: str, message: str, advice: str) -> Finding:
    """It does not work like this."""
    return Finding(name, State.BROKEN, message, advice)
