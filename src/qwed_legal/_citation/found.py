"""What the readers of the several systems hand on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Core:
    """One citation without its parties, pages and parentheses: `347 U.S. 483`."""

    kind: str
    end: int
    """Where the text goes on."""
    parts: Mapping[str, Any]
    issues: tuple[str, ...] = ()
    years: tuple[int, int] | None = None
    """The years in which it can have been decided, where they are known."""
    places: frozenset[str] | None = None
    """The courts that the reporter prints, as `us`, `us:ca`; None where that is not known."""
    rule: str = ""
    """The rule and its source."""
    steps: tuple[str, ...] = ()
    """How the years and numbers were looked up."""


@dataclass(kw_only=True)
class Draft:
    """A whole citation as it is being read."""

    end: int
    parts: dict[str, Any] = field(default_factory=dict)
    issues: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    cores: list[Core] = field(default_factory=list)
    today: date = date.max

    def wrong(self, issue: str) -> None:
        """Adds an issue once."""
        if issue not in self.issues:
            self.issues.append(issue)
