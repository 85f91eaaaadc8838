"""The fact engine's judgement: whether one clause says what another says, the contrary, or neither."""

from collections.abc import Sequence
from typing import NamedTuple

from rapidfuzz import fuzz

from qwed.engines._fact.clauses import Clause
from qwed.engines._fact.dates import When, compare_dates
from qwed.engines._fact.items import Item
from qwed.engines._fact.numbers import APART, SAME, Quantity, compare_quantities
from qwed.engines._fact.words import (
    ASYMMETRIC,
    DATED,
    ENTAILED,
    EVENTS,
    EXCLUDED,
    LABELS,
    ONCE,
    ONE_PLACE,
    ONE_SUBJECT,
    PLACED,
    PRONOUNS,
    SEQUENTIAL,
    SPANNED,
    opposite,
    stem,
    stems,
)

SUPPORTS, REFUTES = "supports", "refutes"
STATE = "opposite state"
_BE = stem("is").stem
_ALIKE = 80
"""Names more alike than this may be one name, spelt twice."""
_PRICES = frozenset({"usd", "eur", "gbp", "jpy", "inr", "chf"})


class Relation(NamedTuple):
    """What a clause does to a claim, and by which slot."""

    kind: str
    slot: str = ""


def relate(evidence: Clause, claim: Clause) -> Relation | None:
    """Whether the evidence supports or refutes the claim; None where it does neither."""
    if "?" in (evidence.quantifier, claim.quantifier) or "first" in (evidence.negative, claim.negative):
        return Relation(SUPPORTS) if evidence == claim else None
    if evidence.negative:
        return _denied(evidence, claim)
    positive = _positive(evidence, claim)
    if positive is None or not claim.negative:
        return positive
    if claim.negative == "nolonger":
        return Relation(REFUTES, "negation") if positive.kind == SUPPORTS and not positive.slot else None
    if positive.kind == SUPPORTS:
        return Relation(REFUTES, "negation")
    # A thing that is closed is not open: the one state is the denial of the other.
    return Relation(SUPPORTS) if claim.negative == "not" and positive.slot == STATE else None


_DENIES = {"never": frozenset({"never", "not"}), "nolonger": frozenset({"nolonger", "not"}), "not": frozenset({"not"})}


def _denied(evidence: Clause, claim: Clause) -> Relation | None:
    """A denial speaks of exactly what it denies."""
    if evidence.weaker or evidence.quantifier != claim.quantifier or evidence.when != claim.when:
        return None
    if len(evidence.items) != len(claim.items) or not all(map(_identical, evidence.items, claim.items)):
        return None
    if not claim.negative:
        return Relation(REFUTES, "negation")
    return Relation(SUPPORTS) if claim.negative in _DENIES[evidence.negative] else None


def _identical(one: Item, other: Item) -> bool:
    return _same(one, other) and one.slot == other.slot


def _positive(evidence: Clause, claim: Clause) -> Relation | None:
    stated = _without_circumstance(evidence.items, claim.items)
    if len(stated) < len(evidence.items) and evidence.items[len(stated)].text in _WIDENING:
        evidence = evidence._replace(weaker=True)
    if _swapped(evidence._replace(items=tuple(stated)), claim):
        return Relation(REFUTES, "role")
    slots = _slots(stated, claim.items)
    if slots is None:
        return None
    for found in (_quantifiers(evidence, claim), _dates(evidence, claim)):
        if found is None:
            return None
        slots += [found] if found else []
    if not slots:
        return Relation(SUPPORTS)
    once = slots[0] == "date" and any(item.past and item.stem in ONCE for item in claim.items)
    return Relation(REFUTES, slots[0]) if len(slots) == 1 and (once or not evidence.weaker) else None


def _quantifiers(evidence: Clause, claim: Clause) -> str | None:
    """Empty where they agree, the slot where they contradict, None where neither."""
    pair = (evidence.quantifier, claim.quantifier)
    if pair[0] == pair[1] or pair in ENTAILED:
        return ""
    return "quantifier" if pair in EXCLUDED else None


