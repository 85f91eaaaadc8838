"""Keeps the rows of the version that is newest now in PostgreSQL, for the tests of the versions that follow it.

`python -m tests.unit.store.postgres.recording`, before a migration is added: a past with rows in every table is copied
into a database of today and kept as `rows_NNNN.sql`, with the keys it is sealed and signed with.
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
from tests.unit.cli.full_house import full_house
from tests.unit.store.recording import KEYS

HERE = Path(__file__).parent
_DUMP = ("--data-only", "--inserts", "--disable-triggers", "--exclude-table=schema_versions", "--no-owner")


def record(url: str, data: Path, into: Path) -> None:
    """Keep the rows of a database, and the keys in its data directory."""
    newest = migrations("postgres")[-1][0]
    done = subprocess.run([installation() / "bin" / "pg_dump", *_DUMP, url], capture_output=True, text=True, check=True)
    # What psql alone understands is left out.
    lines = [line for line in done.stdout.splitlines() if not line.startswith("\\")]
    into.joinpath(f"rows_{newest:04}.sql").write_text("\n".join(lines) + "\n")
    keys = into / f"keys_{newest:04}"
    keys.mkdir(exist_ok=True)
    for name in KEYS:
        shutil.copyfile(data / name, keys / name)


def lay_out(url: str, data: Path, version: int, kept: Path = HERE) -> None:
    """An empty database as that version left it, and the keys of its servers."""
    script = (kept / f"rows_{version:04}.sql").read_text()
    with psycopg.connect(url, autocommit=True) as connection:
        assert migrate(connection, upto=version) == version
        for (moment,) in _months(script, connection):
            connection.execute("SELECT make_month(%s)", (moment,))
        connection.execute("DELETE FROM meta")
        connection.execute(script.encode())
    data.mkdir(mode=0o700)
    for name in KEYS:
        shutil.copyfile(kept / f"keys_{version:04}" / name, data / name)
        (data / name).chmod(0o600)


def _months(script: str, connection: "psycopg.Connection[tuple[float]]") -> list[tuple[float]]:
    """A moment of each month that has rows."""
    asked = (
        "SELECT DISTINCT extract(epoch FROM to_date(month[1], 'YYYY_MM'))::float8 "
        "FROM regexp_matches(%s, 'activities_([0-9]{4}_[0-9]{2}) ', 'g') AS month"
    )
    return connection.execute(asked, (script,)).fetchall()


def write() -> None:
    """Keep how a past looks in the newest version."""
    with tempfile.TemporaryDirectory() as place, Postgres(durable=False) as server:
        data, url = full_house(Path(place)).data, server.database()
        assert main(["copy", "--from", f"sqlite:///{data}", "--to", url]) == 0
        record(url, data, HERE)


if __name__ == "__main__":
    write()
