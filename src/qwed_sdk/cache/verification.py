"""The cache: results of verification by query and trust-bound context, in a file that survives the process."""

import hashlib
import math
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from os import PathLike
from types import TracebackType
from typing import Any, Final, Self

from qwed_sdk.cache import place, stats, table
from qwed_sdk.cache.context import CacheContext
from qwed_sdk.cache.errors import CacheError
from qwed_sdk.cache.file import CacheFile
from qwed_sdk.cache.normal import exact, normal
from qwed_sdk.cache.result import read, written

MAX_ENTRIES: Final = 1000
"""How many entries a cache keeps."""
TTL: Final = 86_400
"""How long an entry lives, in seconds."""
MAX_QUERY: Final = 1_048_576
"""Characters that a query may have."""


class VerificationCache:
    """Results kept by (query, context); whatever does not match exactly is a miss."""

    MAX_ENTRIES = MAX_ENTRIES

    def __init__(
        self,
        cache_dir: str | PathLike[str] | None = None,
        ttl: float = TTL,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Open the cache; CacheError where the directory is not ours, or cannot be written."""
        self.ttl = _lifetime(ttl)
        self.cache_dir = place.directory_of(cache_dir)
        self._clock = clock
        self._file = CacheFile(self.cache_dir)
        # A damaged file is told by whoever writes; reading it misses.
        with suppress(CacheError), self._file.reading():
            pass

    def get(self, query: str, context: CacheContext, *, normalize: bool = True) -> dict[str, Any] | None:
        """The result kept for this query in this context, or None; trouble with the file is a miss."""
        _require_context(context)
        key = _key(query, normalize=normalize)
        found = self._find(key, context) if key is not None else None
        self._file.count(found is not None)
        return found

    def set(self, query: str, result: Mapping[str, Any], context: CacheContext, *, normalize: bool = True) -> None:
        """Keep a result; TypeError or ValueError where it is none to keep, CacheError where the file takes nothing."""
        _require_context(context)
        key = _key(query, normalize=normalize)
        if key is None:
            raise ValueError(f"the query has {len(query)} characters, at most {MAX_QUERY} are taken")
        text = written(result)
        with self._file.writing() as connection:
            table.keep(connection, key, context, text, self._clock(), self.MAX_ENTRIES)

    def clear(self) -> None:
        """Remove every entry and count from nothing; a damaged file is replaced."""
        try:
            with self._file.writing() as connection:
                self._file.forget_counts()
                table.forget_all(connection)
        except CacheError as error:
            if not error.damaged:
                raise
            self._file.start_anew()
        with suppress(CacheError), self._file.reading() as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def get_stats(self) -> stats.CacheStats:
        """The counts of every process that uses this cache; CacheError where they cannot be read."""
        with self._file.reading() as connection:
            hits, misses = self._file.counted(connection)
            entries = table.entries(connection)
        return stats.CacheStats(hits, misses, entries, place.size(self._file.path))

    def print_stats(self) -> None:
        """Print the counts to stdout."""
        sys.stdout.write(stats.summary(self.get_stats()))

    def close(self) -> None:
        """Let go of the file; using the cache again opens it again."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _find(self, key: str, context: CacheContext) -> dict[str, Any] | None:
        try:
            with self._file.reading() as connection:
                entry = table.find(connection, key, context)
        except CacheError:
            return None
        if entry is None:
            return None
        found = read(entry.result) if self._holds(entry, key, context) else None
        # Neither of these changes the answer.
        with suppress(CacheError), self._file.reading() as connection:
            (table.forget if found is None else table.touch)(connection, entry)
        return found

    def _holds(self, entry: table.Entry, key: str, context: CacheContext) -> bool:
        """Whether the entry is whole, ours and young; one from the future tells of a clock that was set back."""
        return entry.is_of(key, context) and 0 <= self._clock() - entry.created_at < self.ttl


def _require_context(context: Any) -> None:
    if not isinstance(context, CacheContext):
        raise TypeError(f"the context is a {type(context).__name__}: give a CacheContext")


def _lifetime(ttl: Any) -> float:
    if isinstance(ttl, bool) or not isinstance(ttl, int | float):
        raise TypeError(f"`ttl` is a {type(ttl).__name__}: give a number of seconds")
    if not math.isfinite(ttl) or ttl < 0:
        raise ValueError(f"`ttl` is `{ttl}`: give a number of seconds, 0 or more")
    return ttl


def _key(query: Any, *, normalize: bool) -> str | None:
    """What the query is found by; None where it is longer than any that is kept."""
    if not isinstance(query, str):
        raise TypeError(f"the query is a {type(query).__name__}: give a string")
    if len(query) > MAX_QUERY:
        return None
    form = normal(query) if normalize else exact(query)
    return hashlib.sha256(form.encode("utf-8", "surrogatepass")).hexdigest()
