"""Worker inside the sandbox of the SQL oracle: runs each statement on four databases.

It reads statements as JSON lines and writes a JSON line for each.
"""

import glob
import json
import os
import resource
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from typing import Any

WORK = "/home/dev/files"


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
    """Return which files were written or removed; remove the new ones, and note the removed ones in `before`."""
    after = files()
    written, missing = sorted(after - before), sorted(before - after)
    for path in written:
        with suppress(OSError):
            os.unlink(path)
    before -= set(missing)
    rows = (("file", written), ("removed", missing))
    return [f"{kind} {' '.join(paths)}"[:200] for kind, paths in rows if paths]


def main() -> None:
    """Run the statements of the input."""
    resource.setrlimit(resource.RLIMIT_NPROC, (500, 500))
    setup = json.loads(sys.stdin.readline())
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
    databases = {name: start() for name, start in starts.items() if name in setup["databases"]}
    print(json.dumps({"functions": functions(databases)}), flush=True)
    before = files()
    for line in sys.stdin:
        job = json.loads(line)
        report = {}
        for name, database in databases.items():
            report[name] = database.run(job["statement"])
            report[name]["changes"] += file_changes(before)
        print(json.dumps({"index": job["index"], "databases": report}), flush=True)


if __name__ == "__main__":
    try:
        main()
    except Exception:
        traceback.print_exc()
    # The servers end with the sandbox.
    sys.stderr.flush()
    os._exit(0)
