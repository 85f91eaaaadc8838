"""What is asked: one formula, or an argument given as parameters or as a text that ends in its conclusion."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from qwed.engines._logic.syntax import MAX_CHARACTERS, Refusal
from qwed.engines._logic.tokens import SIGN

MAX_PREMISES = 100

_FOLLOWS = re.compile(
    r"\|-|\|=|⊢|⊨|∴|\btherefore\b|^\s*conclusion\s*:|(?:^|(?<=[.;]\s))\s*(?:so|thus|hence|consequently)\b",
    re.IGNORECASE | re.MULTILINE,
)
_QUOTED = re.compile(r'"[^"\n]*"')
_CONCLUDES = re.compile(
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
    """The premises and the conclusion, each as it was written."""

    premises: tuple[str, ...]
    conclusion: str


def argument_of(query: str, parameters: Mapping[str, Any]) -> Argument | None:
    """The argument that is asked about, or None where one formula is; Refusal where it has the wrong shape."""
    premises, conclusion = parameters.get("premises"), parameters.get("conclusion")
    if premises is None and conclusion is None:
        return argument_in(query) if len(query) <= MAX_CHARACTERS else None
    return argument_from(premises, conclusion)


def argument_from(premises: Any, conclusion: Any) -> Argument:
    """The argument in these values; Refusal where they are not texts or too many."""
    if isinstance(premises, str):
        premises = [premises]
    if not isinstance(premises, list | tuple) or not all(isinstance(premise, str) for premise in premises):
        raise Refusal("PARSE_ERROR", "`premises` must be a list of formulas", 0)
    if not isinstance(conclusion, str):
        raise Refusal("PARSE_ERROR", "`conclusion` must be a formula", 0)
    if sum(map(len, premises)) + len(conclusion) > MAX_CHARACTERS:
        raise Refusal("PARSE_ERROR", f"more than {MAX_CHARACTERS} characters in all", 0)
    return _checked(tuple(premises), _after(_CONCLUDES, conclusion))


def argument_in(text: str) -> Argument | None:
    """The argument in a text whose last part says that it follows, or None where nothing is said to follow."""
    # What a string literal says concludes nothing.
    blanked = _QUOTED.sub(lambda quoted: " " * len(quoted[0]), text)
    found = _FOLLOWS.search(blanked)
    if found is None:
        return None
    before, after = text[: found.start()], text[found.end() :]
    if _FOLLOWS.search(blanked, found.end()):
        raise Refusal("PARSE_ERROR", "more than one conclusion, ask about one at a time", found.start())
    lines = [_after(_HEADING, line) for line in before.split("\n")]
    premises = [part.strip() for line in lines for part in _statements(line, commas=len(found[0]) < 3)]
    return _checked(tuple(filter(None, premises)), _after(re.compile(r"\s*,?\s*(?:that\s+)?"), after))


def _after(opening: re.Pattern[str], text: str) -> str:
    found = opening.match(text)
    return text[found.end() :] if found else text


def _checked(premises: tuple[str, ...], conclusion: str) -> Argument:
    if len(premises) > MAX_PREMISES:
        raise Refusal("PARSE_ERROR", f"more than {MAX_PREMISES} premises", 0)
    return Argument(premises, conclusion)


def _statements(line: str, *, commas: bool) -> Iterator[str]:
    """The statements of one line: formulas between commas, sentences between full stops and semicolons."""
    line = _after(_LABEL, line).rstrip().removesuffix(",")
    if SIGN.search(line) or _QUANTIFIED.search(line):
        yield from _between_commas(line)
    elif commas and not _STOP.search(line):
        yield from line.split(",")
    else:
        yield from (_after(_LABEL, sentence) for sentence in _STOP.split(line))


def _between_commas(line: str) -> Iterator[str]:
    """Split where a comma stands in no parentheses and after no quantifier's names."""
    depth = start = 0
    for index, character in enumerate(line):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0 and not _NAMES_AFTER.search(line[max(start, index - 80) : index]):
            yield line[start:index]
            start = index + 1
    yield line[start:]
