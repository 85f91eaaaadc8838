"""Controlled English, one clause: `All humans are mortal`, `Socrates is not a god`, `x is at least 5`, `Rex barks`.

A class is a noun phrase or an adjective, an individual a name or `the ...`; plural and singular are one word. `All` and
`no` do not say that there are any; `some` says that there is at least one.
"""

import re
from collections.abc import Callable, Collection, Sequence

from qwed.engines._logic.operators import WHOLE
from qwed.engines._logic.syntax import Atom, NotFormal, Tree, apply, call, form, number
from qwed.engines._logic.words import (
    ARTICLES,
    COMPARED,
    MEASURES,
    NOUN_AND_ADJECTIVE,
    NUMERIC,
    PARITY,
    PREPOSITIONS,
    UNREAD,
    WEATHER,
    folded,
    infinitive,
    is_plural,
)

Words = Sequence[str]
Said = Callable[[Tree], Tree]
"""What is said of an individual."""

MAX_PHRASE = 6
_THING = Atom("NAME", "it", 0)
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_VARIABLE = re.compile(r"[a-z][0-9]?")
_COMPARED = frozenset(COMPARED.values())
_UNIVERSAL = ("all", "every", "each", "any")
_JOINTS = frozenset({"and", "or", "but", ","})
_VERBS = frozenset({"is", "are", "can", "does", "do", "equals", "there", "it", "all", "every", "some", "no"})
_SINGULAR = ("every", "each", "any")


def unread(words: Words) -> NotFormal:
    """What is said of words that the grammar does not have."""
    if not words:
        return NotFormal("a part of the sentence is missing")
    return NotFormal(f"`{' '.join(words)[:80]}` is not in the controlled grammar, rephrase it or write a formula")


def clause(words: Words) -> Tree:
    """The statement of one clause without connectives; NotFormal where it is not in the grammar."""
    if not words:
        raise unread(words)
    low = [word.lower() for word in words]
    if low[0] == "there":
        return _there(words, low)
    if low[0] == "it":
        return _weather(low)
    if low[:2] in (["not", "all"], ["not", "every"]):
        return call("NOT", _quantified(low[1], words[2:]))
    if low[0] in (*_UNIVERSAL, "no", "some", "everything", "something", "nothing"):
        return _quantified(low[0], words[1:])
    if low[:2] == ["ge", "one"]:
        return _quantified("some", words[2:])
    return _of_individual(words)


def _there(words: Words, low: Words) -> Tree:
    """`there is a dog`, `there are no dogs`, `there is at least one dog`."""
    if low[1:2] not in (["is"], ["are"], ["exists"], ["exist"]):
        raise unread(words)
    rest, negated = words[2:], low[2:3] == ["no"]
    if low[2:4] == ["ge", "one"]:
        rest = words[4:]
    elif negated or low[2:3] in (["a"], ["an"]):
        rest = words[3:]
    elif low[1] not in ("are", "exist") or not rest or not is_plural(rest[-1]):
        raise unread(words)
    found = _exists(_class(rest, plural=low[1] in ("are", "exist"))(_THING))
    return call("NOT", found) if negated else found


def _weather(low: Words) -> Tree:
    said = " ".join(low[1:])
    plain = said.replace("does not ", "").replace("is not ", "is ")
    if plain not in WEATHER or (plain in ("rain", "snow")) != said.startswith("does not "):
        raise unread(low)
    saying = Atom("SAYING", WEATHER[plain], 0)
    return call("NOT", saying) if " not " in f" {said} " else saying


def _quantified(quantifier: str, words: Words) -> Tree:
    if quantifier in ("everything", "something", "nothing"):
        said, negated = _predicate(words, plural=False)
        if negated and quantifier != "something":
            raise unread(words)
        return _over(quantifier, [], call("NOT", said(_THING)) if negated else said(_THING))
    subject, rest, plural = _split(quantifier, words)
    said, negated = _predicate(rest, plural=plural)
    # `All that glitters is not gold` denies either `all` or the rest; nobody can tell which.
    if negated and quantifier != "some":
        raise unread(words)
    claim = said(_THING)
    restriction = (_quality if plural else _class)(subject, plural=plural)(_THING)
    return _over(quantifier, [restriction], call("NOT", claim) if negated else claim)


def _over(quantifier: str, restriction: list[Tree], claim: Tree) -> Tree:
    if quantifier in ("some", "something"):
        return _exists(*restriction, claim)
    if quantifier in ("no", "nothing"):
        return call("NOT", _exists(*restriction, claim))
    return _bound("FORALL", call("IMPLIES", *restriction, claim) if restriction else claim)


def _exists(*claims: Tree) -> Tree:
    return _bound("EXISTS", call("AND", *claims) if len(claims) > 1 else claims[0])


def _bound(quantifier: str, body: Tree) -> Tree:
    return form([Atom("QUANTIFIER", quantifier, 0), form([_THING], 0), body], 0)


