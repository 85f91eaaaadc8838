"""Checks of a domain pack that can be called from outside, by name and with named values.

Each pack has a module with a table `CHECKS`, one row per check. The pack's engine, the server, the client and the
command line read that table; a check without a row cannot be called over the wire.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from qwed.packs.result import Result


class PackCheck(NamedTuple):
    """One check of a domain pack."""

    name: str
    """Name in snake_case, such as `deadline` or `monthly_payment`."""
    says: str
    """One-line description for `--help` and the documentation."""
    ask: Callable[..., Result]
    """Function called with the values by name; returns a result for every JSON value and never raises."""
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    text: str | None = None
    """Name of the value that `query` may stand for."""

    @property
    def takes(self) -> tuple[str, ...]:
        """Names of all values it accepts."""
        return self.required + self.optional


def by_name(rows: Iterable[PackCheck]) -> dict[str, PackCheck]:
    """Index checks by name."""
    return {row.name: row for row in rows}
