"""VerificationCache: verification results by query and context, in a file that outlives the process."""

import hashlib
import math
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from os import PathLike
from types import TracebackType
from typing import Any, Final, Self

from qwed_sdk.cache import directory, stats, table
from qwed_sdk.cache.cache_errors import CacheError
from qwed_sdk.cache.context import CacheContext
from qwed_sdk.cache.normalize import exact_form, normalize_query
from qwed_sdk.cache.serialize import decode_result, encode_result
from qwed_sdk.cache.sqlite_file import CacheFile

MAX_ENTRIES: Final = 1000
"""Largest number of entries in a cache."""
TTL: Final = 86_400
"""Lifetime of an entry, in seconds."""
MAX_QUERY_CHARS: Final = 1_048_576
"""Largest number of characters in a query."""


class VerificationCache:
    """Cache of verification results by query and context, in a SQLite file."""

    MAX_ENTRIES = MAX_ENTRIES

    def __init__(
        self,
        cache_dir: str | PathLike[str] | None = None,
        ttl: float = TTL,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Open the cache.

        Args:
            cache_dir: Directory of the file; `~/.qwed/cache` by default.
            ttl: Seconds that an entry lives.
            clock: Function that returns the current time in seconds.

        Raises:
            CacheError: The directory belongs to another user, or cannot be written.
        """
        self.ttl = _parse_ttl(ttl)
        self.cache_dir = directory.cache_directory(cache_dir)
        self._clock = clock
        self._file = CacheFile(self.cache_dir)
        # A damaged file is reported on writing; a lookup is a miss.
        with suppress(CacheError), self._file.reading():
            pass

    def get(self, query: str, context: CacheContext, *, normalize: bool = True) -> dict[str, Any] | None:
        """Return the stored result for a query in a context, or None.

        A problem with the file is a miss.

        Args:
            query: The query.
            context: Context in which the result was stored.
            normalize: Whether capitals and spaces of prose are normalised.

        Returns:
            A new dict, or None.

        Raises:
            TypeError: The query is not a string, or the context is not a CacheContext.
        """
        _require_context(context)
        key = _cache_key(query, normalize=normalize)
        result = self._find(key, context) if key is not None else None
        self._file.count(result is not None)
        return result

    def set(self, query: str, result: Mapping[str, Any], context: CacheContext, *, normalize: bool = True) -> None:
        """Store a result.

        Args:
            query: The query.
            result: Mapping of JSON values, at most 256 KiB.
            context: Context that the result depends on.
            normalize: As for `get`.

        Raises:
            TypeError: The result contains a value that is not JSON.
            ValueError: The result or the query is too large, or a number is not finite.
            CacheError: The file cannot be written.
        """
        _require_context(context)
        key = _cache_key(query, normalize=normalize)
        if key is None:
            raise ValueError(f"the query has {len(query)} characters; at most {MAX_QUERY_CHARS} are allowed")
        text = encode_result(result)
        with self._file.writing() as connection:
            table.store_entry(connection, key, context, text, self._clock(), self.MAX_ENTRIES)

    def clear(self) -> None:
        """Remove every entry and every count; a damaged file is replaced.

        Raises:
            CacheError: The file cannot be written.
        """
        try:
            with self._file.writing() as connection:
                self._file.forget_counts()
                table.delete_all(connection)
        except CacheError as error:
            if not error.damaged:
                raise
            self._file.recreate()
        with suppress(CacheError), self._file.reading() as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def get_stats(self) -> stats.CacheStats:
        """Return the counts of all processes that use this cache.

        Returns:
            The counts.

        Raises:
            CacheError: The file cannot be read.
        """
        with self._file.reading() as connection:
            hits, misses = self._file.counted(connection)
            entries = table.count_entries(connection)
        return stats.CacheStats(hits, misses, entries, directory.total_size(self._file.path))

    def print_stats(self) -> None:
        """Print the counts to standard output.

        Raises:
            CacheError: The file cannot be read.
        """
        sys.stdout.write(stats.format_stats(self.get_stats()))

    def close(self) -> None:
        """Close the file; the next use opens it again."""
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
                entry = table.find_entry(connection, key, context)
        except CacheError:
            return None
        if entry is None:
            return None
        result = decode_result(entry.result) if self._is_valid(entry, key, context) else None
        # A failure of either does not change the result.
        with suppress(CacheError), self._file.reading() as connection:
            (table.delete_entry if result is None else table.mark_used)(connection, entry)
        return result

    def _is_valid(self, entry: table.CacheEntry, key: str, context: CacheContext) -> bool:
        """Return True if the entry is intact, matches and is not expired; one from the future means that a clock was
        set back."""
        return entry.matches(key, context) and 0 <= self._clock() - entry.created_at < self.ttl


def _require_context(context: Any) -> None:
    if not isinstance(context, CacheContext):
        raise TypeError(f"the context is a {type(context).__name__}: give a CacheContext")


def _parse_ttl(ttl: Any) -> float:
    if isinstance(ttl, bool) or not isinstance(ttl, int | float):
        raise TypeError(f"`ttl` is a {type(ttl).__name__}: give a number of seconds")
    if not math.isfinite(ttl) or ttl < 0:
        raise ValueError(f"`ttl` is `{ttl}`: give a number of seconds, 0 or more")
    return ttl


def _cache_key(query: Any, *, normalize: bool) -> str | None:
    """Return the key of the query, or None if the query is too long to be stored."""
    if not isinstance(query, str):
        raise TypeError(f"the query is a {type(query).__name__}: give a string")
    if len(query) > MAX_QUERY_CHARS:
        return None
    form = normalize_query(query) if normalize else exact_form(query)
    return hashlib.sha256(form.encode("utf-8", "surrogatepass")).hexdigest()