def _split(quantifier: str, words: Words) -> tuple[Words, Words, bool]:
    """The noun phrase, what is said of it, and whether it is in the plural."""
    low = [word.lower() for word in words]
    at = next((index for index, word in enumerate(low) if word in ("is", "are", "can", "do", "does")), None)
    if at is None:
        at = _verb_at(quantifier, words)
    # `Some of the dogs` is about dogs that were named before.
    if not 0 < at < len(words) or low[0] in PREPOSITIONS:
        raise unread(words)
    plural = low[at] in ("are", "do") or (low[at] not in ("is", "does") and is_plural(low[at - 1]))
    if quantifier in _SINGULAR and plural:
        raise unread(words)
    return words[:at], words[at:], plural


def _verb_at(quantifier: str, words: Words) -> int:
    """Where the verb of `All dogs bark` or `Every dog barks` stands: right after a noun of one word."""
    low = [word.lower() for word in words]
    if len(low) < 2 or low[1] in UNREAD:
        return 0
    plural = quantifier not in _SINGULAR and is_plural(low[0])
    # `No good dogs bark` has its verb elsewhere.
    if not plural and quantifier not in _SINGULAR and len(low) > 2 and low[2] not in ARTICLES:
        return 0
    return int((low[1] == infinitive(low[1])) is plural)


def _of_individual(words: Words) -> Tree:
    low = [word.lower() for word in words]
    at = next((index for index, word in enumerate(low) if word in ("is", "equals", "can", "does")), None)
    if at is None:
        at = next((i for i, word in enumerate(words) if i and word.islower() and infinitive(word) != word), 0)
    if not 0 < at < len(words):
        raise unread(words)
    said, negated = _predicate(words[at:], plural=False, subject=words[:at])
    claim = said(individual(words[:at]))
    return call("NOT", claim) if negated else claim


def individual(words: Words) -> Tree:
    """A name, a number or `the ...`."""
    if len(words) == 1 and _NUMBER.fullmatch(words[0]):
        return number(words[0], 0)
    named = list(words[1:] if words and words[0].lower() == "the" else words)
    _refuse_unread(named)
    described = len(named) < len(words)
    if named[0][0].isdigit() or (len(named) > 1 and named[0].lower() in ARTICLES):
        raise unread(words)
    numbered = len(named) == 2 and named[1].isdecimal()
    if not described and not numbered and len(named) > 1 and not all(map(_is_capital, named)):
        raise unread(words)
    return Atom("INDIVIDUAL", " ".join(named).lower(), 0)


def _is_capital(word: str) -> bool:
    return word[0].isupper() or word[0].isdigit()


def _predicate(words: Words, *, plural: bool, subject: Words = ()) -> tuple[Said, bool]:
    """What is said, and whether it is denied."""
    low = [word.lower() for word in words]
    negated = low[1:2] == ["not"]
    rest = words[2:] if negated else words[1:]
    if not words:
        raise unread(subject)
    if low[0] in ("is", "are"):
        if negated and not _JOINTS.isdisjoint(low):
            raise unread(words)
        return _complement(rest, plural=low[0] == "are", subject=subject), negated
    if low[0] == "equals":
        return _compared("EQ", rest), negated
    if low[0] in ("does", "do"):
        if not negated or (low[0] == "do") != plural:
            raise unread(words)
        return _verb(rest), True
    if low[0] == "can":
        return _verb(rest, "can"), negated
    _refuse_unread(words[:1])
    return _verb([words[0] if plural else infinitive(words[0]), *words[1:]]), False


def _complement(words: Words, *, plural: bool, subject: Words) -> Said:
    if not words:
        raise unread(subject)
    head = words[0]
    if not _JOINTS.isdisjoint(words):
        return _coordinated(words, plural=plural, subject=subject)
    if head in _COMPARED:
        return _compared(head, words[1:])
    if len(words) == 1 and _NUMBER.fullmatch(head):
        return _compared("EQ", words)
    if head.lower() in MEASURES:
        return _measured(words, subject)
    if head in ARTICLES:
        return _whole(words) or _class(words[1:], plural=False)
    return _numeric(words, subject) or _quality(words, plural=plural)


def _coordinated(words: Words, *, plural: bool, subject: Words) -> Said:
    """`red or green`, `tall and not thin`: each part is said of the same subject."""
    joint = "OR" if "or" in words else "AND"
    parts = split_at(words[1:] if words[0] in ("either", "both") else words, _JOINTS)
    said = [_part(part, plural=plural, subject=subject) for part in parts]
    return lambda one: call(joint, *(part(one) for part in said))


def _part(words: Words, *, plural: bool, subject: Words) -> Said:
    if words[:1] != ["not"]:
        return _complement(words, plural=plural, subject=subject)
    denied = _complement(words[1:], plural=plural, subject=subject)
    return lambda one: call("NOT", denied(one))


