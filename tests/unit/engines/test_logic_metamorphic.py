"""Metamorphic tests of the logic engine: other names, another order or another notation preserve the verdict."""

import re
from collections.abc import Callable
from itertools import product
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.engines.logic import verify
from qwed.engines.protocol import EngineRequest
from qwed.model import Status
from tests.support.case_tables import each, rows


class Argument(NamedTuple):
    """Argument from the tables, with its expected verdict."""

    premises: list[str]
    conclusion: str
    expected: Status

    @property
    def texts(self) -> list[str]:
        return [*self.premises, self.conclusion]


def status(premises: list[str], conclusion: str) -> Status:
    return verify(EngineRequest(parameters={"premises": premises, "conclusion": conclusion})).status


def _is_symbolic(text: str) -> bool:
    return not re.search(r"(?i)\b(is|are|if|then|all|some|every|no|unless|either|neither|both|equals|\w+s)\b", text)


ARGUMENTS = [
    Argument(row["premises"], row["conclusion"], expected)
    for name, expected in (("logic_true.jsonl", Status.VERIFIED), ("logic_false.jsonl", Status.FAILED))
    for row in rows(name)
    if "premises" in row
]
FORMULAS = [
    argument for argument in ARGUMENTS if all(_is_symbolic(text) and "VAR" not in text for text in argument.texts)
]
ENGLISH = [argument for argument in ARGUMENTS if all(re.match(r"[A-Z][a-z]+ ", text) for text in argument.texts)]
SOME = ARGUMENTS[::8]


def label(argument: Argument) -> str:
    return " ; ".join(argument.texts)[:70]


def test_there_is_enough_to_change():
    assert len(FORMULAS) > 100
    assert len(ENGLISH) > 50


@each("argument", SOME, ids=label, at_once=20)
def test_the_order_of_the_premises_does_not_matter(argument):
    premises, conclusion, expected = argument
    assert status(premises[::-1], conclusion) is expected


@each("argument", SOME, ids=label, at_once=20)
def test_an_irrelevant_premise_does_not_matter(argument):
    premises, conclusion, expected = argument
    assert status(["unrelated_17 -> unrelated_18", *premises], conclusion) is expected


@each("argument", SOME, ids=label, at_once=20)
def test_a_premise_said_twice_does_not_matter(argument):
    premises, conclusion, expected = argument
    assert status([*premises, *premises], conclusion) is expected


@each("argument", FORMULAS[2::5], ids=label, at_once=20)
def test_a_double_negation_does_not_matter(argument):
    premises, conclusion, expected = argument
    doubled = [premise if premise.startswith("(") else f"~~({premise})" for premise in premises]
    negated = conclusion if conclusion.startswith("(") else f"not not ({conclusion})"
    assert status(doubled, negated) is expected


_RESERVED = frozenset(
    {"and", "or", "not", "implies", "iff", "xor", "forall", "exists", "for", "all", "there", "such", "that", "in", "v"}
    | {"AND", "OR", "NOT", "IMPLIES", "IFF", "XOR", "EQ", "NE", "GT", "LT", "GE", "LE", "ABS", "MOD", "FORALL"}
    | {"true", "false", "Int", "Real", "ℤ"}
)


def _rename(text: str) -> str:
    return re.sub(
        r'"[^"]*"|[^\W\d]\w*', lambda name: name[0] if name[0] in _RESERVED or '"' in name[0] else f"{name[0]}q7", text
    )


@each("argument", FORMULAS[1::5], ids=label, at_once=20)
def test_the_names_do_not_matter(argument):
    premises, conclusion, expected = argument
    assert status([_rename(premise) for premise in premises], _rename(conclusion)) is expected


# ruff: noqa: RUF001  # the signs are the notation
_SIGNS = {"↔": "<->", "→": "->", "∀": "forall ", "∃": "exists ", "¬": "~", "∧": "&", "∨": "|", "⊕": " xor "}


def _in_signs(text: str) -> str:
    text = text.replace("&&", "&").replace("||", "|")
    for sign, word in _SIGNS.items():
        text = text.replace(word, sign)
    return text


