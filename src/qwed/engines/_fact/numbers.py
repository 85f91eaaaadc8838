"""Numbers of the fact engine: quantities with units and bounds, compared as intervals."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from qwed.engines._fact.numerals import Numeral, numeral_of, plain_numeral
from qwed.engines._fact.text import FactToken
from qwed.model.data_files import read_table

SAME, APART, UNSURE = "same", "apart", "unsure"

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_NUMBERS = {word: number for number, word in enumerate(_ONES.split())}
_NUMBERS |= {word: 10 * (number + 2) for number, word in enumerate(_TENS.split())}
_NUMBERS["dozen"] = 12
_COUNTED = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_WHOLE = frozenset({*_COUNTED, "dozen"})
_COUNTED |= {"dozen": 12, "k": 10**3, "bn": 10**9, "mn": 10**6, "tn": 10**12}
_SCALES = _COUNTED | {"m": 10**6, "b": 10**9}
"""Scale words after money, where `m` means million; elsewhere it is a metre."""
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
_ORDINAL = {word: number + 1 for number, word in enumerate(_ORDINALS.split())}
_CURRENCIES = {"$": "usd", "€": "eur", "£": "gbp", "¥": "jpy", "₹": "inr"}
_CURRENCIES |= {"dollar": "usd", "dollars": "usd", "usd": "usd", "euro": "eur", "euros": "eur", "eur": "eur"}
_CURRENCIES |= {
    "pound sterling": "gbp",
    "gbp": "gbp",
    "yen": "jpy",
    "jpy": "jpy",
    "rupees": "inr",
    "inr": "inr",
    "chf": "chf",
}
_UNIT_TEXT = read_table(__file__, "units.txt")
_UNITS = {
    name: (line.split()[0], Fraction(factor))
    for line in _UNIT_TEXT.strip().splitlines()
    for name, _, factor in (entry.partition(":") for entry in line.split()[1:])
}
_SYMBOL = 3
"""Maximum length of a unit symbol; in longer unit names case does not matter."""
_CAPITAL_UNITS = frozenset(["KB", "kB", "MB", "GB", "TB", "L", "mL", "KM", "Km", "KG", "Kg", "FT", "LB", "LBS", "Day"])
_BOUNDS: dict[tuple[str, ...], str] = {
    tuple(phrase.split()): bound
    for bound, some in {
        ">=": "at least|no less than|no fewer than|not less than|a minimum of|minimum of|\u2265",
        ">": ">|more than|over|above|exceeding|greater than|in excess of|upwards of|higher than",
        "<=": "at most|no more than|up to|not more than|a maximum of|maximum of|\u2264",
        "<": "less than|under|below|fewer than|lower than|<",
        "~": "about|approximately|around|roughly|approx|nearly|almost|some|circa|~|close to|an estimated|estimated",
        "=": "exactly|precisely",
    }.items()
    for phrase in some.split("|")
}
_MINUS = ("-", "\u2212", "\u2013")
_CLOSE, _FAR = Fraction(5, 100), Fraction(20, 100)


Interval = tuple[Fraction | None, Fraction | None]


class Quantity(NamedTuple):
    """A number as the interval it denotes; `approximate` if the text says "about"."""

    low: Fraction | None
    high: Fraction | None
    unit: str = ""
    written: str = ""
    approximate: bool = False
    open: bool = False
    version: Interval | None = None
    """Interval of the version numbers, where it differs."""
    grouped: Interval | None = None
    """Interval with points as separators of thousands, where it differs."""
    has_commas: bool = False


class Amount(NamedTuple):
    """A number with its unit, and the index after it."""

    number: Numeral
    unit: str
    written: str
    end: int


class ParsedQuantity(NamedTuple):
    """A number and the tokens it took."""

    slot: Quantity
    taken: int


def quantity_at(tokens: Sequence[FactToken], at: int) -> ParsedQuantity | None:
    """Parse the number that starts here, with bounds and unit."""
    start = at
    at, bound = _bound(tokens, at)
    parsed_range = _range(tokens, at) if not bound and (at == 0 or tokens[at - 1].text != "from") else None
    if parsed_range is not None:
        return ParsedQuantity(parsed_range.slot, parsed_range.taken + at - start)
    amount = _amount(tokens, at)
    if amount is None:
        return None
    at, bound = _suffix(tokens, amount.end, bound)
    low = None if bound in ("<", "<=") else amount.number
    high = None if bound in (">", ">=") else amount.number
    slot = _quantity(low, high, amount)._replace(approximate=bound == "~", open=bound in ("<", ">"))
    return ParsedQuantity(slot, at - start)


_READINGS: tuple[Callable[[Numeral], Fraction], ...] = (
    lambda number: number.usual,
    lambda number: number.version,
    lambda number: number.grouped,
)


def _quantity(low: Numeral | None, high: Numeral | None, amount: Amount) -> Quantity:
    usual, version, grouped = (
        (None if low is None else one(low), None if high is None else one(high)) for one in _READINGS
    )
    return Quantity(
        *usual,
        amount.unit,
        amount.written,
        version=version if version != usual else None,
        grouped=grouped if grouped != usual else None,
        has_commas=amount.number.has_commas,
    )


def _range(tokens: Sequence[FactToken], at: int) -> ParsedQuantity | None:
    """Parse `between 5 and 10`, `5 to 10` or `5-10 km`; `5 to 10 million` is ambiguous and not a range."""
    between = tokens[at].text == "between" if at < len(tokens) else False
    first = _amount(tokens, at + between)
    if first is None or first.end >= len(tokens):
        return None
    joined = tokens[first.end].text in (("and",) if between else ("to", "-", "\u2013"))
    second = _amount(tokens, first.end + 1) if joined else None
    if second is None or (first.unit and first.unit != second.unit):
        return None
    spans = (tokens[at : first.end], tokens[first.end : second.end])
    scaled = [any(token.text in _SCALES for token in span) for span in spans]
    factor = _UNITS.get(second.written, ("", Fraction(1)))[1]
    low = first.number if first.unit or not second.unit else first.number.times(factor)
    if scaled[0] != scaled[1] or low.usual > second.number.usual:
        return None
    return ParsedQuantity(_quantity(low, second.number, second), second.end - at)


def _bound(tokens: Sequence[FactToken], at: int) -> tuple[int, str]:
    for length in (3, 2, 1):
        words = tuple(token.text for token in tokens[at : at + length])
        if words in _BOUNDS and _amount(tokens, at + length) is not None:
            return at + length, _BOUNDS[words]
    return at, ""


def _suffix(tokens: Sequence[FactToken], at: int, bound: str) -> tuple[int, str]:
    words = tuple(token.text for token in tokens[at : at + 2])
    if not bound and words in (("or", "more"), ("or", "over"), ("or", "above")):
        return at + 2, ">="
    if not bound and words in (("or", "less"), ("or", "fewer"), ("or", "under")):
        return at + 2, "<="
    return (at + 1, ">=") if not bound and words[:1] == ("+",) else (at, bound)


def _amount(tokens: Sequence[FactToken], at: int) -> Amount | None:
    if at >= len(tokens):
        return None
    currency = _CURRENCIES.get(tokens[at].text, "") if tokens[at].kind == "sign" else ""
    at += bool(currency)
    number = _plain(tokens, at, _SCALES if currency else _COUNTED)
    if number is None:
        return None
    value, at = number
    if currency:
        return Amount(value.times(1), currency, currency, at)
    return _with_unit(tokens, at, value)


def _with_unit(tokens: Sequence[FactToken], at: int, number: Numeral) -> Amount:
    words = [token.text for token in tokens[at : at + 3]] + ["", "", ""]
    if words[0] in ("percentage", "percent") and words[1] in ("point", "points"):
        return Amount(number.times(1), "point", "percentage-points", at + 2)
    if words[:2] == ["per", "cent"]:
        return Amount(number.times(1), "percent", "percent", at + 2)
    if words[0] == "°" and words[1] in ("c", "f"):
        return Amount(number.times(1), {"c": "celsius", "f": "fahrenheit"}[words[1]], words[1], at + 2)
    if words[:2] == ["us", "dollars"] or (words[0] in ("us", "u.s") and words[1] in ("dollars", "dollar")):
        return Amount(number.times(1), "usd", "usd", at + 2)
    skip = words[0] == "-" and words[1] in _UNITS
    word = words[1] if skip else words[0]
    if word in _CURRENCIES:
        return Amount(number.times(1), _CURRENCIES[word], _CURRENCIES[word], at + 1)
    if word in _UNITS and _is_unit_spelling(tokens[at + skip]):
        unit, factor = _UNITS[word]
        return Amount(number.times(factor), unit, word, at + 1 + skip)
    return Amount(number, "", "", at)


def _is_unit_spelling(token: FactToken) -> bool:
    """Return True if the letters denote that unit: `Mg` is not a milligram and `Mb` not a megabyte."""
    written = token.written
    return len(written) > _SYMBOL or written == written.lower() or written in _CAPITAL_UNITS


def _plain(tokens: Sequence[FactToken], at: int, scales: Mapping[str, int]) -> tuple[Numeral, int] | None:
    """Parse digits or number words, with a scale such as `million`."""
    token = tokens[at] if at < len(tokens) else None
    if token is None:
        return None
    if token.kind == "number":
        digits = token.text.lstrip("".join(_MINUS))
        value, at = numeral_of(digits), at + 1
        if value is None:
            return None
        value = value.negated() if token.text.startswith(_MINUS) else value
    elif token.text in ("a", "an") and at + 1 < len(tokens) and tokens[at + 1].text in _WHOLE:
        value, at = plain_numeral(1), at + 1
    else:
        spelt = _spelled_number(tokens, at)
        if spelt is None:
            return None
        value, at = plain_numeral(spelt[0]), spelt[1]
    while at < len(tokens) and tokens[at].text in scales:
        value, at = value.times(scales[tokens[at].text]), at + 1
    return value, at


def _spelled_number(tokens: Sequence[FactToken], at: int) -> tuple[Fraction, int] | None:
    """Parse `twenty-five`, `two hundred and five`, `three thousand two hundred`."""
    total = current = 0
    start = at
    while at < len(tokens):
        words = tokens[at].text.split("-")
        if (
            words == ["and"]
            and at > start
            and tokens[at - 1].text in ("hundred", "thousand")
            and _is_number(tokens, at + 1)
        ):
            at += 1
            continue
        if not all(word in _NUMBERS or (word in ("hundred", "thousand") and at > start) for word in words):
            break
        if len(words) == 1 and at > start and words[0] in _NUMBERS and tokens[at - 1].text in _NUMBERS:
            break
        for word in words:
            if word == "hundred":
                current *= 100
            elif word == "thousand":
                total, current = total + current * 1000, 0
            else:
                current += _NUMBERS[word]
        at += 1
    return (Fraction(total + current), at) if at > start else None


def _is_number(tokens: Sequence[FactToken], at: int) -> bool:
    return at < len(tokens) and all(word in _NUMBERS for word in tokens[at].text.split("-"))


def ordinal_of(token: FactToken) -> int | None:
    """Return the number of `3rd` or `third`, or None."""
    if token.kind == "ordinal":
        return int(token.text[:-2])
    return _ORDINAL.get(token.text)


def compare_quantities(evidence: Quantity, claim: Quantity) -> str:
    """Compare the evidence's number with the claim's: SAME, APART or UNSURE, also if the readings disagree."""
    if evidence.has_commas and _compare(evidence, claim) == SAME:
        # The source separates thousands by commas, so the point of the claim is a decimal point.
        claim = claim._replace(grouped=None)
    comparisons = {_compare(*pair) for pair in _reading_pairs(evidence, claim)}
    return comparisons.pop() if len(comparisons) == 1 else UNSURE


def _reading_pairs(evidence: Quantity, claim: Quantity) -> Iterator[tuple[Quantity, Quantity]]:
    """Yield both numbers in each reading that one of them has."""
    yield evidence, claim
    for one, other in ((evidence.version, claim.version), (evidence.grouped, claim.grouped)):
        if one is not None or other is not None:
            yield _in_reading(evidence, one), _in_reading(claim, other)


def _in_reading(quantity: Quantity, interval: Interval | None) -> Quantity:
    return quantity if interval is None else quantity._replace(low=interval[0], high=interval[1])


def _compare(evidence: Quantity, claim: Quantity) -> str:
    if evidence.unit != claim.unit:
        money = {evidence.unit, claim.unit} <= set(_CURRENCIES.values())
        return APART if money and evidence[:2] == claim[:2] else UNSURE
    if evidence.approximate or claim.approximate:
        return _approximate(evidence, claim)
    comparison = _intervals(evidence, claim)
    if comparison == APART and evidence.written != claim.written and _distance(evidence, claim) <= _CLOSE:
        return UNSURE
    return comparison


def _distance(one: Quantity, other: Quantity) -> Fraction:
    a, b = one.low if one.low is not None else one.high, other.low if other.low is not None else other.high
    return abs((a or Fraction()) - (b or Fraction())) / max(
        abs(a or Fraction()), abs(b or Fraction()), Fraction(1, 10**9)
    )


def _approximate(evidence: Quantity, claim: Quantity) -> str:
    distance = _distance(evidence, claim)
    points = evidence.low == evidence.high and claim.low == claim.high
    if not points:
        return UNSURE
    if claim.approximate and (distance == 0 or (not evidence.approximate and distance <= _CLOSE)):
        return SAME
    return APART if distance > _FAR else UNSURE


def _intervals(evidence: Quantity, claim: Quantity) -> str:
    if evidence[:2] == claim[:2]:
        return SAME if evidence.open == claim.open else UNSURE
    if _before(evidence, claim, claim.open) or _before(claim, evidence, claim.open):
        return APART
    if _is_range(evidence) and _is_range(claim):
        # `2019-2020` and `3 to 5 days` name both ends, so a wider range is another one.
        return UNSURE
    low = claim.low is None or (
        evidence.low is not None and _inside(evidence.low, claim.low, claim.open, evidence.open)
    )
    high = claim.high is None or (
        evidence.high is not None and _inside(claim.high, evidence.high, claim.open, evidence.open)
    )
    return SAME if low and high else UNSURE


def _is_range(quantity: Quantity) -> bool:
    return quantity.low is not None and quantity.high is not None and quantity.low != quantity.high


def _inside(greater: Fraction, less: Fraction, claim_open: bool, evidence_open: bool) -> bool:
    return greater > less or (greater == less and (not claim_open or evidence_open))


def _before(one: Quantity, other: Quantity, strictly: bool) -> bool:
    """Return True if one lies below the other; `over 100` does not deny `100`, but `100` denies `over 100`."""
    if one.high is None or other.low is None:
        return False
    return one.high < other.low or (one.high == other.low and strictly)
