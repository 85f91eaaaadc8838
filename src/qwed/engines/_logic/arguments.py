"""Arguments: premises and a conclusion, given as parameters or as a text that ends in its conclusion."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from qwed.engines._logic.sexpr import MAX_CHARACTERS, LogicRefusalError
from qwed.engines._logic.tokens import SIGN

MAX_PREMISES = 100

_CONCLUSION_MARKER = re.compile(
    r"\|-|\|=|⊢|⊨|∴|\btherefore\b|^\s*conclusion\s*:|(?:^|(?<=[.;]\s))\s*(?:so|thus|hence|consequently)\b",
    re.IGNORECASE | re.MULTILINE,
)
_QUOTED = re.compile(r'"[^"\n]*"')
_CONCLUSION_PREFIX = re.compile(
    r"\s*(?:(?:therefore|thus|hence|consequently|so)\b|conclusion\s*:|∴|⊢|⊨|\|-|\|=)\s*,?\s*", re.IGNORECASE
)
_LABEL = re.compile(r"\s*(?:\(?[0-9]{1,3}[.)]\s+|p[0-9]{1,3}\s*[:.]\s+|premise\s*[0-9]{0,3}\s*:\s*)", re.IGNORECASE)
_HEADING = re.compile(r"\s*(?:premises|given|argument|assumptions)\s*:\s*", re.IGNORECASE)
_STOP = re.compile(r"(?<=\w)\.(?:\s+|$)|;\s*")
_QUANTIFIED = re.compile(
    r"(?:[∀∃]|\b(?:forall|exists|for\s+all|for\s+every|for\s+each|there\s+exists)\b)", re.IGNORECASE
)
_NAMES_AFTER = re.compile(_QUANTIFIED.pattern + r"\s*\w+(?:\s*[\s,]\s*\w+)*\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Argument:
    """Premises and conclusion, each as it was written."""

    premises: tuple[str, ...]
    conclusion: str


def argument_of(query: str, parameters: Mapping[str, Any]) -> Argument | None:
    """Return the argument of a request, or None if it is one formula; raise LogicRefusalError if it is malformed."""
    premises, conclusion = parameters.get("premises"), parameters.get("conclusion")
    if premises is None and conclusion is None:
        return argument_in(query) if len(query) <= MAX_CHARACTERS else None
    return argument_from(premises, conclusion)


def argument_from(premises: Any, conclusion: Any) -> Argument:
    """Return the argument in these values; raise LogicRefusalError if they are not texts or too many."""
    if isinstance(premises, str):
        premises = [premises]
    if not isinstance(premises, list | tuple) or not all(isinstance(premise, str) for premise in premises):
        raise LogicRefusalError("PARSE_ERROR", "`premises` must be a list of formulas", 0)
    if not isinstance(conclusion, str):
        raise LogicRefusalError("PARSE_ERROR", "`conclusion` must be a formula", 0)
    if sum(map(len, premises)) + len(conclusion) > MAX_CHARACTERS:
        raise LogicRefusalError("PARSE_ERROR", f"more than {MAX_CHARACTERS} characters in all", 0)
    return _limited_argument(tuple(premises), _strip_prefix(_CONCLUSION_PREFIX, conclusion))


def argument_in(text: str) -> Argument | None:
    """Return the argument in a text whose last part is marked as a conclusion, or None without such a mark."""
    # A marker inside a string literal does not count.
    blanked = _QUOTED.sub(lambda quoted: " " * len(quoted[0]), text)
    marker = _CONCLUSION_MARKER.search(blanked)
    if marker is None:
        return None
    before, after = text[: marker.start()], text[marker.end() :]
    if _CONCLUSION_MARKER.search(blanked, marker.end()):
        raise LogicRefusalError("PARSE_ERROR", "more than one conclusion, ask about one at a time", marker.start())
    lines = [_strip_prefix(_HEADING, line) for line in before.split("\n")]
    premises = [part.strip() for line in lines for part in _statements(line, commas=len(marker[0]) < 3)]
    return _limited_argument(tuple(filter(None, premises)), _strip_prefix(re.compile(r"\s*,?\s*(?:that\s+)?"), after))


def _strip_prefix(opening: re.Pattern[str], text: str) -> str:
    match = opening.match(text)
    return text[match.end() :] if match else text


def _limited_argument(premises: tuple[str, ...], conclusion: str) -> Argument:
    if len(premises) > MAX_PREMISES:
        raise LogicRefusalError("PARSE_ERROR", f"more than {MAX_PREMISES} premises", 0)
    return Argument(premises, conclusion)


def _statements(line: str, *, commas: bool) -> Iterator[str]:
    """Yield the statements of one line: formulas between commas, sentences between full stops and semicolons."""
    line = _strip_prefix(_LABEL, line).rstrip().removesuffix(",")
    if SIGN.search(line) or _QUANTIFIED.search(line):
        yield from _between_commas(line)
    elif commas and not _STOP.search(line):
        yield from line.split(",")
    else:
        yield from (_strip_prefix(_LABEL, sentence) for sentence in _STOP.split(line))


def _between_commas(line: str) -> Iterator[str]:
    """Split at commas outside parentheses that do not follow the names of a quantifier."""
    depth = start = 0
    for index, character in enumerate(line):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0 and not _NAMES_AFTER.search(line[max(start, index - 80) : index]):
            yield line[start:index]
            start = index + 1
    yield line[start:]
