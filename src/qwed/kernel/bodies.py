"""Bodies of requests that are no decision: objects with a few texts, read field by field and refused by name."""

from collections.abc import Mapping
from typing import Any

from qwed.guards.secrets import mask
from qwed.guards.text import readable
from qwed.kernel.answer import Problem, problem
from qwed.kernel.request import quoted
from qwed.words import ErrorCode

LONGEST_TEXT = 4_096


def refuse_body(raw: Any, known: tuple[str, ...]) -> Problem | None:
    """What is wrong with the body as a whole: it is no object, or has a field nobody knows."""
    if not isinstance(raw, Mapping):
        return problem(ErrorCode.MALFORMED, "the body must be an object")
    unknown = next((name for name in raw if name not in known), None)
    if unknown is None:
        return None
    return problem(ErrorCode.MALFORMED, f"unknown field {quoted(str(unknown))}: known are {', '.join(known)}")


def read_fields(
    raw: Any, required: tuple[str, ...], optional: tuple[str, ...] = (), *, longest: int = LONGEST_TEXT
) -> dict[str, str] | Problem:
    """The texts of a body, or what is wrong with it."""
    wrong = refuse_body(raw, (*required, *optional))
    if wrong is not None:
        return wrong
    for name in required:
        if raw.get(name) is None:
            return problem(ErrorCode.MISSING_FIELD, f"`{name}` is required")
    return _texts(raw, longest)


def _texts(raw: Mapping[str, Any], longest: int) -> dict[str, str] | Problem:
    texts: dict[str, str] = {}
    for name, value in raw.items():
        if value is None:
            continue
        if not isinstance(value, str) or len(value) > longest or not readable(value):
            return problem(ErrorCode.MALFORMED, f"`{name}` must be a readable text of 1 to {longest} characters")
        texts[name] = mask(value)
    return texts
