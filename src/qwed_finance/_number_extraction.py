"""Extraction of the claimed number from a text: it stands alone, has a label or is the only one; no guessing."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any, NamedTuple
from unicodedata import category

from qwed.model.currency import CURRENCIES
from qwed.packs.amount_parsing import ClaimedAmount, parse_claimed_amount
from qwed.packs.result import UnreadableInputError
from qwed_finance._claim_clause import require_known_clause
from qwed_finance._decimal import to_builtin_number
from qwed_finance._stated_period import ClaimScope, require_label, require_period, require_scope

MAX_TEXT = 10_000
MAX_NUMBERS = 400
_CONTEXT_LENGTH = 200
_SIGN_WORD_LENGTH = 20
_NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3}){1,7}|[0-9]{1,2}(?:,[0-9]{2}){1,10},[0-9]{3}|[0-9]{1,24})(?:\.[0-9]{1,18})?"
_GROUP_SEPARATORS = r"'\u2018\u2019\u201a\u00b7\u22c5\u00a0\u2007\u2009\u202f\u066b\u066c"
"""Separators of thousands or decimals in other locales, which are not supported."""
_LEXEME = re.compile(
    rf"""(?<![\w.,])(?<!\d[{_GROUP_SEPARATORS}])(?P<written>\(?[-\u2212+]?\s?(?:US\$|[$\u20ac\u00a3\u00a5\u20b9]|(?-i:[A-Z]{{3}})\s)?\s?[-\u2212]?{_NUMBER}(?![0-9]|[.,][0-9])\)?)
        (?P<percent>\s?%|\s(?:percent|per\scent)\b)?
        (?P<code>\s?(?-i:[A-Z]{{3}})\b|\s(?:dollars|euros|pounds|rupees)\b)?
        (?P<unit>[ -]?(?:years?|yrs?|months?|periods?|payments?|days?|quarters?|times|installments?|instalments?
            |k|m|mm|mn|mln|mio|bn|bln|tn|hundred|thousand|million|billion|trillion|lakhs?|crores?|dozen
            |cents?|pence|paise|bps|basis\spoints?|percentage\spoints?|points?)\b)?
        (?P<glued>[\w%$\u20ac\u00a3\u00a5\u20b9]|[.,][\d%]|[{_GROUP_SEPARATORS}]\d)?""",
    re.VERBOSE | re.IGNORECASE,
)
_CURRENCY_WORDS = {"dollars": "USD", "euros": "EUR", "pounds": "GBP", "rupees": "INR"}
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
_NEGATION = re.compile(
    r"\b(?:not|never|isn't|aren't|wasn't|cannot|can't|wrong|incorrect|instead of|rather than)\b[^.;\n]*\Z",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"(?:\b(?:at least|at most|more than|less than|under|below|above|either)\s{0,3}|\bbetween\b[^.;\n]{0,40})\Z",
    re.IGNORECASE,
)
_NEGATIVE = re.compile(r"(?P<digit>[0-9)%]\s{0,3})?\b(?:minus|negative)\s{1,3}\Z", re.IGNORECASE)
_DECREASE_BEFORE = re.compile(
    r"\b(?:(?:decrease|decline|drop|fall|reduction|loss) of"
    r"|(?:decreased|declined|dropped|fell|fallen|lost|down)(?: by)?)\s\Z",
    re.IGNORECASE,
)
"""Words before a percentage that make it negative."""
_DECREASE_AFTER = re.compile(r"\s(?:decrease|decline|drop|reduction|loss|fall|lower|less)\b", re.IGNORECASE)
_LOSS = re.compile(r"\b(?:loss|deficit|shortfall) (?:of|is)\s\Z", re.IGNORECASE)
_INVISIBLE_CATEGORIES = frozenset(("Cf", "Me", "Mn"))
_DIRECTION_MARKS = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Unicode direction marks, which change how a number is displayed."""
_DIGITS = frozenset("0123456789)%")
_OPERATORS = frozenset(("*", "/", "^", "+", "\u00d7", "\u00f7"))
_OPERATOR_AFTER = re.compile(
    r"\s{0,3}(?:[*^+\u00d7\u00f7]|/(?!\s?(?:year|month|mo|yr|quarter|week|day)\b)|x\s{0,2}[0-9(]|[-\u2212]\s{0,2}[$\u20ac\u00a3\u20b9(]?[0-9])"
)
_MARKS = str.maketrans(dict.fromkeys('`{}\\_"[]|', " "))
_STARS = re.compile(r"\*\*|(?<!\S)\*(?=\S)|(?<=\S)\*(?!\S)")
"""Markdown emphasis; a star between two numbers is multiplication."""
_SENTENCE = re.compile(r"[.;!?](?=\s|\Z)|\n")
ANSWER_LABELS = ("final answer", "answer", "result", "therefore")


