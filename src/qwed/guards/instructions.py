"""What no honest description holds: text that nobody sees, and instructions to the model that reads it.

Every string is read in every way a model could read it; the reasons name the place and never repeat the text, since
they may end up before the model that was not to read it.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from qwed.guards._instructions.blobs import decoded, spelt_apart, squeezed, turned
from qwed.guards._instructions.folding import mixed_words, plain_letters, without_digits_for_letters
from qwed.guards._instructions.keeping import commands_about_files
from qwed.guards._instructions.patterns import IN_OTHER_SCRIPTS, PATTERNS
from qwed.guards._instructions.unseen import smuggled, unseen_in, without_unseen
from qwed.guards.spellings import plainer
from qwed.words.normal import normalize

_AROUND = 60
_SPACE = re.compile(r"\s+")
_JOINED = re.compile(r"(?<=[a-z])[_-](?=[a-z])")
"""A name is read as words too."""
Place = Callable[[str], str]
"""Where the string at this path stands, in words."""


class Finding(NamedTuple):
    """Why a description is held, and the words it is held for."""

    reason: str
    words: str = ""


def instructions_in(
    pairs: Iterable[tuple[str, str]], place: Place, is_parameter: Callable[[str], bool]
) -> Iterator[Finding]:
    """Everything found in the strings of one description, each beside its path; nothing in an honest one."""
    pairs = tuple(pairs)
    for path, text in pairs:
        yield from _seen_nowhere(place(path), text)
    for path, text in pairs:
        yield from _said(place(path), text, is_parameter=is_parameter(path))


def _seen_nowhere(where: str, text: str) -> Iterator[Finding]:
    for what in unseen_in(text):
        yield Finding(f"{where} holds {what}", text)
    for word in mixed_words(text)[:1]:
        yield Finding(f"{where} holds a word in letters of several alphabets", word)


def _said(where: str, text: str, *, is_parameter: bool) -> Iterator[Finding]:
    for reading in dict.fromkeys(_readings(text)):
        yield from _instructions(where, reading, is_parameter)
    if squeezed(_one_line(plain_letters(text))):
        yield Finding(f"{where} spells an instruction to the model apart", text)
    for hidden in (*smuggled(text), *_decoded(text), *turned(text.lower())):
        for reading in dict.fromkeys(_readings(hidden)):
            found = _instructions(where, reading, is_parameter)
            yield from (each._replace(reason=f"{each.reason}, in encoded text") for each in found)
    for hidden in spelt_apart(text):
        yield Finding(f"{where} spells words apart", hidden)


def _decoded(text: str) -> Iterator[str]:
    for once in decoded(text):
        yield once
        yield from decoded(once)


def _readings(text: str) -> Iterator[str]:
    """The text as one line of lower-case letters a turn: as it stands, spelt plainly, with digits read as letters."""
    plain = plainer(text)
    bare = without_unseen(text if plain is None else plain.text)
    folded = _one_line(plain_letters(bare))
    yield folded
    if not text.isascii():
        yield _one_line(normalize("NFKC", bare))
    yield without_digits_for_letters(folded)
    if _JOINED.search(folded):
        yield _JOINED.sub(" ", folded)


def _one_line(text: str) -> str:
    return _SPACE.sub(" ", text).lower().replace("\u2019", "'")


def _instructions(where: str, reading: str, is_parameter: bool) -> Iterator[Finding]:
    table = PATTERNS if reading.isascii() else (*PATTERNS, *IN_OTHER_SCRIPTS)
    for pattern, what in table:
        if match := pattern.search(reading):
            yield Finding(f"{where} {what}", reading[max(0, match.start() - _AROUND) : match.end() + _AROUND])
    for what in commands_about_files(reading, is_parameter=is_parameter):
        yield Finding(f"{where} {what}", reading)
