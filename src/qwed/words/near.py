"""What somebody may have meant who wrote a name that is not known."""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

_LONGEST = 60
_MOST = 1_000
_AT_LEAST = 0.7
_BLANK = str.maketrans(" -", "__")


def near(given: object, known: Iterable[str]) -> tuple[str, ...]:
    """At most three of the known names, the nearest first: those that end with what was given, then those like it."""
    # A name with a digit in it is seldom misspelt: another year or version is another one.
    if not isinstance(given, str) or len(given) > _LONGEST or any(letter.isdigit() for letter in given):
        return ()
    sought, names = _folded(given), {_folded(name): name for name in islice(known, _MOST)}
    ending = [name for name in names if len(sought) > 2 and name.endswith(f"_{sought}")]
    like = get_close_matches(sought, names, n=3, cutoff=_AT_LEAST)
    return tuple(names[name] for name in dict.fromkeys([*ending[:3], *like]))[:3]


def perhaps(given: object, known: Iterable[str]) -> str:
    """`did you mean ...? ` to stand before what is known; nothing where no name is near."""
    found = near(given, known)
    return f"did you mean {' or '.join(f'`{name}`' for name in found)}? " if found else ""


def _folded(name: str) -> str:
    return name.strip().casefold().translate(_BLANK)
