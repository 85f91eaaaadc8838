"""Secrets in language-specific syntax: XML elements, flags, headers, calls, statements, sentences, URLs."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from qwed.guards._secrets.assignments import MAX_CANDIDATES
from qwed.guards._secrets.value_heuristics import (
    has_all_classes,
    is_composed,
    is_credentials,
    is_non_secret,
    is_password_like,
    is_real_value,
    is_strongly_composed,
    is_very_random,
    looks_random,
)
from qwed.guards.text_scan import UNSCANNED, TextFinding
from qwed.model.data_files import read_rows


class _SyntaxPattern(NamedTuple):
    kind: str
    anchors: tuple[str, ...]
    pattern: re.Pattern[str]
    condition: Callable[[str], bool]
    """Condition on the value."""
    line: str
    """Text that must occur earlier on the same line."""
    near: int
    """Characters around an anchor in which a match begins and ends; 0 for the usual ones."""


def _any(_value: str) -> bool:
    return True


def _is_generated(value: str) -> bool:
    return is_password_like(value) or is_strongly_composed(value)


def _is_unmistakable(value: str) -> bool:
    """Return True if a value after a name and a colon is a password whatever the name: `ana:Cobalt!river73`."""
    return has_all_classes(value) and len(_PAIR_OF_DIGITS.findall(value)) == 1 and _is_generated(value)


_PAIR_OF_DIGITS = re.compile(r"\d{2,}")


def _has_digit(value: str) -> bool:
    return any(map(str.isdigit, value))


def _is_diceware(value: str) -> bool:
    """Return True if the words are no sentence: none of them says how the others belong together."""
    return _PROSE.isdisjoint(value.lower().replace("-", " ").split())


_PROSE_TEXT = """
the and for with from that this are was not you your must can cannot will should may has have who which when where
what how any all each every some more than then only also into out new old too very is required optional minimum
maximum length characters words word letters needed missing empty wrong invalid incorrect expired given entered please
enter use used using set see ask asked same different between after before without again never always same until
"""
_PROSE = frozenset(_PROSE_TEXT.split())


def _is_credential(value: str) -> bool:
    """Return True if a value after the name of an authentication scheme is a credential."""
    return looks_random(value) or is_credentials(value)


_CONDITIONS: dict[str, Callable[[str], bool]] = {
    "-": _any,
    "has_all_classes": has_all_classes,
    "has_digit": _has_digit,
    "is_composed": is_composed,
    "is_credential": _is_credential,
    "is_credentials": is_credentials,
    "is_diceware": _is_diceware,
    "is_generated": _is_generated,
    "is_unmistakable": _is_unmistakable,
    "is_very_random": is_very_random,
    "looks_random": looks_random,
}


def _read_patterns(searched: str) -> tuple[_SyntaxPattern, ...]:
    """Return the patterns for the lower-cased text, or for the text as it is written: flags are case-sensitive."""
    return tuple(
        _SyntaxPattern(
            kind,
            tuple(anchors.split("|")),
            re.compile(pattern),
            _CONDITIONS[condition],
            "" if line == "-" else line,
            int(near),
        )
        for text, kind, anchors, condition, line, near, pattern in read_rows(__file__, "syntax_patterns.txt", 7)
        if text == searched
    )


_LOWERED, _WRITTEN = _read_patterns("lowered"), _read_patterns("written")


def find_special_forms(text: str, lowered: str, vocabulary: str) -> Iterator[TextFinding]:
    """Yield the secrets in language-specific syntax; `vocabulary` has every word of the text."""
    # Most texts contain none of the anchors, so this check comes first.
    for stems, searched, words in ((_LOWERED_STEMS, lowered, vocabulary.lower()), (_WRITTEN_STEMS, text, vocabulary)):
        if len(words) > _LONG:
            letters = frozenset(words)
            stems = [row for row in stems if letters.issuperset(row[0])]
        present = [(anchor, pattern) for stem, anchor, pattern in stems if stem in words]
        for pattern in {pattern.pattern: pattern for anchor, pattern in present if anchor in searched}.values():
            yield from _find_matches(pattern, text, searched)


_LONG = 1 << 14
_Stems = list[tuple[str, str, _SyntaxPattern]]


def _stems_of(patterns: tuple[_SyntaxPattern, ...]) -> _Stems:
    """Return each anchor after its longest word, which is looked for first."""
    return [(max(anchor.split(), key=len), anchor, pattern) for pattern in patterns for anchor in pattern.anchors]


_LOWERED_STEMS, _WRITTEN_STEMS = _stems_of(_LOWERED), _stems_of(_WRITTEN)


def _find_matches(pattern: _SyntaxPattern, text: str, searched: str) -> Iterator[TextFinding]:
    count = 0
    for begin, end in _search_windows(pattern, searched):
        for match in pattern.pattern.finditer(searched, begin, end):
            if count == MAX_CANDIDATES:
                yield TextFinding(UNSCANNED, match.start(), len(text))
                return
            count += 1
            start, stop = match.span(match.lastindex or 0)
            if _is_secret(pattern, text[start:stop]) and _is_on_line(pattern.line, searched, match.start()):
                yield TextFinding(pattern.kind, start, stop)


_BEFORE, _AFTER, _FAR_AFTER = 400, 800, 5_000
"""Maximum distance from an anchor to the start and the end of a match."""


def _search_windows(pattern: _SyntaxPattern, searched: str) -> Iterator[tuple[int, int]]:
    """Yield the parts of the text that can contain a match, so that the rest need not be scanned."""
    before = pattern.near or _BEFORE
    after = pattern.near or (_FAR_AFTER if pattern.kind == "authorization" else _AFTER)
    positions = sorted(position for anchor in pattern.anchors for position in _positions(anchor, searched))
    begin = end = -1
    for position in positions:
        if position - before > end:
            if end >= 0:
                yield begin, end
            begin = max(0, position - before)
        end = position + after
    if end >= 0:
        yield begin, end


def _positions(anchor: str, searched: str) -> Iterator[int]:
    position = searched.find(anchor)
    while position >= 0:
        yield position
        position = searched.find(anchor, position + 1)


def _is_on_line(word: str, searched: str, position: int) -> bool:
    begin = max(searched.rfind("\n", 0, position), position - _LONGEST_LINE, 0)
    return not word or searched.find(word, begin, position) >= 0


_LONGEST_LINE = 2_000


def _is_secret(pattern: _SyntaxPattern, value: str) -> bool:
    if pattern.kind == "password_hash":
        return pattern.condition(value)
    return not is_non_secret(value) and is_real_value(value) and pattern.condition(value)
