"""Tables that the generators draw from."""

import json
from pathlib import Path
from typing import Any

_DATA = Path(__file__).with_name("data")


def load(name: str) -> dict[str, tuple[Any, ...]]:
    """Return the tables of one kind of input by name; raises ValueError if one is empty."""
    tables: dict[str, list[Any]] = read_json(name)
    for key, rows in tables.items():
        if not rows:
            raise ValueError(f"table `{key}` of {name}.json is empty, give it a row")
    return {key: tuple(tuple(row) if isinstance(row, list) else row for row in rows) for key, rows in tables.items()}


def read_json(name: str) -> dict[str, Any]:
    """Return the object in one data file."""
    content: dict[str, Any] = json.loads((_DATA / f"{name}.json").read_text())
    return content


def names(text: str) -> tuple[str, ...]:
    """Return the blank-separated names of a table."""
    return tuple(text.split())