def _dates(evidence: Clause, claim: Clause) -> str | None:
    one, other = evidence.when, claim.when
    if other is None:
        # A thing that happened on a day happened; what holds on a day may hold on no other.
        once = one is not None and not one.preposition and one.every != "weekdays"
        return "" if one is None or (once and evidence.past and not evidence.predicate_date) else None
    if one is None or evidence.predicate_date != claim.predicate_date:
        return None
    found = compare_dates(one, other)
    counted = _counts(claim.items)
    if found == SAME:
        return "" if one == other or not counted else None
    return "date" if found == APART and not counted and (_event(claim) or claim.predicate_date) else None


def _counts(items: Sequence[Item]) -> bool:
    """Whether a number says how many."""
    return any(isinstance(item.slot, Quantity) and not _identifies(items, at) for at, item in enumerate(items))


def _event(clause: Clause) -> bool:
    return any((item.past and item.stem != _BE) or item.stem in DATED for item in clause.items)


def _slots(evidence: Sequence[Item], claim: Sequence[Item]) -> list[str] | None:
    """The slots in which two clauses of otherwise the same wording contradict each other; None where they differ."""
    if len(evidence) != len(claim):
        return None
    slots: list[str] = []
    for at in range(len(claim)):
        found = _slot(evidence[at], claim[at], evidence[at - 1].stem == _BE if at else False)
        if (found == "name" and not _functional(claim, at)) or (found == "number" and _no_amount(claim, at)):
            found = None
        if found is None:
            return None
        slots += [found] if found else []
    return slots


def _no_amount(claim: Sequence[Item], at: int) -> bool:
    """Whether another number does not contradict it: it says which one, or a sign before it says what is done to it."""
    sign = claim[at - 1].text if at and claim[at - 1].stem == claim[at - 1].text else "="
    return _identifies(claim, at) or not (sign == "=" or any(letter.isalnum() for letter in sign))


def _identifies(claim: Sequence[Item], at: int) -> bool:
    """Whether a number says which one and not how many: `Room 5`, `iPhone 12`, `the first amendment`."""
    number, before = claim[at].slot, claim[:at]
    if not isinstance(number, Quantity):
        return not any(item.past or item.stem == _BE for item in before)
    if number.unit or not before:
        return False
    year = before[-1].text in ("in", "since", "by", "until", "from", "of") and number.low is not None
    return before[-1].capital or before[-1].stem in LABELS or (year and 1000 <= (number.low or 0) <= 2200)


def _slot(one: Item, other: Item, state: bool) -> str | None:
    """Empty where two items say the same, the kind of slot where they contradict, None where neither."""
    if isinstance(one.slot, Quantity) and isinstance(other.slot, Quantity):
        return {SAME: "", APART: "number"}.get(compare_quantities(one.slot, other.slot))
    if one.slot is not None or other.slot is not None:
        return "" if isinstance(one.slot, When) and one.slot == other.slot else None
    if _same(one, other):
        return ""
    if opposite(one.stem, other.stem):
        return _opposed(one, other, state)
    if one.stem.startswith("ordinal ") and other.stem.startswith("ordinal "):
        return "number"
    return "name" if _other_name(one, other) else None


def _opposed(one: Item, other: Item, state: bool) -> str | None:
    if state:
        return STATE
    # One thing opened and closed; it did not rise and fall by as much.
    return "antonym" if one.past == other.past and not {one.stem, other.stem} <= SEQUENTIAL else None


def _same(one: Item, other: Item) -> bool:
    if (
        one.stem != other.stem
        or one.past != other.past
        or (one.upper and not other.capital)
        or (other.upper and not one.capital)
    ):
        return False
    if one.mixed != other.mixed or _strengthened(one, other):
        return False
    # A name is not its own plural: Williams is not William.
    return one.text == other.text or not (one.capital and other.capital)


def _strengthened(one: Item, other: Item) -> bool:
    """Whether `the winner` or `dogs` is claimed where `a winner` or `a dog` is stated."""
    if one.indefinite and not other.indefinite:
        return other.definite or one.text != other.text
    # `Turkey` may be a name, and `the turkey` is none.
    named = one.capital and not other.capital
    return other.definite and not one.definite and (named or one.text != other.text)


def _other_name(one: Item, other: Item) -> bool:
    if not (one.capital and other.capital) or one.text in PRONOUNS or other.text in PRONOUNS:
        return False
    words, others = one.text.split(), other.text.split()
    initials = {"".join(word[0] for word in many) for many in (words, others) if len(many) > 1}
    misspelt = fuzz.ratio(one.text, other.text) >= _ALIKE
    return not misspelt and not set(words) & set(others) and not initials & {one.text, other.text}


