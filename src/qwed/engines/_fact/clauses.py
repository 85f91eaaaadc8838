"""Clauses of the fact engine: assertions of a sentence, in active voice and canonical order."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from qwed.engines._fact.clause_tokens import Item, items_of
from qwed.engines._fact.dates import DateSlot
from qwed.engines._fact.lexicon import (
    BLOCKING,
    CONSEQUENCES,
    DROPPED,
    FAILING,
    NEGATORS,
    NEUTRAL,
    PREPOSITIONS,
    PRESENT,
    QUANTIFIERS,
    stem,
)
from qwed.engines._fact.text import FactToken

MAX_ITEMS = 60
_BE = stem("is").stem
# By word form: a synonym of `decline` applied to a number is not a refusal.
_FAILING = frozenset(form for word in FAILING for form in (word, f"{word}s", f"{word.removesuffix('e')}ed"))
_AUXILIARIES = frozenset({"has", "have", "had"})
_NO_PARTICIPLES = frozenset({"was", "were", "had", "did", "cost", "cut", "hit", "set", "put", "read"})
_RELATIVE = frozenset({"which", "who", "whose", "where", "whom"})


class Clause(NamedTuple):
    """A clause: items in active voice, negation, quantifier and date."""

    items: tuple[Item, ...]
    negative: str = ""
    quantifier: str = ""
    when: DateSlot | None = None
    predicate_date: bool = False
    """True if the date is the assertion itself rather than its time."""
    weaker: bool = False
    """True if something was left out, in which case a negation does not carry over."""

    @property
    def past(self) -> bool:
        """True if it is about the past; `is closed` is about the present."""
        before = (None, *self.items)
        return any(
            item.past and not (last is not None and last.stem == _BE and not last.past)
            for last, item in zip(before, self.items, strict=False)
        )


def clauses_of(tokens: Sequence[FactToken]) -> list[Clause]:
    """Return the readings of one clause of the evidence, with and without droppable words."""
    readings = clause_of(tokens)
    if any(token.text in DROPPED for token in tokens):
        readings += [reading._replace(weaker=True) for reading in clause_of(tokens, DROPPED)]
    return readings


def clause_of(tokens: Sequence[FactToken], dropped: frozenset[str] = NEUTRAL) -> list[Clause]:
    """Return the readings of a clause; a passive clause also without its agent."""
    items = items_of(tokens, dropped)
    if not items or len(items) > MAX_ITEMS:
        return []
    negative, items = _extract_negation(_simplify_perfect(items))
    if negative:
        # `not ... any` negates each single one.
        items = [item for item in items if item.text != "any"]
    quantifier, items = _extract_quantifier(items)
    if quantifier and negative:
        quantifier, negative = ("notall", "") if quantifier == "all" and negative == "first" else ("?", negative)
    when, items, predicate = _extract_date(items)
    readings = [(items, False), *_passive_readings(items)]
    clauses = []
    for reading, weaker in readings:
        normalized = _normalize_identity(_possessive(reading))
        clauses.append(Clause(tuple(normalized), negative, quantifier, when, predicate, weaker))
    return clauses


def _simplify_perfect(items: list[Item]) -> list[Item]:
    """Replace `has acquired` by `acquired` and `has been acquired` by `was acquired`."""
    simplified: list[Item] = []
    for at, item in enumerate(items):
        following = items[at + 1] if at + 1 < len(items) else None
        if item.text in _AUXILIARIES and following is not None:
            if following.past and following.text not in (
                "was",
                "were",
                "had",
                "did",
                "cost",
                "cut",
                "hit",
                "set",
                "put",
                "read",
            ):
                continue
            if following.text == "been" and at + 2 < len(items) and items[at + 2].past:
                continue
        simplified.append(
            item._replace(stem=_BE, past=True) if item.text == "been" and simplified[-1:] != [item] else item
        )
    return simplified


def _is_negator(items: Sequence[Item], at: int) -> str:
    item = items[at]
    if item.text in NEGATORS:
        return "never" if item.text == "never" else "not"
    if item.text == "no" and at > 0:
        return "nolonger" if at + 1 < len(items) and items[at + 1].text == "longer" else "not"
    refusing = item.text in _FAILING or item.text == "unable"
    to_do = at + 2 < len(items) and items[at + 1].text == "to" and items[at + 2].slot is None
    return "failed" if refusing and to_do else ""


def _extract_negation(items: list[Item]) -> tuple[str, list[Item]]:
    """Return the kind of negation and the clause without it; a double negation is left in place."""
    places = [at for at in range(len(items)) if _is_negator(items, at)]
    if len(places) != 1:
        return "", items
    at = places[0]
    kind = _is_negator(items, at)
    before, after = items[:at], items[at + 1 :]
    if kind == "failed":
        before = before[:-1] if before and before[-1].stem == _BE else before
        return "not", [*before, *_in_the_past(after[1:], past=True)]
    if kind == "nolonger":
        return kind, [*before, *after[1:]]
    if before and before[-1].text in ("do", "does", "did"):
        return kind, [*before[:-1], *_in_the_past(after, past=before[-1].text == "did")]
    return ("first" if not before else kind), [*before, *after]


def _in_the_past(items: list[Item], *, past: bool) -> list[Item]:
    return [items[0]._replace(past=past), *items[1:]] if items else items


def _extract_quantifier(items: list[Item]) -> tuple[str, list[Item]]:
    """Return the quantifier at the start of a clause and the rest."""
    if not items or items[0].text not in QUANTIFIERS:
        return "", items
    rest = items[2:] if len(items) > 1 and items[1].text == "of" else items[1:]
    return QUANTIFIERS[items[0].text], rest


def _extract_date(items: list[Item]) -> tuple[DateSlot | None, list[Item], bool]:
    """Return the only date of a clause, the rest, and whether the date is the predicate."""
    dates = [at for at, item in enumerate(items) if isinstance(item.slot, DateSlot)]
    if len(dates) != 1:
        return None, items, False
    at = dates[0]
    slot = items[at].slot
    rest = [*items[:at], *items[at + 1 :]]
    predicate = bool(rest) and at == len(rest) and rest[-1].stem == _BE
    return slot if isinstance(slot, DateSlot) else None, rest, predicate


def _passive_readings(items: list[Item]) -> Iterator[tuple[list[Item], bool]]:
    """Yield a passive clause with its agent as subject, and without its agent."""
    for at in range(1, len(items) - 1):
        if items[at].stem == _BE and items[at + 1].past and items[at + 1].stem != _BE:
            by = next((n for n in range(at + 2, len(items)) if items[n].text == "by"), None)
            if by is None or by + 1 >= len(items) or items[by + 1].slot is not None or _is_gerund(items[by + 1]):
                return
            end = _agent_end(items, by + 1)
            verb = items[at + 1]._replace(past=items[at].past)
            yield [*items[by + 1 : end], verb, *items[:at], *items[at + 2 : by], *items[end:]], False
            if not any(item.text in BLOCKING for item in items[by:end]):
                yield [*items[:by], *items[end:]], True
            return


def _agent_end(items: Sequence[Item], start: int) -> int:
    """Return the end of an agent: before a preposition, unless it states where unnamed people work."""
    end = next((n for n in range(start, len(items)) if items[n].text in PREPOSITIONS), len(items))
    people = end > start and not any(item.capital for item in items[start:end])
    has_workplace = people and end + 2 == len(items) and items[end].text == "at" and items[end + 1].capital
    return len(items) if has_workplace else end


def _is_gerund(item: Item) -> bool:
    return item.text.endswith("ing") and not item.capital


def _possessive(items: list[Item]) -> list[Item]:
    """Rewrite `France's capital` as `the capital of France`."""
    at = next((n for n, item in enumerate(items) if item.text == "'s"), None)
    if at is None or at == 0 or at + 1 >= len(items):
        return items
    end = at + 1
    while end < len(items) and end <= at + 4 and not _ends_noun(items[end]):
        end += 1
    if end == at + 1 or (at > 1 and not _ends_noun(items[at - 2])):
        return items
    owned = [items[at + 1]._replace(definite=True), *items[at + 2 : end]]
    return [*items[: at - 1], *owned, Item("of", "of"), items[at - 1], *items[end:]]


def _ends_noun(item: Item) -> bool:
    return (
        item.stem == _BE or item.past or item.text in PREPOSITIONS or item.slot is not None or item.text in _AUXILIARIES
    )


def _normalize_identity(items: list[Item]) -> list[Item]:
    """Rewrite `The capital of France is Paris` as `Paris is the capital of France`."""
    places = [at for at, item in enumerate(items) if item.stem == _BE]
    if len(places) != 1 or places[0] in (0, len(items) - 1) or items[places[0] + 1].past:
        return items
    left, be, right = items[: places[0]], items[places[0]], items[places[0] + 1 :]
    if len(right) == 1 and right[0].capital and left[0].definite and (not left[0].capital or left[0].upper):
        return [*right, be, *left]
    return items


def pieces_of(tokens: Sequence[FactToken]) -> list[Sequence[FactToken]]:
    """Return the whole sentence, then the clauses it also states."""
    whole = _without_brackets(tokens)
    pieces = [whole]
    for shorter in (_without_relative(whole), _without_apposition(_without_relative(whole))):
        if shorter != pieces[-1]:
            pieces.append(shorter)
    for piece in list(pieces):
        if not any(token.text in BLOCKING or token.text == ":" for token in piece):
            pieces.extend(_coordinate_clauses(piece))
    return pieces + _contrast_clauses(whole)


def _contrast_clauses(tokens: Sequence[FactToken]) -> list[Sequence[FactToken]]:
    """Return the clauses of `A does this but does not do that`."""
    cut = next((at for at, token in enumerate(tokens) if token.text == "but"), 0)
    first, second = tokens[: cut - (tokens[cut - 1].text == ",")], tokens[cut + 1 :]
    if not cut or len(second) < 4 or second[0].text not in ("do", "does", "did") or second[1].text != "not":
        return []
    if any(token.text in BLOCKING or token.text in (",", ":", ";") for token in (*first, *second[2:])):
        return []
    done = stem(second[2].text).stem
    verb = next((at for at, token in enumerate(first) if stem(token.text).stem == done or is_verb(token)), 0)
    return [first, [*first[:verb], *second]] if verb else []


def _without_brackets(tokens: Sequence[FactToken]) -> Sequence[FactToken]:
    """Remove names and numbers in brackets; other bracketed remarks may retract the sentence."""
    if any(_continues_label(*pair) for pair in pairwise(tokens)):
        return tokens
    outside, depth = [], 0
    for token in tokens:
        depth += token.text in ("(", "[")
        if depth == 0:
            outside.append(token)
        elif token.kind == "word" and not token.capital and token.text not in _REMARKS:
            return tokens
        depth -= token.text in (")", "]") and depth > 0
    return outside if depth == 0 else tokens


def _continues_label(number: FactToken, bracket: FactToken) -> bool:
    """Return True for the bracket of `12(2)`, which belongs to the number before it."""
    glued = number.start + len(number.written) == bracket.start
    return glued and number.kind == "number" and bracket.text in ("(", "[")


_REMARKS = frozenset({"formerly", "born", "known", "also", "as", "called", "and", "of", "the", "in"})


def _without_relative(tokens: Sequence[FactToken]) -> Sequence[FactToken]:
    """Remove `, which ...,` from the sentence."""
    for at in range(1, len(tokens) - 1):
        if tokens[at].text != "," or not _starts_addition(tokens, at + 1):
            continue
        end = next((n for n in range(at + 2, len(tokens)) if tokens[n].text == ","), len(tokens))
        if any(token.text in BLOCKING for token in tokens[at + 2 : end]):
            return tokens
        return [*tokens[:at], *tokens[end + 1 :]]
    return tokens


def _starts_addition(tokens: Sequence[FactToken], at: int) -> bool:
    """Return True if the text after a comma only adds: `which ...`, `making it ...`, `up 12% from 2022`."""
    change = tokens[at].text in ("up", "down") and at + 1 < len(tokens) and tokens[at + 1].kind == "number"
    return change or tokens[at].text in _RELATIVE | CONSEQUENCES


def _without_apposition(tokens: Sequence[FactToken]) -> Sequence[FactToken]:
    """Remove `, the head of sales,` after the subject."""
    commas = [at for at, token in enumerate(tokens) if token.text == ","]
    if len(commas) != 2 or commas[1] == len(tokens) - 1:
        return tokens
    inner = tokens[commas[0] + 1 : commas[1]]
    if not inner or inner[0].text not in ("a", "an", "the") or any(is_verb(token) for token in inner):
        return tokens
    if any(is_verb(token) for token in tokens[: commas[0]]) or any(token.text in BLOCKING for token in inner):
        return tokens
    return [*tokens[: commas[0]], *tokens[commas[1] + 1 :]]


def is_verb(token: FactToken) -> bool:
    """Return True if a word is known to be the verb of a clause."""
    sense = stem(token.text)
    present = token.text.endswith("s") and not token.capital and sense.stem in PRESENT
    return token.kind == "word" and (sense.past or present or token.text in ("is", "are", "has", "have", "be"))


def _present_verbs(tokens: Sequence[FactToken]) -> frozenset[str]:
    """Return the verbs in `s` of a half that ends in a circumstance."""
    limited = any(token.text in ("on", "during", "for", "in", "except", "with") for token in tokens)
    return frozenset(token.text for token in tokens if stem(token.text).stem in PRESENT) if limited else frozenset()


def _coordinate_clauses(tokens: Sequence[FactToken]) -> list[Sequence[FactToken]]:
    """Return the clauses of `A did this and did that`, `A did this, and B did that` and `A did this; B did that`."""
    cut = next((at for at, token in enumerate(tokens) if token.text == ";"), None)
    if cut is not None:
        return [part for half in (tokens[:cut], tokens[cut + 1 :]) for part in (half, *_coordinate_clauses(half))]
    cut = next((at for at, token in enumerate(tokens) if token.text == "and"), None)
    if cut is None or cut == 0:
        return []
    comma = tokens[cut - 1].text == ","
    first, second = tokens[: cut - comma], tokens[cut + 1 :]
    verb = next((at for at, token in enumerate(first) if is_verb(token)), None)
    if verb in (None, 0) or not second or any(token.text == "," for token in first[verb:]):
        return []
    if is_verb(second[0]):
        # A restriction such as `on Mondays` may apply to both halves.
        shared = not stem(second[0].text).past and second[0].text in _present_verbs(second)
        return [] if shared else [first, [*first[:verb], *second]]
    if comma and any(is_verb(token) for token in second) and not any(token.text == "," for token in first):
        return [first, second]
    return []
