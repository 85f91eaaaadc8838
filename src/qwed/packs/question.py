"""How a pack is asked from outside: by the name of a check, with named values.

Each pack has a module `questions` with `QUESTIONS`, one row for each check. The engine of the pack, the server, the
client and the command line read that table; what is no row cannot be asked over the wire.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from qwed.packs.result import Result


class Question(NamedTuple):
    """One check of a pack."""

    name: str
    """What it is asked by, in snake_case: `deadline`, `monthly_payment`."""
    says: str
    """What it finds out, in one line, for `--help` and the documentation."""
    ask: Callable[..., Result]
    """Called with the values by name; answers for every JSON value and never raises."""
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    text: str | None = None
    """The value that `query` may stand for."""

    @property
    def takes(self) -> tuple[str, ...]:
        """Every value it may be given."""
        return self.required + self.optional


def by_name(rows: Iterable[Question]) -> dict[str, Question]:
    """The table of a pack."""
    return {row.name: row for row in rows}
