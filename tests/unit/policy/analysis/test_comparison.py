"""Comparison of policy sets: what an edit changes, proved, or shown by a call that the evaluator decides so."""

from dataclasses import replace

import pytest

from qwed.model.decision import Decision, Status
from qwed.policy import CompiledPolicies, evaluate
from qwed.policy.analysis import (
    Change,
    Comparison,
    ProofStatus,
    approver_changes,
    compare_policies,
    describe_call,
    describe_comparison,
)
from qwed.policy.analysis.final_decision import Circumstances, final_decision
from tests.support.policy_calls import agent, call, compiled, policy, rule

NONE, SOME, NOT_PROVEN = ProofStatus.NONE, ProofStatus.SOME, ProofStatus.NOT_PROVEN
ARGS = "amount: number, to: string, tags: [string]"


def refunds(*rules: str, head: str = "applies_to: {tools: [refund]}\n") -> CompiledPolicies:
    return compiled(policy(*rules, name="refunds", args=ARGS, head=head))


def small(limit: str = "50", **more: object) -> str:
    return rule(f"args.amount > 0 && args.amount <= {limit}", "allow", "small", **more)


LARGE = rule("args.amount > 500 || args.amount <= 0", "deny", "large")
MEDIUM = rule("args.amount > 50 && args.amount <= 500", "ask", "medium", overrides="trust")


def statuses(comparison: Comparison) -> tuple[ProofStatus, ...]:
    return tuple(proof.status for proof in comparison.changes)


def edit_of(before: str, after: str, then: str = "allow") -> tuple[ProofStatus, ...]:
    """Return what is proved of the edit of one condition."""
    return statuses(compare_policies(refunds(rule(before, then)), refunds(rule(after, then))))


def test_a_wider_bound_is_shown_by_a_call_within_it() -> None:
    proof = compare_policies(refunds(small(), LARGE), refunds(small("51"), LARGE)).allowed
    assert proof.status is SOME
    for witness in proof.witnesses:
        assert 50 < witness.call.args["amount"] <= 51
        assert witness.after is Decision.APPROVED
        assert witness.before in (Decision.PENDING, Decision.DENIED)


def test_a_wider_bound_that_a_stronger_rule_covers_allows_nothing_new() -> None:
    assert statuses(compare_policies(refunds(small(), MEDIUM, LARGE), refunds(small("51"), MEDIUM, LARGE))) == (
        NONE,
        NONE,
        NONE,
    )


def test_a_narrower_bound_allows_nothing_new_and_asks_or_denies_what_it_no_longer_allows() -> None:
    assert edit_of("args.amount <= 50", "args.amount <= 49") == (NONE, SOME, SOME)


def test_rules_and_files_in_another_order_change_nothing() -> None:
    others = policy(rule('risk == "critical"', "ask"), name="others")
    one = compiled(policy(small(), MEDIUM, LARGE, name="refunds", args=ARGS), others)
    two = compiled(others, policy(LARGE, small(), MEDIUM, name="refunds", args=ARGS))
    assert statuses(compare_policies(one, two)) == (NONE, NONE, NONE)


@pytest.mark.parametrize(("before", "after"), [
    ("args.amount > 50", "50 < args.amount"),
    ("args.amount >= 50 && args.amount <= 50", "args.amount == 50"),
    ('args.to in ["a", "b"]', 'args.to == "b" || args.to == "a"'),
    ('!args.tags.exists(t, t == "a")', 'args.tags.all(t, t != "a")'),
    ("size(args.tags) == 0", "args.tags == []"),
    ('args.to.startsWith("ab")', 'args.to.matches("^ab")'),
    ('args.to.startsWith("a") && args.to.startsWith("ab")', 'args.to.startsWith("ab")'),
    ('risk_at_least("high")', 'risk in ["high", "critical"]'),
    ("!(args.amount > 5)", "args.amount <= 5"),
    ("has(args.to) ? args.amount > 1 : false", "has(args.to) && args.amount > 1"),
    ("args.amount + 1.0 < 5.0", "1.0 + args.amount < 5.0"),
    ('shell.commands.all(c, c.options.all(o, o != "-f"))', 'shell.commands.all(c, !("-f" in c.options))'),
    ("now.getHours() >= 12", "now.getHours() > 11"),
])  # fmt: skip
def test_another_spelling_of_a_condition_changes_nothing(before: str, after: str) -> None:
    assert edit_of(before, after) == (NONE, NONE, NONE)


