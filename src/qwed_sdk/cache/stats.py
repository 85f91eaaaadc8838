"""How well a cache does."""

import importlib
import os
from dataclasses import dataclass


@dataclass(frozen=True)
class CacheStats:
    """The counts of every process that uses the cache, since it was last cleared."""

    hits: int
    misses: int
    total_entries: int
    cache_size_bytes: int

    @property
    def hit_rate(self) -> float:
        """The share of lookups that were answered, between 0 and 1; 0 where nothing was asked."""
        asked = self.hits + self.misses
        return self.hits / asked if asked else 0.0


def rows(stats: CacheStats) -> list[tuple[str, str]]:
    """The counts as people read them."""
    return [
        ("hits", f"{stats.hits:,}"),
        ("misses", f"{stats.misses:,}"),
        ("hit rate", f"{stats.hit_rate:.1%}"),
        ("entries", f"{stats.total_entries:,}"),
        ("size", f"{stats.cache_size_bytes:,} bytes"),
    ]


def summary(stats: CacheStats) -> str:
    """The counts in a few lines, in colours where colorama is installed and NO_COLOR is not set."""
    bright, plain = _colours()
    lines = [f"  {name:<9} {bright}{value}{plain}" for name, value in rows(stats)]
    return "\n".join(["Verification cache", *lines, ""])


def _colours() -> tuple[str, str]:
    if os.environ.get("NO_COLOR"):
        return "", ""
    try:
        colorama = importlib.import_module("colorama")
    except ImportError:
        return "", ""
    return colorama.Fore.CYAN, colorama.Style.RESET_ALL
