"""Parser of what follows a citation: pin cites, court and year, parenthetical remarks and case history."""

import re
from functools import cache
from typing import NamedTuple

from qwed.model.data_files import read_table

_NUMBER = r"(?:\*{0,2}[0-9]{1,8}[a-zA-Z]?|[ivxlc]{1,7})"
_RANGE = rf"{_NUMBER}(?: ?- ?\*{{0,2}}[0-9]{{1,8}})?"
_NOTE = r"(?: ?(?:& |and )?nn?\. ?[0-9]{1,4}(?: ?- ?[0-9]{1,4})?(?:(?:, | & )[0-9]{1,4})*)"
_PARAGRAPH = (
    r"(?:\u00b6\u00b6?|paras?\.?|paragraphs?|pars?\.) ?\[?[0-9]{1,5}[A-Z]?\]?(?:(?: ?- ?|, "
    r"(?![0-9]{1,4} [A-Z])| and )\[?[0-9]{1,5}[A-Z]?\]?)*"
)
_SQUARE = (
    r"\[[0-9]{1,4}[A-Z]?\](?: ?- ?\[?[0-9]{1,4}[A-Z]?\]?)?(?:(?:, | and )\[[0-9]{1,4}\](?: ?- ?\[?[0-9]{1,4}\]?)?)*"
)
_ONE_PIN = (
    rf"(?:(?:pp?\. ?|page )?{_RANGE}(?: et seq\.?)?{_NOTE}?|{_NOTE}|{_PARAGRAPH}|{_SQUARE}|"
    rf"passim|\u00a7\u00a7? ?[0-9][0-9A-Za-z.-]{{0,20}}|slip op\.(?: at [0-9]{{1,4}})?)"
)
PIN = re.compile(
    rf"(?:,? at |, ?| (?=\u00b6|n\.|nn\.|\[[0-9]|paras?\b)|: (?=[0-9])|: ?(?=[0-9]))(?:at )"
    rf"?(?P<pin>{_ONE_PIN}(?:, (?!\d{{1,4}} [A-Z]){_ONE_PIN}(?![A-Za-z0-9 .]*[0-9])){{0,11}})"
    rf"(?![0-9A-Za-z*])"
)
_MONTHS = (
    "Jan(?:uary|\\.)?|Feb(?:ruary|\\.)?|Mar(?:ch|\\.)?|Apr(?:il|\\.)?|May|June?|July?|"
    "Aug(?:ust|\\.)?|Sept?(?:ember|\\.)?|Oct(?:ober|\\.)?|Nov(?:ember|\\.)?|Dec(?:ember|\\.)"
    "?"
)
_AFTER_YEAR = (
    r"(?:, (?:no (?:pet|writ)(?: h(?:ist)?\.?)?|pet\. (?:ref'd|denied|granted|struck|dism'd|"
    r"filed)|writ (?:ref'd(?: n\.r\.e\.)?|denied|granted|dism'd(?: w\.o\.j\.)?)|en banc|per "
    r"curiam|in banc|orig\. proceeding|unpublished|mem\.)\.?(?: [a-z.]{1,12})?)"
)
COURT = re.compile(
    rf"[(\[](?P<court>[A-Z0-9][A-Za-z0-9 .,'&\[\]-]{{0,78}}?)??,? ?"
    rf"(?:(?P<month>{_MONTHS}) (?P<day>[0-9]{{1,2}}), )?(?<![0-9])(?P<year>[0-9]{{4}})(?P<to>-[0-9]{{2,4}})?"
    rf"{_AFTER_YEAR}?[)\]]",
    re.ASCII,
)
_NO_YEAR = re.compile(r" ?[(\[][A-Za-z .,']{0,78}(?P<digits>[0-9]{1,3}|[0-9]{5,9})[)\]]", re.ASCII)
_REMARK = re.compile(
    r"""(?:[a-z]+ing\b|"|'|per curiam|en banc|in banc|mem\.|table|same|plurality|unpublished|internal """
    r"""|emphasis |citations? |footnotes? |quotation |alterations? |omission |in chambers|No\. |Nos\. """
    r"""|hereinafter|dictum|dicta|discussed|overruled|superseded|see |with """
    r"""|[A-Z][A-Za-z'. -]{1,40},? (?:C\.? ?J\.|J\.|JJ\.|Circuit|concurring|dissenting|for )|opinion |slip op"""
    r"""|by |statement |[0-9] ?-[0-9]|dissent|concurr|original |on |abrogat|revers|affirm|CCH|West|LexisNexis"""
    r"""|BNA|codified)"""
)
_HISTORY = read_table(__file__, "history_phrases.txt")
"""Phrases of case history (The Bluebook, table T8) and of treatment by other cases."""


class CourtAndYear(NamedTuple):
    """Court and year in parentheses."""

    court: str | None
    year: int
    text: str


def parse_court(text: str, at: int) -> tuple[CourtAndYear, int] | None:
    """Return the parenthesised court and year at this position with its end, or None."""
    match = COURT.match(text, at)
    if match is None:
        return None
    court = (match["court"] or "").strip(" ,") or None
    return CourtAndYear(court, int(match["year"]), match[0]), match.end()


def describe_leftover(text: str, at: int) -> str:
    """Return the issue of text behind a citation that is not part of it."""
    rest, dated = text[at : at + 60].strip(), _NO_YEAR.match(text, at)
    if dated is None:
        return f"`{rest}` is not part of a citation"
    return f"`{dated['digits']}` is not a year: a year has 4 digits, this has {len(dated['digits'])}"


def parse_remark(text: str, at: int) -> int | None:
    """Return the end of the parenthetical remark that begins here, or None."""
    if at >= len(text) or text[at] not in "([" or _REMARK.match(text, at + 1) is None:
        return None
    return closing_index(text, at)


def closing_index(text: str, at: int) -> int | None:
    """Return the end of the parentheses that begin here, or None."""
    depth = 0
    for end in range(at, len(text)):
        depth += (text[end] in "([") - (text[end] in ")]")
        if depth == 0:
            return end + 1
    return None


def parse_history(text: str, at: int) -> tuple[str, int] | None:
    """Return the history phrase at this position and the start of its citation, or None."""
    match = re.compile(r"(?:,|;)? ").match(text, at)
    if match is None:
        return None
    start = match.end()
    for phrase in _history_phrases():
        if text.startswith(phrase, start) and not text[start + len(phrase) : start + len(phrase) + 1].isalnum():
            after = start + len(phrase)
            return phrase, after + len(re.match(r",? ?", text[after:])[0])  # type: ignore[index] # always matches
    return None


@cache
def _history_phrases() -> tuple[str, ...]:
    return tuple(sorted(_HISTORY.strip().replace("\n", "|").split("|"), key=len, reverse=True))


def pin_issue(pin: str, first: int, most: int | None) -> str | None:
    """Return why the pin cite cannot be within the case, or None."""
    match = re.match(r"(?:at )?(?:pp?\. ?)?([0-9]{1,8})(?: ?- ?([0-9]{1,8}))?(?!\])", pin)
    if match is None:
        return None
    start = int(match[1])
    if start < first:
        return f"the page pointed to ({start}) is before the first page ({first})"
    if most is not None and start > most:
        return f"the page pointed to ({start}) is beyond what a volume has ({most})"
    return _reversed_range_issue(match[1], match[2])


def _reversed_range_issue(start: str, end: str | None) -> str | None:
    if end is None:
        return None
    last = int(start[: len(start) - len(end)] + end) if len(end) < len(start) else int(end)
    return f"the pages run backwards: {start}-{end}" if last <= int(start) else None
