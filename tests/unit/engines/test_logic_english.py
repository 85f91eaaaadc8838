"""Controlled English of the logic engine: supported sentences, their meaning, and unsupported ones."""

from itertools import product

import pytest

from qwed.engines.logic import verify
from qwed.engines.protocol import EngineRequest
from qwed.model import Status, Verdict
from tests.support.case_tables import each, split_for_drill


def entails(premises: list[str], conclusion: str) -> Verdict:
    return verify(EngineRequest(parameters={"premises": premises, "conclusion": conclusion}))


SENTENCE = {"A": "All {} are {}", "E": "No {} are {}", "I": "Some {} are {}", "O": "Some {} are not {}"}
FORMULA = {
    "A": "forall x. {0}(x) -> {1}(x)",
    "E": "~exists x. {0}(x) & {1}(x)",
    "I": "exists x. {0}(x) & {1}(x)",
    "O": "exists x. {0}(x) & ~{1}(x)",
}
FIGURES = {"1": ("MP", "SM"), "2": ("PM", "SM"), "3": ("MP", "MS"), "4": ("PM", "MS")}
NOUNS = {"S": "senators", "P": "poets", "M": "musicians"}
PREDICATES = {"S": "Senator", "P": "Poet", "M": "Musician"}
VALID = {
    *("AAA1", "EAE1", "AII1", "EIO1", "EAE2", "AEE2", "EIO2", "AOO2"),
    *("IAI3", "AII3", "OAO3", "EIO3", "AEE4", "IAI4", "EIO4"),
}
"""The fifteen moods that hold in modern logic."""
IMPORTING = {
    **dict.fromkeys(("AAI1", "EAO1", "AEO2", "EAO2", "AEO4"), "S"),
    **dict.fromkeys(("AAI3", "EAO3", "EAO4"), "M"),
    "AAI4": "P",
}
"""The nine moods that need a member of one class to exist."""
MOODS = ["".join(letters) + figure for letters in product("AEIO", repeat=3) for figure in FIGURES]


def syllogism(mood: str, shapes: dict[str, str], terms: dict[str, str]) -> tuple[list[str], str]:
    major, minor = FIGURES[mood[3]]
    pairs = [major, minor, "SP"]
    lines = [shapes[letter].format(*(terms[term] for term in pair)) for letter, pair in zip(mood, pairs, strict=False)]
    return lines[:2], lines[2]


SOME, OTHERS = split_for_drill(MOODS, 4, lambda mood: {mood} & {*VALID, *IMPORTING})
"""Every mood that holds or would hold with one more member, and a quarter of the others."""


def require_judged(mood):
    expected = Status.VERIFIED if mood in VALID else Status.FAILED
    assert entails(*syllogism(mood, SENTENCE, NOUNS)).status is expected
    assert entails(*syllogism(mood, FORMULA, PREDICATES)).status is expected


@each("mood", SOME)
def test_a_mood_of_the_syllogism_is_judged_alike_in_english_and_in_first_order_notation(mood):
    require_judged(mood)


@pytest.mark.drill
@each("mood", OTHERS)
def test_every_other_mood_of_the_syllogism_is_judged_alike_too(mood):
    require_judged(mood)


@pytest.mark.parametrize(("mood", "term"), IMPORTING.items())
def test_nine_moods_hold_once_the_class_is_said_to_have_a_member(mood, term):
    premises, conclusion = syllogism(mood, SENTENCE, NOUNS)
    assert entails([*premises, f"There are {NOUNS[term]}"], conclusion).verified


def test_all_256_moods_are_there():
    assert (len(MOODS), len(VALID), len(IMPORTING)) == (256, 15, 9)


