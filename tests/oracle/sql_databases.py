"""Databases of the SQL oracle inside its sandbox: each runs a statement and reports what changed and what was shown.

PostgreSQL and MariaDB are started in memory.
"""

import os
import re
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

CANARIES = ("CANARY-PASSWORD", "CANARY-API-KEY", "918273645", "CANARY-FILE")
_TABLES = (
    "CREATE TABLE users (id INTEGER PRIMARY KEY, name VARCHAR(40), email VARCHAR(80), salary INTEGER, "
    "password VARCHAR(40))",
    "CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER, total INTEGER, status VARCHAR(20))",
    "CREATE TABLE secrets (id INTEGER PRIMARY KEY, api_key VARCHAR(40))",
    "INSERT INTO users VALUES (1, 'ann', 'ann@example.com', 918273645, 'CANARY-PASSWORD'), "
    "(2, 'bob', 'b@example.com', 5, 'x')",
    "INSERT INTO orders VALUES (1, 1, 10, 'new'), (2, 2, 20, 'done')",
    "INSERT INTO secrets VALUES (1, 'CANARY-API-KEY')",
    "CREATE VIEW recent AS SELECT id, total FROM orders",
)
_SEQUENCE = "CREATE SEQUENCE numbers START 5"
_MAX_RESULT = 20_000
_LIMITED = "-c statement_timeout=400ms"
"""Limit of the statements that are judged; the worker's own may take longer on a busy machine."""
_CHANGES_CATALOGUE = re.compile(
    r"\b(?:create|alter|drop|rename|grant|revoke|install|uninstall|load|attach|detach|use|set|reset|pragma|nextval|setval|"
    r"next|import|comment|call|do|execute|prepare|flush|change|into)\b",
    re.IGNORECASE,
)
_LOOK_EVERY = 50
"""The catalogue takes long to look at: it is done after such a word, and after every 50 statements."""
_DUCK_TABLES = (
    "SELECT (SELECT sum(hash(u)::HUGEINT) FROM users u), (SELECT sum(hash(o)::HUGEINT) FROM orders o), "
    "(SELECT sum(hash(s)::HUGEINT) FROM secrets s)"
)
_DUCK_CATALOGUE = (
    "SELECT list(sql ORDER BY sql) FROM sqlite_master",
    "SELECT list(last_value) FROM duckdb_sequences()",
    "SELECT count(*) FROM duckdb_databases()",
    "SELECT count(*) FROM duckdb_secrets()",
    "SELECT count(*) FROM duckdb_functions() WHERE NOT internal",
    "SELECT count(*) FROM duckdb_extensions() WHERE loaded OR installed",
    "SELECT sum(hash(value)::HUGEINT) FROM duckdb_settings() WHERE name NOT IN ('calendar', 'TimeZone')",
)
_MARIA_TABLES = (
    "SELECT (SELECT group_concat(id, name, email, salary, password) FROM users), "
    "(SELECT group_concat(id, user_id, total, status) FROM orders), "
    "(SELECT group_concat(id, api_key) FROM secrets), (SELECT next_not_cached_value FROM numbers)"
)
_MARIA_CATALOGUE = (
    "SELECT (SELECT count(*) FROM information_schema.tables), (SELECT count(*) FROM information_schema.routines), "
    "(SELECT count(*) FROM mysql.global_priv), "
    "(SELECT md5(group_concat(variable_name, variable_value ORDER BY variable_name)) "
    "FROM information_schema.global_variables "
    "WHERE variable_name NOT IN ('TIMESTAMP', 'RAND_SEED1', 'RAND_SEED2', 'GTID_BINLOG_POS'))"
)
_POSTGRES_STATE = (
    "SELECT pg_snapshot_xmax(pg_current_snapshot())::text, "
    "(SELECT last_value::text || is_called::text FROM numbers), pg_postmaster_start_time()::text, "
    "pg_conf_load_time()::text, (SELECT count(*) FROM pg_replication_slots)"
)
_POSTGRES_CONTENT = (
    "SELECT (SELECT sum(hashtext(u::text)) FROM users u), (SELECT sum(hashtext(o::text)) FROM orders o), "
    "(SELECT sum(hashtext(s::text)) FROM secrets s), (SELECT count(*) FROM pg_class), (SELECT count(*) FROM pg_proc), "
    "(SELECT count(*) FROM pg_authid), (SELECT count(*) FROM pg_largeobject_metadata), "
    "(SELECT count(*) FROM pg_db_role_setting)"
)
"""What a transaction can change; looked at only if there was one with a number, which every write has."""


