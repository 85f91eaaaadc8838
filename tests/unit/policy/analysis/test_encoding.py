"""Encoding of single rules: on every call the solver and the evaluator say the same."""

import random
from typing import Any

import pytest
import z3

from qwed.policy import PolicyAnswer, PolicyInput, evaluate
from qwed.policy.analysis.final_decision import Surroundings
from qwed.policy.analysis.list_bounds import ListBound
from qwed.policy.analysis.rule_encoder import RuleEncoder, join_answers, terms_of
from qwed.policy.analysis.symbols import SymbolicCall
from qwed.policy.analysis.text_uses import texts_in_full
from qwed.policy.compiled_policies import CompiledPolicies
from tests.support.concrete_calls import MAX_LENGTH, ConcreteCall
from tests.support.random_policies import ATOMS, RandomPolicy, RandomRule, compile_set, numbers_of, random_call

CALLS = 4
INEXACT = ("getHours", "usage.sum")
"""What the solver knows only in part: a calendar, and the rounding of a sum."""


class _EveryList(dict[str, ListBound]):
    """Bounds of lists that hold every element of a call."""

    def get(self, _key: str, _default: Any = None) -> ListBound:  # type: ignore[override]
        return ListBound(1, MAX_LENGTH)


def _possible(policies: CompiledPolicies, call: PolicyInput) -> dict[str, set[bool]]:
    """Return which answers the solver finds possible."""
    terms = [term for rule in policies.rules for term in terms_of(rule)]
    symbolic = SymbolicCall(_EveryList(), texts_in_full(terms))
    encoder = RuleEncoder(symbolic)
    answers = join_answers([(rule, encoder.rule(rule)) for rule in policies.rules])
    Surroundings(symbolic)
    solver = z3.Solver()
    solver.add(*symbolic.known)
    solver.add(*ConcreteCall(symbolic, call).equations(), *symbolic.known)
    return {
        name: {value for value in (True, False) if solver.check(formula == value) == z3.sat}
        for name, formula in answers._asdict().items()
    }


def _evaluated(policies: CompiledPolicies, call: PolicyInput) -> dict[str, bool]:
    outcome = evaluate(policies, call)
    return {
        "deny": outcome.then is PolicyAnswer.DENY,
        "ask": outcome.then is PolicyAnswer.ASK,
        "asks_plainly": outcome.then is PolicyAnswer.ASK and not outcome.overrides_trust,
        "allow": outcome.then is PolicyAnswer.ALLOW,
        "allows_unresolved": outcome.then is PolicyAnswer.ALLOW and outcome.names_unresolved,
    }


@pytest.mark.parametrize("number", range(len(ATOMS)))
def test_the_solver_and_the_evaluator_agree_about_a_condition(number: int) -> None:
    rng = random.Random(number)
    for then in ("allow", "ask", "deny"):
        condition = ATOMS[number](rng)
        rules = [RandomRule((text,), then) for text in (f"!({condition})", condition)]
        chosen = RandomPolicy("p", (), "", (rng.choice(rules),))
        policies = compile_set((chosen,)) or compile_set((RandomPolicy("p", (), "", (rules[1],)),))
        assert policies is not None
        numbers, usage = numbers_of((chosen,)), sorted(policies.usage, key=repr)
        for _ in range(CALLS):
            call = random_call(rng, ("refund",), numbers, usage)
            evaluated, possible = _evaluated(policies, call), _possible(policies, call)
            if any(word in condition for word in INEXACT):
                assert all(value in possible[name] for name, value in evaluated.items()), (condition, then, call)
            else:
                assert possible == {name: {value} for name, value in evaluated.items()}, (condition, then, call)
