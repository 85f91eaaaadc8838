"""Checks of the PostgreSQL database: reachability, schema version, durability settings."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from qwed.cli.doctor.check_result import DoctorCheck, broken, fine, warning
from qwed.cli.doctor.directory import check_missing_secrets

if TYPE_CHECKING:
    from qwed.store.postgres.health import DatabaseHealth

_NAME = "database"
_MAX_NAMED = 3


def check_database(url: str, directory: Path) -> Iterator[DoctorCheck]:
    """Check the database; nothing is written, and its URL is not printed."""
    if not url:
        return
    from qwed.store.protocol import StoreError

    try:
        from qwed.store.postgres.health import health_of

        health = health_of(url)
    except ImportError as error:
        yield broken(_NAME, str(error).partition(":")[0], "run `pip install 'qwed[postgres]'`")
        return
    except StoreError as error:
        yield broken(
            _NAME, str(error), "check that PostgreSQL runs and that the address and user in QWED_DATABASE_URL are right"
        )
        return
    yield from _check_health(health)
    if health.has_data:
        yield from check_missing_secrets(directory, {file.name for file in directory.glob("*.key")})


def _check_health(health: "DatabaseHealth") -> Iterator[DoctorCheck]:
    used = "a server runs on it" if health.in_use else "no server runs on it"
    yield _check_version(health, used)
    if health.too_old:
        yield warning(
            _NAME, f"PostgreSQL {health.server} is older than the versions qwed is tested with", "use 15 or later"
        )
    if health.is_read_only:
        yield broken(_NAME, "it is read-only, as a standby is", "set QWED_DATABASE_URL to the primary")
    if health.unsafe_settings:
        names = ", ".join(health.unsafe_settings)
        yield broken(_NAME, f"{names} is off: a committed decision can be lost", "set it to `on` in PostgreSQL")
    if health.schema_drift:
        names = ", ".join(health.schema_drift[:_MAX_NAMED])
        more = f" and {len(health.schema_drift) - _MAX_NAMED} more" if len(health.schema_drift) > _MAX_NAMED else ""
        yield broken(
            _NAME,
            f"the schema differs from this version of qwed: {names}{more}",
            "find out what changed it, and restore it",
        )
    if health.lacks_partition:
        yield warning(
            _NAME,
            "the partition of this month is missing",
            "start a server: it creates partitions at start and every day",
        )


def _check_version(health: "DatabaseHealth", used: str) -> DoctorCheck:
    server = f"PostgreSQL {health.server}"
    if health.version == 0:
        return fine(_NAME, f"{server}, empty: `qwed serve` or `qwed migrate` creates the tables")
    if health.version > health.newest:
        return broken(_NAME, f"{server}, at version {health.version}, newer than this qwed", "upgrade qwed")
    if health.version < health.newest:
        return warning(_NAME, f"{server}, at version {health.version} of {health.newest}, {used}", "run `qwed migrate`")
    return fine(_NAME, f"{server}, at version {health.version}, {used}")
