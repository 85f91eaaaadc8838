"""Words for passwords, keys and "is" in many languages (data/languages.json)."""

import json
import re
from importlib.resources import files
from typing import NamedTuple

_PATH = files("qwed.guards._secrets") / "data" / "languages.json"


class _Languages(NamedTuple):
    password: tuple[str, ...]
    key: tuple[str, ...]
    copula: tuple[str, ...]


def _load() -> _Languages:
    table = json.loads(_PATH.read_text(encoding="utf-8"))
    if sorted(table) != ["is", "key", "password"]:
        raise ValueError(f"`languages.json` has the entries `{sorted(table)}`; it must have is, key and password")
    return _Languages(*(_words(table[name]) for name in ("password", "key", "is")))


def _words(by_language: dict[str, list[str]]) -> tuple[str, ...]:
    """Return the words of all languages, longer ones first, so that an alternation matches the longest."""
    words = {word for words in by_language.values() for word in words}
    return tuple(sorted(words, key=lambda word: (-len(word), word)))


LANGUAGES = _load()


def positions(words: tuple[str, ...], lowered: str) -> list[int]:
    """Return where one of the words stands, in order."""
    starts: list[int] = []
    for word in [word for word in words if word in lowered]:
        position = lowered.find(word)
        while position >= 0:
            starts.append(position)
            position = lowered.find(word, position + len(word))
    starts.sort()
    return starts


def alternation(words: tuple[str, ...]) -> str:
    """Return a pattern that matches any of the words."""
    return "|".join(map(re.escape, words))
