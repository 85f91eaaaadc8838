"""Entailment between two clauses: supports, refutes, or neither."""

from collections.abc import Sequence
from typing import NamedTuple

from rapidfuzz import fuzz

from qwed.engines._fact.clause_tokens import Item
from qwed.engines._fact.clauses import Clause
from qwed.engines._fact.dates import DateSlot, compare_dates
from qwed.engines._fact.lexicon import (
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
    are_opposite,
    stem,
    stems,
)
from qwed.engines._fact.numbers import APART, SAME, Quantity, compare_quantities

SUPPORTS, REFUTES = "supports", "refutes"
STATE = "opposite state"
_BE = stem("is").stem
_SIMILAR = 80
"""Names more similar than this may be two spellings of one name."""
_PRICES = frozenset({"usd", "eur", "gbp", "jpy", "inr", "chf"})


class Relation(NamedTuple):
    """Relation of the evidence to a claim, and the slot that decides it."""

    kind: str
    slot: str = ""


def relate(evidence: Clause, claim: Clause) -> Relation | None:
    """Return whether the evidence supports or refutes the claim, or None."""
    if "?" in (evidence.quantifier, claim.quantifier) or "first" in (evidence.negative, claim.negative):
        return Relation(SUPPORTS) if evidence == claim else None
    if evidence.negative:
        return _relate_negated(evidence, claim)
    positive = _relate_positive(evidence, claim)
    if positive is None or not claim.negative:
        return positive
    if claim.negative == "nolonger":
        return Relation(REFUTES, "negation") if positive.kind == SUPPORTS and not positive.slot else None
    if positive.kind == SUPPORTS:
        return Relation(REFUTES, "negation")
    # A closed thing is not open: one state negates the other.
    return Relation(SUPPORTS) if claim.negative == "not" and positive.slot == STATE else None


_DENIES = {"never": frozenset({"never", "not"}), "nolonger": frozenset({"nolonger", "not"}), "not": frozenset({"not"})}


def _relate_negated(evidence: Clause, claim: Clause) -> Relation | None:
    """Relate a negated clause, which speaks only of exactly what it negates."""
    if evidence.weaker or evidence.quantifier != claim.quantifier or evidence.when != claim.when:
        return None
    if len(evidence.items) != len(claim.items) or not all(map(_is_identical, evidence.items, claim.items)):
        return None
    if not claim.negative:
        return Relation(REFUTES, "negation")
    return Relation(SUPPORTS) if claim.negative in _DENIES[evidence.negative] else None


def _is_identical(one: Item, other: Item) -> bool:
    return _is_same(one, other) and _bare(one.slot) == _bare(other.slot)


def _bare(slot: Quantity | DateSlot | None) -> Quantity | DateSlot | None:
    """Return the slot without the spelling of its number."""
    return slot._replace(has_commas=False) if isinstance(slot, Quantity) else slot


def _relate_positive(evidence: Clause, claim: Clause) -> Relation | None:
    stated = _without_circumstance(evidence.items, claim.items)
    if len(stated) < len(evidence.items) and evidence.items[len(stated)].text in _WIDENING:
        evidence = evidence._replace(weaker=True)
    if _has_swapped_roles(evidence._replace(items=tuple(stated)), claim):
        return Relation(REFUTES, "role")
    slots = _conflicting_slots(stated, claim.items)
    if slots is None:
        return None
    for slot in (_compare_quantifiers(evidence, claim), _compare_clause_dates(evidence, claim)):
        if slot is None:
            return None
        slots += [slot] if slot else []
    if not slots:
        return Relation(SUPPORTS)
    once = slots[0] == "date" and any(item.past and item.stem in ONCE for item in claim.items)
    return Relation(REFUTES, slots[0]) if len(slots) == 1 and (once or not evidence.weaker) else None


def _compare_quantifiers(evidence: Clause, claim: Clause) -> str | None:
    """Return an empty string if they agree, the slot if they conflict, or None."""
    pair = (evidence.quantifier, claim.quantifier)
    if pair[0] == pair[1] or pair in ENTAILED:
        return ""
    return "quantifier" if pair in EXCLUDED else None