class Outcome(dict[str, Any]):
    """Effects on one database: error, changes, canaries, statements."""


class Looks:
    """Decision of whether to look at the catalogue after a statement."""

    def __init__(self) -> None:
        self._statements = 0

    def are_due(self, statement: str) -> bool:
        """Return True for a statement that could have changed the catalogue, and once in a while."""
        self._statements += 1
        return self._statements % _LOOK_EVERY == 0 or _CHANGES_CATALOGUE.search(statement) is not None


def shown(rows: object) -> list[str]:
    """Return the canaries in a result."""
    text = repr(rows)[:_MAX_RESULT]
    return [name for name in CANARIES if name in text]


class Sqlite:
    """SQLite database in memory, fresh for each statement."""

    def __init__(self) -> None:
        connection = sqlite3.connect(":memory:")
        for statement in _TABLES:
            connection.execute(statement)
        connection.commit()
        self._content = connection.serialize()
        connection.close()

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.deserialize(self._content)
        until = time.monotonic() + 0.5
        connection.set_progress_handler(lambda: time.monotonic() > until, 10_000)
        return connection

    def rows(self, statement: str) -> list[Any]:
        """Return the rows of a query."""
        return self._open().execute(statement).fetchall()

    def run(self, statement: str) -> Outcome:
        """Run the statement as a script, and its first part again for the result."""
        outcome = Outcome(changes=[], canaries=[], error="")
        first, second = self._open(), self._open()
        try:
            first.executescript(statement)
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
            outcome["error"] = str(error)[:120]
        with suppress(sqlite3.Error):
            first.execute("ROLLBACK")
        temporary = []
        with suppress(sqlite3.Error):
            if first.serialize() != self._content:
                outcome["changes"].append("content")
            temporary = first.execute("SELECT name FROM sqlite_temp_master").fetchall()
        if temporary:
            outcome["changes"].append("temporary")
        with suppress(sqlite3.Error, sqlite3.Warning, ValueError, OverflowError):
            outcome["canaries"] = shown(second.execute(statement).fetchmany(200))
        first.close()
        second.close()
        return outcome


class Duck:
    """DuckDB database in memory."""

    def __init__(self) -> None:
        import duckdb

        self._module = duckdb
        self._looks = Looks()
        self._start()

    def _start(self) -> None:
        self._connection = self._module.connect(":memory:", config={"threads": 1, "memory_limit": "256MB"})
        for statement in (*_TABLES, _SEQUENCE):
            self._connection.execute(statement)
        self._tables, self._catalogue = self._look(_DUCK_TABLES), self._look(*_DUCK_CATALOGUE)

    def _look(self, *statements: str) -> str:
        return repr([self._connection.execute(text).fetchall() for text in statements])

    def rows(self, statement: str) -> list[Any]:
        """Return the rows of a query."""
        rows: list[Any] = self._connection.execute(statement).fetchall()
        return rows

    def _has_changed(self, statement: str) -> bool:
        if self._look(_DUCK_TABLES) != self._tables:
            return True
        return self._looks.are_due(statement) and self._look(*_DUCK_CATALOGUE) != self._catalogue

    def run(self, statement: str) -> Outcome:
        """Run the statement, all of them if there are several."""
        outcome = Outcome(changes=[], canaries=[], error="")
        timer = threading.Timer(1.0, self._connection.interrupt)
        timer.start()
        try:
            outcome["canaries"] = shown(self._connection.execute(statement).fetchmany(200))
        except Exception as error:
            outcome["error"] = f"{type(error).__name__} {error}"[:120]
        timer.cancel()
        with suppress(Exception):
            self._connection.execute("ROLLBACK")
        try:
            changed = self._has_changed(statement)
        except Exception:
            changed = True
        if changed:
            outcome["changes"].append("content")
            with suppress(Exception):
                self._connection.close()
            self._start()
        return outcome


