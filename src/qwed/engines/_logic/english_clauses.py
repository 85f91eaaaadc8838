"""Parser for one clause of controlled English: `All humans are mortal`, `Socrates is not a god`, `x is at least 5`.

A class is a noun phrase or an adjective, an individual a name or `the ...`; plural and singular are one word. `All` and
`no` do not imply that there are any; `some` implies that there is at least one.
"""

import re
from collections.abc import Callable, Collection, Sequence

from qwed.engines._logic.morphology import (
    ARTICLES,
    COMPARISONS,
    MEASURES,
    NOUN_AND_ADJECTIVE,
    NUMERIC,
    PARITY,
    PREPOSITIONS,
    UNSUPPORTED_WORDS,
    WEATHER,
    infinitive,
    is_plural,
    singular,
)
from qwed.engines._logic.operators import WHOLE
from qwed.engines._logic.sexpr import Atom, NotFormalError, Tree, apply, call, make_list, number

Words = Sequence[str]
Predicate = Callable[[Tree], Tree]
"""Function from an individual to a statement about it."""

MAX_PHRASE = 6
_THING = Atom("NAME", "it", 0)
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_VARIABLE = re.compile(r"[a-z][0-9]?")
_COMPARISON_OPERATORS = frozenset(COMPARISONS.values())
_UNIVERSAL = ("all", "every", "each", "any")
_JOINTS = frozenset({"and", "or", "but", ","})
_VERBS = frozenset({"is", "are", "can", "does", "do", "equals", "there", "it", "all", "every", "some", "no"})
_SINGULAR = ("every", "each", "any")


def not_in_grammar(words: Words) -> NotFormalError:
    """Return the error for words that are not in the grammar."""
    if not words:
        return NotFormalError("a part of the sentence is missing")
    return NotFormalError(f"`{' '.join(words)[:80]}` is not in the controlled grammar, rephrase it or write a formula")


def parse_clause(words: Words) -> Tree:
    """Parse one clause without connectives; raise NotFormalError if it is not in the grammar."""
    if not words:
        raise not_in_grammar(words)
    low = [word.lower() for word in words]
    if low[0] == "there":
        return _existence(words, low)
    if low[0] == "it":
        return _weather(low)
    if low[:2] in (["not", "all"], ["not", "every"]):
        return call("NOT", _quantified(low[1], words[2:]))
    if low[0] in (*_UNIVERSAL, "no", "some", "everything", "something", "nothing"):
        return _quantified(low[0], words[1:])
    if low[:2] == ["ge", "one"]:
        return _quantified("some", words[2:])
    return _of_individual(words)


def _existence(words: Words, low: Words) -> Tree:
    """Parse `there is a dog`, `there are no dogs`, `there is at least one dog`."""
    if low[1:2] not in (["is"], ["are"], ["exists"], ["exist"]):
        raise not_in_grammar(words)
    rest, negated = words[2:], low[2:3] == ["no"]
    if low[2:4] == ["ge", "one"]:
        rest = words[4:]
    elif negated or low[2:3] in (["a"], ["an"]):
        rest = words[3:]
    elif low[1] not in ("are", "exist") or not rest or not is_plural(rest[-1]):
        raise not_in_grammar(words)
    statement = _exists(_class(rest, plural=low[1] in ("are", "exist"))(_THING))
    return call("NOT", statement) if negated else statement


def _weather(low: Words) -> Tree:
    phrase = " ".join(low[1:])
    plain = phrase.replace("does not ", "").replace("is not ", "is ")
    if plain not in WEATHER or (plain in ("rain", "snow")) != phrase.startswith("does not "):
        raise not_in_grammar(low)
    proposition = Atom("WEATHER", WEATHER[plain], 0)
    return call("NOT", proposition) if " not " in f" {phrase} " else proposition


