"""Evaluator of policies: a pure function from checked rules and one call to their answer."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from qwed.policy.bindings import Bindings, BoundArguments
from qwed.policy.cel_environment import evaluation_context
from qwed.policy.compiled_policies import CompiledPolicies, CompiledPolicy, CompiledRule
from qwed.policy.document import PolicyAnswer
from qwed.policy.facts_schema import GROUPS
from qwed.policy.iterations import MAX_ITERATIONS
from qwed.policy.policy_input import NO_OUTCOME, PolicyInput, PolicyOutcome, ShadowOutcome

MAX_NANOSECONDS = 20_000_000
"""Processor time that all rules of a decision share; the iterations end long before it."""
_RULES_BETWEEN = 16
"""Rules between two looks at the clock, which cost as much as a rule."""
_LONG_TEXT = 4_096
_STRENGTH = {answer: strength for strength, answer in enumerate(PolicyAnswer)}


@dataclass(frozen=True, slots=True)
class RuleResult:
    """What one rule says of a call."""

    rule: CompiledRule
    then: PolicyAnswer | None
    """None if it does not match."""
    reason: str = ""
    """Why it does not match, or the error."""
    is_error: bool = False
    is_incomplete: bool = False
    """True if it asks because the analysis of a group that it reads could not finish."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The outcome, and what each rule said that looked at the call."""

    outcome: PolicyOutcome
    results: tuple[RuleResult, ...]


def evaluate(policies: CompiledPolicies, call: PolicyInput) -> PolicyOutcome:
    """Return what the policies answer for a call: deny before ask before allow, None where no rule matches."""
    return explain(policies, call).outcome if policies.rules else NO_OUTCOME


def explain(policies: CompiledPolicies, call: PolicyInput) -> Evaluation:
    """Evaluate, and return the result of each rule that looked at the call too."""
    spelling = policies.spelling_of(call.tool.name)
    if spelling != call.tool.name:
        call = replace(call, tool=replace(call.tool, name=spelling))
    rules, summing = policies.rules_for(call)
    if not rules and not summing:
        return Evaluation(NO_OUTCOME, ())
    variables = frozenset().union(*(rule.condition.variables for rule in rules))
    bindings = Bindings(call, variables, policies.labels)
    with evaluation_context(call.risk, call.usage):
        evaluator = _Evaluator(call, bindings)
        # Each of the two has a budget of its own, so a policy in shadow never changes a decision.
        enforced = evaluator.run([rule for rule in rules if not rule.is_shadow])
        enforced += evaluator.refuse_amounts([rule for rule in summing if not rule.is_shadow])
        shadowed = evaluator.run([rule for rule in rules if rule.is_shadow])
        shadowed += evaluator.refuse_amounts([rule for rule in summing if rule.is_shadow])
    outcome = _combine(enforced)
    if shadowed:
        outcome = replace(outcome, shadow=tuple(_shadow_outcomes(shadowed)))
    return Evaluation(outcome, (*enforced, *shadowed))


