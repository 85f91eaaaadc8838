"""What an agent wants to do, in a few words for a person."""

import json
import sys
from collections.abc import Mapping
from typing import Any

STYLES = {
    "APPROVED": "green",
    "CORRECTED": "green",
    "PENDING": "yellow",
    "DENIED": "red",
    "BUDGET_EXCEEDED": "red",
}
_WIDEST = 60
_LONGEST = 1_000


def about(action: Mapping[str, Any] | None) -> str:
    """Its type or tool, and what it is done with; on a terminal cut to fit, elsewhere whole."""
    if not action:
        return ""
    name = action.get("tool") or action.get("type") or ""
    rest = [str(action[part]) for part in ("target", "query", "code") if action.get(part)]
    if action.get("parameters"):
        rest.append(json.dumps(action["parameters"]))
    return " ".join([str(name), *map(cut, rest)])


def lines_of(action: Mapping[str, Any]) -> list[str]:
    """All that somebody has to have read before they permit it, a line each; what is very long says so."""
    named = {name: action.get(name) for name in ("target", "query", "code")} | dict(action.get("parameters") or {})
    told = [(name, value if isinstance(value, str) else json.dumps(value)) for name, value in named.items() if value]
    return [str(action.get("tool") or action.get("type")), *(f"  {name}: {_bounded(text)}" for name, text in told)]


def _bounded(text: str) -> str:
    left = len(text) - _LONGEST
    return text if left <= 0 else f"{text[:_LONGEST]}... and {left} more characters"


def cut(text: str) -> str:
    """The text, on a terminal no longer than a column."""
    return f"{text[: _WIDEST - 3]}..." if len(text) > _WIDEST and sys.stdout.isatty() else text


def fields(pairs: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Names and values for a person: what is not set is left out, a list is one line."""
    return [(name, _plain(value)) for name, value in pairs.items() if value is not None and value != []]


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return json.dumps(value) if isinstance(value, dict) else str(value)
