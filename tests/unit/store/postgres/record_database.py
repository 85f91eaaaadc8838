"""Records the rows of the newest version in PostgreSQL, for the migration tests of later versions.

Run `python -m tests.unit.store.postgres.record_database` before you add a migration: a history with rows in every table
is copied into a new database and written to `rows_NNNN.sql`, with its keys.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

import psycopg

from qwed.cli import main
from qwed.store.migrate import migrations
from qwed.store.postgres.schema import migrate
from tests.support.postgres_binaries import installation
from tests.support.postgres_server import Postgres
from tests.unit.cli.full_organisation import create_full_history
from tests.unit.store.record_database import KEYS

HERE = Path(__file__).parent
_DUMP = ("--data-only", "--inserts", "--disable-triggers", "--exclude-table=schema_versions", "--no-owner")


def record(url: str, data: Path, into: Path) -> None:
    """Record the rows of a database, and the keys in its data directory."""
    newest = migrations("postgres")[-1][0]
    done = subprocess.run([installation() / "bin" / "pg_dump", *_DUMP, url], capture_output=True, text=True, check=True)
    # Without the commands of psql.
    lines = [line for line in done.stdout.splitlines() if not line.startswith("\\")]
    into.joinpath(f"rows_{newest:04}.sql").write_text("\n".join(lines) + "\n")
    keys = into / f"keys_{newest:04}"
    keys.mkdir(exist_ok=True)
    for name in KEYS:
        shutil.copyfile(data / name, keys / name)


def lay_out(url: str, data: Path, version: int, recorded: Path = HERE) -> None:
    """Fill an empty database with the rows of that version, and write the keys of its servers."""
    script = (recorded / f"rows_{version:04}.sql").read_text()
    with psycopg.connect(url, autocommit=True) as connection:
        assert migrate(connection, upto=version) == version
        for (moment,) in _months(script, connection):
            connection.execute("SELECT make_month(%s)", (moment,))
        connection.execute("DELETE FROM meta")
        connection.execute(script.encode())
    data.mkdir(mode=0o700)
    for name in KEYS:
        shutil.copyfile(recorded / f"keys_{version:04}" / name, data / name)
        (data / name).chmod(0o600)


def _months(script: str, connection: "psycopg.Connection[tuple[float]]") -> list[tuple[float]]:
    """Return a time in each month that has rows."""
    statement = (
        "SELECT DISTINCT extract(epoch FROM to_date(month[1], 'YYYY_MM'))::float8 "
        "FROM regexp_matches(%s, 'activities_([0-9]{4}_[0-9]{2}) ', 'g') AS month"
    )
    return connection.execute(statement, (script,)).fetchall()


def write() -> None:
    """Record a history in the newest version."""
    with tempfile.TemporaryDirectory() as temporary, Postgres(durable=False) as server:
        data, url = create_full_history(Path(temporary)).data, server.database()
        assert main(["copy", "--from", f"sqlite:///{data}", "--to", url]) == 0
        record(url, data, HERE)


if __name__ == "__main__":
    write()
