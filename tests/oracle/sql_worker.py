"""Worker inside the sandbox of the SQL oracle: runs each statement on four databases and reports what changed.

It starts PostgreSQL and MariaDB in memory. It reads statements as JSON lines and writes a JSON line for each.
"""

import glob
import json
import os
import re
import resource
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

CANARIES = ("CANARY-PASSWORD", "CANARY-API-KEY", "918273645", "CANARY-FILE")
WORK = "/home/dev/files"
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
    r"\b(?:create|alter|drop|install|load|attach|detach|use|set|reset|pragma|nextval|import|comment|call)\b",
    re.IGNORECASE,
)
_DUCK_TABLES = (
    "SELECT (SELECT sum(hash(u)::HUGEINT) FROM users u), (SELECT sum(hash(o)::HUGEINT) FROM orders o), "
    "(SELECT sum(hash(s)::HUGEINT) FROM secrets s)"
)
_DUCK_CATALOGUE = [
    "SELECT list(sql ORDER BY sql) FROM sqlite_master",
    "SELECT list(last_value) FROM duckdb_sequences()",
    "SELECT count(*) FROM duckdb_databases()",
    "SELECT count(*) FROM duckdb_secrets()",
    "SELECT count(*) FROM duckdb_functions() WHERE NOT internal",
    "SELECT count(*) FROM duckdb_extensions() WHERE loaded OR installed",
    "SELECT sum(hash(value)::HUGEINT) FROM duckdb_settings() WHERE name NOT IN ('calendar', 'TimeZone')",
]


class Outcome(dict[str, Any]):
    """Effects on one database: error, changes, canaries, statements."""


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
        self._start()

    def _start(self) -> None:
        self._connection = self._module.connect(":memory:", config={"threads": 1, "memory_limit": "256MB"})
        for statement in (*_TABLES, _SEQUENCE):
            self._connection.execute(statement)

    def _state(self, statement: str) -> str:
        look = [_DUCK_TABLES]
        # The rest takes long to look at, and only a statement with such a word changes it.
        look += _DUCK_CATALOGUE if _CHANGES_CATALOGUE.search(statement) else []
        return repr([self._connection.execute(text).fetchall() for text in look])

    def run(self, statement: str) -> Outcome:
        """Run the statement, all of them if there are several."""
        outcome = Outcome(changes=[], canaries=[], error="")
        before = self._state(statement)
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
            changed = self._state(statement) != before
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
        self._before = self._state()

    def _state(self) -> tuple[Any, ...]:
        row: tuple[Any, ...] = self._observer.execute(
            "SELECT pg_snapshot_xmax(pg_current_snapshot())::text, "
            "(SELECT last_value::text || is_called::text FROM numbers), "
            "(SELECT sum(hashtext(u::text)) FROM users u), (SELECT sum(hashtext(o::text)) FROM orders o), "
            "(SELECT sum(hashtext(s::text)) FROM secrets s), (SELECT count(*) FROM pg_class), "
            "(SELECT count(*) FROM pg_proc), "
            "(SELECT count(*) FROM pg_authid), (SELECT count(*) FROM pg_largeobject_metadata), "
            "(SELECT count(*) FROM pg_settings WHERE source IN ('session', 'database', 'user')), "
            "pg_postmaster_start_time()::text, "
            "pg_conf_load_time()::text, (SELECT count(*) FROM pg_replication_slots)"
        ).fetchone()
        return row

    def run(self, statement: str) -> Outcome:
        """Run the statement, all of them if there are several."""
        outcome = Outcome(changes=[], canaries=[], error="")
        try:
            cursor = self._session.execute(statement.encode())
            rows = []
            while True:
                if cursor.description:
                    rows.append(cursor.fetchmany(200))
                if not cursor.nextset():
                    break
            outcome["canaries"] = shown(rows)
        except Exception as error:
            outcome["error"] = f"{type(error).__name__} {error}"[:120]
        outcome["changes"] = self._changes()
        return outcome

    def _changes(self) -> list[str]:
        changes = []
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
            after = self._state()
        except Exception:
            changes.append("observer ended")
            after = ()
        names = (
            "transaction",
            "sequence",
            "users",
            "orders",
            "secrets",
            "class",
            "function",
            "role",
            "object",
            "setting",
            "restart",
            "reload",
            "slot",
        )
        changes += [name for name, old, new in zip(names, self._before, after, strict=False) if old != new]
        if changes:
            self._restore()
        return changes

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
        self._before = self._state()

    def _state(self) -> list[Any]:
        with self._observer.cursor() as cursor:
            cursor.execute("CHECKSUM TABLE users, orders, secrets")
            rows = list(cursor.fetchall())
            cursor.execute(
                "SELECT (SELECT next_not_cached_value FROM numbers), (SELECT count(*) FROM information_schema.tables), "
                "(SELECT count(*) FROM information_schema.routines), (SELECT count(*) FROM mysql.global_priv), "
                "(SELECT md5(group_concat(variable_name, variable_value ORDER BY variable_name)) "
                "FROM information_schema.global_variables "
                "WHERE variable_name NOT IN ('TIMESTAMP', 'RAND_SEED1', 'RAND_SEED2', 'GTID_BINLOG_POS'))"
            )
            rows += cursor.fetchall()
        return rows

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
            changed = self._state() != self._before
            self._session.ping(reconnect=False)
        except Exception:
            changed = True
        if changed:
            outcome["changes"].append("content")
            self._restore()
        elif not self._session.open:
            self._session = self._connect("app")
        return outcome


