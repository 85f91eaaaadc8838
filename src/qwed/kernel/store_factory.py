"""Opens the store named by the settings: SQLite in the data directory, or a shared PostgreSQL."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from qwed.ledger.sequencer import Sequencer
from qwed.ledger.subject_encryption import MASTER_FILE, VaultError
from qwed.model.clock import Clock
from qwed.settings import Settings, SettingsError
from qwed.store.data_directory import FILE_NAME
from qwed.store.protocol import Store
from qwed.store.sqlite import MEMORY, SqliteStore

_EXTRA = "qwed[postgres]"
_START_OVER = "to start over, use an empty `--data-dir`"


def open_store(settings: Settings, clock: Clock, sequencer: Sequencer, *, in_memory: bool) -> Store:
    """Open the store named by the settings; raise SettingsError if its driver is not installed."""
    limits = {
        "max_steps": settings.max_steps,
        "lease_seconds": settings.step_lease_seconds,
        "max_open_approvals": settings.max_open_approvals,
    }
    if in_memory or not settings.database_url:
        location = MEMORY if in_memory else settings.directory
        return SqliteStore(location, clock=clock, sequencer=sequencer, **limits)
    with _postgres_driver():
        from qwed.store.postgres.store import PostgresStore
    return PostgresStore(settings.database_url, clock=clock, sequencer=sequencer, **limits)


@contextmanager
def startup_lock(settings: Settings, *, in_memory: bool) -> Iterator[None]:
    """Start one process at a time on a shared database: the first creates the keys and the first organisation."""
    if in_memory or not settings.database_url:
        if not in_memory:
            _require_own_file(settings.directory)
        yield
        return
    with _postgres_driver():
        from qwed.store.postgres.locks import exclusive_startup
        from qwed.store.postgres.schema import has_started
    with exclusive_startup(settings.database_url) as connection:
        if _has_keys(settings.directory) and not has_started(connection):
            raise VaultError(
                f"the database is empty, but {settings.directory} has the keys of another one: check "
                f"QWED_DATABASE_URL, restore the database from a backup, or fill it with `qwed copy`; {_START_OVER}"
            )
        yield


def _has_keys(directory: Path) -> bool:
    """Return True if a server has started with this directory; this is the last key that a first start creates (see
    `is_begun`)."""
    return (directory / MASTER_FILE).exists()


def _require_own_file(directory: Path) -> None:
    """Raise VaultError if the keys exist without the database file, which is created before them."""
    file = directory / FILE_NAME
    if _has_keys(directory) and not (file.exists() and file.stat().st_size):
        raise VaultError(
            f"{directory} has keys, but their database is missing: restore {file} from a backup, or set "
            f"QWED_DATABASE_URL to the PostgreSQL that it was copied to; {_START_OVER}"
        )


@contextmanager
def _postgres_driver() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        if _EXTRA not in str(error):
            raise
        raise SettingsError(f"QWED_DATABASE_URL: {error}, or unset it to use the data directory") from None
