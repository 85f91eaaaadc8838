"""The stats engine's database: one file loaded from memory, then locked down before any claim is looked at."""

import datetime
import io
import sys
import threading
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import duckdb

from qwed.engines._stats.files import MAX_COLUMNS, Sheet
from qwed.engines.uploads import Refused

SECONDS = 8.0
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "async_threads": "0",
    "threads": "1",
    "memory_limit": "400MB",
    "temp_directory": "",
    "allow_community_extensions": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
_READ_CSV = (
    "CREATE TABLE raw AS SELECT * FROM read_csv('upload://file', auto_detect = false, header = false, "
    "delim = ?, quote = '\"', escape = '\"', columns = {columns}, strict_mode = true, nullstr = '', "
    "allow_quoted_nulls = ?, parallel = false, max_line_size = 16777216, new_line = '\\n')"
)
_READ_PARQUET = "CREATE TABLE raw AS SELECT * FROM read_parquet('upload://file')"


class _FileSystem:
    """The base class that duckdb looks for by the name `fsspec.AbstractFileSystem`."""


class _Upload(_FileSystem):
    """A file system that holds one file, in memory: a worker may write none to read back."""

    protocol = "upload"

    def __init__(self, content: bytes) -> None:
        self._content = content

    def open(self, _path: str, _mode: str = "rb", **_options: Any) -> io.BytesIO:
        return io.BytesIO(self._content)

    def glob(self, path: str, **_options: Any) -> list[str]:
        return [path]

    def unstrip_protocol(self, path: str) -> str:
        return path

    def size(self, _path: str) -> int:
        return len(self._content)

    def modified(self, _path: str) -> datetime.datetime:
        return datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)


class Column(NamedTuple):
    """One column of the file: its name as written, its name in `raw`, and what the file itself says it holds."""

    name: str
    raw: str
    kind: str = ""


class Table:
    """A loaded file; every query of it is read-only, bounded in time and memory, and reaches nothing else."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, sheet: Sheet, columns: tuple[Column, ...]) -> None:
        self._connection = connection
        self.columns = columns
        self.format = sheet.format

    @property
    def rows(self) -> str:
        """The condition that leaves the header out."""
        return "true" if self.format == "parquet" else "rowid > 0"

    def fetch(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of one query."""
        return self._connection.execute(sql, list(values)).fetchall()


@contextmanager
def loaded(sheet: Sheet) -> Iterator[Table]:
    """The file as a table, in a database that ends with the block or with its time."""
    connection = duckdb.connect(":memory:", config=_CONFIG)
    # The clock runs from the loading on: a file can be as slow as a query.
    clock = threading.Timer(SECONDS, connection.interrupt)
    clock.daemon = True
    clock.start()
    try:
        columns = _load(connection, sheet)
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield Table(connection, sheet, columns)
    finally:
        clock.cancel()
        connection.close()


def _load(connection: duckdb.DuckDBPyConnection, sheet: Sheet) -> tuple[Column, ...]:
    _register(connection, sheet.content)
    if sheet.format == "parquet":
        return _load_parquet(connection)
    columns = tuple(Column(name, f"c{n}", sheet.kinds[n]) for n, name in enumerate(sheet.names))
    wanted = "{" + ", ".join(f"'{column.raw}': 'VARCHAR'" for column in columns) + "}"
    connection.execute(_READ_CSV.replace("{columns}", wanted), [sheet.delimiter, sheet.format != "json"])
    first = connection.execute("SELECT * FROM raw WHERE rowid = 0").fetchone() or ()
    count = connection.execute("SELECT count(*) FROM raw").fetchone() or (0,)
    agree = [(cell or "").strip() for cell in first] == [name.strip() for name in sheet.names]
    if not agree or (sheet.records is not None and sheet.records != count[0]):
        raise Refused("the file can be read in two ways: check its quotes and line ends")
    return columns


def _load_parquet(connection: duckdb.DuckDBPyConnection) -> tuple[Column, ...]:
    connection.execute(_READ_PARQUET)
    described = connection.execute("DESCRIBE raw").fetchall()
    if len(described) > MAX_COLUMNS:
        raise Refused(f"the file has more than {MAX_COLUMNS} columns")
    return tuple(Column(name, name, str(kind)) for name, kind, *_ in described)


def _register(connection: duckdb.DuckDBPyConnection, content: bytes) -> None:
    """Give duckdb the file. It takes only what descends from a class it imports by name, so that name is lent to it."""
    lent = types.ModuleType("fsspec")
    lent.AbstractFileSystem = _FileSystem  # type: ignore[attr-defined]
    before = sys.modules.get("fsspec")
    sys.modules["fsspec"] = lent
    try:
        connection.register_filesystem(_Upload(content))
    finally:
        del sys.modules["fsspec"]
        if before is not None:
            sys.modules["fsspec"] = before