def _functional(claim: Sequence[Item], at: int) -> bool:
    """Whether the place of an item takes one name only: it is who did it, what is the one, or where it lies."""
    before, after = claim[:at], claim[at + 1 :]
    if any(item.stem in ONE_PLACE and item.past for item in before):
        return at == len(claim) - 1 and before[-1].text in ("in", "at")
    if before or not after:
        return False
    one = len(after) > 1 and after[0].stem == _BE and after[1].definite
    return after[0].stem in ONE_SUBJECT or (one and (not after[1].capital or after[1].upper))


def _swapped(evidence: Clause, claim: Clause) -> bool:
    """Whether the claim gives what the evidence says of two to each other's place."""
    if len(evidence.items) != len(claim.items) or evidence.quantifier or claim.quantifier:
        return False
    if claim.when not in (None, evidence.when):
        return False
    tail = _common_tail(evidence.items, claim.items)
    items = list(evidence.items[: len(evidence.items) - tail])
    claim = claim._replace(items=claim.items[: len(claim.items) - tail])
    for at in range(len(items)):
        middle = _middle(items, at)
        if not 0 < at <= at + middle < len(items) or not middle:
            continue
        left, right = items[:at], items[at + middle :]
        if left == right or not (left[0].capital or left[0].definite):
            continue
        swapped = [*right, *items[at : at + middle], *left]
        if all(map(_identical, swapped, claim.items)) and not all(map(_identical, items, claim.items)):
            return True
    return False


def _common_tail(evidence: Sequence[Item], claim: Sequence[Item]) -> int:
    """How many items at the end are the same in both, from a preposition on: `... as chief executive`."""
    length = 0
    while length < len(claim) and _identical(evidence[-1 - length], claim[-1 - length]):
        length += 1
    return next((n for n in range(length, 0, -1) if claim[-n].text in _CIRCUMSTANCES), 0)


_CIRCUMSTANCES = frozenset({"as", "for", "in"})


def _middle(items: Sequence[Item], at: int) -> int:
    """How many items from here on are a verb or a comparison whose sides cannot change places; 0 where none."""
    if (items[at].stem in ASYMMETRIC and items[at].text.endswith(("ed", "s"))) or (
        items[at].past and items[at].stem in ASYMMETRIC
    ):
        return 1
    if items[at].stem == _BE:
        than = next((n for n in range(at + 1, min(at + 4, len(items))) if items[n].text == "than"), None)
        return than - at + 1 if than is not None and than > at + 1 else 0
    return 0


def _without_circumstance(evidence: Sequence[Item], claim: Sequence[Item]) -> Sequence[Item]:
    """An event without the places, people and prices at its end, which the claim leaves out."""
    kept = evidence
    while len(kept) >= len(claim) + 2 and _is_circumstance(kept):
        kept = kept[:-2]
    if len(kept) == len(claim) + 3 and _is_spread(kept[-3:]):
        return kept[:-3]
    return kept if len(kept) == len(claim) else evidence


_WIDENING = frozenset({"from", "to", "as"})
"""Without these a sentence speaks of fewer things than there may be: another number or day does not contradict it."""


def _is_circumstance(evidence: Sequence[Item]) -> bool:
    verbs = {item.stem for item in evidence if item.past}
    preposition, thing = evidence[-2], evidence[-1]
    if not verbs & EVENTS:
        return False
    if preposition.text == "for":
        return isinstance(thing.slot, Quantity) and thing.slot.unit in _PRICES
    if preposition.text == "as":
        return bool(verbs & _SUCCESSIONS) and thing.slot is None and not thing.past
    if preposition.text in ("from", "to"):
        return thing.capital and bool(verbs & _MOVED) and not _counts(evidence)
    return preposition.text == "in" and thing.capital and any(item.stem in PLACED for item in evidence)


_SUCCESSIONS = stems("succeed hire appoint join")
_MOVED = stems("acquire sell launch return deliver donate depart graduate hire")


def _is_spread(end: Sequence[Item]) -> bool:
    """`in 24 countries`: over all of them."""
    preposition, number, places = end
    many = isinstance(number.slot, Quantity) and not number.slot.unit and not number.slot.open
    return preposition.text in ("in", "across") and many and places.stem in SPANNED
