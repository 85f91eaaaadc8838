"""Text rendering of actions for people."""

import json
import sys
from collections.abc import Mapping
from typing import Any

DECISION_STYLES = {
    "APPROVED": "green",
    "CORRECTED": "green",
    "PENDING": "yellow",
    "DENIED": "red",
    "BUDGET_EXCEEDED": "red",
}
_MAX_COLUMN = 60
_MAX_TEXT = 1_000


def summarize_action(action: Mapping[str, Any] | None) -> str:
    """Return the tool or type of an action and its main values on one line, truncated on a terminal."""
    if not action:
        return ""
    name = action.get("tool") or action.get("type") or ""
    rest = [str(action[part]) for part in ("target", "query", "code") if action.get(part)]
    if action.get("parameters"):
        rest.append(json.dumps(action["parameters"]))
    return " ".join([str(name), *map(truncate, rest)])


def action_lines(action: Mapping[str, Any]) -> list[str]:
    """Return every value of an action, one per line, for a person who decides on it; long values are marked as cut."""
    named = {name: action.get(name) for name in ("target", "query", "code")} | dict(action.get("parameters") or {})
    texts = [(name, value if isinstance(value, str) else json.dumps(value)) for name, value in named.items() if value]
    return [
        str(action.get("tool") or action.get("type")),
        *(f"  {name}: {_limit_length(text)}" for name, text in texts),
    ]


def _limit_length(text: str) -> str:
    left = len(text) - _MAX_TEXT
    return text if left <= 0 else f"{text[:_MAX_TEXT]}... and {left} more characters"


def truncate(text: str) -> str:
    """Return the text, cut to the column width if standard output is a terminal."""
    return f"{text[: _MAX_COLUMN - 3]}..." if len(text) > _MAX_COLUMN and sys.stdout.isatty() else text


def display_fields(pairs: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return names and values as text; unset values and empty lists are left out."""
    return [(name, _display_value(value)) for name, value in pairs.items() if value is not None and value != []]


def _display_value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return json.dumps(value) if isinstance(value, dict) else str(value)
