"""A data directory brought to the newest version without a server."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from qwed.store.log import Sequencer, integrate_backlog
from qwed.store.migrate import migrate, migrations, require_known
from qwed.store.place import FILE_NAME, LOCK_NAME, Telling, connect, own


def bring_up(directory: Path, sequencer: Callable[[], Sequencer]) -> tuple[int, int]:
    """The version it was at, and the one it is at now; one that is at the newest is only looked at.

    DataDirectoryInUse where a server runs on it, NewerDatabase where it is newer than we are.
    """
    known = migrations()
    with Telling("could not be brought up"):
        version = _version_of(directory / FILE_NAME)
        require_known(version, known)
        if version == known[-1][0]:
            return version, version
        handle = own(directory / LOCK_NAME)
        try:
            with closing(connect(str(directory / FILE_NAME))) as connection:
                reached = migrate(connection)
                integrate_backlog(connection, sequencer())
        finally:
            os.close(handle)
    return version, reached


def _version_of(file: Path) -> int:
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])
