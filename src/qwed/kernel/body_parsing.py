"""Parsing of small request bodies: objects with a few text fields."""

from collections.abc import Mapping
from typing import Any

from qwed.guards.secrets import mask
from qwed.guards.text_scan import is_readable
from qwed.kernel.answer import Problem, problem
from qwed.kernel.request import quoted
from qwed.model import ErrorCode

MAX_TEXT_LENGTH = 4_096


def refuse_body(raw: Any, fields: tuple[str, ...]) -> Problem | None:
    """Return the problem with the body as a whole: not an object, or an unknown field."""
    if not isinstance(raw, Mapping):
        return problem(ErrorCode.MALFORMED, "the body must be an object")
    unknown = next((name for name in raw if name not in fields), None)
    if unknown is None:
        return None
    return problem(ErrorCode.MALFORMED, f"unknown field {quoted(str(unknown))}: known are {', '.join(fields)}")


def read_fields(
    raw: Any, required: tuple[str, ...], optional: tuple[str, ...] = (), *, longest: int = MAX_TEXT_LENGTH
) -> dict[str, str] | Problem:
    """Return the texts of a body, or the problem with it."""
    refusal = refuse_body(raw, (*required, *optional))
    if refusal is not None:
        return refusal
    for name in required:
        if raw.get(name) is None:
            return problem(ErrorCode.MISSING_FIELD, f"`{name}` is required")
    return _texts(raw, longest)


def _texts(raw: Mapping[str, Any], longest: int) -> dict[str, str] | Problem:
    texts: dict[str, str] = {}
    for name, value in raw.items():
        if value is None:
            continue
        if not isinstance(value, str) or len(value) > longest or not is_readable(value):
            return problem(ErrorCode.MALFORMED, f"`{name}` must be a readable text of 1 to {longest} characters")
        texts[name] = mask(value)
    return texts
