"""Names of functions that only compute, by dialect, from `data/functions.toml`."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

_NAME = re.compile(r"[a-z_$][\w$]*(?:\.[a-z_$][\w$]*)?", re.ASCII)
_ENDINGS = ("if", "array", "state", "merge", "ordefault", "ornull", "distinct", "foreach", "map", "resample")
"""Endings by which ClickHouse combines aggregates, as in `sumIf`."""


class _FunctionData(NamedTuple):
    """Contents of the data file."""

    rows: Mapping[str, frozenset[str]]
    inherits: Mapping[str, str]
    absent: Mapping[str, frozenset[str]]


@cache
def _data() -> "_FunctionData":
    data = tomllib.loads(files(__package__).joinpath("data", "functions.toml").read_text(encoding="utf-8"))
    rows = {dialect: frozenset(names.split()) for dialect, names in data["functions"].items()}
    wrong = [name for names in rows.values() for name in names if not _NAME.fullmatch(name)]
    if wrong:
        raise ValueError(f"functions.toml: `{wrong[0]}` is not the name of a function")
    absent = {dialect: frozenset(names.split()) for dialect, names in data["absent"].items()}
    return _FunctionData(rows, data["inherits"], absent)


@cache
def table_readers() -> frozenset[str]:
    """Return the functions that read a table named by an argument, where they stand in place of a table."""
    return _data()[0]["table_readers"]


@cache
def pure_names(dialect: str) -> frozenset[str]:
    """Return the functions of a dialect that only compute; of all dialects if this one has no list of its own."""
    rows, inherits, absent = _data()
    parents = inherits.get(dialect, "").split()
    if dialect not in rows and not parents:
        return frozenset().union(*(names for name, names in rows.items() if name != "table_readers"))
    own = (rows.get(name, frozenset()) for name in ("common", "types", dialect, *parents))
    return frozenset().union(*own) - absent.get(dialect, frozenset())


def is_pure(name: str, dialect: str) -> bool:
    """Return True if a function of this folded name only computes; no dialect means any of them."""
    names = pure_names(dialect)
    if name in names:
        return True
    if dialect not in {"", "clickhouse"}:
        return False
    aggregates = pure_names("clickhouse")
    return any(name.endswith(ending) and name[: -len(ending)] in aggregates for ending in _ENDINGS)
