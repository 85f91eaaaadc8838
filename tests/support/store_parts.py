"""Connections, writer and locks of a store, for tests that watch or break them. The one place that reaches them."""

from typing import Any


class StoreParts:
    """Inner parts of a store."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def rows(self, statement: str, *values: Any) -> list[Any]:
        """Return all rows of a query."""
        return list(self._store._all(statement, values))

    def write(self, statement: str, *values: Any) -> Any:
        """Submit one statement to the writer; return its future."""
        return self.submit((statement, values))

    def submit(self, *statements: tuple[str, tuple[Any, ...]]) -> Any:
        """Submit statements to the writer as one write; return its future."""
        return self._store._write(*statements)

    @property
    def lock(self) -> Any:
        """Return the lock that is held around every change of the state."""
        return self._store._lock

    @property
    def report_lock(self) -> Any:
        """Return the lock that a reader of a long page holds."""
        return self._store._report_lock

    @property
    def writer(self) -> Any:
        """Return the writer."""
        return self._store._writer

    @property
    def writer_connection(self) -> Any:
        """Return the connection of the writer."""
        return self.writer._connection

    @writer_connection.setter
    def writer_connection(self, connection: Any) -> None:
        self.writer._connection = connection

    @property
    def connector(self) -> Any:
        """Return what connects a PostgreSQL store."""
        return self._store._connector

    @property
    def leader_election(self) -> Any:
        """Return the leader election of a PostgreSQL store."""
        return self._store._leader_election

    @property
    def entities(self) -> Any:
        """Return the cache of agents, keys and other entities."""
        return self._store._entities

    @property
    def reader(self) -> Any:
        """Return the connection that decisions read from."""
        return self._store._reader

    @reader.setter
    def reader(self, connection: Any) -> None:
        self._store._reader = connection

    @property
    def report_reader(self) -> Any:
        """Return the connection that pages of history are read from."""
        return self._store._report_reader

    @report_reader.setter
    def report_reader(self, connection: Any) -> None:
        self._store._report_reader = connection
