"""Counts of a cache, and their text form."""

import importlib
import os
from dataclasses import dataclass


@dataclass(frozen=True)
class CacheStats:
    """Counts of all processes that use a cache, since it was last cleared."""

    hits: int
    """Lookups that found an entry."""
    misses: int
    """Lookups that did not."""
    total_entries: int
    """Stored entries, including expired ones that were not read since."""
    cache_size_bytes: int
    """Size of the file."""

    @property
    def hit_rate(self) -> float:
        """Share of lookups that were hits, from 0 to 1."""
        lookups = self.hits + self.misses
        return self.hits / lookups if lookups else 0.0


def stats_rows(stats: CacheStats) -> list[tuple[str, str]]:
    """Return the counts as pairs of label and text."""
    return [
        ("hits", f"{stats.hits:,}"),
        ("misses", f"{stats.misses:,}"),
        ("hit rate", f"{stats.hit_rate:.1%}"),
        ("entries", f"{stats.total_entries:,}"),
        ("size", f"{stats.cache_size_bytes:,} bytes"),
    ]


def format_stats(stats: CacheStats) -> str:
    """Return the counts as text, coloured if colorama is installed and NO_COLOR is not set."""
    bright, plain = _colours()
    lines = [f"  {name:<9} {bright}{value}{plain}" for name, value in stats_rows(stats)]
    return "\n".join(["Verification cache", *lines, ""])


def _colours() -> tuple[str, str]:
    if os.environ.get("NO_COLOR"):
        return "", ""
    try:
        colorama = importlib.import_module("colorama")
    except ImportError:
        return "", ""
    return colorama.Fore.CYAN, colorama.Style.RESET_ALL