class _Evaluator:
    """Evaluates rules that share one budget."""

    def __init__(self, call: PolicyInput, bindings: Bindings) -> None:
        self._call = call
        self._bindings = bindings
        self._concerned: dict[str, bool | str] = {}
        self._present = _present_groups(call)
        self._incomplete = frozenset(name for name in self._present if not getattr(call.facts, name).complete)

    def run(self, rules: Sequence[CompiledRule]) -> tuple[RuleResult, ...]:
        if not rules:
            return ()
        if (exceeded := self._exceeds_budget(rules)) is not None:
            return (exceeded,)
        between = 1 if _is_large(self._call) else _RULES_BETWEEN
        end = time.thread_time_ns() + MAX_NANOSECONDS
        results = []
        for number, rule in enumerate(rules, 1):
            results.append(self._result(rule))
            if number % between == 0 and time.thread_time_ns() > end:
                limit = f"the rules took longer than {MAX_NANOSECONDS // 1_000_000} ms"
                results.append(_error(rule, limit))
                break
        return tuple(results)

    def refuse_amounts(self, rules: Iterable[CompiledRule]) -> tuple[RuleResult, ...]:
        """Return an error for each rule that only adds up an argument of this call and cannot add this one.

        Their conditions are not evaluated: the call is none of those that they decide about.
        """
        refused = ((rule, self._refused_amount(rule)) for rule in rules if self._concerns(rule.owner) is not False)
        return tuple(_error(rule, reason) for rule, reason in refused if reason is not None)

    def _exceeds_budget(self, rules: Sequence[CompiledRule]) -> RuleResult | None:
        """Return the error if all loops together take too long; it names the rule with the longest."""
        taken = [(self._iterations(rule), rule) for rule in rules if rule.condition.loops]
        total = sum(count for count, _ in taken)
        if total <= MAX_ITERATIONS:
            return None
        _, longest = max(taken, key=lambda pair: (pair[0], pair[1].key))
        return _error(
            longest, f"the rules would take {total} iterations for this call; at most {MAX_ITERATIONS} are allowed"
        )

    def _iterations(self, rule: CompiledRule) -> int:
        if self._skipped(rule) is not None:
            return 0
        return self._arguments(rule).sizes.iterations(rule.condition.loops)

    def _arguments(self, rule: CompiledRule) -> BoundArguments:
        return self._bindings.arguments(rule.owner.argument_types(self._call.tool.name))

    def _skipped(self, rule: CompiledRule) -> str | None:
        """Return why the rule does not match whatever its condition says, or None."""
        groups = rule.condition.groups
        if not groups <= self._present:
            return f"the action has no {_listed(groups - self._present)} facts"
        if rule.rule.then is not PolicyAnswer.ALLOW:
            return None
        if groups & self._incomplete:
            return f"the analysis of {_listed(groups & self._incomplete)} could not finish"
        if "effects" in rule.condition.variables and not self._call.effects:
            return "the action has no effects"
        return self._refused_trust(rule)

    def _refused_trust(self, rule: CompiledRule) -> str | None:
        """Return why the trust of the agent is too low for an allow, or None."""
        agent = self._call.agent
        needed = agent.registered_trust if rule.rule.min_trust is None else rule.rule.min_trust
        if agent.trust < max(1, needed):
            return f"the agent has trust {agent.trust}, and this rule needs {max(1, needed)}"
        return None

    def _result(self, rule: CompiledRule) -> RuleResult:
        tool = self._call.tool.name
        concerns = self._concerns(rule.owner)
        if isinstance(concerns, str):
            return _error(rule, concerns)
        if not concerns:
            return RuleResult(rule, None, "the policy does not apply to this agent")
        if tool in rule.broken_tools:
            return _error(rule, f"the condition does not fit the schema of `{tool}`: {rule.broken_tools[tool]}")
        if (skipped := self._skipped(rule)) is not None:
            return RuleResult(rule, None, skipped)
        return self._evaluated(rule)

    def _refused_amount(self, rule: CompiledRule) -> str | None:
        """Return why an argument of this call cannot be added to the sum that the rule reads, or None."""
        summed = (key for key in rule.condition.usage if key.measure == "sum" and key.tool == self._call.tool.name)
        for name in sorted(key.argument for key in summed):
            if not _is_amount(self._call.args.get(name)):
                return f"argument `{name}` is added up by `usage.sum`: it must be a number of at least 0"
        return None

    def _concerns(self, owner: CompiledPolicy) -> bool | str:
        if owner.agents is None:
            return True
        name = owner.policy.policy_id
        if name not in self._concerned:
            self._concerned[name] = owner.agents.run(self._bindings.agent_activation())
        return self._concerned[name]

    def _evaluated(self, rule: CompiledRule) -> RuleResult:
        if (refused := self._refused_amount(rule)) is not None:
            return _error(rule, refused)
        arguments = self._arguments(rule)
        for name in sorted(rule.condition.arguments & arguments.mismatches.keys()):
            return _error(rule, arguments.mismatches[name])
        holds = rule.condition.run(arguments.activation())
        if isinstance(holds, str):
            return _error(rule, holds)
        if holds:
            return RuleResult(rule, rule.rule.then)
        incomplete = rule.condition.groups & self._incomplete
        # Without these groups, only a condition that is false whatever they contain has a value.
        if incomplete and rule.condition.run(arguments.activation(incomplete)) is not False:
            reason = f"the analysis of {_listed(incomplete)} could not finish"
            return RuleResult(rule, PolicyAnswer.ASK, reason, is_incomplete=True)
        return RuleResult(rule, None, "the condition is false")