def _compare_clause_dates(evidence: Clause, claim: Clause) -> str | None:
    one, other = evidence.when, claim.when
    if other is None:
        # An event on a day has happened; a state on a day may not hold on another.
        once = one is not None and not one.preposition and one.every != "weekdays"
        return "" if one is None or (once and evidence.past and not evidence.predicate_date) else None
    if one is None or evidence.predicate_date != claim.predicate_date:
        return None
    comparison = compare_dates(one, other)
    counted = _has_count(claim.items)
    if comparison == SAME:
        return "" if one == other or not counted else None
    return "date" if comparison == APART and not counted and (_is_event(claim) or claim.predicate_date) else None


def _has_count(items: Sequence[Item]) -> bool:
    """Return True if a number is a count."""
    return any(isinstance(item.slot, Quantity) and not _is_label_number(items, at) for at, item in enumerate(items))


def _is_event(clause: Clause) -> bool:
    return any((item.past and item.stem != _BE) or item.stem in DATED for item in clause.items)


def _conflicting_slots(evidence: Sequence[Item], claim: Sequence[Item]) -> list[str] | None:
    """Return the slots in which two clauses of equal wording conflict, or None if the wording differs."""
    if len(evidence) != len(claim):
        return None
    slots: list[str] = []
    for at in range(len(claim)):
        slot = _compare_items(evidence[at], claim[at], evidence[at - 1].stem == _BE if at else False)
        if (slot == "name" and not _is_functional_position(claim, at)) or (
            slot == "number" and _is_not_amount(claim, at)
        ):
            slot = None
        if slot is None:
            return None
        slots += [slot] if slot else []
    return slots


def _is_not_amount(claim: Sequence[Item], at: int) -> bool:
    """Return True if another number is no conflict: it is a label, or a sign before it is an operator."""
    sign = claim[at - 1].text if at and claim[at - 1].stem == claim[at - 1].text else "="
    return _is_label_number(claim, at) or not (sign == "=" or any(letter.isalnum() for letter in sign))


def _is_label_number(claim: Sequence[Item], at: int) -> bool:
    """Return True if a number is a label, not a count: `Room 5`, `iPhone 12`, `the first amendment`."""
    number, before = claim[at].slot, claim[:at]
    if not isinstance(number, Quantity):
        return not any(item.past or item.stem == _BE for item in before)
    if number.unit or not before:
        return False
    year = before[-1].text in ("in", "since", "by", "until", "from", "of") and number.low is not None
    return before[-1].capital or before[-1].stem in LABELS or (year and 1000 <= (number.low or 0) <= 2200)


def _compare_items(one: Item, other: Item, state: bool) -> str | None:
    """Return an empty string if two items agree, the kind of slot if they conflict, or None."""
    if isinstance(one.slot, Quantity) and isinstance(other.slot, Quantity):
        return {SAME: "", APART: "number"}.get(compare_quantities(one.slot, other.slot))
    if one.slot is not None or other.slot is not None:
        return "" if isinstance(one.slot, DateSlot) and one.slot == other.slot else None
    if _is_same(one, other):
        return ""
    if are_opposite(one.stem, other.stem):
        return _opposite_slot(one, other, state)
    if one.stem.startswith("ordinal ") and other.stem.startswith("ordinal "):
        return "number"
    return "name" if _is_different_name(one, other) else None


def _opposite_slot(one: Item, other: Item, state: bool) -> str | None:
    if state:
        return STATE
    # A thing can open and later close, but not rise and fall by the same amount.
    return "antonym" if one.past == other.past and not {one.stem, other.stem} <= SEQUENTIAL else None


def _is_same(one: Item, other: Item) -> bool:
    if (
        one.stem != other.stem
        or one.past != other.past
        or (one.upper and not other.capital)
        or (other.upper and not one.capital)
    ):
        return False
    if one.mixed != other.mixed or _is_stronger_claim(one, other):
        return False
    # A name is not a plural: Williams is not William.
    return one.text == other.text or not (one.capital and other.capital)


