"""Safe display of untrusted text: nothing invisible, no secrets, and a limited length."""

import json
import re
from collections.abc import Iterable
from itertools import accumulate, takewhile

from qwed.guards._prompt_injection.confusables import mixed_script_words
from qwed.guards._prompt_injection.invisible import escape_invisible
from qwed.guards.secrets import mask

MAX_READ = 64 << 10
MAX_TEXT = 180
MAX_TEXTS = 4
MAX_NAME = 128
_PLAIN = re.compile(r"[A-Za-z0-9_$.:-]{1,40}")


def visible_name(name: str) -> str:
    """Return the name in ASCII escapes, so that no letter looks like another."""
    return _truncate(ascii(name)[1:-1], MAX_NAME)


def plain_name(name: str) -> str:
    """Return the name if it is a plain identifier, otherwise `...`: a name that is a sentence is not repeated to a
    model."""
    return name if _PLAIN.fullmatch(name) else "..."


def visible(text: str, most: int = MAX_TEXT) -> str:
    """Return the text with invisible characters escaped and secrets masked, truncated to `most` bytes."""
    escaped = escape_invisible(text[:MAX_READ])
    for word in mixed_script_words(escaped):
        escaped = escaped.replace(word, ascii(word)[1:-1])
    return _truncate(mask(escaped), most)


def visible_texts(texts: Iterable[str]) -> list[str]:
    """Return the first few texts, and a note with the number of the others."""
    all_texts = tuple(texts)
    more = len(all_texts) - MAX_TEXTS
    return [visible(text) for text in all_texts[:MAX_TEXTS]] + ([f"and {more} more"] if more > 0 else [])


def _truncate(text: str, most: int) -> str:
    """Return as much of the text as takes at most `most` bytes in JSON."""
    if _size(text[: most + 1]) <= most:
        return text
    sizes = accumulate(map(_size, text), initial=len(_ELLIPSIS))
    return text[: sum(1 for _ in takewhile(lambda size: size <= most, sizes)) - 1] + _ELLIPSIS


_ELLIPSIS = "..."


def _size(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "backslashreplace")) - 2
