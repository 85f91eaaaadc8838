"""Numbered SQL files, applied in order, each in one transaction; `user_version` says how far a database is."""

import sqlite3
from importlib import resources


class NewerDatabase(RuntimeError):
    """The database was written by a later version, which may mean things by it that we do not know."""


def migrations() -> list[tuple[int, str]]:
    """Every migration as (number, script), in order."""
    folder = resources.files("qwed.store") / "migrations"
    found = [(int(file.name[:4]), file.read_text()) for file in folder.iterdir() if file.name.endswith(".sql")]
    return sorted(found)


def migrate(connection: sqlite3.Connection, upto: int | None = None) -> int:
    """Bring the database to the newest version (or `upto`) and return it. A newer one than ours is refused."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    known = migrations()
    if version > known[-1][0]:
        raise NewerDatabase(
            f"the database is at version {version}, newer than this qwed ({known[-1][0]}): upgrade qwed"
        )
    for number, script in known:
        if version < number <= (upto or number):
            connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {number};\nCOMMIT;")
            version = number
    return version
