"""Which store a process works on: a data directory that it owns, or a PostgreSQL that it shares."""

from collections.abc import Iterator
from contextlib import contextmanager

from qwed.ledger.sequencer import Sequencer
from qwed.settings import Settings, SettingsError
from qwed.store.protocol import Store
from qwed.store.sqlite import MEMORY, SqliteStore
from qwed.words.clock import Clock

_EXTRA = "qwed[postgres]"


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
        yield
        return
    with _driver():
        from qwed.store.postgres.locks import starting_alone
    with starting_alone(settings.database_url):
        yield


@contextmanager
def _driver() -> Iterator[None]:
    try:
        yield
    except ImportError as missing:
        if _EXTRA not in str(missing):
            raise
        raise SettingsError(f"QWED_DATABASE_URL: {missing}, or leave it out to use the data directory") from None