@pytest.mark.parametrize(("before", "after"), [
    ('args.to.endsWith("@corp.example")', 'args.to.contains("corp.example")'),
    ('args.to.matches("^[a-z]+@corp[.]example$")', 'args.to.matches("^[a-z]+@corp.example$")'),
    ('args.tags.all(t, t in ["a", "b"])', 'args.tags.all(t, t in ["a", "b", "c"])'),
    ('sql.tables.all(t, t == "orders")', 'sql.tables.all(t, t != "salaries")'),
    ('"a" in args.tags && "b" in args.tags', '"a" in args.tags'),
    ('agent.labels.team == "hr"', 'agent.labels.team != "support"'),
    ('now.getHours("Europe/Berlin") < 18', 'now.getHours("Europe/Berlin") < 19'),
    ('usage.count("refund", duration("1h")) < 3', 'usage.count("refund", duration("1h")) <= 3'),
    (
        'usage.sum("refund", "amount", duration("24h")) + args.amount <= 500.0',
        'usage.sum("refund", "amount", duration("24h")) + args.amount <= 501.0',
    ),
    ('shell.paths_written.all(p, p.startsWith("/srv/app/"))', 'shell.paths_written.all(p, p.startsWith("/srv/"))'),
])  # fmt: skip
def test_a_wider_condition_is_shown_by_a_call_and_taken_back_allows_nothing_new(before: str, after: str) -> None:
    assert edit_of(before, after)[0] is SOME
    assert edit_of(after, before)[0] is NONE


def test_two_sums_in_another_order_of_rounding_are_not_taken_for_equal() -> None:
    before = "args.amount + 0.1 + 0.2 <= 0.3"
    assert edit_of(before, "args.amount + 0.3 <= 0.3")[0] is not NONE


def test_a_tool_that_is_added_is_newly_allowed() -> None:
    head = "applies_to: {tools: [refund, pay]}\n"
    proof = compare_policies(refunds(small()), refunds(small(), head=head)).allowed
    assert {witness.call.tool.name for witness in proof.witnesses} | {
        witness.call.action_type for witness in proof.witnesses
    } >= {"pay"}


def test_a_lower_min_trust_allows_agents_that_lost_trust() -> None:
    proof = compare_policies(refunds(small(min_trust=2)), refunds(small(min_trust=1))).allowed
    assert {witness.call.agent.trust for witness in proof.witnesses} == {1}


def test_an_ask_that_overrides_trust_asks_where_trust_refused() -> None:
    before, after = rule("args.amount > 5", "ask"), rule("args.amount > 5", "ask", overrides="trust")
    assert statuses(compare_policies(refunds(before), refunds(after))) == (NONE, SOME, NONE)


def test_an_allow_of_what_no_rule_named_before_changes_only_what_trust_did_not_allow() -> None:
    proof = compare_policies(refunds(LARGE), refunds(LARGE, rule('risk == "low"', "allow"))).allowed
    assert proof.status is NONE


def test_naming_unresolved_effects_allows_calls_with_them() -> None:
    before = 'effects.all(e, e.kind in ["READ", "EXECUTE"])'
    after = 'effects.all(e, e.kind in ["READ", "EXECUTE", "UNRESOLVED"])'
    proof = compare_policies(refunds(rule(before, "allow")), refunds(rule(after, "allow"))).allowed
    assert all(any(effect.kind == "UNRESOLVED" for effect in witness.call.effects) for witness in proof.witnesses)
    assert proof.status is SOME


