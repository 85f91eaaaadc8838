"""The number that a text claims: it stands alone, is called by its name or is the only one; it is never guessed."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any, NamedTuple
from unicodedata import category

from qwed.packs.claimed import Claimed, claimed_of
from qwed.packs.result import Unreadable
from qwed.words.currency import CURRENCIES
from qwed_finance._exact import plain

LONGEST = 10_000
MOST_NUMBERS = 400
_DENIED_WITHIN = 200
_WORD = 20
_NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3}){1,7}|[0-9]{1,2}(?:,[0-9]{2}){1,10},[0-9]{3}|[0-9]{1,24})(?:\.[0-9]{1,18})?"
_APART = r"'\u2018\u2019\u201a\u00b7\u22c5\u00a0\u2007\u2009\u202f\u066b\u066c"
"""What parts the thousands, or whole and rest, somewhere in the world, and is not read here."""
_LEXEME = re.compile(
    rf"""(?<![\w.,])(?<!\d[{_APART}])(?P<written>\(?[-\u2212+]?\s?(?:US\$|[$\u20ac\u00a3\u00a5\u20b9]|(?-i:[A-Z]{{3}})\s)?\s?[-\u2212]?{_NUMBER}(?![0-9]|[.,][0-9])\)?)
        (?P<percent>\s?%|\s(?:percent|per\scent)\b)?
        (?P<code>\s?(?-i:[A-Z]{{3}})\b|\s(?:dollars|euros|pounds|rupees)\b)?
        (?P<unit>[ -]?(?:years?|yrs?|months?|periods?|payments?|days?|quarters?|times|installments?|instalments?
            |k|m|mm|mn|mln|mio|bn|bln|tn|hundred|thousand|million|billion|trillion|lakhs?|crores?|dozen
            |cents?|pence|paise|bps|basis\spoints?|percentage\spoints?|points?)\b)?
        (?P<glued>[\w%$\u20ac\u00a3\u00a5\u20b9]|[.,][\d%]|[{_APART}]\d)?""",
    re.VERBOSE | re.IGNORECASE,
)
_NAMED = {"dollars": "USD", "euros": "EUR", "pounds": "GBP", "rupees": "INR"}
_CONNECTED = re.compile(
    r"(?:=|:|\u2248|~|->|=>|\u2192|\b(?:is|are|was|be|equals?|equal|of|to|totals?|totall?ing|pays?|owes?|have|has|costs?|worth|earns?|leaves?|remains?|reach(?:es)?|gives?|gets?|get|yields?|approximately|about|around"
    r"|roughly|exactly|only|just))[\s\"'(]*\Z",
    re.IGNORECASE,
)
_CHAINED = re.compile(
    r"\s*(?:=|\u2248|~|or|,?\s*i\.e\.,?|which is|rounded to|rounds to|rounded:?)?\s*"
    r"(?:approximately|about|roughly)?\s*",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"\b(?:not|never|isn't|aren't|wasn't|cannot|can't|wrong|incorrect|instead of|rather than)\b[^.;\n]*\Z",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"(?:\b(?:at least|at most|more than|less than|under|below|above|either)\s{0,3}|\bbetween\b[^.;\n]{0,40})\Z",
    re.IGNORECASE,
)
_NEGATIVE = re.compile(r"(?P<digit>[0-9)%]\s{0,3})?\b(?:minus|negative)\s{1,3}\Z", re.IGNORECASE)
_FALLEN = re.compile(
    r"\b(?:(?:decrease|decline|drop|fall|reduction|loss) of"
    r"|(?:decreased|declined|dropped|fell|fallen|down) by|down)\s\Z",
    re.IGNORECASE,
)
"""Before a percentage it says that it is negative, as does a word behind it."""
_FALL = re.compile(r"\s(?:decrease|decline|drop|reduction|loss|fall|lower|less)\b", re.IGNORECASE)
_LOST = re.compile(r"\b(?:loss|deficit|shortfall) (?:of|is)\s\Z", re.IGNORECASE)
_UNSEEN = frozenset(("Cf", "Me", "Mn"))
_TURNED = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""What makes a number read otherwise than it is written."""
_DIGITS = frozenset("0123456789)%")
_OPERATORS = frozenset(("*", "/", "^", "+", "\u00d7", "\u00f7"))
_OPERATED = re.compile(r"\s{0,3}(?:[*/^+\u00d7\u00f7]|x\s{0,2}[0-9(]|[-\u2212]\s{0,2}[$\u20ac\u00a3\u20b9(]?[0-9])")
_MARKS = str.maketrans(dict.fromkeys('`{}\\_"[]|', " "))
_STARS = re.compile(r"\*\*|(?<!\S)\*(?=\S)|(?<=\S)\*(?!\S)")
"""Of Markdown; a star between two numbers multiplies them."""
_SENTENCE = re.compile(r"[.;!?](?=\s|\Z)|\n")
ANSWER = ("final answer", "answer", "result", "therefore")


