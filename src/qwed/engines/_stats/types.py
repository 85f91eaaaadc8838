"""The stats engine's types: what every cell of a column can be read as, without losing a digit."""

from collections.abc import Iterable
from typing import NamedTuple

from qwed.engines._stats.duck import Column, Table
from qwed.engines.uploads import Refused

NUMBERS = frozenset({"integer", "decimal", "double"})
TIMES = frozenset({"date", "timestamp"})

_MISSING = "('na', 'n/a', 'null', 'none', 'nan', '-')"
_DIGITS = "[+-]?(0|[1-9][0-9]*)"
_DECIMALS = "[+-]?((0|[1-9][0-9]*)([.][0-9]*)?|[.][0-9]+)"
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_MOMENT = _DAY + "([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?)?"
_ZONED = _DAY + "[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?(Z|[+-][0-9]{2}:?[0-9]{2})"
_MAX_DIGITS = 38
_MAX_SCALE = 12
_NARROW = 18
_SAMPLE = 1_000


class Typed(NamedTuple):
    """A column that a claim uses: how it is called in `data`, and what it holds."""

    name: str
    kind: str
    missing: int = 0
    """How many cells say in words that nothing is there, such as `NA`."""
    narrow: bool = False
    """Whether the square of every cell has an exact type too."""

    @property
    def sql(self) -> str:
        return quoted(self.name)


def quoted(name: str) -> str:
    """A name as SQL writes it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def typed(table: Table, used: Iterable[Column]) -> dict[str, Typed]:
    """Make the table `data` of the columns used, each with the narrowest type that holds all of its cells exactly."""
    types = {column.name: _type_of(table, column) for column in used}
    parts = [f"{expression} AS {quoted(name)}" for name, (_, expression) in types.items()]
    chosen = ", ".join(parts) or 'true AS "row"'
    table.fetch(f"CREATE TABLE data AS SELECT {chosen} FROM raw WHERE {table.rows}")  # noqa: S608 - names are quoted
    return {name: kind for name, (kind, _) in types.items()}


_PARQUET_KINDS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"), "integer", "BIGINT"),
    (("UBIGINT", "HUGEINT", "UHUGEINT"), "integer", "DECIMAL(38, 0)"),
    (("DECIMAL",), "decimal", ""),
    (("FLOAT", "DOUBLE"), "double", "DOUBLE"),
    (("BOOLEAN",), "boolean", ""),
    (("DATE",), "date", ""),
    (("TIMESTAMP WITH TIME ZONE",), "timestamp", "TIMESTAMP"),
    (("TIMESTAMP",), "timestamp", "TIMESTAMP"),
    (("VARCHAR", "ENUM"), "text", "VARCHAR"),
)


def _type_of(table: Table, column: Column) -> tuple[Typed, str]:
    if table.format == "parquet":
        return _parquet_type(column)
    if column.kind in ("nested", "boolean"):
        expression = column.raw if column.kind == "nested" else f"CAST({column.raw} AS BOOLEAN)"
        return Typed(column.name, column.kind), expression
    for rung in _LADDER:
        if column.kind == "text" and rung.kind not in TIMES:
            # What a JSON file writes as a text is one, even where it is made of digits.
            continue
        found = _climbed(table, column, rung, f" LIMIT {_SAMPLE}") and _climbed(table, column, rung, "")
        if found:
            return found
    return Typed(column.name, "text"), column.raw


def _parquet_type(column: Column) -> tuple[Typed, str]:
    name = quoted(column.raw)
    for starts, kind, cast in _PARQUET_KINDS:
        if column.kind.startswith(starts) and not column.kind.endswith("]"):
            narrow = cast == "BIGINT" or _width(column.kind) <= _NARROW
            return Typed(column.name, kind, narrow=narrow), f"CAST({name} AS {cast})" if cast else name
    return Typed(column.name, "nested"), name


def _width(kind: str) -> int:
    digits = kind.removeprefix("DECIMAL(").partition(",")[0]
    return int(digits) if kind.startswith("DECIMAL(") and digits.isdecimal() else _MAX_DIGITS


class _Rung(NamedTuple):
    """A type that a column may have: what its cells look like, and how they are read."""

    kind: str
    pattern: str
    valid: str = ""
    cast: str = ""


_LADDER = (
    _Rung("integer", _DIGITS),
    _Rung("decimal", _DECIMALS),
    _Rung("double", _DECIMALS + "([eE][+-]?[0-9]{1,3})?", cast="CAST({0} AS DOUBLE)"),
    _Rung("boolean", "(?i)true|false", cast="CAST({0} AS BOOLEAN)"),
    _Rung("date", _DAY, "TRY_CAST({0} AS DATE)", "CAST({0} AS DATE)"),
    _Rung("timestamp", _MOMENT, "TRY_CAST({0} AS TIMESTAMP)", "CAST({0} AS TIMESTAMP)"),
    _Rung("timestamp", _ZONED, "TRY_CAST({0} AS TIMESTAMPTZ)", "CAST(CAST({0} AS TIMESTAMPTZ) AS TIMESTAMP)"),
)
"""From the narrowest on. Digits with leading zeros are on no rung: they are codes, and not to be reckoned with."""


def _climbed(table: Table, column: Column, rung: _Rung, limit: str) -> tuple[Typed, str] | None:
    """The column as this type, where every cell of it is one or says in words that nothing is there."""
    cell = f"trim({column.raw})"
    like = f"regexp_full_match({cell}, '{rung.pattern}')"
    if rung.valid:
        like = f"({like} AND {rung.valid.format(cell)} IS NOT NULL)"
    cells = f"(SELECT {column.raw} FROM raw WHERE {table.rows} AND {column.raw} IS NOT NULL{limit})"  # noqa: S608
    whole = f"max(length(ltrim(split_part({cell}, '.', 1), '+-'))) FILTER (WHERE {like})"
    scale = f"max(length(split_part({cell}, '.', 2))) FILTER (WHERE {like})"
    sizes = f"{whole}, {scale}" if rung.kind in ("integer", "decimal") else "0, 0"
    fits = f"count(*) FILTER (WHERE {like} OR lower({cell}) IN {_MISSING})"
    sql = f"SELECT count(*), {fits}, count(*) FILTER (WHERE {like}), {sizes} FROM {cells}"  # noqa: S608 - our own names
    total, fitting, alike, digits, places = table.fetch(sql)[0]
    if not alike or fitting != total:
        return None
    cleaned = f"CASE WHEN lower({cell}) NOT IN {_MISSING} THEN {cell} END" if alike != total else cell
    return _cast(column, rung, cleaned, total - alike, (digits, places))


def _cast(column: Column, rung: _Rung, cell: str, missing: int, sizes: tuple[int, int]) -> tuple[Typed, str] | None:
    if rung.cast:
        return Typed(column.name, rung.kind, missing), rung.cast.format(cell)
    width = sum(sizes)
    if width > _MAX_DIGITS or sizes[1] > _MAX_SCALE:
        return None
    narrow = width <= _NARROW
    exact = "BIGINT" if rung.kind == "integer" and narrow else f"DECIMAL({_NARROW if narrow else 38}, {sizes[1]})"
    return Typed(column.name, rung.kind, missing, narrow), f"CAST({cell} AS {exact})"


def require(column: Typed, kinds: frozenset[str], purpose: str) -> Typed:
    """The column, where it holds what the purpose needs."""
    if column.kind not in kinds:
        raise Refused(f"the column `{column.name[:60]}` holds {column.kind} and has no {purpose}")
    return column
