"""A term cut into words, and how far they have been read."""

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


class Words:
    """The words of a term and how far they have been read."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words
        self.at = 0

    @property
    def rest(self) -> tuple[str, ...]:
        return self.words[self.at :]

    def pick(self, table: Mapping[str, T]) -> T | None:
        """What the longest phrase of the table stands for that comes next; it is read then."""
        for many in range(min(6, len(self.rest)), 0, -1):
            found = table.get(" ".join(self.rest[:many]))
            if found is not None:
                self.at += many
                return found
        return None

    def skip(self, *words: str) -> bool:
        """Reads the words if they come next."""
        if self.rest[: len(words)] != words:
            return False
        self.at += len(words)
        return True


def tokens(text: str) -> tuple[str, ...]:
    plain = text.translate(_PLAIN).lower().strip().removesuffix(".").replace("(s)", "s")
    plain = _AT_ONCE.sub("", plain)
    plain = _STOP.sub("", _POSSESSIVE.sub("", _HYPHEN.sub(" ", plain)))
    return tuple(_TOKEN.findall(plain))