def _is_stronger_claim(one: Item, other: Item) -> bool:
    """Return True if the claim says `the winner` or `dogs` and the evidence `a winner` or `a dog`."""
    if one.indefinite and not other.indefinite:
        return other.definite or one.text != other.text
    # `Turkey` may be a name; `the turkey` is not.
    named = one.capital and not other.capital
    return other.definite and not one.definite and (named or one.text != other.text)


def _is_different_name(one: Item, other: Item) -> bool:
    if not (one.capital and other.capital) or one.text in PRONOUNS or other.text in PRONOUNS:
        return False
    words, others = one.text.split(), other.text.split()
    initials = {"".join(word[0] for word in many) for many in (words, others) if len(many) > 1}
    misspelt = fuzz.ratio(one.text, other.text) >= _SIMILAR
    return not misspelt and not set(words) & set(others) and not initials & {one.text, other.text}


def _is_functional_position(claim: Sequence[Item], at: int) -> bool:
    """Return True if the position admits only one name: the agent, the unique one, or the place."""
    before, after = claim[:at], claim[at + 1 :]
    if any(item.stem in ONE_PLACE and item.past for item in before):
        return at == len(claim) - 1 and before[-1].text in ("in", "at")
    if before or not after:
        return False
    one = len(after) > 1 and after[0].stem == _BE and after[1].definite
    return after[0].stem in ONE_SUBJECT or (one and (not after[1].capital or after[1].upper))


def _has_swapped_roles(evidence: Clause, claim: Clause) -> bool:
    """Return True if the claim swaps two participants of the evidence."""
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
        if all(map(_is_identical, swapped, claim.items)) and not all(map(_is_identical, items, claim.items)):
            return True
    return False


def _common_tail(evidence: Sequence[Item], claim: Sequence[Item]) -> int:
    """Return the length of the common end of both, starting at a preposition: `... as chief executive`."""
    length = 0
    while length < len(claim) and _is_identical(evidence[-1 - length], claim[-1 - length]):
        length += 1
    return next((n for n in range(length, 0, -1) if claim[-n].text in _CIRCUMSTANCES), 0)


_CIRCUMSTANCES = frozenset({"as", "for", "in"})


def _middle(items: Sequence[Item], at: int) -> int:
    """Return the number of items that form an asymmetric verb or comparison here, or 0."""
    if (items[at].stem in ASYMMETRIC and items[at].text.endswith(("ed", "s"))) or (
        items[at].past and items[at].stem in ASYMMETRIC
    ):
        return 1
    if items[at].stem == _BE:
        than = next((n for n in range(at + 1, min(at + 4, len(items))) if items[n].text == "than"), None)
        return than - at + 1 if than is not None and than > at + 1 else 0
    return 0


def _without_circumstance(evidence: Sequence[Item], claim: Sequence[Item]) -> Sequence[Item]:
    """Remove places, people and prices at the end of an event that the claim leaves out."""
    remaining = evidence
    while len(remaining) >= len(claim) + 2 and _is_circumstance(remaining):
        remaining = remaining[:-2]
    if len(remaining) == len(claim) + 3 and _is_spread(remaining[-3:]):
        return remaining[:-3]
    return remaining if len(remaining) == len(claim) else evidence


_WIDENING = frozenset({"from", "to", "as"})
"""Without these a sentence covers fewer cases, so another number or day is no conflict."""


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
        return thing.capital and bool(verbs & _TRANSFERS) and not _has_count(evidence)
    return preposition.text == "in" and thing.capital and any(item.stem in PLACED for item in evidence)


_SUCCESSIONS = stems("succeed hire appoint join")
_TRANSFERS = stems("acquire sell launch return deliver donate depart graduate hire")


def _is_spread(end: Sequence[Item]) -> bool:
    """Return True for `in 24 countries`: over all of them."""
    preposition, number, places = end
    many = isinstance(number.slot, Quantity) and not number.slot.unit and not number.slot.open
    return preposition.text in ("in", "across") and many and places.stem in SPANNED