@each(
    ("plural", "singular"),
    [
        *(("humans", "human"), ("men", "man"), ("women", "woman"), ("people", "person"), ("children", "child")),
        *(("cities", "city"), ("boxes", "box"), ("wolves", "wolf"), ("thieves", "thief"), ("mice", "mouse")),
        *(("heroes", "hero"), ("classes", "class"), ("bushes", "bush"), ("watches", "watch"), ("buses", "bus")),
        *(("houses", "house"), ("movies", "movie"), ("species", "species"), ("sheep", "sheep"), ("toys", "toy")),
        *(("criteria", "criterion"), ("analyses", "analysis"), ("policemen", "policeman"), ("glasses", "glass")),
        *(("blue cars", "blue car"), ("citizens of rome", "citizen of rome"), ("Greeks", "Greek"), ("CEOs", "CEO")),
        *(("viruses", "virus"), ("shoes", "shoe"), ("potatoes", "potato"), ("prizes", "prize"), ("knives", "knife")),
    ],
)
def test_plural_and_singular_are_one_word(plural, singular):
    article = "an" if singular[0] in "aeiou" else "a"
    assert entails([f"All {plural} are old", f"Rex is {article} {singular}"], "Rex is old").verified


@pytest.mark.parametrize(
    ("plural", "third"),
    [
        *(("bark", "barks"), ("fly", "flies"), ("have wings", "has wings"), ("go home", "goes home")),
        *(("like bones", "likes bones"), ("leave", "leaves"), ("die", "dies"), ("watch birds", "watches birds")),
    ],
)
def test_a_verb_is_one_word_in_every_person(plural, third):
    negative = f"Rex does not {plural}"
    assert entails([f"All dogs {plural}", "Rex is a dog"], f"Rex {third}").verified
    assert entails([f"All dogs {plural}", negative], "Rex is not a dog").verified
    assert entails([f"Every dog {third}", "Rex is a dog"], f"Rex {third}").verified


@each(
    ("sentence", "formula"),
    [
        ("All dogs are old", "forall x. Dog(x) -> Old(x)"),
        ("Every dog is old", "forall x. Dog(x) -> Old(x)"),
        ("Any dog is old", "forall x. Dog(x) -> Old(x)"),
        ("No dog is old", "forall x. Dog(x) -> ~Old(x)"),
        ("Some dogs are old", "exists x. Dog(x) & Old(x)"),
        ("At least one dog is old", "exists x. Dog(x) & Old(x)"),
        ("Some dogs are not old", "exists x. Dog(x) & ~Old(x)"),
        ("Not all dogs are old", "~forall x. Dog(x) -> Old(x)"),
        ("Not every dog is old", "exists x. Dog(x) & ~Old(x)"),
        ("Everything is old", "forall x. Old(x)"),
        ("Nothing is old", "~exists x. Old(x)"),
        ("There is a dog", "exists x. Dog(x)"),
        ("There are no dogs", "forall x. ~Dog(x)"),
        ("Rex is a dog", "Dog(rex)"),
        ("Rex is not a dog", "~Dog(rex)"),
        ("Rex isn't old", "~Old(rex)"),
        ("It is not the case that Rex is old", "~Old(rex)"),
        ("Rex is old and Tom is old", "Old(rex) & Old(tom)"),
        ("Rex is old or Tom is old", "Old(rex) | Old(tom)"),
        ("Either Rex is old or Tom is old", "Old(rex) | Old(tom)"),
        ("Rex is old or Tom is old but not both", "Old(rex) xor Old(tom)"),
        ("Neither Rex is old nor Tom is old", "~Old(rex) & ~Old(tom)"),
        ("If Rex is old then Tom is old", "Old(rex) -> Old(tom)"),
        ("If Rex is old, Tom is old", "Old(rex) -> Old(tom)"),
        ("Rex is old if Tom is old", "Old(tom) -> Old(rex)"),
        ("Rex is old only if Tom is old", "Old(rex) -> Old(tom)"),
        ("Rex is old if and only if Tom is old", "Old(rex) <-> Old(tom)"),
        ("Rex is old unless Tom is old", "~Old(tom) -> Old(rex)"),
        ("Unless Tom is old, Rex is old", "Old(tom) | Old(rex)"),
        ("Rex is old and sick", "Old(rex) & Sick(rex)"),
        ("All dogs are old or sick", "forall x. Dog(x) -> Old(x) | Sick(x)"),
        ("Rex loves Tom", "Loves(rex, tom)"),
        ("Rex does not love Tom", "~Loves(rex, tom)"),
        ("Every dog loves Tom", "forall x. Dog(x) -> Loves(x, tom)"),
        ("Rex is a friend of Tom", "Friend(rex, tom)"),
        ("Rex is taller than Tom", "height(rex) > height(tom)"),
        ("x is at least 5", "x >= 5"),
        ("x is not more than 5", "x <= 5"),
        ("x is greater than or equal to y", "x >= y"),
        ("x is not equal to 5", "x != 5"),
        ("x is less than 5 and greater than 1", "1 < x & x < 5"),
    ],
)
def test_a_sentence_means_the_formula_it_meets(sentence, formula):
    assert entails([sentence], formula).verified
    assert entails([formula], sentence).verified


