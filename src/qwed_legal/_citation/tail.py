"""What follows a citation: pages it points to, the court and the year, remarks, and what became of the case."""

import re
from functools import cache
from typing import NamedTuple

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
_ONE = (
    rf"(?:(?:pp?\. ?|page )?{_RANGE}(?: et seq\.?)?{_NOTE}?|{_NOTE}|{_PARAGRAPH}|{_SQUARE}|"
    rf"passim|\u00a7\u00a7? ?[0-9][0-9A-Za-z.-]{{0,20}}|slip op\.(?: at [0-9]{{1,4}})?)"
)
PIN = re.compile(
    rf"(?:,? at |, ?| (?=\u00b6|n\.|nn\.|\[[0-9]|paras?\b)|: (?=[0-9])|: ?(?=[0-9]))(?:at )"
    rf"?(?P<pin>{_ONE}(?:, (?!\d{{1,4}} [A-Z]){_ONE}(?![A-Za-z0-9 .]*[0-9])){{0,11}})"
    rf"(?![0-9A-Za-z*])"
)
_MONTHS = (
    "Jan(?:uary|\\.)?|Feb(?:ruary|\\.)?|Mar(?:ch|\\.)?|Apr(?:il|\\.)?|May|June?|July?|"
    "Aug(?:ust|\\.)?|Sept?(?:ember|\\.)?|Oct(?:ober|\\.)?|Nov(?:ember|\\.)?|Dec(?:ember|\\.)"
    "?"
)
_AFTER = (
    r"(?:, (?:no (?:pet|writ)(?: h(?:ist)?\.?)?|pet\. (?:ref'd|denied|granted|struck|dism'd|"
    r"filed)|writ (?:ref'd(?: n\.r\.e\.)?|denied|granted|dism'd(?: w\.o\.j\.)?)|en banc|per "
    r"curiam|in banc|orig\. proceeding|unpublished|mem\.)\.?(?: [a-z.]{1,12})?)"
)
COURT = re.compile(
    rf"[(\[](?P<court>[A-Z0-9][A-Za-z0-9 .,'&\[\]-]{{0,78}}?)??,? ?"
    rf"(?:(?P<month>{_MONTHS}) (?P<day>[0-9]{{1,2}}), )?(?<![0-9])(?P<year>[0-9]{{4}})(?P<to>-[0-9]{{2,4}})?{_AFTER}?"
    r"[)\]]",
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
_HISTORY = """
aff'd|affirmed|aff'd in part|aff'd in part, rev'd in part|aff'd mem.|aff'd per curiam|aff'd sub nom.
aff'd on other grounds|aff'd as modified|aff'd by an equally divided court
aff'd by an equally divided Court|aff'g|rev'd|reversed|rev'd per curiam
rev'd mem.|rev'd sub nom.|rev'd in part|rev'd on other grounds|rev'd in part on other grounds|rev'g|cert. denied
cert. denied sub nom.|cert. granted|cert. granted sub nom.|cert. dismissed|cert. filed|certiorari denied|vacated
vacated as moot|vacated and remanded|vacated on other grounds|vacated in part|vacating|remanded|reh'g denied
reh'g granted|reh'g en banc granted|reh'g en banc denied|appeal dismissed|appeal denied|appeal docketed
appeal filed|overruled by|overruled in part by|overruled on other grounds by|overruled|abrogated by
abrogated on other grounds by|abrogated in part by|abrogated|superseded by|superseded by statute|modified
modified on other grounds|modified on reh'g|amended|as amended|withdrawn|on remand|enforced|enforcing
review denied|review granted|petition for cert. filed|prob. juris. noted|mandamus denied|stay granted
stay denied|leave to appeal denied|appeal after remand|superseded on other grounds by|disapproved of by
disapproved by|disapproved on other grounds by|superseded by rule|affirming|reversing|cited with approval in
quoted in|reprinted in|accord
"""
"""What becomes of a case (The Bluebook, table T8), and what another says of it."""


class Court(NamedTuple):
    """The court and the year in parentheses."""

    court: str | None
    year: int
    text: str


def court_at(text: str, at: int) -> tuple[Court, int] | None:
    """The parentheses with a year that stand here."""
    found = COURT.match(text, at)
    if found is None:
        return None
    named = (found["court"] or "").strip(" ,") or None
    return Court(named, int(found["year"]), found[0]), found.end()


def left_over(text: str, at: int) -> str:
    """What is wrong with what follows a citation and is no part of it."""
    rest, dated = text[at : at + 60].strip(), _NO_YEAR.match(text, at)
    if dated is None:
        return f"`{rest}` is no part of a citation"
    return f"`{dated['digits']}` is no year: one has 4 digits, this has {len(dated['digits'])}"


def remark_at(text: str, at: int) -> int | None:
    """Where the parentheses with a remark end that begin here; None where there are none."""
    if at >= len(text) or text[at] not in "([" or _REMARK.match(text, at + 1) is None:
        return None
    return closed(text, at)


def closed(text: str, at: int) -> int | None:
    """Where the parentheses end that begin here."""
    depth = 0
    for end in range(at, len(text)):
        depth += (text[end] in "([") - (text[end] in ")]")
        if depth == 0:
            return end + 1
    return None


def history_at(text: str, at: int) -> tuple[str, int] | None:
    """What became of the case, and where the citation of that begins."""
    found = re.compile(r"(?:,|;)? ").match(text, at)
    if found is None:
        return None
    start = found.end()
    for phrase in _phrases():
        if text.startswith(phrase, start) and not text[start + len(phrase) : start + len(phrase) + 1].isalnum():
            after = start + len(phrase)
            return phrase, after + len(re.match(r",? ?", text[after:])[0])  # type: ignore[index] # always matches
    return None


@cache
def _phrases() -> tuple[str, ...]:
    return tuple(sorted(_HISTORY.strip().replace("\n", "|").split("|"), key=len, reverse=True))


def pages_of(pin: str, first: int, most: int | None) -> str | None:
    """Why the pages pointed to cannot be of that case; None where they can."""
    found = re.match(r"(?:at )?(?:pp?\. ?)?([0-9]{1,8})(?: ?- ?([0-9]{1,8}))?(?!\])", pin)
    if found is None:
        return None
    start = int(found[1])
    if start < first:
        return f"the page pointed to ({start}) is before the first page ({first})"
    if most is not None and start > most:
        return f"the page pointed to ({start}) is beyond what a volume has ({most})"
    return _backwards(found[1], found[2])


def _backwards(start: str, end: str | None) -> str | None:
    if end is None:
        return None
    last = int(start[: len(start) - len(end)] + end) if len(end) < len(start) else int(end)
    return f"the pages run backwards: {start}-{end}" if last <= int(start) else None
