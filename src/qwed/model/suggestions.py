""" "Did you mean" suggestions for unknown names."""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

_LONGEST = 60
_MOST = 1_000
_AT_LEAST = 0.7
_BLANK = str.maketrans(" -", "__")


def closest_names(text: object, candidates: Iterable[str]) -> tuple[str, ...]:
    """Return at most three known names, closest first: those that end with the given text, then similar ones."""
    # A name with a digit is rarely a typo: another year or version is another thing.
    if not isinstance(text, str) or len(text) > _LONGEST or any(letter.isdigit() for letter in text):
        return ()
    folded, by_folded = _folded(text), {_folded(candidate): candidate for candidate in islice(candidates, _MOST)}
    ending = [candidate for candidate in by_folded if len(folded) > 2 and candidate.endswith(f"_{folded}")]
    like = get_close_matches(folded, by_folded, n=3, cutoff=_AT_LEAST)
    return tuple(by_folded[candidate] for candidate in dict.fromkeys([*ending[:3], *like]))[:3]


def did_you_mean(text: object, candidates: Iterable[str]) -> str:
    """Return `did you mean ...? ` to put before a list of known names, or an empty string."""
    closest = closest_names(text, candidates)
    return f"did you mean {' or '.join(f'`{name}`' for name in closest)}? " if closest else ""


def _folded(name: str) -> str:
    return name.strip().casefold().translate(_BLANK)