@each(
    "sentence",
    [
        *("Most dogs bark", "Few dogs bark", "Many dogs bark", "Only dogs bark", "Almost all dogs bark"),
        *("All dogs are not old", "Every dog is not old", "Some of the dogs are old", "Two dogs are old"),
        *("Dogs bark", "Dogs are old", "A dog is old", "Man is old and man is a man"),
        *("He is old", "It is old", "They are old", "Her dog is old", "This is old", "Rex loves himself"),
        *("Rex was old", "Rex will be old", "Rex had a bone", "Rex barked", "Rex is probably old", "Rex may be old"),
        *("Rex never barks", "Rex hardly barks", "Rex is old now", "Rex is almost old", "Rex must be old"),
        *("Every dog that barks is old", "The dog which barks is old", "Rex believes that Tom is old"),
        *("Rex or Tom is old", "Rex and Tom are old", "Rex is old or Tom", "Rex is old and barks"),
        *("Rex is old and Tom is old or Sue is old", "If Rex is old then Tom is old unless Sue is old"),
        *("It is not the case that Rex is old and Tom is old", "If any dog is old then Rex is old"),
        *(
            "Rex is the king",
            "Rex is as old as Tom",
            "Rex is older than 5",
            "Rex is better than Tom",
            "Rex's dog is old",
        ),
        *("x is between 1 and 5", "x is about 5", "x is 5 dollars", "x is greater than 5,000", "x is 50%", "x is 5k"),
        *("Is Rex old?", "Rex is", "is old", "All dogs", "If Rex is old", "Either Rex is old", "Rex is old, not"),
    ],
)
def test_what_is_not_in_the_grammar_is_not_read(sentence):
    for verdict in (entails([sentence], sentence), entails([sentence], "p"), entails([], sentence)):
        assert verdict.status is Status.INCONCLUSIVE
        assert verdict.checks_failed == ("syntax_valid",)
        assert verdict.message
        assert not verdict.message.endswith(".")


@pytest.mark.parametrize(
    ("premises", "conclusion"),
    [
        (["Rex is a brown dog"], "Rex is a dog"),
        (["Zeus is immortal"], "Zeus is not mortal"),
        (["Rex barks loudly"], "Rex barks"),
        (["Rex can swim"], "Rex swims"),
        (["Rex is unhappy"], "Rex is not happy"),
    ],
)
def test_what_the_words_may_hide_is_neither_proven_nor_refuted(premises, conclusion):
    verdict = entails(premises, conclusion)
    assert (verdict.status, verdict.result["reason"]) == (Status.INCONCLUSIVE, "unrelated_words")


@pytest.mark.parametrize(
    ("premises", "conclusion"),
    [
        (["Superman is Clark", "Clark is tall"], "Superman is tall"),
        (["All flies are insects", "Time flies"], "Time is an insect"),
        (["All lights are lamps", "The feather is light"], "The feather is a lamp"),
        (["Man is old", "Rex is a man"], "Rex is old"),
    ],
)
def test_a_word_in_two_roles_is_not_read(premises, conclusion):
    verdict = entails(premises, conclusion)
    assert (verdict.status, verdict.checks_failed) == (Status.INCONCLUSIVE, ("syntax_valid",))


def test_a_word_that_meets_two_symbols_is_not_read():
    verdict = entails(["All dogs are old", "Dog(rex) & dog(rex)"], "Rex is old")
    assert (verdict.status, verdict.message) == (Status.INCONCLUSIVE, "`dog` could be any of Dog, dog")


def test_a_sentence_alone_is_never_verified_though_it_may_be_refuted():
    assert verify(EngineRequest(query="All cats are dogs")).status is Status.INCONCLUSIVE
    assert verify(EngineRequest(query="Rex is old and Rex is not old")).status is Status.FAILED
