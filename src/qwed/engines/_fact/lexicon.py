"""Lexicon of the fact engine: synonyms, opposites, stop words and verb classes."""

import re
from typing import NamedTuple

from qwed.model.data_files import read_mapping, read_table


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ARTICLES = _words("the a an")
PRONOUNS = _words(
    "he she it they we i you him them us me this that these those his her hers its their theirs our ours your "
    "yours my mine"
)
ANAPHORA = _words("latter aforementioned aforesaid")
NEUTRAL = _words(
    "however moreover additionally meanwhile notably indeed therefore thus consequently furthermore located situated"
)
"""Words without meaning for a claim."""
TITLES = (
    "chief executive officer",
    "chief financial officer",
    "chief technology officer",
    "chief operating officer",
    "chief executive",
    *("ceo", "cfo", "cto", "coo", "chairman", "chairwoman", "professor", "senator", "co-founder"),
)
"""Titles before a name that may be left out."""
DROPPED = NEUTRAL | _words(
    "officially formally recently also successfully finally later subsequently today currently now already just only"
)
"""Words that the evidence may have and the claim omit."""
COMPANY_FORMS = _words("inc inc. corp corp. ltd ltd. llc plc gmbh co co. corporation incorporated limited")
PREPOSITIONS = _words(
    "in on at by for from to with since until during after before as near into onto over under through across "
    "against about within without between among toward towards via per despite"
)
BLOCKING = _words(read_table(__file__, "blocking_words.txt"))
"""Words that prevent a sentence from being split: its clauses may not be asserted."""
FRAMES = _words("suppose imagine assume consider hypothetically pretend picture say")
"""First words of a sentence that make its paragraph hypothetical."""
FORWARD_REFERENCES = _words("following follows below here")
"""Words that, next to a doubt, apply it to what follows: `The following is untrue.`"""
BACK_REFERENCES = _words("this that it so these those such above latter truth contrary opposite")
FALSEHOOD_TITLES = _words(
    "myth myths misconception misconceptions fiction rumor rumors rumour rumours hoax satire joke scenario"
)
_FALSE = (
    "false|untrue|not true|incorrect|wrong|a myth|myths|a lie|lies|fiction\\w*|a rumou?r|a hoax|hoax|satire|a joke|"
    "denied|retracted|debunked|disputed|inaccurate|mistaken|an error|not the case|corrected|fabricated|a fabrication|"
    "invented|made up|refuted|disproved|disproven|withdrawn|a dream|a test|an example|hypothetical"
)
DENIALS = re.compile(
    r"\W*(?:but |however,? |of course,? )?"
    r"(?:this|that|it|which|these|none of (?:this|that|these|it)|"
    r"the (?:claim|story|report|statement|rumou?r|above|latter)s?)"
    r"(?: \w+){0,3}? (?:is|was|are|were|has been|have been|turned out to be|proved(?: to be)?)(?: \w+){0,2}? ?"
    rf"(?:{_FALSE})\b"
    r"|\W*(?:(?:verdict|rating|status|answer|ruling|conclusion|reality|fact check|truth|rated|our rating)\W+"
    r"(?:\w+ ){0,3}?)?"
    r"(?:false|wrong|not true|untrue|incorrect|nonsense|no|not|nope|never|just kidding|misleading|mostly false)\W*$",
    re.IGNORECASE,
)
"""A sentence that retracts the previous one."""

NEGATORS = _words("not never cannot")
FAILING = _words("fail refuse decline neglect")

_IRREGULAR = read_table(__file__, "irregular_verbs.txt")
IRREGULAR = dict(pair.split("=") for pair in _IRREGULAR.split())
_PRESENT = {"is": "be", "are": "be", "been": "be", "has": "have", "does": "do", "goes": "go"}
_PLURALS = {"children": "child", "people": "person", "men": "man", "women": "woman", "feet": "foot", "mice": "mouse"}

_SYNONYMS = read_table(__file__, "synonyms.txt")
_ANTONYMS = read_table(__file__, "antonyms.txt")
_EXCLUSIVE = """
red orange yellow green blue purple pink brown black white grey gray
north south east west
northern southern eastern western
married divorced widowed
catholic protestant muslim hindu buddhist jewish
bronze silver gold
"""
"""Words of which at most one is true of a thing at a time."""


class Sense(NamedTuple):
    """Stem of a word and whether its form is past."""

    stem: str
    past: bool


def stem(word: str) -> Sense:
    """Return the stem of a word and whether its form is past, by cutting known endings only."""
    word = _PLURALS.get(word) or _PRESENT.get(word, word)
    if word in IRREGULAR:
        return Sense(_canonical(_strip_ending(IRREGULAR[word])), True)
    if word.endswith("ied") and len(word) > 4:
        return Sense(_canonical(word[:-3] + "y"), True)
    if word.endswith("ed") and len(word) > 4 and not word.endswith("eed"):
        return Sense(_canonical(_strip_final_e(word[:-2])), True)
    return Sense(_canonical(_strip_ending(word)), False)


