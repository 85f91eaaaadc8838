"""`qwed cache`: show or clear the verification cache of this machine."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qwed.cli.options import AsJson, directory, group
from qwed.cli.output import EXIT_FAILED, echo, fail, print_json, prompt

if TYPE_CHECKING:
    from qwed_sdk.cache import VerificationCache

CacheDir = Annotated[
    Path | None,
    typer.Option("--cache-dir", parser=directory, metavar="DIR", help="cache directory (default ~/.qwed/cache)"),
]


def add_to(app: typer.Typer) -> None:
    """Add the command and its verbs."""
    verbs = group("Show or clear the verification cache.")
    verbs.command("stats", help="Show the number of hits, misses and entries.")(_stats)
    verbs.command("clear", help="Remove every entry and reset the counters; a damaged file is replaced.")(_clear)
    app.add_typer(verbs, name="cache", short_help="Show or clear the verification cache.")


def _stats(cache_dir: CacheDir = None, as_json: AsJson = False) -> int:
    from qwed_sdk.cache.stats import CacheStats, stats_rows

    with _open_cache(cache_dir, read_only=True) as (path, cache):
        counts = CacheStats(0, 0, 0, 0) if cache is None else cache.get_stats()
    if as_json:
        print_json({**vars(counts), "hit_rate": counts.hit_rate, "cache_dir": str(path)})
        return 0
    echo(path)
    for name, value in stats_rows(counts):
        echo(f"  {name:<9} {value}")
    return 0


def _clear(
    cache_dir: CacheDir = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="do not ask for confirmation")] = False,
    as_json: AsJson = False,
) -> int:
    with _open_cache(cache_dir) as (path, cache):
        if not yes and not _confirm_clear(path):
            echo("nothing was removed", err=True)
            return EXIT_FAILED
        if cache is not None:
            cache.clear()
    if as_json:
        print_json({"cleared": True, "cache_dir": str(path)})
    else:
        echo(f"cleared {path}")
    return 0


def _confirm_clear(directory: Path) -> bool:
    """Return True if the person answers yes."""
    if sys.stdin is None:
        fail("confirmation needs a terminal: add --yes")
    return prompt(f"remove every entry of {directory}? [y/N] ") in ("y", "yes")


@contextmanager
def _open_cache(
    cache_dir: Path | None, *, read_only: bool = False
) -> "Iterator[tuple[Path, VerificationCache | None]]":
    """Yield the directory and its cache; the cache is None if there is none, and `read_only` never creates one.

    Exits with one line if the cache cannot be used.
    """
    from qwed_sdk.cache import CacheError, VerificationCache
    from qwed_sdk.cache.directory import FILE_NAME, cache_directory

    try:
        path = cache_directory(cache_dir)
        if cache_dir is not None and not path.is_dir():
            fail(f"`{cache_dir}` is not a directory: nothing is cached there")
        if not os.path.lexists(path / FILE_NAME if read_only else path):
            yield path, None
            return
        with VerificationCache(path) as cache:
            yield path, cache
    except CacheError as error:
        fail(error)
