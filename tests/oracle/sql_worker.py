"""Worker inside the sandbox of the SQL oracle: runs each statement on four databases.

It receives jobs as JSON lines over the socket that its argument numbers, and answers each with a JSON line.
"""

import glob
import json
import os
import re
import resource
import socket
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from typing import Any

WORK = "/home/dev/files"
TO_CLIENT = re.compile(r"\bto\s+stdout\b", re.IGNORECASE)
OUTPUTS = {1: "/run/stdout", 2: "/run/stderr"}


FUNCTIONS = {
    "postgres": "SELECT DISTINCT proname, array(SELECT format_type(t, NULL) FROM unnest(proargtypes) t) "
    "FROM pg_proc WHERE prokind <> 'p'",
    "duckdb": "SELECT DISTINCT function_name, parameter_types FROM duckdb_functions()",
    "sqlite": "SELECT DISTINCT name, narg FROM pragma_function_list",
    "mysql": "SELECT DISTINCT function, NULL FROM information_schema.sql_functions",
}
"""Query for the names of functions, each with the types or the number of its parameters."""


def functions(databases: dict[str, Any]) -> dict[str, list[list[Any]]]:
    """Return the functions of each database, each with the types of its parameters, where they are known."""
    return {
        name: sorted([row[0], _types(row[1])] for row in database.rows(FUNCTIONS[name]))
        for name, database in databases.items()
    }


def _types(listed: Any) -> list[str]:
    if isinstance(listed, list):
        return [str(kind) for kind in listed]
    return ["any"] * max(listed, 1) if isinstance(listed, int) else ["any"]


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
    """Return which files were written or removed; remove the new ones, and note the removed ones in `before`."""
    after = files()
    written, missing = sorted(after - before), sorted(before - after)
    for path in written:
        with suppress(OSError):
            os.unlink(path)
    before -= set(missing)
    rows = (("file", written), ("removed", missing))
    return [f"{kind} {' '.join(paths)}"[:200] for kind, paths in rows if paths]


def collect_output() -> None:
    """Let standard output and error be files, to see what a statement writes to them."""
    for number, path in OUTPUTS.items():
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND), number)


def standard_output() -> dict[int, str]:
    """Return what was written to the standard streams, by number; empty them."""
    written = {number: os.fstat(number).st_size for number in OUTPUTS}
    texts = {number: os.pread(number, size, 0).decode("utf-8", "replace") for number, size in written.items() if size}
    for number in texts:
        os.ftruncate(number, 0)
    return texts


def start(setup: dict[str, Any]) -> dict[str, Any]:
    """Start the databases that the first line names."""
    resource.setrlimit(resource.RLIMIT_NPROC, (500, 500))
    sys.path += setup["packages"]
    os.environ.update(HOME="/home/dev", PATH="/usr/bin:/usr/sbin:/bin:/sbin", TZ="UTC")
    sys.path.insert(0, "/oracle")
    engines = import_module("sql_databases")
    os.makedirs(WORK)
    os.chdir(WORK)
    with open("notes.csv", "w") as file:
        file.write("a,b\nCANARY-FILE,2\n")
    starts = {
        "sqlite": engines.Sqlite,
        "duckdb": engines.Duck,
        "postgres": lambda: engines.Postgres(setup["postgres"]),
        "mysql": engines.Maria,
    }
    return {name: start() for name, start in starts.items() if name in setup["databases"]}


def run(statement: str, databases: dict[str, Any], before: set[str]) -> dict[str, Any]:
    """Return what a statement does on each database."""
    report = {}
    for name, database in databases.items():
        report[name] = outcome = database.run(statement)
        printed = standard_output()
        if TO_CLIENT.search(statement):
            # DuckDB is in the process of its client: what it prints is its answer.
            outcome["canaries"] += import_module("sql_databases").shown(printed.pop(1, ""))
        outcome["changes"] += file_changes(before) + [f"file {OUTPUTS[number]}" for number in printed]
    return report


def main() -> None:
    """Run the statements that arrive."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    jobs = channel.makefile("r", encoding="utf-8")

    def answer(row: dict[str, Any]) -> None:
        channel.sendall(json.dumps(row).encode() + b"\n")

    try:
        databases = start(json.loads(jobs.readline()))
    except Exception:
        answer({"problem": traceback.format_exc()[-2000:]})
        return
    collect_output()
    before = files()
    answer({"started": True})
    for line in jobs:
        job = json.loads(line)
        answer(run(job["statement"], databases, before) if "statement" in job else functions(databases))


if __name__ == "__main__":
    try:
        main()
    finally:
        # The servers end with the sandbox.
        os._exit(0)