def _quantified(quantifier: str, words: Words) -> Tree:
    if quantifier in ("everything", "something", "nothing"):
        predicate, negated = _predicate(words, plural=False)
        if negated and quantifier != "something":
            raise not_in_grammar(words)
        return _quantify(quantifier, [], call("NOT", predicate(_THING)) if negated else predicate(_THING))
    subject, rest, plural = _split(quantifier, words)
    predicate, negated = _predicate(rest, plural=plural)
    # `All that glitters is not gold` negates either `all` or the predicate; it is ambiguous.
    if negated and quantifier != "some":
        raise not_in_grammar(words)
    claim = predicate(_THING)
    restriction = (_adjective if plural else _class)(subject, plural=plural)(_THING)
    return _quantify(quantifier, [restriction], call("NOT", claim) if negated else claim)


def _quantify(quantifier: str, restriction: list[Tree], claim: Tree) -> Tree:
    if quantifier in ("some", "something"):
        return _exists(*restriction, claim)
    if quantifier in ("no", "nothing"):
        return call("NOT", _exists(*restriction, claim))
    return _bind("FORALL", call("IMPLIES", *restriction, claim) if restriction else claim)


def _exists(*claims: Tree) -> Tree:
    return _bind("EXISTS", call("AND", *claims) if len(claims) > 1 else claims[0])


def _bind(quantifier: str, body: Tree) -> Tree:
    return make_list([Atom("QUANTIFIER", quantifier, 0), make_list([_THING], 0), body], 0)


def _split(quantifier: str, words: Words) -> tuple[Words, Words, bool]:
    """Return the noun phrase, the predicate, and whether the noun is in the plural."""
    low = [word.lower() for word in words]
    at = next((index for index, word in enumerate(low) if word in ("is", "are", "can", "do", "does")), None)
    if at is None:
        at = _verb_at(quantifier, words)
    # `Some of the dogs` refers to dogs mentioned before.
    if not 0 < at < len(words) or low[0] in PREPOSITIONS:
        raise not_in_grammar(words)
    plural = low[at] in ("are", "do") or (low[at] not in ("is", "does") and is_plural(low[at - 1]))
    if quantifier in _SINGULAR and plural:
        raise not_in_grammar(words)
    return words[:at], words[at:], plural


def _verb_at(quantifier: str, words: Words) -> int:
    """Return the index of the verb in `All dogs bark` or `Every dog barks`: right after a noun of one word."""
    low = [word.lower() for word in words]
    if len(low) < 2 or low[1] in UNSUPPORTED_WORDS:
        return 0
    plural = quantifier not in _SINGULAR and is_plural(low[0])
    # In `No good dogs bark` the verb is not the second word.
    if not plural and quantifier not in _SINGULAR and len(low) > 2 and low[2] not in ARTICLES:
        return 0
    return int((low[1] == infinitive(low[1])) is plural)


def _of_individual(words: Words) -> Tree:
    low = [word.lower() for word in words]
    at = next((index for index, word in enumerate(low) if word in ("is", "equals", "can", "does")), None)
    if at is None:
        at = next((i for i, word in enumerate(words) if i and word.islower() and infinitive(word) != word), 0)
    if not 0 < at < len(words):
        raise not_in_grammar(words)
    predicate, negated = _predicate(words[at:], plural=False, subject=words[:at])
    claim = predicate(parse_individual(words[:at]))
    return call("NOT", claim) if negated else claim


def parse_individual(words: Words) -> Tree:
    """Parse a name, a number or `the ...`."""
    if len(words) == 1 and _NUMBER.fullmatch(words[0]):
        return number(words[0], 0)
    named = list(words[1:] if words and words[0].lower() == "the" else words)
    _refuse_unsupported(named)
    described = len(named) < len(words)
    if named[0][0].isdigit() or (len(named) > 1 and named[0].lower() in ARTICLES):
        raise not_in_grammar(words)
    numbered = len(named) == 2 and named[1].isdecimal()
    if not described and not numbered and len(named) > 1 and not all(map(_is_capital, named)):
        raise not_in_grammar(words)
    return Atom("INDIVIDUAL", " ".join(named).lower(), 0)


def _is_capital(word: str) -> bool:
    return word[0].isupper() or word[0].isdigit()


