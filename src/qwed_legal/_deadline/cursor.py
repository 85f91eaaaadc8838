"""Tokenizer of terms, and the cursor that the parsers share."""

import re
from collections.abc import Mapping
from typing import TypeVar

_PLAIN = str.maketrans(
    {
        "\u2019": "'",
        "\u2018": "'",
        "\u2010": "-",
        "\u2011": "-",
        "\u2013": "-",
        "\u00a0": " ",
        "\u202f": " ",
        "&": " and ",
    }
)
_TOKEN = re.compile(
    r"[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]{1,9}(?:st|nd|rd|th)(?![a-z])|[0-9]+|[a-z]+|[^\s]", re.ASCII
)
_HYPHEN = re.compile(r"(?<=[a-z])-(?=[a-z0-9])|(?<=[0-9)])-(?=[a-z])", re.ASCII)
_POSSESSIVE = re.compile(r"(?<=[a-z])'s(?![a-z])|(?<=s)'(?![a-z])", re.ASCII)
_AT_ONCE = re.compile(r"\bimmediately (?=following|preceding|after|before|prior)", re.ASCII)
_STOP = re.compile(r"(?<=[a-z])\.(?=\s|$)", re.ASCII)

T = TypeVar("T")


class WordCursor:
    """Position in the words of a term."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words
        self.at = 0

    @property
    def rest(self) -> tuple[str, ...]:
        return self.words[self.at :]

    def pick(self, table: Mapping[str, T]) -> T | None:
        """Consume the longest phrase of the table that comes next and return its meaning, or None."""
        for length in range(min(6, len(self.rest)), 0, -1):
            meaning = table.get(" ".join(self.rest[:length]))
            if meaning is not None:
                self.at += length
                return meaning
        return None

    def skip(self, *words: str) -> bool:
        """Consume the words if they come next, and return whether they did."""
        if self.rest[: len(words)] != words:
            return False
        self.at += len(words)
        return True


def tokenize(text: str) -> tuple[str, ...]:
    plain = text.translate(_PLAIN).lower().strip().removesuffix(".").replace("(s)", "s")
    plain = _AT_ONCE.sub("", plain)
    plain = _STOP.sub("", _POSSESSIVE.sub("", _HYPHEN.sub(" ", plain)))
    return tuple(_TOKEN.findall(plain))
