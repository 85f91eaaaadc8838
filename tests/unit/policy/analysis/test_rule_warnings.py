"""Warnings about rules: what never matches, changes nothing or disagrees, proved or shown by a call."""

from qwed.policy.analysis import find_rule_warnings
from tests.support.policy_calls import compiled, policy, rule


def warnings_of(*rules: str, head: str = "applies_to: {tools: [refund]}\n") -> list[tuple[str, str]]:
    """Return rule and message of every warning."""
    policies = compiled(policy(*rules, args="amount: number, to: string", head=head))
    return [(warning.rule, warning.message) for warning in find_rule_warnings(policies)]


def test_a_rule_that_no_call_satisfies_never_matches() -> None:
    small, never = (
        rule("args.amount <= 50", "allow", "small"),
        rule("args.amount > 9 && args.amount < 9", "deny", "never"),
    )
    assert warnings_of(small, never) == [("never", "the rule never matches: no call satisfies its condition")]


def test_a_rule_that_a_stronger_one_covers_changes_no_decision() -> None:
    found = warnings_of(rule("args.amount > 5", "deny", "five"), rule("args.amount > 50", "deny", "fifty"))
    assert found == [("fifty", "the rule changes no decision: other rules and the tables decide alike without it")]


def test_a_rule_that_allows_what_another_denies_is_shown_with_such_a_call() -> None:
    ((name, message),) = warnings_of(
        rule("args.amount <= 50", "allow", "small"), rule('args.to == "x"', "deny", "blocked")
    )
    assert name == "small"
    assert message.startswith("rule `blocked` of policy `tested` says deny to a call that this rule allows: refund(")
    assert 'to="x"' in message


def test_rules_that_share_no_call_are_fine() -> None:
    assert warnings_of(rule("args.amount <= 50", "allow", "small"), rule("args.amount > 50", "deny", "large")) == []


def test_a_policy_in_shadow_is_not_looked_at() -> None:
    assert warnings_of(rule("args.amount > 9 && args.amount < 9", "deny"), head="mode: shadow\n") == []
