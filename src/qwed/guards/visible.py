"""Somebody else's text as a person is shown it: nothing hidden, no secret, and short enough to be read."""

import json
import re
from collections.abc import Iterable
from itertools import accumulate, takewhile

from qwed.guards._instructions.folding import mixed_words
from qwed.guards._instructions.unseen import seen
from qwed.guards.secrets import mask

MAX_READ = 64 << 10
MAX_TEXT = 180
MAX_TEXTS = 4
MAX_NAME = 128
_PLAIN = re.compile(r"[A-Za-z0-9_$.:-]{1,40}")


def visible_name(name: str) -> str:
    """A name in letters that cannot be taken for others."""
    return _cut(ascii(name)[1:-1], MAX_NAME)


def plain_name(name: str) -> str:
    """A name for a sentence that a model may read: one that is a sentence itself is not repeated."""
    return name if _PLAIN.fullmatch(name) else "..."


def visible(text: str, most: int = MAX_TEXT) -> str:
    """A text in which everything can be seen, secrets masked, cut where it gets long."""
    shown = seen(text[:MAX_READ])
    for word in mixed_words(shown):
        shown = shown.replace(word, ascii(word)[1:-1])
    return _cut(mask(shown), most)


def visible_texts(texts: Iterable[str]) -> list[str]:
    """The first few of many texts, and how many more there are."""
    every = tuple(texts)
    more = len(every) - MAX_TEXTS
    return [visible(text) for text in every[:MAX_TEXTS]] + ([f"and {more} more"] if more > 0 else [])


def _cut(text: str, most: int) -> str:
    """The text, or as much of it as takes no more than that many bytes in JSON."""
    if _size(text[: most + 1]) <= most:
        return text
    sizes = accumulate(map(_size, text), initial=len(_GOES_ON))
    return text[: sum(1 for _ in takewhile(lambda size: size <= most, sizes)) - 1] + _GOES_ON


_GOES_ON = "..."


def _size(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "backslashreplace")) - 2