def continues(first: Words, words: Words) -> bool:
    """Whether `words` goes on with what `first` says of its subject, as `green` does in `the light is red or green`."""
    low = [word.lower() for word in first]
    at = next((index for index, word in enumerate(low) if word in ("is", "are")), len(low) - 1)
    said = [word for word in first[at + 1 :] if word not in ("either", "both")]
    rest = list(words[1:] if words[:1] == ["not"] else words)
    if not said or not rest or not _VERBS.isdisjoint(rest) or low[at] not in ("is", "are") or said[0] == "not":
        return False
    is_verb = low[at] == "is" and rest[0].islower() and infinitive(rest[0]) != rest[0]
    return not is_verb and _looks(rest) == _looks(said) != "mixed"


def _looks(words: Words) -> str:
    """A number, a comparison, a name or a word: what can be listed together; a name among words ends no list."""
    if words[0] in _COMPARED or words[0] in MEASURES:
        return "compared"
    if _NUMBER.fullmatch(words[0]):
        return "number"
    capitals = {word[0].isupper() for word in words}
    return "name" if capitals == {True} else "word" if capitals == {False} else "mixed"


def split_at(words: Words, joints: Collection[str]) -> list[Words]:
    """The parts between `joints`; a comma beside a connective leaves nothing between the two."""
    parts: list[list[str]] = [[]]
    for word in words:
        if word.lower() in joints:
            parts.append([])
        else:
            parts[-1].append(word)
    return [part for index, part in enumerate(parts) if part or index in (0, len(parts) - 1)]


def _compared(operator: str, words: Words) -> Said:
    other = individual(words)
    return lambda one: call(operator, one, other)


def _measured(words: Words, subject: Words) -> Said:
    measure, operator = MEASURES[words[0].lower()]
    if words[1:2] != ["than"] or len(words) < 3:
        raise unread(words)
    if measure == "size" and _is_number(subject) and _is_number(words[2:]):
        return _compared(operator, words[2:])
    if _NUMBER.fullmatch(words[2]):
        raise unread(words)
    head, other = Atom("PREDICATE", measure, 0), individual(words[2:])
    return lambda one: call(operator, apply(head, one), apply(head, other))


def _whole(words: Words) -> Said | None:
    if " ".join(words).lower() not in ("an integer", "a whole number"):
        return None
    return lambda one: call(WHOLE.name, one)


def _numeric(words: Words, subject: Words) -> Said | None:
    """`x is positive` is about a number; `the test is positive` need not be."""
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


def _class(words: Words, *, plural: bool) -> Said:
    """A noun phrase or an adjective; a name at its end makes it a relation, as in `a parent of Ann`."""
    _refuse_unread(words)
    if words[0] == "the" or words[0] in ARTICLES or _counts(words):
        raise unread(words)
    if len(words) > 2 and _is_capital(words[-1]) and words[-2].lower() in PREPOSITIONS:
        return _related(_noun(words[:-2], plural=plural), words[-2], words[-1])
    if len(words) == 2 and _is_capital(words[1]) and words[0].lower() in PREPOSITIONS:
        return _related([], words[0], words[1])
    head = Atom("CLASS", " ".join(_noun(words, plural=plural)), 0)
    return lambda one: apply(head, one)


def _quality(words: Words, *, plural: bool) -> Said:
    """A class without an article: an adjective, unless it is in the plural or has a capital."""
    said = _class(words, plural=plural)
    is_noun = len(words) > 1 or words[0][0].isupper() or (plural and is_plural(words[0]))
    if is_noun or words[0].lower() in NOUN_AND_ADJECTIVE:
        return said
    head = Atom("QUALITY", words[0].lower(), 0)
    return lambda one: apply(head, one)


def _counts(words: Words) -> bool:
    """Whether a number says how many or how much; in `divisible by 2` it is part of the name."""
    return any(
        _NUMBER.fullmatch(word) and (index == 0 or words[index - 1] not in ("by", "of"))
        for index, word in enumerate(words)
    )


def _related(noun: list[str], preposition: str, name: str) -> Said:
    words = noun if preposition == "of" else [*noun, preposition.lower()]
    head, other = Atom("CLASS", " ".join(words), 0), individual([name])
    return lambda one: apply(head, one, other)


def _noun(words: Words, *, plural: bool) -> list[str]:
    """The words in lower case, the noun before the first preposition in the singular."""
    low = [word.lower() for word in words]
    at = next((index for index, word in enumerate(low) if index and word in PREPOSITIONS), len(low)) - 1
    if plural:
        low[at] = folded(low[at])
    return low


def _verb(words: Words, *before: str) -> Said:
    """A verb and what follows it; a name alone after it makes it a relation, as in `likes Ann`."""
    _refuse_unread(words)
    if len(words) > 1 and all(map(_is_capital, words[1:])):
        head, other = Atom("DEED", " ".join([*before, words[0].lower()]), 0), individual(words[1:])
        return lambda one: apply(head, one, other)
    phrase = Atom("DEED", " ".join([*before, *(word.lower() for word in words)]), 0)
    return lambda one: apply(phrase, one)


def _refuse_unread(words: Words) -> None:
    if not words or len(words) > MAX_PHRASE:
        raise unread(words)
    for word in words:
        if word.lower() in UNREAD or word in _COMPARED:
            raise NotFormal(f"`{word}` is not in the controlled grammar, rephrase the sentence or write a formula")