def _is_large(call: PolicyInput) -> bool:
    """Return True if an argument is so large that a single rule may take a while."""
    return any(
        isinstance(value, list | dict) or (isinstance(value, str) and len(value) > _LONG_TEXT)
        for value in call.args.values()
    )


def _is_amount(value: object) -> bool:
    if isinstance(value, Decimal):
        return value.is_finite() and value >= 0
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _present_groups(call: PolicyInput) -> frozenset[str]:
    return frozenset(name for name in GROUPS if getattr(call.facts, name) is not None)


def _listed(names: Iterable[str]) -> str:
    return " and ".join(f"`{name}`" for name in sorted(names))


def _error(rule: CompiledRule, reason: str) -> RuleResult:
    return RuleResult(rule, PolicyAnswer.DENY, reason, is_error=True)


def _order(result: RuleResult) -> tuple[bool, bool, bool, tuple[str, str]]:
    """Return the order in which rules of one answer are named: a plain match first, then by id."""
    is_allow = result.then is PolicyAnswer.ALLOW
    return (
        result.is_error,
        result.is_incomplete,
        is_allow and not result.rule.condition.names_unresolved,
        result.rule.key,
    )


def _combine(results: Iterable[RuleResult]) -> PolicyOutcome:
    """Return the strictest answer; of several rules that give it, the first by id is named."""
    matched = [result for result in results if result.then is not None]
    if not matched:
        return NO_OUTCOME
    then = max((result.then for result in matched if result.then), key=_STRENGTH.__getitem__)
    same = sorted((result for result in matched if result.then is then), key=_order)
    first = same[0]
    policy_id, rule_id = first.rule.key
    outcome = PolicyOutcome(
        then=then,
        policy_id=policy_id,
        rule_id=rule_id,
        message=first.reason or first.rule.rule.message,
        is_error=first.is_error,
    )
    if then is PolicyAnswer.ASK:
        return _with_question(outcome, same)
    if then is PolicyAnswer.ALLOW:
        unresolved = first.rule.condition.names_unresolved
        return replace(outcome, min_trust=first.rule.rule.min_trust, names_unresolved=unresolved)
    return outcome


def _with_question(outcome: PolicyOutcome, asking: Sequence[RuleResult]) -> PolicyOutcome:
    """Return the outcome with everybody who must be asked: the groups of all rules that ask."""
    groups = {group for result in asking for group in result.rule.rule.approvers}
    return replace(
        outcome,
        approvers=tuple(sorted(groups)),
        overrides_trust=all(result.rule.rule.overrides_trust and not result.is_incomplete for result in asking),
        is_incomplete=asking[0].is_incomplete,
    )


def _shadow_outcomes(results: Sequence[RuleResult]) -> Iterable[ShadowOutcome]:
    by_policy: dict[str, list[RuleResult]] = {}
    for result in results:
        by_policy.setdefault(result.rule.key[0], []).append(result)
    for policy_id, own in sorted(by_policy.items()):
        outcome = _combine(own)
        if outcome.then is not None:
            yield ShadowOutcome(
                policy_id=policy_id, rule_id=outcome.rule_id, then=outcome.then, is_error=outcome.is_error
            )
