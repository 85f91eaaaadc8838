"""What kind of value each parameter of an engine is; what it means is the engine's to judge."""

from collections.abc import Callable, Mapping
from typing import Any

from qwed.kernel.answer import Problem, problem
from qwed.words import ErrorCode

Kind = tuple[Callable[[Any], bool], str]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


TEXT: Kind = (_is_text, "a text")
TEXTS: Kind = (_are_texts, "a list of texts")
NUMBER: Kind = (_is_number, "a number")
AMOUNT: Kind = (lambda value: _is_number(value) or _is_text(value), "a number, or one written as a text")
STATEMENTS: Kind = (lambda value: _is_text(value) or _are_texts(value), "a text or a list of texts")
FLAG: Kind = (lambda value: isinstance(value, bool), "true or false")
ANYTHING: Kind = (lambda _value: True, "anything")

KINDS: dict[str, Kind] = {
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


def refuse_kinds(parameters: Mapping[str, Any]) -> Problem | None:
    """What is wrong with the kind of a value, if anything is."""
    for name, value in parameters.items():
        fits, wanted = KINDS[name]
        if not fits(value):
            return problem(ErrorCode.MALFORMED, f"`{name}` must be {wanted}")
    return None