def _predicate(words: Words, *, plural: bool, subject: Words = ()) -> tuple[Predicate, bool]:
    """Parse a predicate, and return it with whether it is negated."""
    low = [word.lower() for word in words]
    negated = low[1:2] == ["not"]
    rest = words[2:] if negated else words[1:]
    if not words:
        raise not_in_grammar(subject)
    if low[0] in ("is", "are"):
        if negated and not _JOINTS.isdisjoint(low):
            raise not_in_grammar(words)
        return _complement(rest, plural=low[0] == "are", subject=subject), negated
    if low[0] == "equals":
        return _comparison("EQ", rest), negated
    if low[0] in ("does", "do"):
        if not negated or (low[0] == "do") != plural:
            raise not_in_grammar(words)
        return _verb(rest), True
    if low[0] == "can":
        return _verb(rest, "can"), negated
    _refuse_unsupported(words[:1])
    return _verb([words[0] if plural else infinitive(words[0]), *words[1:]]), False


def _complement(words: Words, *, plural: bool, subject: Words) -> Predicate:
    if not words:
        raise not_in_grammar(subject)
    head = words[0]
    if not _JOINTS.isdisjoint(words):
        return _coordination(words, plural=plural, subject=subject)
    if head in _COMPARISON_OPERATORS:
        return _comparison(head, words[1:])
    if len(words) == 1 and _NUMBER.fullmatch(head):
        return _comparison("EQ", words)
    if head.lower() in MEASURES:
        return _comparative(words, subject)
    if head in ARTICLES:
        return _whole(words) or _class(words[1:], plural=False)
    return _numeric(words, subject) or _adjective(words, plural=plural)


def _coordination(words: Words, *, plural: bool, subject: Words) -> Predicate:
    """Parse `red or green`, `tall and not thin`: each part is about the same subject."""
    joint = "OR" if "or" in words else "AND"
    parts = split_at(words[1:] if words[0] in ("either", "both") else words, _JOINTS)
    predicates = [_part(part, plural=plural, subject=subject) for part in parts]
    return lambda one: call(joint, *(part(one) for part in predicates))


def _part(words: Words, *, plural: bool, subject: Words) -> Predicate:
    if words[:1] != ["not"]:
        return _complement(words, plural=plural, subject=subject)
    denied = _complement(words[1:], plural=plural, subject=subject)
    return lambda one: call("NOT", denied(one))


def continues(first: Words, words: Words) -> bool:
    """Return True if `words` continues the predicate of `first`, as `green` in `the light is red or green`."""
    low = [word.lower() for word in first]
    at = next((index for index, word in enumerate(low) if word in ("is", "are")), len(low) - 1)
    complement = [word for word in first[at + 1 :] if word not in ("either", "both")]
    rest = list(words[1:] if words[:1] == ["not"] else words)
    if (
        not complement
        or not rest
        or not _VERBS.isdisjoint(rest)
        or low[at] not in ("is", "are")
        or complement[0] == "not"
    ):
        return False
    is_verb = low[at] == "is" and rest[0].islower() and infinitive(rest[0]) != rest[0]
    return not is_verb and _phrase_type(rest) == _phrase_type(complement) != "mixed"


def _phrase_type(words: Words) -> str:
    """Return the type of a phrase, for lists; a name among words is mixed and ends the list."""
    if words[0] in _COMPARISON_OPERATORS or words[0] in MEASURES:
        return "compared"
    if _NUMBER.fullmatch(words[0]):
        return "number"
    capitals = {word[0].isupper() for word in words}
    return "name" if capitals == {True} else "word" if capitals == {False} else "mixed"


def split_at(words: Words, joints: Collection[str]) -> list[Words]:
    """Split at `joints`; a comma next to a connective adds no empty part."""
    parts: list[list[str]] = [[]]
    for word in words:
        if word.lower() in joints:
            parts.append([])
        else:
            parts[-1].append(word)
    return [part for index, part in enumerate(parts) if part or index in (0, len(parts) - 1)]


def _comparison(operator: str, words: Words) -> Predicate:
    other = parse_individual(words)
    return lambda one: call(operator, one, other)


def _comparative(words: Words, subject: Words) -> Predicate:
    measure, operator = MEASURES[words[0].lower()]
    if words[1:2] != ["than"] or len(words) < 3:
        raise not_in_grammar(words)
    if measure == "size" and _is_number(subject) and _is_number(words[2:]):
        return _comparison(operator, words[2:])
    if _NUMBER.fullmatch(words[2]):
        raise not_in_grammar(words)
    head, other = Atom("PREDICATE", measure, 0), parse_individual(words[2:])
    return lambda one: call(operator, apply(head, one), apply(head, other))


