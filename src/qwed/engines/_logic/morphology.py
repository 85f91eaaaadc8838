"""English word tables of the controlled grammar: plurals, verb forms, comparisons and unsupported words."""

import re


def _pairs(text: str) -> dict[str, str]:
    """Parse `men:man mice:mouse` as a table; a word without a partner maps to the empty string."""
    return {word.partition(":")[0]: word.partition(":")[2] for word in text.split()}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_IRREGULAR = _pairs(
    "people:person children:child mice:mouse geese:goose feet:foot teeth:tooth oxen:ox lice:louse "
    "lies:lie ties:tie pies:pie movies:movie cookies:cookie zombies:zombie selfies:selfie calories:calorie "
    "wolves:wolf knives:knife wives:wife lives:life calves:calf halves:half leaves:leaf thieves:thief elves:elf "
    "shelves:shelf scarves:scarf loaves:loaf hooves:hoof selves:self "
    "criteria:criterion phenomena:phenomenon alumni:alumnus cacti:cactus fungi:fungus nuclei:nucleus radii:radius "
    "stimuli:stimulus syllabi:syllabus bacteria:bacterium larvae:larva vertebrae:vertebra "
    "analyses:analysis crises:crisis theses:thesis hypotheses:hypothesis oases:oasis "
    "indices:index matrices:matrix vertices:vertex axes:axe caches:cache aches:ache quizzes:quiz "
    "buses:bus gases:gas viruses:virus bonuses:bonus statuses:status lenses:lens campuses:campus octopuses:octopus "
    "walruses:walrus geniuses:genius circuses:circus shoes:shoe toes:toe foes:foe canoes:canoe "
    "news species series physics mathematics athletics sheep fish deer aircraft overseas cosmos chaos atlas alias"
)
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

UNSUPPORTED_WORDS = _words(
    "i me my mine we us our ours you your yours he him his she her hers it its they them their theirs "
    "himself herself itself themselves myself yourself this these those who whom whose which that what when where "
    "why how while because since although though however before after until during whether as "
    "only most many few several almost nearly much more less fewer least enough exactly approximately "
    "both either neither nor never always usually often sometimes rarely seldom hardly scarcely barely generally "
    "typically normally mostly probably possibly perhaps maybe certainly necessarily supposedly allegedly "
    "may might must shall should will would could ought was were been being be am had did done doing having "
    "not no none nobody nothing nowhere all every each any some everyone everybody everything someone somebody "
    "something anyone anybody anything except besides without unless if then and or but xor iff implies "
    "there here such same other another else too also just still about yet again ever "
    "one two three four five six seven eight nine ten dozen half hundred thousand zero first second third last "
    "is are do does than so thus hence therefore believes believe thinks think knows know says say wants want "
    "hopes hope "
    "tomorrow yesterday now former fake alleged so-called supposed"
)
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
