"""Logic guard against two oracles: a truth table, and the logic engine."""

from collections.abc import Callable, Mapping
from itertools import product
from random import Random
from typing import Any, NamedTuple

import pytest

from qwed.engines.logic import verify
from qwed.engines.protocol import EngineRequest
from qwed.futures import run_in_thread
from qwed.kernel.a2a.message import MessageVerdict
from qwed.model import Status
from qwed_a2a.guards._logic.assertions import Assertion
from qwed_a2a.guards._logic.comparisons import find_contradiction, parse_comparisons
from qwed_a2a.guards._logic.propositions import parse_proposition
from qwed_a2a.guards.logic import check_logic
from tests.support.shared_engine_workers import shared_verdicts

NAMES = ("alpha", "beta", "gamma")
NOT = ("not ", "NOT ", "!", "~", "\u00ac", "not not not ")
IN_FRONT = (*NOT, "it is not the case that ", "It is false that ", "never ")
SIGNS = {
    "and": (" and ", " AND ", " & ", "&&", " \u2227 "),
    "or": (" or ", " Or ", "|", " || ", " \u2228 "),
    "implies": (" implies ", " -> ", "=>", " \u2192 "),
    "iff": (" iff ", " <-> ", "<=>", " \u2194 "),
}
MEANS: dict[str, Callable[[bool, bool], bool]] = {
    "and": lambda one, other: one and other,
    "or": lambda one, other: one or other,
    "implies": lambda one, other: not one or other,
    "iff": lambda one, other: one is other,
}
World = Mapping[str, bool]


class Formula(NamedTuple):
    """Propositional formula: its text, and when it is true."""

    write: Callable[[Random], str]
    holds: Callable[[World], bool]


def letter(name: str) -> Formula:
    return Formula(lambda random: random.choice((name, name.upper(), name.title())), lambda world: world[name])


def negation(inner: Formula) -> Formula:
    return Formula(lambda random: f"{random.choice(NOT)}({inner.write(random)})", lambda world: not inner.holds(world))


def joined(operator: str, one: Formula, other: Formula) -> Formula:
    return Formula(
        lambda random: f"({one.write(random)}){random.choice(SIGNS[operator])}({other.write(random)})",
        lambda world: MEANS[operator](one.holds(world), other.holds(world)),
    )


def made(random: Random, depth: int) -> Formula:
    if depth == 0 or random.random() < 0.3:
        return letter(random.choice(NAMES))
    if random.random() < 0.25:
        return negation(made(random, depth - 1))
    return joined(random.choice(list(MEANS)), made(random, depth - 1), made(random, depth - 1))


def check(assertions: list[dict[str, Any]]) -> MessageVerdict:
    return run_in_thread(check_logic({"assertions": assertions}, shared_verdicts()), 30)


def spelt(formula: Formula, random: Random, *, denied: bool) -> dict[str, Any]:
    """Return an assertion of the formula or its negation, by flag, by prefix, or by both."""
    twice = random.random() < 0.3
    claim = f"{random.choice(IN_FRONT)}({formula.write(random)})" if twice else formula.write(random)
    return {"claim": claim, "negated": denied is not twice}


def try_propositions(seed: int, count: int) -> None:
    random = Random(seed)
    worlds = [dict(zip(NAMES, values, strict=True)) for values in product((True, False), repeat=len(NAMES))]
    refused = 0
    for _ in range(count):
        said = [(made(random, 2), random.random() < 0.3) for _ in range(random.randint(1, 4))]
        possible = any(all(formula.holds(world) is not denied for formula, denied in said) for world in worlds)
        written = [spelt(formula, random, denied=denied) for formula, denied in said]
        found = check(written)
        assert found.forwarded is possible, (written, found)
        assert found.details.get("text_only", 0) == 0, (written, found)
        refused += not found.forwarded
    assert count * 0.1 < refused < count * 0.9


def test_what_no_truth_values_satisfy_is_refused_and_all_else_passes():
    try_propositions(seed=1, count=60)


@pytest.mark.drill
@pytest.mark.parametrize("seed", range(3))
def test_thousands_of_claims_are_judged_as_their_truth_tables_say(seed):
    try_propositions(seed=10 + seed, count=1_000)


OPERATORS = ("<", ">", "<=", ">=", "=", "==", "!=", "<>", "\u2264", "\u2265", "\u2260")
FRONT = ("", "", "", "not ", "~", "not not ")


def comparison(random: Random) -> Assertion:
    name = random.choice(("x", "X", "y", "Speed"))
    number = random.choice(("0", "1", "2", "-1", "1.0", "1.50", "0.1", "10"))
    sides = (name, number) if random.random() < 0.7 else (number, name)
    space = random.choice(("", " ", "  "))
    # In front of a number a tilde means `about`.
    front = random.choice([each for each in FRONT if each != "~" or sides[0] == name])
    text = f"{front}{sides[0]}{space}{random.choice(OPERATORS)}{space}{sides[1]}"
    return Assertion(text, random.random() < 0.2)


def compare(seed: int, count: int) -> None:
    random = Random(seed)
    contradictory = 0
    for _ in range(count):
        assertions = [comparison(random) for _ in range(random.randint(1, 5))]
        found = parse_comparisons([parse_proposition(each) for each in assertions])
        assert len(found) == len(assertions), assertions
        quick = find_contradiction(found.values())
        claims = [each._asdict() for each in assertions]
        slow = verify(EngineRequest(parameters={"claims": claims}))
        assert slow.status in (Status.VERIFIED, Status.FAILED), (assertions, slow)
        assert (quick is None) is (slow.status is Status.VERIFIED), (assertions, quick, slow)
        if quick is not None:
            named = [claims[number] for number in quick]
            assert verify(EngineRequest(parameters={"claims": named})).status is Status.FAILED, (assertions, quick)
            contradictory += 1
    assert count * 0.2 < contradictory < count * 0.8


def test_the_quick_look_at_comparisons_says_what_the_engine_says():
    compare(seed=1, count=60)


@pytest.mark.drill
def test_the_quick_look_says_what_the_engine_says_of_thousands():
    compare(seed=2, count=3_000)


def test_neither_order_nor_spacing_nor_capitals_change_the_verdict():
    random = Random(5)
    claims = ["speed > 5", "if speed > 3 then late", "late -> fined", "the road is dry"]
    for last, passes in (("not fined", False), ("fined", True)):
        for _ in range(6):
            said = [*claims, last]
            random.shuffle(said)
            written = [{"claim": random.choice((str.upper, str.lower, str.title))(f"  {each} .")} for each in said]
            assert check(written).forwarded is passes