def test_a_deny_that_reads_incomplete_facts_asks_at_least() -> None:
    denies = rule('sql.tables.exists(t, t == "salaries")', "deny")
    proof = compare_policies(refunds(rule("true", "allow")), refunds(rule("true", "allow", "all"), denies)).asked
    assert any(
        witness.call.facts.sql is not None and not witness.call.facts.sql.complete for witness in proof.witnesses
    )


def test_a_policy_in_shadow_decides_nothing() -> None:
    shadow = "applies_to: {tools: [refund]}\nmode: shadow\n"
    before, after = refunds(small(), head=shadow), refunds(small("5000"), head=shadow)
    assert statuses(compare_policies(before, after)) == (NONE, NONE, NONE)


def test_what_the_proof_does_not_understand_is_named_with_its_place() -> None:
    before = 'has(args.to) && args.to.matches("(?i)^first$") && args.amount < 5'
    comparison = compare_policies(
        refunds(rule(before, "allow")), refunds(rule(before.replace("^first", "^second"), "allow"))
    )
    assert comparison.allowed.status is NOT_PROVEN
    assert "`matches` in rule `only` of policy `refunds` (7:43)" in comparison.allowed.reason


def test_what_both_sets_do_not_understand_alike_hinders_no_proof() -> None:
    opaque = 'has(args.to) && args.to.matches("(?i)^a$")'
    assert edit_of(f"{opaque} && args.amount < 5", f"{opaque} && args.amount < 4")[0] is NONE


def test_every_call_that_is_shown_is_decided_so_by_the_evaluator() -> None:
    old, new = refunds(small(), MEDIUM, LARGE), refunds(small("70"), LARGE)
    comparison = compare_policies(old, new)
    for proof in comparison.changes:
        for witness in proof.witnesses:
            decisions = [
                final_decision(evaluate(policies, witness.call), witness.call, witness.circumstances)
                for policies in (old, new)
            ]
            assert decisions == [witness.before, witness.after]
    assert statuses(comparison) == (SOME, NONE, SOME)


def test_other_approvers_are_named() -> None:
    def asking(groups: str) -> CompiledPolicies:
        return refunds(rule("true", "ask", approvers=groups))

    (change,) = approver_changes(asking("[finance, security]"), asking("finance"))
    assert (change.before, change.after) == (("finance", "security"), ("finance",))


def test_a_comparison_reads_as_text() -> None:
    lines = list(describe_comparison(compare_policies(refunds(small(), LARGE), refunds(small("51"), LARGE))))
    assert lines[0] == "allows calls that were not allowed:"
    assert lines[1].startswith("  refund(amount=50.25), risk ")
    assert lines[2].startswith("    before: ")
    assert lines[3] == "    after:  allowed, by rule `small` of policy `refunds`"
    assert lines[-1] == "denies nothing new: proved"


def test_a_call_is_described_by_what_is_unusual_about_it() -> None:
    described = describe_call(replace(call("refund", args={"amount": 5}), agent=agent(labels={"team": "hr"})))
    assert described.startswith('refund(amount=5), risk high, trust 2, agent id "agent_1", label team="hr"')


@pytest.mark.parametrize(("status", "needs_person", "decision"), [
    (Status.VERIFIED, False, Decision.APPROVED),
    (Status.UNCERTAIN, False, Decision.PENDING),
    (Status.CORRECTED, False, Decision.PENDING),
    (Status.VERIFIED, True, Decision.PENDING),
    (Status.FAILED, False, Decision.DENIED),
])  # fmt: skip
def test_an_allow_takes_the_place_of_the_trust_table_and_of_nothing_else(
    status: Status, needs_person: bool, decision: Decision
) -> None:
    asked = call("refund", args={"amount": 5}, agent=agent(trust=1, registered_trust=1))
    outcome = evaluate(refunds(small()), asked)
    assert final_decision(outcome, asked, Circumstances(status, needs_person)) is decision


def test_there_are_three_changes() -> None:
    assert [change.value for change in Change] == ["allowed", "asked", "denied"]