class NumberMatch(NamedTuple):
    """Number in a text."""

    claim: ClaimedAmount
    start: int
    end: int
    connected: bool
    label: str


def extract_claim(
    name: str,
    value: Any,
    *,
    rate: bool,
    labels: Mapping[str, Sequence[str]],
    inputs: Collection[Decimal],
    scope: ClaimScope,
) -> ClaimedAmount:
    """Return the claim in `value`: a number, an amount, or a text with one unambiguous value."""
    if not isinstance(value, str):
        return parse_claimed_amount(name, to_builtin_number(value))
    try:
        return parse_claimed_amount(name, value)
    except UnreadableInputError as error:
        if len(value) > MAX_TEXT:
            raise UnreadableInputError(f"`{name}` is longer than {MAX_TEXT} characters") from error
        matches = find_numbers(value, labels)
        if not matches and not any(character.isalpha() for character in value):
            raise
    return select_claim(name, matches, value, rate=rate, inputs=inputs, scope=scope)


def select_claim(
    name: str,
    matches: Sequence[NumberMatch],
    text: str,
    *,
    rate: bool,
    inputs: Collection[Decimal],
    scope: ClaimScope,
) -> ClaimedAmount:
    """Return the claim among the numbers of a text. Raise UnreadableInputError for no claim or several."""
    candidates = [number for number in matches if number.claim.percent is rate or (rate and _can_be_rate(number))]
    labelled = [number for number in candidates if number.label == "asked"]
    unlabelled = [number for number in candidates if not number.label and number.claim.value not in inputs]
    # An unlabelled value behind the labelled one makes the claim ambiguous.
    chosen = (
        _last_of_chain(labelled, strip_markup(text)) if labelled else _select_unlabelled(unlabelled, strip_markup(text))
    )
    if chosen is None or any(_contradicts(number, chosen) for number in unlabelled):
        raise UnreadableInputError(
            f"`{name}` contains no value, or several: end it with one, as in `the answer is $1,264.14`"
        )
    plain = strip_markup(text)
    require_period(name, plain, chosen.start, chosen.end, scope.period)
    require_scope(name, plain, chosen.start, chosen.end, scope)
    require_label(name, plain, chosen.end, scope)
    before = plain[max(0, chosen.start - _CONTEXT_LENGTH) : chosen.start]
    if _VAGUE.search(before):
        raise UnreadableInputError(f"`{name}` contains no exact value, write one such as `$1,264.14`")
    if _LOSS.search(before) and not chosen.claim.percent:
        raise UnreadableInputError(f"`{name}` states a loss: write the value with its sign")
    if _NEGATION.search(before):
        raise UnreadableInputError(f"`{name}` negates the value: write what it is")
    numbers = (*inputs, *scope.counts) if scope.months is not None else ()
    require_known_clause(name, plain, chosen.start, chosen.end, numbers)
    return chosen.claim


def _contradicts(other: NumberMatch, chosen: NumberMatch) -> bool:
    is_claimed = other.connected or other.claim.currency
    return bool(is_claimed) and other.start > chosen.end and other.claim.value != chosen.claim.value


def _can_be_rate(number: NumberMatch) -> bool:
    return not number.claim.currency and number.claim.value.copy_abs() < 1


def _select_unlabelled(rest: Sequence[NumberMatch], text: str) -> NumberMatch | None:
    marked = [number for number in rest if number.claim.currency]
    connected = [number for number in marked or rest if number.connected]
    return _last_of_chain(connected, text) or _last_of_chain(marked or rest, text)


def _last_of_chain(matches: Sequence[NumberMatch], text: str) -> NumberMatch | None:
    """Return the last number if all are equal, or each is a rounding of the one before: `= 1264.136 = $1,264.14`."""
    if not matches:
        return None
    last = matches[-1]
    chain = {last.start}
    for one, following in reversed(list(pairwise(matches))):
        if following.start in chain and _CHAINED.fullmatch(text[one.end : following.start]):
            chain.add(one.start)
    others = [number for number in matches if number.start not in chain and number.claim.value != last.claim.value]
    return None if others else last


def strip_markup(text: str) -> str:
    """Blank out the markup of Markdown, JSON and TeX; the length stays the same."""
    return _STARS.sub(lambda match: " " * len(match[0]), text).translate(_MARKS)


