"""Distribution over conjunctions (`A and B did it`), and removal of titles before names."""

from collections.abc import Sequence

from qwed.engines._fact.clauses import is_verb
from qwed.engines._fact.lexicon import BLOCKING, EACH_DID, EACH_UNDERWENT, TITLES, stem
from qwed.engines._fact.text import FactToken

_TOGETHER = frozenset({"together", "jointly", "between", "both", "combined", "each", "other", "respectively"})


def distribute_conjunction(tokens: Sequence[FactToken]) -> list[Sequence[FactToken]]:
    """Return `A and B did it` or `A did b and c` once per part, if each part alone did or underwent it."""
    joins = [at for at, token in enumerate(tokens) if token.text == "and"]
    verb = next((at for at, token in enumerate(tokens) if is_verb(token)), None)
    if len(joins) != 1 or verb is None or not stem(tokens[verb].text).past:
        return []
    if any(token.text in BLOCKING or token.text in _TOGETHER for token in tokens):
        return []
    done, cut = stem(tokens[verb].text).stem, joins[0]
    if cut < verb:
        halves = (tokens[:cut], tokens[cut + 1 : verb])
        # One capitalised word may be half of a company name; two are a person.
        people = all(len(half) > 1 and all(token.capital for token in half) for half in halves)
        return [[*half, *tokens[verb:]] for half in halves] if people and done in EACH_DID else []
    things = (tokens[verb + 1 : cut], tokens[cut + 1 : _sentence_end(tokens)])
    plain = all(len(half) == 1 and half[0].kind == "word" and not half[0].capital for half in things)
    return [[*tokens[: verb + 1], *half] for half in things] if plain and done in EACH_UNDERWENT else []


def _sentence_end(tokens: Sequence[FactToken]) -> int:
    return len(tokens) - (tokens[-1].text in (".", "!"))


def without_title(tokens: Sequence[FactToken]) -> list[Sequence[FactToken]]:
    """Return `Chief executive Ann Lee did it` without the title."""
    for title in TITLES:
        words = title.split()
        name = tokens[len(words) : len(words) + 2]
        if (
            [token.text for token in tokens[: len(words)]] == words
            and len(name) > 1
            and all(token.capital for token in name)
        ):
            return [tokens[len(words) :]]
    return []
