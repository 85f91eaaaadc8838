"""A PostgreSQL database of every earlier version is migrated and verifies.

`python -m tests.unit.store.postgres.record_database` records the rows of a version, before the next migration is added.
"""

from pathlib import Path

import psycopg
import pytest

from qwed.cli import main
from qwed.store.migrate import migrations
from qwed.store.postgres.schema import migrate, version_of
from qwed.store.postgres.schema_drift import schema_drift
from tests.support.postgres_server import Databases
from tests.unit.cli.full_organisation import create_full_history
from tests.unit.store.postgres.record_database import HERE, lay_out, record

NEWEST = migrations("postgres")[-1][0]
EARLIER = [number for number, _script in migrations("postgres")[:-1]]


def test_every_earlier_version_has_its_rows() -> None:
    assert [int(file.stem[5:]) for file in sorted(HERE.glob("rows_*.sql"))] == EARLIER


def test_the_numbers_of_the_migrations_leave_none_out() -> None:
    assert [*EARLIER, NEWEST] == [*range(1, NEWEST + 1)]


@pytest.mark.parametrize("version", [*EARLIER, "today"])
def test_what_was_there_is_brought_up_and_verifies(
    version: int | str, postgres: Databases, database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also the current version, so that its recording can be migrated later."""
    recorded = HERE
    if version == "today":
        url, data = postgres.database(), create_full_history(tmp_path).data
        assert main(["copy", "--from", f"sqlite:///{data}", "--to", url]) == 0
        record(url, data, tmp_path)
        postgres.drop(url)
        recorded = tmp_path
    lay_out(database, tmp_path / "keys", NEWEST if version == "today" else int(version), recorded)
    with psycopg.connect(database, autocommit=True) as connection:
        counted = "SELECT count(*), sum(size) FROM logs"
        before = connection.execute(counted).fetchone()
        assert migrate(connection) == version_of(connection) == NEWEST
        assert (schema_drift(connection), connection.execute(counted).fetchone()) == ([], before)
        assert before is not None
        assert before[1] > 100
    capsys.readouterr()
    assert main(["audit", "verify", "--data-dir", str(tmp_path / "keys"), "--database", database]) == 0
    assert capsys.readouterr().out.endswith("nothing is wrong\n")
