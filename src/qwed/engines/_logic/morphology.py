"""English word tables of the controlled grammar: plurals, verb forms, comparisons and unsupported words."""

import re

from qwed.model.data_files import read_table


def _pairs(text: str) -> dict[str, str]:
    """Parse `men:man mice:mouse` as a table; a word without a partner maps to the empty string."""
    return {word.partition(":")[0]: word.partition(":")[2] for word in text.split()}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_IRREGULAR = _pairs(read_table(__file__, "irregular_nouns.txt"))
_ENDINGS = (
    (re.compile(r"(?<=..)ies$"), "y"),
    (re.compile(r"men$"), "man"),
    (re.compile(r"(?<=ss)es$|(?<=sh)es$|(?<=ch)es$|(?<=x)es$|(?<=zz)es$|(?<=o)es$"), ""),
    (re.compile(r"(?<=[^su'i])s$"), ""),
)


_VERBS = _pairs("has:have goes:go dies:die lies:lie ties:tie caches:cache aches:ache")


def singular(word: str) -> str:
    """Return the singular of a plural noun; other words are returned unchanged."""
    word = word.lower()
    return (_IRREGULAR[word] or word) if word in _IRREGULAR else _without_ending(word)


def infinitive(word: str) -> str:
    """Return the infinitive of a verb in the third person; other words are returned unchanged."""
    word = word.lower()
    return _VERBS.get(word) or (word if word.endswith("men") else _without_ending(word))


def _without_ending(word: str) -> str:
    for ending, replacement in _ENDINGS:
        if ending.search(word):
            return ending.sub(replacement, word)
    return word


def is_plural(word: str) -> bool:
    """Return True if a noun is in the plural, or has the same form in both."""
    return singular(word) != word.lower() or _IRREGULAR.get(word.lower()) == ""


ARTICLES = frozenset({"a", "an"})
PREPOSITIONS = _words("of in on at to for with by from near under over into onto against")
FUNCTION_WORDS = ARTICLES | PREPOSITIONS | frozenset({"the", "be", "have", "can", "do"})
"""Words that two unrelated phrases may share."""

UNSUPPORTED_WORDS = _words(read_table(__file__, "unsupported_words.txt"))
"""Words that make a phrase unsupported: they may negate, quantify, refer elsewhere, or change the tense."""

NOUN_AND_ADJECTIVE = _words(
    "human mortal immortal adult criminal vegetarian vegan native female male prime veteran amateur professional expert"
)
"""Words with the same meaning as noun and adjective.

`Socrates is human` and `Socrates is a human` are equal; `the box is light` and `the box is a light` are not.
"""

CONTRACTIONS = {
    "isn't": "is not",
    "aren't": "are not",
    "doesn't": "does not",
    "don't": "do not",
    "can't": "can not",
    "cannot": "can not",
}

COMPARISONS = {
    "greater than or equal to": "GE",
    "more than or equal to": "GE",
    "less than or equal to": "LE",
    "no more than": "LE",
    "not more than": "LE",
    "no less than": "GE",
    "not less than": "GE",
    "greater than": "GT",
    "more than": "GT",
    "less than": "LT",
    "fewer than": "LT",
    "at least": "GE",
    "at most": "LE",
    "equal to": "EQ",
    "different from": "NE",
}
"""Comparisons between numbers; each phrase becomes one word before a sentence is split."""

_MORE = _pairs(
    "taller:height older:age heavier:weight faster:speed bigger:size larger:size richer:wealth hotter:temperature "
    "warmer:temperature longer:length deeper:depth wider:width higher:altitude later:time stronger:strength"
)
_LESS = _pairs(
    "shorter:height younger:age lighter:weight slower:speed smaller:size poorer:wealth colder:temperature "
    "cooler:temperature cheaper:price earlier:time weaker:strength"
)
MEASURES = {
    **{word: (measure, "GT") for word, measure in _MORE.items()},
    **{word: (measure, "LT") for word, measure in _LESS.items()},
}
"""Comparatives: `Ann is taller than Bob` compares two unknown numbers, so it is transitive and asymmetric."""

NUMERIC = {"positive": ("GT", "0"), "negative": ("LT", "0"), "zero": ("EQ", "0"), "nonzero": ("NE", "0")}
PARITY = {"even": "0", "odd": "1"}
WEATHER = {
    **dict.fromkeys(("rains", "is raining", "rain"), "it rains"),
    **dict.fromkeys(("snows", "is snowing", "snow"), "it snows"),
}
