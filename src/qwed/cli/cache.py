"""`qwed cache`: what the verification cache of this machine holds, and how to empty it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qwed.cli.options import AsJson, directory, group
from qwed.cli.printing import WRONG, print_json, say, shown, sorry

if TYPE_CHECKING:
    from qwed_sdk.cache import VerificationCache

CacheDir = Annotated[
    Path | None,
    typer.Option(
        "--cache-dir", parser=directory, metavar="DIR", help="the directory of the cache (default ~/.qwed/cache)"
    ),
]

_LONGEST_ANSWER = 80


def add_to(app: typer.Typer) -> None:
    """Add the command and its verbs."""
    verbs = group("The verification cache.")
    verbs.command("stats", help="Show how often the cache answered, and what it holds.")(_stats)
    verbs.command("clear", help="Remove every entry and count from nothing; a damaged file is replaced.")(_clear)
    app.add_typer(verbs, name="cache", short_help="Show or clear the verification cache.")


def _stats(cache_dir: CacheDir = None, as_json: AsJson = False) -> int:
    from qwed_sdk.cache.stats import rows

    with _opened(cache_dir) as cache:
        counts = cache.get_stats()
    if as_json:
        print_json({**vars(counts), "hit_rate": counts.hit_rate, "cache_dir": str(cache.cache_dir)})
        return 0
    say(cache.cache_dir)
    for name, value in rows(counts):
        say(f"  {name:<9} {value}")
    return 0


def _clear(
    cache_dir: CacheDir = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="do not ask first")] = False,
    as_json: AsJson = False,
) -> int:
    with _opened(cache_dir) as cache:
        if not yes and not _is_meant(cache.cache_dir):
            say("nothing was removed", err=True)
            return WRONG
        cache.clear()
    if as_json:
        print_json({"cleared": True, "cache_dir": str(cache.cache_dir)})
    else:
        say(f"cleared {cache.cache_dir}")
    return 0


def _is_meant(directory: Path) -> bool:
    """What the person says; silence is no."""
    if sys.stdin is None:
        sorry("nobody is there to be asked: add --yes")
    # Stdout is for what was asked for: a program may be reading it.
    sys.stderr.write(f"remove every entry of {shown(directory)}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline(_LONGEST_ANSWER).strip().lower() in ("y", "yes")


@contextmanager
def _opened(cache_dir: Path | None) -> "Iterator[VerificationCache]":
    """The cache; 2 with one sentence where it cannot be used, or where a mistyped directory would be made."""
    from qwed_sdk.cache import CacheError, VerificationCache
    from qwed_sdk.cache.place import directory_of

    try:
        if cache_dir is not None and not directory_of(cache_dir).is_dir():
            sorry(f"`{cache_dir}` is not a directory: nothing is cached there")
        with VerificationCache(cache_dir) as cache:
            yield cache
    except CacheError as error:
        sorry(error)
