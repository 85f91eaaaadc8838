"""The database in PostgreSQL, where one is named: whether it answers, what it holds, whether it forgets."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from qwed.cli.doctor.directory import missing_secrets
from qwed.cli.doctor.finding import Finding, broken, fine, warning

if TYPE_CHECKING:
    from qwed.store.postgres.health import Health

_NAME = "database"
_MOST_NAMED = 3


def look_at_database(url: str, directory: Path) -> Iterator[Finding]:
    """Everything about it; nothing is written, and its address is not repeated."""
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
        yield broken(_NAME, str(error), "see that it runs, and that QWED_DATABASE_URL names it and who is let in")
        return
    yield from _judged(health)
    if health.filled:
        yield from missing_secrets(directory, {file.name for file in directory.glob("*.key")})


def _judged(health: "Health") -> Iterator[Finding]:
    used = "a server runs on it" if health.in_use else "no server runs on it"
    yield _version(health, used)
    if health.too_old:
        yield warning(_NAME, f"PostgreSQL {health.server} is older than those qwed was tried with", "use 15 or later")
    if health.only_read:
        yield broken(_NAME, "it is only read from, as a standby is", "name the one that is written to")
    if health.unsafe:
        names = ", ".join(health.unsafe)
        yield broken(_NAME, f"{names} is off: a decision that was given can be lost", "set it to `on` in PostgreSQL")
    if health.altered:
        names = ", ".join(health.altered[:_MOST_NAMED])
        more = f" and {len(health.altered) - _MOST_NAMED} more" if len(health.altered) > _MOST_NAMED else ""
        yield broken(_NAME, f"not as this qwed makes it: {names}{more}", "find out who changed it, and restore it")
    if health.strays:
        yield warning(
            _NAME, "this month has no table of its own yet", "a server makes it when it starts, and every day"
        )


def _version(health: "Health", used: str) -> Finding:
    there = f"PostgreSQL {health.server}"
    if health.version == 0:
        return fine(_NAME, f"{there}, empty: the first `qwed serve` on it, or `qwed migrate`, makes its tables")
    if health.version > health.newest:
        return broken(_NAME, f"{there}, at version {health.version}, newer than this qwed", "upgrade qwed")
    if health.version < health.newest:
        return warning(_NAME, f"{there}, at version {health.version} of {health.newest}, {used}", "run `qwed migrate`")
    return fine(_NAME, f"{there}, at version {health.version}, {used}")
