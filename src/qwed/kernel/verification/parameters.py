"""Types of the engines' parameters; their meaning is checked by the engine."""

from collections.abc import Callable, Mapping
from typing import Any

from qwed.kernel.answer import Problem, problem
from qwed.model import ErrorCode

ValueKind = tuple[Callable[[Any], bool], str]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


TEXT: ValueKind = (_is_text, "a text")
TEXTS: ValueKind = (_are_texts, "a list of texts")
NUMBER: ValueKind = (_is_number, "a number")
AMOUNT: ValueKind = (lambda value: _is_number(value) or _is_text(value), "a number, or one written as a text")
STATEMENTS: ValueKind = (lambda value: _is_text(value) or _are_texts(value), "a text or a list of texts")
FLAG: ValueKind = (lambda value: isinstance(value, bool), "true or false")
ANYTHING: ValueKind = (lambda _value: True, "anything")

KINDS: dict[str, ValueKind] = {
    "allow_mutation": FLAG,
    "allowed_tables": TEXTS,
    "assumptions": ANYTHING,
    "claimed_result": ANYTHING,
    "conclusion": TEXT,
    "content_base64": TEXT,
    "context": TEXT,
    "dialect": TEXT,
    "format": TEXT,
    "language": TEXT,
    "min_confidence": NUMBER,
    "mode": TEXT,
    "operation": TEXT,
    "premises": STATEMENTS,
    "schema_ddl": TEXT,
    "tolerance": AMOUNT,
    "unit": TEXT,
    "verification_mode": TEXT,
}


def refuse_wrong_kinds(parameters: Mapping[str, Any]) -> Problem | None:
    """Return the problem with the type of a value, or None."""
    for name, value in parameters.items():
        is_valid, expected = KINDS[name]
        if not is_valid(value):
            return problem(ErrorCode.MALFORMED, f"`{name}` must be {expected}")
    return None
