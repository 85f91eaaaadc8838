"""Numbered SQL files, applied in order, each in one transaction; `user_version` says how far a database is.

Those of PostgreSQL lie beside them and are applied by `postgres/schema.py`.
"""

import sqlite3
from importlib import resources
from typing import Literal

Kind = Literal["sqlite", "postgres"]


class NewerDatabase(RuntimeError):
    """The database was written by a later version, which may mean things by it that we do not know."""


def migrations(kind: Kind = "sqlite") -> list[tuple[int, str]]:
    """Every migration as (number, script), in order."""
    folder = resources.files("qwed.store") / "migrations" / kind
    found = [(int(file.name[:4]), file.read_text()) for file in folder.iterdir() if file.name.endswith(".sql")]
    return sorted(found)


def require_known(version: int, known: list[tuple[int, str]]) -> None:
    """NewerDatabase where the version is none that these migrations lead to."""
    if version > known[-1][0]:
        raise NewerDatabase(
            f"the database is at version {version}, newer than this qwed ({known[-1][0]}): upgrade qwed"
        )


def migrate(connection: sqlite3.Connection, upto: int | None = None) -> int:
    """Bring the database to the newest version (or `upto`) and return it. A newer one than ours is refused."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    known = migrations()
    require_known(version, known)
    for number, script in known:
        if version < number <= (upto or number):
            connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {number};\nCOMMIT;")
            version = number
    return version