def _strip_ending(word: str) -> str:
    """Remove the ending of a plural or of the third person."""
    if len(word) <= 3:
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    return _strip_final_e(word)


def _strip_final_e(word: str) -> str:
    word = word[:-1] if word.endswith("e") and len(word) > 3 else word
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiou" else word


def _synonyms() -> dict[str, str]:
    lines = (line.split() for line in _SYNONYMS.strip().splitlines())
    return {_strip_ending(word): _strip_ending(words[0]) for words in lines for word in words}


_SAME = _synonyms()


def _canonical(cut: str) -> str:
    return _SAME.get(cut, cut)


def _opposites() -> frozenset[frozenset[str]]:
    pairs = {frozenset(stem(word).stem for word in pair.split("|")) for pair in _ANTONYMS.split()}
    for line in _EXCLUSIVE.strip().splitlines():
        words = [stem(word).stem for word in line.split()]
        pairs |= {frozenset({one, other}) for one in words for other in words}
    return frozenset(pair for pair in pairs if len(pair) == 2)


_OPPOSITES = _opposites()


def are_opposite(one: str, other: str) -> bool:
    """Return True if two stems cannot both be true of the same thing."""
    return frozenset({one, other}) in _OPPOSITES


def stems(text: str) -> frozenset[str]:
    """Return the stems of a list of words."""
    return frozenset(stem(word).stem for word in text.split())


ONE_SUBJECT = stems(
    "founded invent discover write acquire win direct compose paint design own kill assassinate succeed precede"
)
"""Verbs whose object has one subject: another name contradicts."""
ONE_PLACE = stems("bear headquarter located")
"""Verbs whose subject has one place."""
ASYMMETRIC = stems(
    "founded invent discover write acquire direct compose paint design own defeat beat kill assassinate succeed "
    "precede employ hire fire father outsell overtake owe manage supervise conquer adopt fund finance"
)
"""Verbs whose subject and object cannot be swapped."""
EVENTS = stems(
    "acquire sell founded create launch open build bear die marry sign release publish hire appoint join visit "
    "meet hold move discover invent write complete graduate begin arrive compose paint direct succeed return deliver "
    "donate depart"
)
"""Verbs of events, whose circumstances may be left out."""
ONCE = stems("founded born die invent discover establish")
"""Verbs of events that happen to a thing only once."""
EACH_DID = stems("land live work die born study arrive depart graduate remain attend visit travel resign survive")
"""Verbs that apply to each of two people named together."""
EACH_UNDERWENT = stems("discover invent acquire sell publish launch open close visit produce")
"""Verbs that apply to each of two objects named together."""
SPANNED = stems("country city state office location store branch region continent")
"""Nouns of places that a number may span."""
PRESENT = stems("open close employ own sell make produce operate serve provide contain manage live")
"""Verbs whose present tense in `s` is recognised."""
PLACED = stems("born founded")
"""Verbs of events whose place may be left out; elsewhere a name after `in` may be a play."""
DATED = stems("expire end begin arrive depart start launch due occur happen")
"""Present-tense verbs that refer to one day."""
LABELS = stems(
    "section room type flight version chapter article page line level phase step grade class unit model figure "
    "table gate platform route highway day week act part volume season episode floor lot item question task "
    "ticket issue case bus"
)
"""Nouns whose number is a label."""
SEQUENTIAL = stems(
    "join leave hire fire arrive depart enter exit build demolish create destroy appear disappear open close "
    "begin end import export lend borrow lock unlock encrypt decrypt remember forget gain lose include"
) - stems("lose include")
"""Opposites that can both happen one after the other; they conflict only as states."""

PHRASES = read_mapping(__file__, "phrases.txt")
"""Phrases and the words that replace them."""

QUANTIFIERS = {
    "all": "all", "every": "all", "each": "all", "most": "most", "many": "many", "several": "some", "some": "some",
    "no": "none", "none": "none",
}  # fmt: skip
ENTAILED = frozenset(
    {
        *(("all", weaker) for weaker in ("", "most", "many", "some")),
        ("most", "many"),
        ("most", "some"),
        ("many", "some"),
        ("none", "notall"),
    }
)
"""Quantifier pairs in which the first entails the second."""
EXCLUDED = frozenset(
    {
        *(("none", other) for other in ("", "all", "most", "many", "some")),
        *((other, "none") for other in ("all", "most", "many", "some")),
        ("all", "notall"),
        ("notall", "all"),
    }
)


CONSEQUENCES = _words("making becoming bringing giving marking ending creating leaving causing raising setting")
"""First words of a clause after a comma that states a consequence and can be removed."""
