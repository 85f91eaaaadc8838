"""`qwed migrate`: the tables of a database, brought to what this version wants."""

from pathlib import Path
from typing import NamedTuple

import typer

from qwed.cli.options import AsJson, Database, DataDir, data_dir_of, database_of
from qwed.cli.printing import print_json, say, sorry

_HELP = """Bring the database to the version that this qwed wants, and say from which version to which.

A server does the same when it starts: this is for whoever wants it done before, or by a user
that may change tables where the server's may not. No server may run on the database where
there is something to do. A database that is newer than this qwed is refused.

Exit code: 0 it is at the newest version, 2 it could not be brought there."""


class Moved(NamedTuple):
    """From which version to which a database went."""

    begin: int
    end: int


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("migrate", help=_HELP, short_help="Bring the database to the newest version.")(_migrate)


def _migrate(data_dir: DataDir = None, database: Database = None, as_json: AsJson = False) -> int:
    url = database_of(database)
    moved = _in_postgres(url) if url else _in_directory(data_dir_of(data_dir))
    if as_json:
        print_json({"database": "postgresql" if url else "sqlite", "from": moved.begin, "to": moved.end})
    elif moved.begin == moved.end:
        say(f"the database is at version {moved.end}, the newest: there is nothing to do")
    else:
        say(f"the database was at version {moved.begin} and is at version {moved.end} now")
    return 0


def _in_postgres(url: str) -> Moved:
    from qwed.store.migrate import NewerDatabase
    from qwed.words.clock import Clock

    try:
        from qwed.store.postgres.bringing import InUse, bring_up
        from qwed.store.postgres.opening import Unreachable
    except ImportError as error:
        sorry(error)
    try:
        return Moved(*bring_up(url, Clock().now()))
    except (InUse, NewerDatabase, Unreachable) as error:
        sorry(error)


def _in_directory(directory: Path) -> Moved:
    from qwed.cli.opening import opening
    from qwed.ledger.keyring import open_keyring
    from qwed.ledger.sequencer import Sequencer
    from qwed.settings import settings_from
    from qwed.store.bringing import bring_up
    from qwed.store.place import FILE_NAME
    from qwed.words.clock import Clock

    if not (directory / FILE_NAME).is_file():
        sorry(f"there is no database in {directory}: --data-dir names the directory of a server")
    with opening(directory):
        key_file = settings_from(data_dir=directory).signing_key_file
        return Moved(*bring_up(directory, lambda: Sequencer(open_keyring(directory, key_file), Clock())))
