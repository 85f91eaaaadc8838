"""Writes the rows of the version that is newest now, for the tests of the versions that follow it.

`python -m tests.unit.store.recording`, before a migration is added: what the version before left is brought up by
today's code, and kept as `rows_NNNN.sql` with the keys it is sealed and signed with.
"""

import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from qwed.gate import open_gate
from qwed.store.migrate import migrate, migrations
from qwed.store.place import FILE_NAME
from tests.support.clock import NOON, HandClock

HERE = Path(__file__).parent
KEYS = ("vault.key", "signing.key", "signing.jwks")


def rows_of(version: int, kept: Path = HERE) -> str:
    """What that version's server wrote, as statements."""
    return (kept / f"rows_{version:04}.sql").read_text()


def lay_out(directory: Path, version: int, kept: Path = HERE) -> None:
    """A data directory as that version left it."""
    directory.mkdir(mode=0o700)
    connection = sqlite3.connect(directory / FILE_NAME, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    assert migrate(connection, upto=version) == version
    # A migration writes notes for the start that follows it; what was noted when this was kept is among the rows.
    connection.executescript(f"BEGIN;\nDELETE FROM meta;\n{rows_of(version, kept)}\nCOMMIT;")
    connection.close()
    for name in KEYS:
        key = kept / f"keys_{version:04}" / name
        if key.exists():
            shutil.copyfile(key, directory / name)
            (directory / name).chmod(0o600)


def record(directory: Path, into: Path) -> None:
    """Keep the rows and the keys of a data directory."""
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
    """Bring up what the newest recorded version left, and keep how it stands now."""
    earlier = max(int(file.stem[5:]) for file in HERE.glob("rows_*.sql"))
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place) / "data"
        lay_out(directory, earlier)
        open_gate(directory, clock=HandClock(NOON).clock()).close()
        record(directory, HERE)
    sys.stdout.write(f"version {earlier} was brought up and recorded as version {migrations()[-1][0]}\n")


if __name__ == "__main__":
    main()
