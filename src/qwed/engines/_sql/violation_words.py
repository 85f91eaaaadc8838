"""Violations of a statement in words, so that its author can find them in it."""

from collections.abc import Iterable
from functools import cache

from qwed.model.data_files import read_mapping


def violation_message(violations: Iterable[str]) -> str:
    """Return the message on a statement with violations; the empty string if there are none."""
    listed = ", ".join(map(_in_words, violations))
    return f"refused at every trust level: {listed}" if listed else ""


@cache
def _words() -> dict[str, str]:
    return read_mapping(__file__, "violations.txt")


def _in_words(violation: str) -> str:
    words = _words().get(violation.partition(":")[0])
    return f"{violation} ({words})" if words else violation