def find_numbers(text: str, labels: Mapping[str, Sequence[str]]) -> list[NumberMatch]:
    """Return every number of a text with the key of the last label before it in its sentence."""
    clean = strip_markup(text)
    if _DIRECTION_MARKS.search(clean):
        raise UnreadableInputError("the text contains Unicode direction marks, remove them")
    numbers: list[NumberMatch] = []
    marks = sorted(_find_labels(clean, labels))
    ends = {end for _start, end, _key in marks}
    for match in _LEXEME.finditer(clean):
        claim = _apply_sign_words(_parse_lexeme(match), clean, match)
        if (
            claim is None
            or _is_operand(clean, match)
            or category(clean[match.end() : match.end() + 1] or " ") in _INVISIBLE_CATEGORIES
        ):
            continue
        if len(numbers) >= MAX_NUMBERS:
            raise UnreadableInputError(f"the text holds more than {MAX_NUMBERS} numbers")
        is_labelled = len(clean[max(0, match.start() - 4) : match.start()].rstrip()) + max(0, match.start() - 4) in ends
        connected = is_labelled or _CONNECTED.search(clean[max(0, match.start() - 40) : match.start()]) is not None
        label = _label_at(clean, match.start(), marks, numbers) if connected else ""
        if numbers and not label and _is_restatement(clean[numbers[-1].end : match.start()]):
            label = numbers[-1].label
        numbers.append(NumberMatch(claim, match.start(), match.end(), connected, label))
    return numbers


def _apply_sign_words(claim: ClaimedAmount | None, text: str, match: re.Match[str]) -> ClaimedAmount | None:
    """Apply a sign that is written as a word; None if there are two signs, or if it is a subtraction."""
    before = text[max(0, match.start() - _SIGN_WORD_LENGTH) : match.start()]
    minus = _NEGATIVE.search(before)
    if claim is None or (minus and (minus["digit"] or claim.value < 0)):
        return None
    fallen = (
        claim.percent
        and claim.value > 0
        and (_DECREASE_BEFORE.search(before) or _DECREASE_AFTER.match(text, match.end()))
    )
    if minus or fallen:
        return claim._replace(value=claim.value.copy_negate())
    return claim


def _is_operand(text: str, match: re.Match[str]) -> bool:
    """Return True if the number is part of a calculation, whose result is the claim."""
    before = text[max(0, match.start() - 6) : match.start()].rstrip()
    minus = match["written"].lstrip("(")[:1] in ("-", "\u2212", "+") and before[-1:] in _DIGITS
    return minus or before[-1:] in _OPERATORS or _OPERATOR_AFTER.match(text, match.end()) is not None


def _is_restatement(between: str) -> bool:
    """Return True if a number restates the one before it, rounded or in another notation."""
    return bool(between.strip()) and _CHAINED.fullmatch(between) is not None


def _find_labels(text: str, labels: Mapping[str, Sequence[str]]) -> Iterator[tuple[int, int, str]]:
    lowered = text.lower()
    used: set[int] = set()
    labelled_words = sorted(
        ((word, key) for key, words in labels.items() for word in words), key=lambda row: -len(row[0])
    )
    for word, key in labelled_words:
        spaced = re.escape(word).replace(r"\ ", r"[\s-]{1,3}")
        for match in re.finditer(rf"\b{spaced}\b", lowered):
            if match.start() not in used:
                used.update(range(match.start(), match.end()))
                yield match.start(), match.end(), key


def _label_at(text: str, at: int, marks: Sequence[tuple[int, int, str]], before: Sequence[NumberMatch]) -> str:
    """Return the last label since the last labelled number, within the sentence."""
    since = max((number.end for number in before if number.connected and number.label), default=0)
    ends = [number.end() for number in _SENTENCE.finditer(text, since, at)]
    since = max([since, *ends])
    return next((key for start, end, key in reversed(marks) if start >= since and end <= at), "")


def _parse_lexeme(match: re.Match[str]) -> ClaimedAmount | None:
    """Return the claim of a lexeme; None if it counts something or is rounded to thousands."""
    if match["unit"] or match["glued"]:
        return None
    written, code = match["written"].strip(), (match["code"] or "").strip()
    if written.startswith("(") is not written.endswith(")"):
        written = written.strip("()")
    code = _CURRENCY_WORDS.get(code.lower(), code)
    mark = code if code in CURRENCIES else ""
    try:
        claim = parse_claimed_amount("claim", written.lstrip("+") + ("%" if match["percent"] else ""))
    except UnreadableInputError:
        return None
    if mark and claim.currency not in ("", mark):
        return None
    return claim._replace(currency=mark) if mark else claim
