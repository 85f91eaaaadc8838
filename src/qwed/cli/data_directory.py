"""Error handling of commands that open a data directory themselves."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def exit_on_open_error(directory: Path) -> Iterator[None]:
    """Exit with one line if the data directory cannot be opened or written."""
    # Imported here to keep `qwed --help` fast.
    from qwed.cli.output import fail
    from qwed.kernel.audit.integrity_check import LogDamagedError
    from qwed.ledger.keyring import KeyringError
    from qwed.ledger.subject_encryption import VaultError
    from qwed.settings import SettingsError
    from qwed.store.data_directory import DataDirectoryInUseError
    from qwed.store.migrate import NewerDatabaseError
    from qwed.store.protocol import DatabaseUnreachableError, StoreError

    try:
        yield
    except DatabaseUnreachableError as error:
        fail(error)
    except StoreError as error:
        fail(f"the database in {directory} {error}; free disk space, or restore the database from a backup")
    except (
        KeyringError,
        LogDamagedError,
        VaultError,
        SettingsError,
        DataDirectoryInUseError,
        NewerDatabaseError,
    ) as error:
        fail(error)
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        fail(f"{error.strerror or error}{where}")
