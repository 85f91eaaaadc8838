"""`qwed cache`: what the verification cache of this machine holds, and how to empty it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qwed.cli.options import AsJson, directory, group
from qwed.cli.printing import WRONG, answer_to, print_json, say, sorry

if TYPE_CHECKING:
    from qwed_sdk.cache import VerificationCache

CacheDir = Annotated[
    Path | None,
    typer.Option(
        "--cache-dir", parser=directory, metavar="DIR", help="the directory of the cache (default ~/.qwed/cache)"
    ),
]


def add_to(app: typer.Typer) -> None:
    """Add the command and its verbs."""
    verbs = group("The verification cache.")
    verbs.command("stats", help="Show how often the cache answered, and what it holds.")(_stats)
    verbs.command("clear", help="Remove every entry and count from nothing; a damaged file is replaced.")(_clear)
    app.add_typer(verbs, name="cache", short_help="Show or clear the verification cache.")


def _stats(cache_dir: CacheDir = None, as_json: AsJson = False) -> int:
    from qwed_sdk.cache.stats import CacheStats, rows

    with _opened(cache_dir, looks=True) as (where, cache):
        counts = CacheStats(0, 0, 0, 0) if cache is None else cache.get_stats()
    if as_json:
        print_json({**vars(counts), "hit_rate": counts.hit_rate, "cache_dir": str(where)})
        return 0
    say(where)
    for name, value in rows(counts):
        say(f"  {name:<9} {value}")
    return 0


def _clear(
    cache_dir: CacheDir = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="do not ask first")] = False,
    as_json: AsJson = False,
) -> int:
    with _opened(cache_dir) as (where, cache):
        if not yes and not _is_meant(where):
            say("nothing was removed", err=True)
            return WRONG
        if cache is not None:
            cache.clear()
    if as_json:
        print_json({"cleared": True, "cache_dir": str(where)})
    else:
        say(f"cleared {where}")
    return 0


def _is_meant(directory: Path) -> bool:
    """What the person says; silence is no."""
    if sys.stdin is None:
        sorry("nobody is there to be asked: add --yes")
    return answer_to(f"remove every entry of {directory}? [y/N] ") in ("y", "yes")


@contextmanager
def _opened(cache_dir: Path | None, *, looks: bool = False) -> "Iterator[tuple[Path, VerificationCache | None]]":
    """The directory and its cache; None where there is none, and for one who only `looks` none is made.

    2 with one sentence where it cannot be used.
    """
    from qwed_sdk.cache import CacheError, VerificationCache
    from qwed_sdk.cache.place import FILE_NAME, directory_of

    try:
        where = directory_of(cache_dir)
        if cache_dir is not None and not where.is_dir():
            sorry(f"`{cache_dir}` is not a directory: nothing is cached there")
        if not os.path.lexists(where / FILE_NAME if looks else where):
            yield where, None
            return
        with VerificationCache(where) as cache:
            yield where, cache
    except CacheError as error:
        sorry(error)