def functions(databases: dict[str, Any]) -> dict[str, list[str]]:
    """Return the names of the functions of each database."""
    looks = {
        "postgres": "SELECT DISTINCT proname FROM pg_proc WHERE prokind IN ('f', 'w')",
        "duckdb": "SELECT DISTINCT function_name FROM duckdb_functions()",
        "sqlite": "SELECT DISTINCT name FROM pragma_function_list",
    }
    listed: dict[str, list[str]] = {}
    for name, text in looks.items():
        database = databases.get(name)
        if database is not None:
            connection = (
                getattr(database, "_session", None) or getattr(database, "_connection", None) or database._open()
            )
            listed[name] = sorted(row[0] for row in connection.execute(text).fetchall())
    return listed


def files() -> set[str]:
    """Return the files a statement could have written."""
    places = [
        *glob.glob(f"{WORK}/*"),
        *glob.glob("/tmp/*"),
        *glob.glob("/tmp/maria/*.*"),
        *glob.glob("/tmp/maria/app/*"),
        *glob.glob("/tmp/pg/data/*"),
    ]
    known = (
        "/tmp/maria/app/",
        "/tmp/maria/ib",
        "/tmp/maria/aria",
        "/tmp/maria/ddl",
        "/tmp/maria.log",
        "/tmp/pg/data/postmaster",
        "/tmp/maria/undo",
        "/tmp/maria/tc",
    )
    return {path for path in places if not path.startswith(known) and os.path.isfile(path)}


def file_changes(before: set[str]) -> list[str]:
    """Return which files were written or removed, and remove the new ones."""
    after = files()
    written, missing = sorted(after - before), sorted(before - after)
    for path in written:
        with suppress(OSError):
            os.unlink(path)
    rows = (("file", written), ("removed", missing))
    return [f"{kind} {' '.join(paths)}"[:200] for kind, paths in rows if paths]


def main() -> None:
    """Run the statements of the input."""
    resource.setrlimit(resource.RLIMIT_NPROC, (500, 500))
    setup = json.loads(sys.stdin.readline())
    sys.path += setup["packages"]
    os.environ.update(HOME="/home/dev", PATH="/usr/bin:/usr/sbin:/bin:/sbin", TZ="UTC")
    os.makedirs(WORK)
    os.chdir(WORK)
    with open("notes.csv", "w") as file:
        file.write("a,b\nCANARY-FILE,2\n")
    starts = {"sqlite": Sqlite, "duckdb": Duck, "postgres": lambda: Postgres(setup["postgres"]), "mysql": Maria}
    databases = {name: start() for name, start in starts.items() if name in setup["databases"]}
    print(json.dumps({"functions": functions(databases)}), flush=True)
    before = files()
    for line in sys.stdin:
        job = json.loads(line)
        report = {}
        for name, database in databases.items():
            report[name] = database.run(job["statement"])
            report[name]["changes"] += file_changes(before)
            before = files()
        print(json.dumps({"index": job["index"], "databases": report}), flush=True)


if __name__ == "__main__":
    try:
        main()
    except Exception:
        traceback.print_exc()
    # The servers end with the sandbox.
    sys.stderr.flush()
    os._exit(0)