class Found(NamedTuple):
    """A number in a text."""

    claim: Claimed
    start: int
    end: int
    connected: bool
    label: str


def claim_from(
    name: str, value: Any, *, rate: bool, labels: Mapping[str, Sequence[str]], inputs: Collection[Decimal]
) -> Claimed:
    """The claim in `value`, which is a number, an amount or a text that says it in one way."""
    if not isinstance(value, str):
        return claimed_of(name, plain(value))
    try:
        return claimed_of(name, value)
    except Unreadable as alone:
        if len(value) > LONGEST:
            raise Unreadable(f"`{name}` is longer than {LONGEST} characters") from alone
        found = numbers_in(value, labels)
        if not found and not any(each.isalpha() for each in value):
            raise
    return the_one(name, found, value, rate=rate, inputs=inputs)


def the_one(name: str, found: Sequence[Found], text: str, *, rate: bool, inputs: Collection[Decimal]) -> Claimed:
    """The claim among the numbers of a text; Unreadable where there are none or several."""
    wanted = [each for each in found if each.claim.percent is rate or (rate and _may_be_rate(each))]
    asked = [each for each in wanted if each.label == "asked"]
    rest = [each for each in wanted if not each.label and each.claim.value not in inputs]
    # Another value that is said after the one called by its name, and has no name itself, takes the certainty away.
    chosen = _last_of_chain(asked, cleaned(text)) if asked else _unlabelled(rest, cleaned(text))
    if chosen is None or any(_may_differ(each, chosen) for each in rest):
        raise Unreadable(f"`{name}` says no value, or several: end it with one, as in `the answer is $1,264.14`")
    before = cleaned(text)[max(0, chosen.start - _DENIED_WITHIN) : chosen.start]
    if _VAGUE.search(before):
        raise Unreadable(f"`{name}` says no exact value, write one such as `$1,264.14`")
    if _LOST.search(before) and not chosen.claim.percent:
        raise Unreadable(f"`{name}` says that something is lost: write the value with its sign")
    if _DENIED.search(before):
        raise Unreadable(f"`{name}` says what the value is not: write what it is")
    return chosen.claim


def _may_differ(other: Found, chosen: Found) -> bool:
    said = other.connected or other.claim.currency
    return bool(said) and other.start > chosen.end and other.claim.value != chosen.claim.value


def _may_be_rate(each: Found) -> bool:
    return not each.claim.currency and each.claim.value.copy_abs() < 1


def _unlabelled(rest: Sequence[Found], text: str) -> Found | None:
    marked = [each for each in rest if each.claim.currency]
    connected = [each for each in marked or rest if each.connected]
    return _last_of_chain(connected, text) or _last_of_chain(marked or rest, text)


def _last_of_chain(found: Sequence[Found], text: str) -> Found | None:
    """The last one where all say the same, or where one is the other rounded: `= 1264.136 = $1,264.14`."""
    if not found:
        return None
    last = found[-1]
    chain = {last.start}
    for one, following in reversed(list(pairwise(found))):
        if following.start in chain and _CHAINED.fullmatch(text[one.end : following.start]):
            chain.add(one.start)
    others = [each for each in found if each.start not in chain and each.claim.value != last.claim.value]
    return None if others else last


def cleaned(text: str) -> str:
    """Without the marks of Markdown, JSON and TeX; as long as before."""
    return _STARS.sub(lambda found: " " * len(found[0]), text).translate(_MARKS)


