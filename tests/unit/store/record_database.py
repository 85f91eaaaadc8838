"""Records the rows of the newest version, for the migration tests of later versions.

Run `python -m tests.unit.store.record_database` before you add a migration: the newest recorded version is migrated by
the current code and written to `rows_NNNN.sql`, with its keys.
"""

import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from qwed.gate import open_gate
from qwed.store.data_directory import FILE_NAME
from qwed.store.migrate import migrate, migrations
from tests.support.manual_clock import NOON, ManualClock

HERE = Path(__file__).parent
KEYS = ("vault.key", "signing.key", "signing.jwks")


def rows_of(version: int, recorded: Path = HERE) -> str:
    """Return the recorded rows of a version, as statements."""
    return (recorded / f"rows_{version:04}.sql").read_text()


def lay_out(directory: Path, version: int, recorded: Path = HERE) -> None:
    """Create a data directory of that version."""
    directory.mkdir(mode=0o700)
    connection = sqlite3.connect(directory / FILE_NAME, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    assert migrate(connection, upto=version) == version
    # A migration leaves notes in `meta` for the next start; those of the recording are among the rows.
    connection.executescript(f"BEGIN;\nDELETE FROM meta;\n{rows_of(version, recorded)}\nCOMMIT;")
    connection.close()
    for name in KEYS:
        key = recorded / f"keys_{version:04}" / name
        if key.exists():
            shutil.copyfile(key, directory / name)
            (directory / name).chmod(0o600)


def record(directory: Path, into: Path) -> None:
    """Record the rows and the keys of a data directory."""
    newest = migrations()[-1][0]
    into.joinpath(f"rows_{newest:04}.sql").write_text("\n".join(_rows(directory)) + "\n")
    keys = into / f"keys_{newest:04}"
    keys.mkdir(exist_ok=True)
    for name in KEYS:
        shutil.copyfile(directory / name, keys / name)


def _rows(directory: Path) -> Iterator[str]:
    connection = sqlite3.connect(directory / FILE_NAME)
    try:
        for line in connection.iterdump():
            if line.startswith('INSERT INTO "') and not line.startswith('INSERT INTO "sqlite_'):
                yield line
    finally:
        connection.close()


def main() -> None:
    """Migrate the newest recorded version and record the result."""
    earlier = max(int(file.stem[5:]) for file in HERE.glob("rows_*.sql"))
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary) / "data"
        lay_out(directory, earlier)
        open_gate(directory, clock=ManualClock(NOON).clock()).close()
        record(directory, HERE)
    sys.stdout.write(f"version {earlier} was migrated and recorded as version {migrations()[-1][0]}\n")


if __name__ == "__main__":
    main()
