"""Warnings about rules: those that never match, that change no decision, and that disagree about a call."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from qwed.policy.analysis.comparison import compare_policies
from qwed.policy.analysis.final_decision import Surroundings
from qwed.policy.analysis.list_bounds import TooManyElementsError, list_bounds
from qwed.policy.analysis.model_search import ProofStatus, find_model, new_solver
from qwed.policy.analysis.report import describe_call
from qwed.policy.analysis.rule_encoder import RuleEncoder, terms_of
from qwed.policy.analysis.symbols import SymbolicCall
from qwed.policy.analysis.text_uses import texts_in_full
from qwed.policy.analysis.witness import ModelReader, prefer_usual_call
from qwed.policy.compiled_policies import CompiledPolicies, CompiledRule
from qwed.policy.document import PolicyAnswer
from qwed.policy.evaluator import explain
from qwed.policy.policy_input import PolicyInput
from qwed.policy.problem import PolicyProblem

MAX_PAIRS = 1_000
"""Pairs of rules that are compared; further ones are not."""


def find_rule_warnings(policies: CompiledPolicies) -> tuple[PolicyProblem, ...]:
    """Return what is proved of single rules and pairs of them: no problem of the set, but hardly what is meant."""
    enforced = [rule for rule in policies.rules if not rule.is_shadow]
    dead = [rule for rule in enforced if _search_match((rule,), policies)[0] is ProofStatus.NONE]
    living = [rule for rule in enforced if rule not in dead]
    return (
        *(_problem(rule, "the rule never matches: no call satisfies its condition") for rule in dead),
        *(_problem(rule, _CHANGES_NOTHING) for rule in living if _changes_nothing(rule, policies)),
        *_disagreements(living, policies),
    )


_CHANGES_NOTHING = "the rule changes no decision: other rules and the tables decide alike without it"


def _problem(rule: CompiledRule, message: str) -> PolicyProblem:
    policy_id, rule_id = rule.key
    source = rule.owner.policy.source
    return source.problem(rule.rule.when.at, message, policy=policy_id, rule=rule_id)


def _changes_nothing(rule: CompiledRule, policies: CompiledPolicies) -> bool:
    if rule.rule.approvers:
        return False
    others = CompiledPolicies(policies.policies, (other for other in policies.rules if other is not rule))
    return all(proof.status is ProofStatus.NONE for proof in compare_policies(others, policies).changes)


def _disagreements(rules: Sequence[CompiledRule], policies: CompiledPolicies) -> Iterator[PolicyProblem]:
    """Yield one warning for each rule that allows what another one denies or asks about."""
    allowing = [rule for rule in rules if rule.rule.then is PolicyAnswer.ALLOW]
    stricter = [rule for rule in rules if rule.rule.then is not PolicyAnswer.ALLOW]
    warned: set[int] = set()
    for number, (rule, other) in enumerate(product(allowing, stricter)):
        if number >= MAX_PAIRS:
            return
        if id(rule) in warned or not _can_share_tool(rule, other):
            continue
        _, call = _search_match((rule, other), policies)
        if call is None:
            continue
        warned.add(id(rule))
        yield _problem(
            rule, f"{_named(other)} says {other.rule.then} to a call that this rule allows: {describe_call(call)}"
        )


def _named(rule: CompiledRule) -> str:
    return f"rule `{rule.rule.rule_id}` of policy `{rule.owner.policy.policy_id}`"


def _can_share_tool(rule: CompiledRule, other: CompiledRule) -> bool:
    first, second = rule.owner.policy.tools, other.owner.policy.tools
    return not first or not second or not {*first}.isdisjoint(second)


def _search_match(rules: Sequence[CompiledRule], policies: CompiledPolicies) -> tuple[ProofStatus, PolicyInput | None]:
    """Return whether a call satisfies the conditions of all these rules, and such a call if the evaluator agrees."""
    terms = [term for rule in rules for term in terms_of(rule)]
    try:
        call = SymbolicCall(list_bounds(terms), texts_in_full(terms))
    except TooManyElementsError:
        return ProofStatus.NOT_PROVEN, None
    encoder = RuleEncoder(call)
    matches = [encoder.rule(rule).match for rule in rules]
    Surroundings(call)
    prefer_usual_call(call)
    solver = new_solver()
    solver.add(*matches, *call.known)
    status, model = find_model(solver, (), call.preferred)
    if model is None:
        return status, None
    return status, _matching_call(ModelReader(call, model.values), rules, policies)


def _matching_call(
    reader: ModelReader, rules: Sequence[CompiledRule], policies: CompiledPolicies
) -> PolicyInput | None:
    found = reader.policy_input(policies.usage)
    for moment in reader.moments():
        call = replace(found, now=moment)
        matching = {
            result.rule.key
            for result in explain(policies, call).results
            if result.then is result.rule.rule.then and not result.is_error and not result.is_incomplete
        }
        if all(rule.key in matching for rule in rules):
            return call
    return None