def numbers_in(text: str, labels: Mapping[str, Sequence[str]]) -> list[Found]:
    """Every number of a text with what it is called: the key of the last label before it in its sentence."""
    clean = cleaned(text)
    if _TURNED.search(clean):
        raise Unreadable("the text has signs in it that turn its direction, write it without them")
    found: list[Found] = []
    marks = sorted(_labels(clean, labels))
    ends = {end for _start, end, _key in marks}
    for each in _LEXEME.finditer(clean):
        claim = _signed(_claim(each), clean, each)
        if claim is None or _is_operand(clean, each) or category(clean[each.end() : each.end() + 1] or " ") in _UNSEEN:
            continue
        if len(found) >= MOST_NUMBERS:
            raise Unreadable(f"the text holds more than {MOST_NUMBERS} numbers")
        named = len(clean[max(0, each.start() - 4) : each.start()].rstrip()) + max(0, each.start() - 4) in ends
        connected = named or _CONNECTED.search(clean[max(0, each.start() - 40) : each.start()]) is not None
        label = _label(clean, each.start(), marks, found) if connected else ""
        if found and not label and _follows(clean[found[-1].end : each.start()]):
            label = found[-1].label
        found.append(Found(claim, each.start(), each.end(), connected, label))
    return found


def _signed(claim: Claimed | None, text: str, match: re.Match[str]) -> Claimed | None:
    """The claim with the sign that stands beside it as a word; None where it has two, or where it is taken off."""
    before = text[max(0, match.start() - _WORD) : match.start()]
    minus = _NEGATIVE.search(before)
    if claim is None or (minus and (minus["digit"] or claim.value < 0)):
        return None
    fallen = claim.percent and claim.value > 0 and (_FALLEN.search(before) or _FALL.match(text, match.end()))
    if minus or fallen:
        return claim._replace(value=claim.value.copy_negate())
    return claim


def _is_operand(text: str, match: re.Match[str]) -> bool:
    """Whether it stands in a sum or a product: what these come to is the claim."""
    before = text[max(0, match.start() - 6) : match.start()].rstrip()
    minus = match["written"].lstrip("(")[:1] in ("-", "\u2212", "+") and before[-1:] in _DIGITS
    return minus or before[-1:] in _OPERATORS or _OPERATED.match(text, match.end()) is not None


def _follows(between: str) -> bool:
    """Whether a number is the one before it, rounded or written in another way."""
    return bool(between.strip()) and _CHAINED.fullmatch(between) is not None


def _labels(text: str, labels: Mapping[str, Sequence[str]]) -> Iterator[tuple[int, int, str]]:
    lowered = text.lower()
    taken: set[int] = set()
    named = sorted(((word, key) for key, words in labels.items() for word in words), key=lambda row: -len(row[0]))
    for word, key in named:
        spaced = re.escape(word).replace(r"\ ", r"[\s-]{1,3}")
        for match in re.finditer(rf"\b{spaced}\b", lowered):
            if match.start() not in taken:
                taken.update(range(match.start(), match.end()))
                yield match.start(), match.end(), key


def _label(text: str, at: int, marks: Sequence[tuple[int, int, str]], before: Sequence[Found]) -> str:
    """The last label since the last number that was said to be something, within the sentence."""
    since = max((each.end for each in before if each.connected and each.label), default=0)
    ends = [each.end() for each in _SENTENCE.finditer(text, since, at)]
    since = max([since, *ends])
    return next((key for start, end, key in reversed(marks) if start >= since and end <= at), "")


def _claim(match: re.Match[str]) -> Claimed | None:
    """What the lexeme claims; None where it counts something, or is rounded to thousands."""
    if match["unit"] or match["glued"]:
        return None
    written, code = match["written"].strip(), (match["code"] or "").strip()
    if written.startswith("(") is not written.endswith(")"):
        written = written.strip("()")
    code = _NAMED.get(code.lower(), code)
    mark = code if code in CURRENCIES else ""
    try:
        claim = claimed_of("claim", written.lstrip("+") + ("%" if match["percent"] else ""))
    except Unreadable:
        return None
    if mark and claim.currency not in ("", mark):
        return None
    return claim._replace(currency=mark) if mark else claim
