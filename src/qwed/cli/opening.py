"""A data directory that a command opens itself: whatever keeps it shut is one sentence."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def opening(directory: Path) -> Iterator[None]:
    """What keeps the directory from being opened, or written, ends the command."""
    # Imported here so that `qwed --help` answers at once.
    from qwed.cli.printing import sorry
    from qwed.kernel.proving.soundness import LogDamaged
    from qwed.ledger.keyring import KeyringError
    from qwed.ledger.vault import VaultError
    from qwed.settings import SettingsError
    from qwed.store.migrate import NewerDatabase
    from qwed.store.place import DataDirectoryInUse
    from qwed.store.protocol import StoreError, Unreachable

    try:
        yield
    except Unreachable as error:
        sorry(error)
    except StoreError as error:
        sorry(f"the database in {directory} {error}; make room where its disk is full, else restore it from a backup")
    except (KeyringError, LogDamaged, VaultError, SettingsError, DataDirectoryInUse, NewerDatabase) as error:
        sorry(error)
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        sorry(f"{error.strerror or error}{where}")