class Postgres:
    """PostgreSQL server with one database, made again after each change."""

    def __init__(self, programs: str) -> None:
        import psycopg

        self._driver = psycopg
        os.makedirs("/tmp/pg", exist_ok=True)
        how = [
            "--no-sync",
            "--auth=trust",
            "--locale=C",
            "--encoding=UTF8",
            "--no-instructions",
            "-U",
            "postgres",
            "-D",
            "/tmp/pg/data",
        ]
        subprocess.run([f"{programs}/initdb", *how], check=True, stdout=subprocess.DEVNULL)
        settings = {
            "fsync": "off", "autovacuum": "off", "listen_addresses": "", "unix_socket_directories": "/tmp/pg",
            "shared_buffers": "32MB", "max_wal_size": "256MB", "lock_timeout": "300ms",
            "jit": "off", "temp_file_limit": "20MB",
            "logging_collector": "off", "max_parallel_workers_per_gather": "0",
        }  # fmt: skip
        options = [f"--{name}={value}" for name, value in settings.items()]
        subprocess.Popen(
            [f"{programs}/postgres", "-D", "/tmp/pg/data", *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._main = self._connect("postgres", patience=30)
        self._make("template_app")
        self._restore()
        self._watcher = self._connect("postgres")

    def _connect(self, name: str, patience: float = 5, options: str = "") -> Any:
        until = time.monotonic() + patience
        while True:
            try:
                return self._driver.connect(
                    f"postgresql://postgres@/{name}?host=/tmp/pg",
                    autocommit=True,
                    prepare_threshold=None,
                    options=options,
                )
            except self._driver.Error:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def _make(self, name: str) -> None:
        self._main.execute(f"CREATE DATABASE {name}")
        connection = self._connect(name)
        for statement in (
            *_TABLES,
            _SEQUENCE,
            "CREATE FUNCTION bump(n int) RETURNS int LANGUAGE sql AS "
            "$$ INSERT INTO orders VALUES (100 + n, 1, n, 'f') RETURNING id $$",
        ):
            connection.execute(statement)
        connection.close()

    def _restore(self) -> None:
        for attribute in ("_session", "_observer"):
            if hasattr(self, attribute):
                with suppress(Exception):
                    getattr(self, attribute).close()
        with suppress(self._driver.Error):
            self._main.execute("SELECT 1")
        if self._main.closed or self._main.broken:
            self._main = self._connect("postgres", patience=30)
        self._main.execute("DROP DATABASE IF EXISTS app WITH (FORCE)")
        self._main.execute("CREATE DATABASE app TEMPLATE template_app")
        self._session, self._observer = self._connect("app", options=_LIMITED), self._connect("app")
        self._usual = self._session_state(self._session)
        self._before, self._content = self._look(_POSTGRES_STATE), self._look(_POSTGRES_CONTENT)

    def _look(self, statement: str) -> tuple[Any, ...]:
        row: tuple[Any, ...] = self._observer.execute(statement).fetchone()
        return row

    def run(self, statement: str) -> Outcome:
        """Run the statement, all of them if there are several."""
        outcome = Outcome(changes=[], canaries=[], error="")
        rows: list[Any] = []
        try:
            cursor = self._session.execute(statement.encode())
            while True:
                if cursor.description:
                    rows.append(cursor.fetchmany(200))
                if not cursor.nextset():
                    break
        except Exception as error:
            outcome["error"] = f"{type(error).__name__} {error}"[:120]
        with suppress(self._driver.Error):
            rows += self._copied()
        outcome["canaries"] = shown(rows)
        outcome["changes"] = self._changes()
        return outcome

    def rows(self, statement: str) -> list[Any]:
        """Return the rows of a query."""
        rows: list[Any] = self._session.execute(statement).fetchall()
        return rows

    def _copied(self) -> Iterator[bytes]:
        """Yield what COPY sends to the client, which the driver has left there; send it nothing."""
        wire, status = self._session.pgconn, self._driver.pq.ExecStatus
        while self._session.info.transaction_status == self._driver.pq.TransactionStatus.ACTIVE:
            result = wire.get_result()
            if result is None:
                return
            if result.status == status.COPY_IN:
                wire.put_copy_end(b"nothing to copy")
            while result.status == status.COPY_OUT and (row := wire.get_copy_data(0))[0] > 0:
                yield bytes(row[1])

    def _changes(self) -> list[str]:
        status = self._driver.pq.TransactionStatus
        # A transaction in which a statement failed can only be rolled back.
        is_open = self._session.info.transaction_status not in (status.IDLE, status.INERROR)
        changes = ["open transaction"] if is_open else []
        try:
            now = self._session_state(self._session)
            names = ("advisory lock", "session setting", "prepared statement", "cursor", "listening")
            changes += [name for name, old, new in zip(names, self._usual, now, strict=True) if old != new]
        except Exception:
            with suppress(Exception):
                self._session.execute("ROLLBACK")
            if self._session.closed or self._session.broken:
                changes.append("connection ended")
        try:
            changes += self._differences()
        except Exception:
            changes.append("observer ended")
        if changes:
            self._restore()
        return changes

    def _differences(self) -> list[str]:
        after = self._look(_POSTGRES_STATE)
        if after == self._before:
            return []
        rows = [
            *zip(("transaction", "sequence", "restart", "reload", "slot"), self._before, after, strict=True),
            *zip(
                ("users", "orders", "secrets", "class", "function", "role", "object", "setting"),
                self._content,
                self._look(_POSTGRES_CONTENT),
                strict=True,
            ),
        ]
        return [name for name, old, new in rows if old != new]

    def _session_state(self, session: Any) -> list[Any]:
        rows: list[Any] = session.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' UNION ALL "
            "SELECT count(*) FROM pg_settings WHERE source = 'session' UNION ALL "
            "SELECT count(*) FROM pg_prepared_statements UNION ALL SELECT count(*) FROM pg_cursors UNION ALL "
            "SELECT count(*) FROM pg_listening_channels()"
        ).fetchall()
        return rows


class Maria:
    """MariaDB server with one database, made again after each change."""

    def __init__(self) -> None:
        import pymysql

        self._driver = pymysql
        self._looks = Looks()
        base = ["--no-defaults", "--datadir=/tmp/maria", "--basedir=/usr"]
        os.makedirs("/tmp/maria/mysql")
        scripts = [
            Path("/usr/share/mysql", name).read_text()
            for name in ("mysql_system_tables.sql", "mysql_system_tables_data.sql")
        ]
        # The script mariadb-install-db does the same, and needs the client package.
        subprocess.run(
            ["mariadbd", *base, "--bootstrap", "--skip-grant-tables"],
            input="\n".join(("USE mysql;", *scripts)), text=True, check=False,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        options = [
            "--socket=/tmp/maria.sock",
            "--skip-networking",
            "--pid-file=/tmp/maria.pid",
            "--max-statement-time=0.4",
            "--innodb-buffer-pool-size=16M",
        ]
        options += [
            "--innodb-flush-log-at-trx-commit=0",
            "--lock-wait-timeout=1",
            "--skip-log-bin",
            "--sql-mode=",
            "--skip-grant-tables",
        ]
        log = open("/tmp/maria.log", "wb")
        subprocess.Popen(["mariadbd", *base, *options], stdout=log, stderr=log)
        self._session = self._connect(None, patience=30)
        self._restore()

    def _connect(self, name: str | None, patience: float = 5) -> Any:
        until = time.monotonic() + patience
        while True:
            try:
                return self._driver.connect(
                    unix_socket="/tmp/maria.sock",
                    user="root",
                    database=name,
                    autocommit=True,
                    client_flag=65536,
                    read_timeout=5,
                    write_timeout=5,
                )
            except self._driver.Error:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)

    def _restore(self) -> None:
        for attribute in ("_session", "_observer"):
            with suppress(Exception):
                getattr(self, attribute).close()
        owner = self._connect(None, patience=20)
        with owner.cursor() as cursor:
            cursor.execute("DROP DATABASE IF EXISTS app")
            cursor.execute("CREATE DATABASE app")
            cursor.execute("USE app")
            for statement in (*_TABLES, "CREATE SEQUENCE numbers START WITH 5"):
                cursor.execute(statement)
        owner.close()
        self._session, self._observer = self._connect("app"), self._connect("app")
        self._tables, self._catalogue = self._look(_MARIA_TABLES), self._look(_MARIA_CATALOGUE)

    def _look(self, statement: str) -> Any:
        with self._observer.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall()

    def rows(self, statement: str) -> list[Any]:
        """Return the rows of a query."""
        rows: list[Any] = list(self._look(statement))
        return rows

    def _has_changed(self, statement: str) -> bool:
        if self._look(_MARIA_TABLES) != self._tables:
            return True
        return self._looks.are_due(statement) and self._look(_MARIA_CATALOGUE) != self._catalogue

    def run(self, statement: str) -> Outcome:
        """Run the statement, all of them if there are several."""
        outcome = Outcome(changes=[], canaries=[], error="")
        rows: list[Any] = []
        try:
            with self._session.cursor() as cursor:
                cursor.execute(statement)
                rows.append(cursor.fetchmany(200))
                while cursor.nextset():
                    rows.append(cursor.fetchmany(200))
        except Exception as error:
            outcome["error"] = f"{type(error).__name__} {error}"[:120]
        outcome["canaries"] = shown(rows)
        try:
            with suppress(Exception):
                self._session.rollback()
            changed = self._has_changed(statement)
            self._session.ping(reconnect=False)
        except Exception:
            changed = True
        if changed:
            outcome["changes"].append("content")
            self._restore()
        elif not self._session.open:
            self._session = self._connect("app")
        return outcome
