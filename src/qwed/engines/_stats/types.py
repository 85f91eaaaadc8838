"""Column type inference of the stats engine: the narrowest type that keeps every digit."""

from collections.abc import Iterable
from typing import NamedTuple

from qwed.engines._stats.duckdb_session import Column, LoadedTable
from qwed.engines.uploads import UploadError

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
_NARROW_DIGITS = 18
_SAMPLE = 1_000


class TypedColumn(NamedTuple):
    """Column that a claim uses: its name in the table `data`, and its type."""

    name: str
    kind: str
    missing: int = 0
    """Number of cells with a missing-value marker such as `NA`."""
    narrow: bool = False
    """True if the square of every cell fits an exact type too."""

    @property
    def sql(self) -> str:
        return quote_identifier(self.name)


def quote_identifier(name: str) -> str:
    """Quote a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def create_data_table(table: LoadedTable, used: Iterable[Column]) -> dict[str, TypedColumn]:
    """Create the table `data` from the columns used, each with the narrowest exact type for all of its cells."""
    types = {column.name: _type_of(table, column) for column in used}
    parts = [f"{expression} AS {quote_identifier(name)}" for name, (_, expression) in types.items()]
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


def _type_of(table: LoadedTable, column: Column) -> tuple[TypedColumn, str]:
    if table.format == "parquet":
        return _parquet_type(column)
    if column.kind in ("nested", "boolean"):
        expression = column.raw if column.kind == "nested" else f"CAST({column.raw} AS BOOLEAN)"
        return TypedColumn(column.name, column.kind), expression
    for candidate in _CANDIDATE_TYPES:
        if column.kind == "text" and candidate.kind not in TIMES:
            # A JSON string stays text, even if it consists of digits.
            continue
        typed_column = _try_type(table, column, candidate, f" LIMIT {_SAMPLE}") and _try_type(
            table, column, candidate, ""
        )
        if typed_column:
            return typed_column
    return TypedColumn(column.name, "text"), column.raw


def _parquet_type(column: Column) -> tuple[TypedColumn, str]:
    name = quote_identifier(column.raw)
    for starts, kind, cast in _PARQUET_KINDS:
        if column.kind.startswith(starts) and not column.kind.endswith("]"):
            narrow = cast == "BIGINT" or _decimal_width(column.kind) <= _NARROW_DIGITS
            return TypedColumn(column.name, kind, narrow=narrow), f"CAST({name} AS {cast})" if cast else name
    return TypedColumn(column.name, "nested"), name


def _decimal_width(kind: str) -> int:
    digits = kind.removeprefix("DECIMAL(").partition(",")[0]
    return int(digits) if kind.startswith("DECIMAL(") and digits.isdecimal() else _MAX_DIGITS


class _CandidateType(NamedTuple):
    """Type that a column may have: the pattern of its cells and the cast."""

    kind: str
    pattern: str
    valid: str = ""
    cast: str = ""


_CANDIDATE_TYPES = (
    _CandidateType("integer", _DIGITS),
    _CandidateType("decimal", _DECIMALS),
    _CandidateType("double", _DECIMALS + "([eE][+-]?[0-9]{1,3})?", cast="CAST({0} AS DOUBLE)"),
    _CandidateType("boolean", "(?i)true|false", cast="CAST({0} AS BOOLEAN)"),
    _CandidateType("date", _DAY, "TRY_CAST({0} AS DATE)", "CAST({0} AS DATE)"),
    _CandidateType("timestamp", _MOMENT, "TRY_CAST({0} AS TIMESTAMP)", "CAST({0} AS TIMESTAMP)"),
    _CandidateType("timestamp", _ZONED, "TRY_CAST({0} AS TIMESTAMPTZ)", "CAST(CAST({0} AS TIMESTAMPTZ) AS TIMESTAMP)"),
)
"""Candidate types from the narrowest on. Digits with leading zeros match none: they are codes, not numbers."""


def _try_type(
    table: LoadedTable, column: Column, candidate: _CandidateType, limit: str
) -> tuple[TypedColumn, str] | None:
    """Return the column with this type, or None unless every cell matches it or is a missing-value marker."""
    cell = f"trim({column.raw})"
    like = f"regexp_full_match({cell}, '{candidate.pattern}')"
    if candidate.valid:
        like = f"({like} AND {candidate.valid.format(cell)} IS NOT NULL)"
    cells = f"(SELECT {column.raw} FROM raw WHERE {table.rows} AND {column.raw} IS NOT NULL{limit})"  # noqa: S608
    whole = f"max(length(ltrim(split_part({cell}, '.', 1), '+-'))) FILTER (WHERE {like})"
    scale = f"max(length(split_part({cell}, '.', 2))) FILTER (WHERE {like})"
    sizes = f"{whole}, {scale}" if candidate.kind in ("integer", "decimal") else "0, 0"
    fits = f"count(*) FILTER (WHERE {like} OR lower({cell}) IN {_MISSING})"
    sql = f"SELECT count(*), {fits}, count(*) FILTER (WHERE {like}), {sizes} FROM {cells}"  # noqa: S608 - our own names
    total, fitting, alike, digits, places = table.fetch(sql)[0]
    if not alike or fitting != total:
        return None
    cleaned = f"CASE WHEN lower({cell}) NOT IN {_MISSING} THEN {cell} END" if alike != total else cell
    return _cast_column(column, candidate, cleaned, total - alike, (digits, places))


def _cast_column(
    column: Column, candidate: _CandidateType, cell: str, missing: int, sizes: tuple[int, int]
) -> tuple[TypedColumn, str] | None:
    if candidate.cast:
        return TypedColumn(column.name, candidate.kind, missing), candidate.cast.format(cell)
    width = sum(sizes)
    if width > _MAX_DIGITS or sizes[1] > _MAX_SCALE:
        return None
    narrow = width <= _NARROW_DIGITS
    exact = (
        "BIGINT"
        if candidate.kind == "integer" and narrow
        else f"DECIMAL({_NARROW_DIGITS if narrow else 38}, {sizes[1]})"
    )
    return TypedColumn(column.name, candidate.kind, missing, narrow), f"CAST({cell} AS {exact})"


def require_kind(column: TypedColumn, kinds: frozenset[str], purpose: str) -> TypedColumn:
    """Return the column if its type is one of `kinds`; raise UploadError otherwise."""
    if column.kind not in kinds:
        raise UploadError(f"the column `{column.name[:60]}` holds {column.kind} and has no {purpose}")
    return column