def _case_id(value: Argument | Callable[[str], str]) -> str:
    return label(value) if isinstance(value, Argument) else value.__name__


def _in_words(text: str) -> str:
    for sign, word in {"<->": " iff ", "->": " implies ", "&&": " and ", "||": " or "}.items():
        text = text.replace(sign, word)
    return re.sub(r"~|!(?!=)", " not ", re.sub(r"&", " and ", re.sub(r"\|", " or ", text)))


@each(("argument", "rewrite"), product(FORMULAS[::5], [_in_signs, _in_words]), ids=_case_id, at_once=20)
def test_the_spelling_of_the_connectives_does_not_matter(argument, rewrite: Callable[[str], str]):
    premises, conclusion, expected = argument
    assert status([rewrite(premise) for premise in premises], rewrite(conclusion)) is expected


@each("argument", ENGLISH[::2], ids=label, at_once=20)
def test_a_full_stop_and_a_therefore_do_not_matter(argument):
    premises, conclusion, expected = argument
    assert status([f"{premise}." for premise in premises], f"Therefore, {conclusion}.") is expected


@each("argument", ENGLISH[1::2], ids=label, at_once=20)
def test_an_argument_is_one_text_or_many(argument):
    premises, conclusion, expected = argument
    text = "\n".join([*premises, f"Therefore {conclusion}"])
    assert verify(EngineRequest(query=text)).status is expected


ATOMS = ("P", "Q", "R")
trees = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner), st.tuples(st.sampled_from(["and", "or", "if", "iff"]), inner, inner)
    ),
    max_leaves=4,
)
_DSL = {"not": "(NOT {})", "and": "(AND {} {})", "or": "(OR {} {})", "if": "(IMPLIES {} {})", "iff": "(IFF {} {})"}
_INFIX = {"not": "~({})", "and": "({}) & ({})", "or": "({}) | ({})", "if": "({}) => ({})", "iff": "({}) <-> ({})"}


def _format_tree(tree: object, shapes: dict[str, str]) -> str:
    if isinstance(tree, str):
        return tree
    head, *parts = tree  # type: ignore[misc]
    return shapes[head].format(*(_format_tree(part, shapes) for part in parts))


@settings(max_examples=60, deadline=None)
@given(st.lists(trees, max_size=3), trees)
def test_the_dsl_and_first_order_notation_agree(premises, conclusion):
    dsl = status([_format_tree(tree, _DSL) for tree in premises], _format_tree(conclusion, _DSL))
    infix = status([_format_tree(tree, _INFIX) for tree in premises], _format_tree(conclusion, _INFIX))
    mixed = status([_format_tree(tree, _DSL) for tree in premises], _format_tree(conclusion, _INFIX))
    assert dsl is infix is mixed


_SIMPLE = st.one_of(
    st.tuples(st.sampled_from(["and", "or", "if", "iff"]), st.sampled_from(ATOMS), st.sampled_from(ATOMS)),
    st.tuples(st.just("not"), st.sampled_from(ATOMS)),
    st.sampled_from(ATOMS),
)
_SENTENCES = {"P": "Rex is old", "Q": "Tom barks", "R": "the street is wet"}
_ENGLISH = {
    "not": "it is not the case that {}",
    "and": "{} and {}",
    "or": "either {} or {}",
    "if": "if {} then {}",
    "iff": "{} if and only if {}",
}


def _in_english(tree: object) -> str:
    if isinstance(tree, str):
        return _SENTENCES[tree]
    head, *parts = tree  # type: ignore[misc]
    return _ENGLISH[head].format(*(_SENTENCES[part] for part in parts))


@settings(max_examples=60, deadline=None)
@given(st.lists(_SIMPLE, max_size=3), _SIMPLE)
def test_english_and_the_dsl_agree(premises, conclusion):
    dsl = status([_format_tree(tree, _DSL) for tree in premises], _format_tree(conclusion, _DSL))
    assert status([_in_english(tree) for tree in premises], _in_english(conclusion)) is dsl
