"""Locked-down DuckDB session: one file is loaded from memory, then external access is switched off."""

import datetime
import io
import sys
import threading
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import duckdb

from qwed.engines._stats.table_files import MAX_COLUMNS, Sheet
from qwed.engines.uploads import UploadError

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


class _FileSystemBase:
    """Stand-in for `fsspec.AbstractFileSystem`, the base class that DuckDB looks for by name."""


class _InMemoryFileSystem(_FileSystemBase):
    """Read-only file system with one in-memory file, because a worker may not write files."""

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
    """Column of the file: its name as written, its name in the table `raw`, and the type declared by the file."""

    name: str
    raw: str
    kind: str = ""


class LoadedTable:
    """Loaded file; queries are read-only, bounded in time and memory, and have no external access."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, sheet: Sheet, columns: tuple[Column, ...]) -> None:
        self._connection = connection
        self.columns = columns
        self.format = sheet.format

    @property
    def rows(self) -> str:
        """SQL condition that excludes the header row."""
        return "true" if self.format == "parquet" else "rowid > 0"

    def fetch(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one query and return its rows."""
        return self._connection.execute(sql, list(values)).fetchall()


@contextmanager
def open_table(sheet: Sheet) -> Iterator[LoadedTable]:
    """Load the file into a database that is closed at the end of the block and interrupted after `SECONDS`."""
    connection = duckdb.connect(":memory:", config=_CONFIG)
    # The time limit includes loading: a file can be as slow as a query.
    timer = threading.Timer(SECONDS, connection.interrupt)
    timer.daemon = True
    timer.start()
    try:
        columns = _load(connection, sheet)
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield LoadedTable(connection, sheet, columns)
    finally:
        timer.cancel()
        connection.close()


def _load(connection: duckdb.DuckDBPyConnection, sheet: Sheet) -> tuple[Column, ...]:
    _register(connection, sheet.content)
    if sheet.format == "parquet":
        return _load_parquet(connection)
    columns = tuple(Column(name, f"c{n}", sheet.kinds[n]) for n, name in enumerate(sheet.names))
    columns_sql = "{" + ", ".join(f"'{column.raw}': 'VARCHAR'" for column in columns) + "}"
    connection.execute(_READ_CSV.replace("{columns}", columns_sql), [sheet.delimiter, sheet.format != "json"])
    first = connection.execute("SELECT * FROM raw WHERE rowid = 0").fetchone() or ()
    count = connection.execute("SELECT count(*) FROM raw").fetchone() or (0,)
    agree = [(cell or "").strip() for cell in first] == [name.strip() for name in sheet.names]
    if not agree or (sheet.records is not None and sheet.records != count[0]):
        raise UploadError("the file can be read in two ways: check its quotes and line ends")
    return columns


def _load_parquet(connection: duckdb.DuckDBPyConnection) -> tuple[Column, ...]:
    connection.execute(_READ_PARQUET)
    description = connection.execute("DESCRIBE raw").fetchall()
    if len(description) > MAX_COLUMNS:
        raise UploadError(f"the file has more than {MAX_COLUMNS} columns")
    return tuple(Column(name, name, str(kind)) for name, kind, *_ in description)


def _register(connection: duckdb.DuckDBPyConnection, content: bytes) -> None:
    """Register the file with DuckDB, which accepts only subclasses of a class that it imports by name from `fsspec`."""
    stand_in = types.ModuleType("fsspec")
    stand_in.AbstractFileSystem = _FileSystemBase  # type: ignore[attr-defined]
    previous = sys.modules.get("fsspec")
    sys.modules["fsspec"] = stand_in
    try:
        connection.register_filesystem(_InMemoryFileSystem(content))
    finally:
        del sys.modules["fsspec"]
        if previous is not None:
            sys.modules["fsspec"] = previous
