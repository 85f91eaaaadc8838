"""Rules that can never match, as far as it is cheap to know."""

from collections.abc import Iterator

from qwed.policy.compiled_policies import CompiledPolicies, CompiledRule
from qwed.policy.document import PolicyAnswer
from qwed.policy.problem import PolicyProblem


def find_unreachable_rules(policies: CompiledPolicies) -> tuple[PolicyProblem, ...]:
    """Return a problem for each rule that can never match or never decide."""
    return tuple(
        rule.owner.policy.source.problem(
            rule.rule.when.at, f"the rule never decides: {reason}", policy=rule.key[0], rule=rule.key[1]
        )
        for rule in policies.rules
        for reason in _reasons(rule, policies)
    )


def _reasons(rule: CompiledRule, policies: CompiledPolicies) -> Iterator[str]:
    condition, tools = rule.condition, rule.owner.policy.tools
    if condition.constant is False:
        yield "its condition is false"
    elif condition.tools is not None and not condition.tools:
        yield "its condition names no tool"
    elif tools and condition.tools is not None and condition.tools.isdisjoint(tools):
        applies_to = _listed(frozenset(tools))
        yield f"its condition is about {_listed(condition.tools)}, and the policy applies to {applies_to}"
    elif (stronger := _stronger(rule, policies)) is not None:
        yield f"`{stronger.rule.rule_id}` denies under the same condition"


def _stronger(rule: CompiledRule, policies: CompiledPolicies) -> CompiledRule | None:
    """Return a rule of the same policy that denies whenever this one matches, or None."""
    if rule.rule.then is PolicyAnswer.DENY:
        return None
    return next(
        (
            other
            for other in policies.rules
            if other.owner is rule.owner
            and other.rule.then is PolicyAnswer.DENY
            and (other.condition.constant is True or other.rule.when.text == rule.rule.when.text)
        ),
        None,
    )


def _listed(names: frozenset[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names)[:5])
