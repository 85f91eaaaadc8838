"""Which store a process works on: a data directory that it owns, or a PostgreSQL that it shares."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from qwed.ledger.sequencer import Sequencer
from qwed.ledger.vault import MASTER_FILE, VaultError
from qwed.settings import Settings, SettingsError
from qwed.store.place import FILE_NAME
from qwed.store.protocol import Store
from qwed.store.sqlite import MEMORY, SqliteStore
from qwed.words.clock import Clock

_EXTRA = "qwed[postgres]"
_ANEW = "to begin anew, name an empty --data-dir"


def open_store(settings: Settings, clock: Clock, sequencer: Sequencer, *, in_memory: bool) -> Store:
    """The store that the settings name; SettingsError where what it needs is not installed."""
    kept_to = {
        "max_steps": settings.max_steps,
        "lease_seconds": settings.step_lease_seconds,
        "max_open_approvals": settings.max_open_approvals,
    }
    if in_memory or not settings.database_url:
        place = MEMORY if in_memory else settings.directory
        return SqliteStore(place, clock=clock, sequencer=sequencer, **kept_to)
    with _driver():
        from qwed.store.postgres.store import PostgresStore
    return PostgresStore(settings.database_url, clock=clock, sequencer=sequencer, **kept_to)


@contextmanager
def starting(settings: Settings, *, in_memory: bool) -> Iterator[None]:
    """Of all who start on one database, one after the other: the first makes the keys and the first organisation."""
    if in_memory or not settings.database_url:
        if not in_memory:
            _require_own_file(settings.directory)
        yield
        return
    with _driver():
        from qwed.store.postgres.locks import starting_alone
        from qwed.store.postgres.schema import is_begun
    with starting_alone(settings.database_url) as connection:
        if _has_keys(settings.directory) and not is_begun(connection):
            raise VaultError(
                f"the database is empty, and {settings.directory} has the keys of another: see that QWED_DATABASE_URL "
                f"names the right one, restore it from a backup, or fill it with `qwed copy`; {_ANEW}"
            )
        yield


def _has_keys(directory: Path) -> bool:
    """Whether a server has started with this directory. It is the last key that a first start makes: see `is_begun`."""
    return (directory / MASTER_FILE).exists()


def _require_own_file(directory: Path) -> None:
    """VaultError where the keys are there without the file, which is made before them."""
    file = directory / FILE_NAME
    if _has_keys(directory) and not (file.exists() and file.stat().st_size):
        raise VaultError(
            f"{directory} has keys, and the database they are of is gone: restore {file} from a backup, or name the "
            f"PostgreSQL that it was copied to with QWED_DATABASE_URL; {_ANEW}"
        )


@contextmanager
def _driver() -> Iterator[None]:
    try:
        yield
    except ImportError as missing:
        if _EXTRA not in str(missing):
            raise
        raise SettingsError(f"QWED_DATABASE_URL: {missing}, or leave it out to use the data directory") from None
