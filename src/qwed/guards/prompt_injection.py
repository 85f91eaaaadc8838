"""Prompt-injection guard for descriptions: invisible text, and instructions to the model that reads them.

Every string is checked in every form in which a model could read it. The reasons name the location and never repeat the
text, because they may be shown to the model that must not read it.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from qwed.guards._prompt_injection.confusables import mixed_script_words, to_plain_letters, undo_leetspeak
from qwed.guards._prompt_injection.encodings import (
    decode_blobs,
    decode_rotated,
    has_squeezed_instruction,
    join_spaced_letters,
)
from qwed.guards._prompt_injection.invisible import decode_smuggled, describe_invisible, strip_invisible
from qwed.guards._prompt_injection.key_file_patterns import find_key_file_requests
from qwed.guards._prompt_injection.patterns import IN_OTHER_SCRIPTS, PATTERNS
from qwed.guards.deobfuscation import decode_escapes
from qwed.model.unicode_normal import normalize

_AROUND = 60
_SPACE = re.compile(r"\s+")
_JOINED = re.compile(r"(?<=[a-z])[_-](?=[a-z])")
"""Separators inside a name, which is also read as separate words."""
DescribePath = Callable[[str], str]
"""Function that describes the location of the string at a path."""


class InjectionFinding(NamedTuple):
    """Reason to quarantine a description, and the text that caused it."""

    reason: str
    words: str = ""


def find_instructions(
    pairs: Iterable[tuple[str, str]], describe: DescribePath, is_parameter: Callable[[str], bool]
) -> Iterator[InjectionFinding]:
    """Yield a finding for each instruction or invisible text in the strings of one description."""
    pairs = tuple(pairs)
    for path, text in pairs:
        yield from _invisible_text(describe(path), text)
    for path, text in pairs:
        yield from _instruction_findings(describe(path), text, is_parameter=is_parameter(path))


def _invisible_text(where: str, text: str) -> Iterator[InjectionFinding]:
    for what in describe_invisible(text):
        yield InjectionFinding(f"{where} contains {what}", text)
    for word in mixed_script_words(text)[:1]:
        yield InjectionFinding(f"{where} contains a word in letters of several alphabets", word)


def _instruction_findings(where: str, text: str, *, is_parameter: bool) -> Iterator[InjectionFinding]:
    for reading in dict.fromkeys(_readings(text)):
        yield from _matches(where, reading, is_parameter)
    if has_squeezed_instruction(_one_line(to_plain_letters(text))):
        yield InjectionFinding(f"{where} spells an instruction to the model apart", text)
    for hidden in (*decode_smuggled(text), *_decode_twice(text), *decode_rotated(text.lower())):
        for reading in dict.fromkeys(_readings(hidden)):
            findings = _matches(where, reading, is_parameter)
            yield from (finding._replace(reason=f"{finding.reason}, in encoded text") for finding in findings)
    for hidden in join_spaced_letters(text):
        yield InjectionFinding(f"{where} spells words apart", hidden)


def _decode_twice(text: str) -> Iterator[str]:
    for once in decode_blobs(text):
        yield once
        yield from decode_blobs(once)


def _readings(text: str) -> Iterator[str]:
    """Yield the text as one lower-case line in each form: plain, escapes decoded, leetspeak undone, names split into
    words."""
    plain = decode_escapes(text)
    bare = strip_invisible(text if plain is None else plain.text)
    folded = _one_line(to_plain_letters(bare))
    yield folded
    if not text.isascii():
        yield _one_line(normalize("NFKC", bare))
    yield undo_leetspeak(folded)
    if _JOINED.search(folded):
        yield _JOINED.sub(" ", folded)


def _one_line(text: str) -> str:
    return _SPACE.sub(" ", text).lower().replace("\u2019", "'")


def _matches(where: str, reading: str, is_parameter: bool) -> Iterator[InjectionFinding]:
    table = PATTERNS if reading.isascii() else (*PATTERNS, *IN_OTHER_SCRIPTS)
    for pattern, what in table:
        if match := pattern.search(reading):
            yield InjectionFinding(f"{where} {what}", reading[max(0, match.start() - _AROUND) : match.end() + _AROUND])
    for what in find_key_file_requests(reading, is_parameter=is_parameter):
        yield InjectionFinding(f"{where} {what}", reading)
