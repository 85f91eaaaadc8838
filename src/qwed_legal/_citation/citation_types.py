"""Parse results shared by the citation parsers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any


@dataclass(frozen=True, kw_only=True)
class CitationCore:
    """Citation without parties, pages and parentheses: `347 U.S. 483`."""

    kind: str
    end: int
    """Offset behind the core in the text."""
    parts: Mapping[str, Any]
    issues: tuple[str, ...] = ()
    years: tuple[int, int] | None = None
    """Years in which the case can have been decided, if known."""
    places: frozenset[str] | None = None
    """Jurisdictions that the reporter prints, as `us`, `us:ca`; None if unknown."""
    rule: str = ""
    """Citation rule with its source."""
    steps: tuple[str, ...] = ()
    """Lookup steps for the years and numbers."""


@dataclass(kw_only=True)
class CitationParse:
    """Parse of a whole citation in progress."""

    end: int
    parts: dict[str, Any] = field(default_factory=dict)
    issues: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    cores: list[CitationCore] = field(default_factory=list)
    today: date = date.max

    def add_issue(self, issue: str) -> None:
        """Add an issue once."""
        if issue not in self.issues:
            self.issues.append(issue)
