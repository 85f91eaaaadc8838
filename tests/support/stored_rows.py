"""Direct access to the stored tables of a data directory in either store, without the server."""

import itertools
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from qwed.store.data_directory import FILE_NAME
from tests.support.store_choice import POSTGRES, SQLITE, chosen

Row = dict[str, Any]

_TABLES = {
    SQLITE: "SELECT name FROM sqlite_schema WHERE type = 'table'",
    POSTGRES: "SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()",
}


class StoredRows:
    """Tables of a data directory; statements use `?` for their values."""

    def __init__(self, directory: Path, database_url: str = "") -> None:
        """With a URL the rows are in that database, whichever store the test run selected."""
        self.directory = directory
        self._url = database_url
        self._store = POSTGRES if database_url else chosen.store

    def rows(self, statement: str, *values: Any) -> list[Row]:
        """Return the rows of a query."""
        with self.connected() as connection:
            return [dict(row) for row in connection.execute(self._said(statement), values)]

    def cell(self, statement: str, *values: Any) -> Any:
        """Return the first value of the first row, or None."""
        return next((value for row in self.rows(statement, *values) for value in row.values()), None)

    def change(self, statement: str, *values: Any) -> int:
        """Run a statement and return the number of changed rows."""
        with self.connected() as connection:
            changed: int = connection.execute(self._said(statement), values).rowcount
            connection.commit()
        return changed

    def tables(self) -> Iterator[tuple[str, bytes]]:
        """Yield every table, cell by cell: a page of a file may end within a text."""
        for row in self.rows(_TABLES[self._store]):
            kept = (each.values() for each in self.rows(f'SELECT * FROM "{row["name"]}"'))
            texts = map(_bytes_of, itertools.chain.from_iterable(kept))
            yield f"table {row['name']}", b"\n".join(texts)

    @contextmanager
    def open_read_transaction(self) -> Iterator[None]:
        """Hold a read transaction open inside the block."""
        with self.connected() as connection:
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM activities").fetchone()
            yield
            connection.rollback()

    def exists(self) -> bool:
        """Return True if a store was created here."""
        if self._store == SQLITE:
            return (self.directory / FILE_NAME).exists()
        return bool(self.rows(_TABLES[self._store]))

    @contextmanager
    def unreachable(self) -> Iterator[None]:
        """Make the store impossible to open, and to write for those that have it open."""
        if self._store == SQLITE:
            file, elsewhere = self.directory / FILE_NAME, self.directory / "elsewhere"
            # A second removal finds nothing.
            with suppress(FileNotFoundError):
                file.rename(elsewhere)
            try:
                yield
            finally:
                with suppress(FileNotFoundError):
                    elsewhere.rename(file)
            return
        assert chosen.server is not None
        with chosen.server.closed(chosen.url(self.directory)):
            yield

    def bytes(self) -> bytes:
        """Return everything: the files of the directory, and the rows of a database elsewhere."""
        files = [file.read_bytes() for file in sorted(self.directory.rglob("*")) if file.is_file()]
        elsewhere = [] if self._store == SQLITE else [held for _name, held in self.tables()]
        return b"\n".join(files + elsewhere)

    @contextmanager
    def connected(self) -> Iterator[Any]:
        """Open a connection whose rows have names."""
        if self._store == SQLITE:
            with closing(sqlite3.connect(self.directory / FILE_NAME)) as connection:
                connection.row_factory = sqlite3.Row
                yield connection
            return
        import psycopg

        rows: Any = psycopg.rows.dict_row
        with psycopg.connect(self._url or chosen.url(self.directory), row_factory=rows) as opened:
            yield opened

    def _said(self, statement: str) -> Any:
        return statement if self._store == SQLITE else statement.replace("?", "%s").encode()


def _bytes_of(cell: Any) -> bytes:
    return bytes(cell) if isinstance(cell, bytes | memoryview) else str(cell).encode()
