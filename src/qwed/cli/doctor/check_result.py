"""Result of one check of `qwed doctor`."""

from enum import StrEnum
from typing import NamedTuple


class CheckState(StrEnum):
    """State of what was checked."""

    FINE = "fine"
    WARNING = "warning"
    BROKEN = "broken"


class DoctorCheck(NamedTuple):
    """Name, state and message of a check, and advice if something is to be done."""

    name: str
    state: CheckState
    message: str
    advice: str = ""


def fine(name: str, message: str) -> DoctorCheck:
    """Return a check without a problem."""
    return DoctorCheck(name, CheckState.FINE, message)


def warning(name: str, message: str, advice: str) -> DoctorCheck:
    """Return a check that works but should be improved."""
    return DoctorCheck(name, CheckState.WARNING, message, advice)


def broken(name: str, message: str, advice: str) -> DoctorCheck:
    """Return a check that failed."""
    return DoctorCheck(name, CheckState.BROKEN, message, advice)