def _whole(words: Words) -> Predicate | None:
    if " ".join(words).lower() not in ("an integer", "a whole number"):
        return None
    return lambda one: call(WHOLE.name, one)


def _numeric(words: Words, subject: Words) -> Predicate | None:
    """Parse `x is positive`, if the subject is a number; `the test is positive` need not be about one."""
    if len(words) != 1 or not _is_number(subject):
        return None
    if words[0] in PARITY:
        rest = number(PARITY[words[0]], 0)
        return lambda one: call(WHOLE.name, call("DIV", call("MINUS", one, rest), number("2", 0)))
    if words[0] not in NUMERIC:
        return None
    operator, bound = NUMERIC[words[0]]
    return lambda one: call(operator, one, number(bound, 0))


def _is_number(words: Words) -> bool:
    return len(words) == 1 and bool(_VARIABLE.fullmatch(words[0]) or _NUMBER.fullmatch(words[0]))


def _class(words: Words, *, plural: bool) -> Predicate:
    """Parse a noun phrase or an adjective; a name at its end makes it a relation, as in `a parent of Ann`."""
    _refuse_unsupported(words)
    if words[0] == "the" or words[0] in ARTICLES or _counts(words):
        raise not_in_grammar(words)
    if len(words) > 2 and _is_capital(words[-1]) and words[-2].lower() in PREPOSITIONS:
        return _relation(_noun(words[:-2], plural=plural), words[-2], words[-1])
    if len(words) == 2 and _is_capital(words[1]) and words[0].lower() in PREPOSITIONS:
        return _relation([], words[0], words[1])
    head = Atom("CLASS", " ".join(_noun(words, plural=plural)), 0)
    return lambda one: apply(head, one)


def _adjective(words: Words, *, plural: bool) -> Predicate:
    """Parse a class without an article: an adjective, unless it is in the plural or has a capital."""
    predicate = _class(words, plural=plural)
    is_noun = len(words) > 1 or words[0][0].isupper() or (plural and is_plural(words[0]))
    if is_noun or words[0].lower() in NOUN_AND_ADJECTIVE:
        return predicate
    head = Atom("ADJECTIVE", words[0].lower(), 0)
    return lambda one: apply(head, one)


def _counts(words: Words) -> bool:
    """Return True if a number is a quantity; in `divisible by 2` it is part of the name."""
    return any(
        _NUMBER.fullmatch(word) and (index == 0 or words[index - 1] not in ("by", "of"))
        for index, word in enumerate(words)
    )


def _relation(noun: list[str], preposition: str, name: str) -> Predicate:
    words = noun if preposition == "of" else [*noun, preposition.lower()]
    head, other = Atom("CLASS", " ".join(words), 0), parse_individual([name])
    return lambda one: apply(head, one, other)


def _noun(words: Words, *, plural: bool) -> list[str]:
    """Return the words in lower case, with the noun before the first preposition in the singular."""
    low = [word.lower() for word in words]
    at = next((index for index, word in enumerate(low) if index and word in PREPOSITIONS), len(low)) - 1
    if plural:
        low[at] = singular(low[at])
    return low


def _verb(words: Words, *before: str) -> Predicate:
    """Parse a verb and its object; a name alone after it makes it a relation, as in `likes Ann`."""
    _refuse_unsupported(words)
    if len(words) > 1 and all(map(_is_capital, words[1:])):
        head, other = Atom("VERB", " ".join([*before, words[0].lower()]), 0), parse_individual(words[1:])
        return lambda one: apply(head, one, other)
    phrase = Atom("VERB", " ".join([*before, *(word.lower() for word in words)]), 0)
    return lambda one: apply(phrase, one)


def _refuse_unsupported(words: Words) -> None:
    if not words or len(words) > MAX_PHRASE:
        raise not_in_grammar(words)
    for word in words:
        if word.lower() in UNSUPPORTED_WORDS or word in _COMPARISON_OPERATORS:
            raise NotFormalError(f"`{word}` is not in the controlled grammar, rephrase the sentence or write a formula")
