"""Evaluation of rules: which answer wins, and when a rule does not match."""

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from itertools import permutations
from typing import Any

import pytest

from qwed.model.decision import Risk
from qwed.model.effect import Effect, EffectKind
from qwed.model.facts import Facts, ShellCommand, ShellFacts, SqlFacts
from qwed.policy import PolicyAnswer, PolicySource, UsageKey, compile_policies, evaluate, explain
from tests.support.policy_calls import agent, answer, call, compiled, policy, rule

ALLOW, ASK, DENY = PolicyAnswer.ALLOW, PolicyAnswer.ASK, PolicyAnswer.DENY
READS_SQL = 'sql.tables.all(t, t == "orders")'


def sql(*tables: str, complete: bool = True) -> Facts:
    return Facts(sql=SqlFacts(complete=complete, statements=("select",), tables=tables))


def test_no_rule_that_matches_is_no_answer() -> None:
    assert answer(policy(rule('risk == "low"', "allow"))).then is None


def test_the_strictest_answer_wins_whatever_the_order_of_the_files() -> None:
    documents = [policy(rule("true", then), name=f"p-{then}") for then in ("allow", "ask", "deny")]
    outcomes = {evaluate(compiled(*order), call()) for order in permutations(documents)}
    assert [(outcome.then, outcome.policy_id) for outcome in outcomes] == [(DENY, "p-deny")]


def test_all_groups_of_all_rules_that_ask_must_approve() -> None:
    first = policy(rule("true", "ask", approvers="finance", overrides="trust"), name="a")
    second = policy(rule("true", "ask", approvers="[security, finance]"), name="b")
    outcome = evaluate(compiled(first, second), call())
    assert (outcome.then, outcome.approvers, outcome.overrides_trust) == (ASK, ("finance", "security"), False)


@pytest.mark.parametrize(("trust", "registered", "minimum", "then"), [
    (2, 2, None, ALLOW),
    (3, 2, None, ALLOW),
    (1, 2, None, None),
    (1, 2, 1, ALLOW),
    (2, 2, 3, None),
    (0, 0, None, None),
    (0, 2, 1, None),
])  # fmt: skip
def test_an_allow_applies_from_the_level_of_registration_and_never_at_level_0(
    trust: int, registered: int, minimum: int | None, then: PolicyAnswer | None
) -> None:
    more: dict[str, object] = {} if minimum is None else {"min_trust": minimum}
    document = policy(rule("true", "allow", **more))
    assert answer(document, agent=agent(trust=trust, registered_trust=registered)).then is then


@pytest.mark.parametrize(("then", "facts", "expected"), [
    ("allow", Facts(), None),
    ("allow", sql(complete=False), None),
    ("allow", sql("orders"), ALLOW),
    ("deny", Facts(), None),
    ("deny", sql("orders", complete=False), DENY),
    ("deny", sql("customers", complete=False), ASK),
    ("deny", sql("customers"), None),
    ("ask", sql("customers", complete=False), ASK),
])  # fmt: skip
def test_facts_are_present_or_not_and_complete_or_not(then: str, facts: Facts, expected: PolicyAnswer | None) -> None:
    assert answer(policy(rule(READS_SQL, then)), facts=facts).then is expected


def test_an_incomplete_group_asks_only_where_it_can_matter() -> None:
    document = policy(rule('agent.labels.team != "hr" && sql.tables.exists(t, t == "salaries")'))
    incomplete = sql("x", complete=False)
    assert answer(document, facts=incomplete, agent=agent(labels={"team": "hr"})).then is None
    outcome = answer(document, facts=incomplete, agent=agent(labels={"team": "it"}))
    assert (outcome.then, outcome.is_incomplete, outcome.overrides_trust) == (ASK, True, False)


def test_an_allow_over_effects_does_not_match_an_action_without_effects() -> None:
    document = policy(rule('effects.all(e, e.kind == "READ")', "allow"))
    assert answer(document).then is None
    assert answer(document, effects=(Effect(EffectKind.READ),)).then is ALLOW
    assert answer(document, effects=(Effect(EffectKind.UNRESOLVED),)).then is None


@pytest.mark.parametrize(("args", "reason"), [
    ({}, "the call has no `amount`: ask `has(...)` first"),
    ({"amount": None}, "the call has no `amount`: ask `has(...)` first"),
    ({"amount": "20"}, "argument `amount` must be a number, not a string"),
    ({"amount": True}, "argument `amount` must be a number, not a boolean"),
    ({"amount": [20]}, "argument `amount` must be a number, not a list"),
    ({"amount": float("nan")}, "argument `amount` must be a finite number"),
    ({"amount": 2**64}, "argument `amount` must be a number of at most 9007199254740992"),
])  # fmt: skip
def test_an_argument_of_another_type_denies_and_names_the_rule(args: dict[str, Any], reason: str) -> None:
    outcome = answer(policy(rule("args.amount < 50", "allow"), args="amount: number"), args=args)
    assert (outcome.then, outcome.is_error, outcome.rule_id, outcome.message) == (DENY, True, "only", reason)


@pytest.mark.parametrize("amount", [50, 50.0, 50.005, 49.99])
def test_numbers_compare_with_whole_and_broken_literals(amount: float) -> None:
    outcome = answer(policy(rule("args.amount > 50", "ask"), args="amount: number"), args={"amount": amount})
    assert (outcome.then is ASK) == (amount > 50)


def test_an_optional_argument_is_asked_for_with_has() -> None:
    document = policy(rule('!has(args.cc) || args.cc.all(a, a.endsWith("@example.com"))', "allow"), args="cc: [string]")
    assert answer(document).then is ALLOW
    assert answer(document, args={"cc": ["a@example.com"]}).then is ALLOW
    assert answer(document, args={"cc": ["a@example.org"]}).then is None


def test_a_missing_label_reads_as_an_empty_text() -> None:
    document = policy(rule('agent.labels.team == ""'), head='applies_to: {agents: labels.site != "berlin"}\n')
    assert answer(document).then is DENY
    assert answer(document, agent=agent(labels={"team": "x"})).then is None
    assert answer(document, agent=agent(labels={"site": "berlin"})).then is None


def test_usage_is_read_by_key_and_a_value_that_was_not_given_denies() -> None:
    document = policy(
        rule('usage.org.sum("refund", "amount", duration("24h")) + args.amount > 100.0', "ask"), args="amount: number"
    )
    policies = compiled(document)
    (key,) = policies.usage
    assert key == UsageKey("organisation", "sum", "refund", "amount", 86_400)
    assert evaluate(policies, call(args={"amount": 30}, usage={key: 80})).then is ASK
    assert evaluate(policies, call(args={"amount": 20}, usage={key: 80})).then is None
    assert evaluate(policies, call(args={"amount": 20})).is_error


@pytest.mark.parametrize("amount", [-1, "5", None, float("nan"), True, [5], Decimal("NaN")])
def test_an_amount_that_would_lower_a_sum_or_cannot_be_added_denies(amount: object) -> None:
    text = rule('tool.name == "other" && usage.sum("refund", "amount", duration("24h")) > 100', "ask")
    policies = compiled(policy(text))
    usage = dict.fromkeys(policies.usage, 0)
    assert evaluate(policies, call("refund", args={"amount": 5}, usage=usage)).then is None
    outcome = evaluate(policies, call("refund", args={"amount": amount}, usage=usage))
    assert (outcome.then, outcome.is_error) == (DENY, True)
    assert evaluate(policies, call("other", args={"amount": amount}, usage=usage)).then is None


@pytest.mark.parametrize("then", ["allow", "ask", "deny"])
def test_a_rule_that_adds_up_the_calls_of_another_tool_decides_nothing_about_them(then: str) -> None:
    text = rule('usage.sum("refund", "amount", duration("24h")) < 100', then)
    policies = compiled(policy(text, head="applies_to: {tools: [gift]}\n"))
    usage = dict.fromkeys(policies.usage, 0)
    assert evaluate(policies, call("gift", usage=usage)).then is PolicyAnswer(then)
    assert evaluate(policies, call("refund", args={"amount": 5}, usage=usage)).then is None
    assert evaluate(policies, call("refund", args={"amount": -5}, usage=usage)).is_error


@pytest.mark.parametrize("condition", [
    'args.customer.id == "7" && has(args.customer.id)',
    "!has(args.customer) || !has(args.customer.id) || args.customer.id != ''",
    "has(args.items) && args.items.all(i, has(i.price) && i.price < 100)",
    "has(args.items) && args.items.exists(i, has(i.price) && i.price > 100)",
    "args.amount in [1.0, 2.5] || args.amount == 7",
    'args.to.exists(t, t.matches("@example[.]com$")) || args.to == []',
    'has(args.note) ? args.note.size() > 3 : tool.name == "a"',
    '!(has(args.note) && args.note == "x")',
    "shell.commands.exists(c, c.options.exists(o, o == '-f') || c.program == 'rm') || shell.hosts != []",
    'risk in ["high", "critical"] && !(risk == "high" && agent.trust >= 2)',
    'sql.tables.exists(t, t == "a") || sql.columns.exists(c, c == "b") || !sql.has_where',
    'effects.exists(e, e.kind == "SPEND") || effects.exists(e, e.target.startsWith("/etc/"))',
    'now.getHours("Europe/Berlin") < 8 || now > timestamp("2026-01-01T00:00:00Z")',
    'usage.count("refund", duration("1h30m")) > 3 || usage.org.count("refund", duration("744h")) > 100',
    '"no_pii_leakage" in checks_failed || checks_failed.size() > 2',
    'code.imports.exists(i, i in ["os", "subprocess"]) || code.effects.exists(e, e.kind == "EXECUTE")',
    'agent.labels["cost center"] == "7" || agent.labels.team in ["a", "b"]',
    "1 + 1 == 2 && args.n % 2 == 0 && args.amount * 2.0 < 10 // a comment",
])  # fmt: skip
def test_a_condition_of_everyday_use_is_accepted(condition: str) -> None:
    properties = {
        "customer": {"type": "object", "properties": {"id": {"type": "string"}}},
        "items": {"type": "array", "items": {"type": "object", "properties": {"price": {"type": "number"}}}},
        "to": {"type": "array", "items": {"type": "string"}},
        "amount": {"type": "number"},
        "n": {"type": ["integer", "null"]},
        "note": {"type": "string"},
    }
    head = "applies_to: {tools: [a]}\n"
    (compiled_rule,) = compiled(policy(rule(condition), head=head), schemas={"a": {"properties": properties}}).rules
    assert not compiled_rule.broken_tools


@pytest.mark.parametrize("condition", [
    'tool.name == "a" || has(args.customer.id)',
    'tool.name == "a" || {"k": 1}.other == 1',
    'tool.name == "a" || (has(args.customer) && args.customer.id == "7")',
    '!(tool.name == "a" && args.customer.id == "7")',
    'args.items.exists(i, i.price > 5)',
    '(tool.name == "a" || args.n > 1) == true',
    '[1].exists(x, args.n > x) || tool.name == "a"',
])  # fmt: skip
def test_a_condition_that_could_hide_an_absent_value_is_refused(condition: str) -> None:
    properties = {
        "customer": {"type": "object", "properties": {"id": {"type": "string"}}},
        "items": {"type": "array", "items": {"type": "object", "properties": {"price": {"type": "number"}}}},
        "n": {"type": "integer"},
    }
    document = policy(rule(condition), head="applies_to: {tools: [a]}\n")
    policies = compile_policies([PolicySource("p.yaml", document)], {"a": {"properties": properties}})
    assert isinstance(policies, tuple) or "would hide that" in policies.rules[0].broken_tools["a"]


def test_a_missing_member_of_an_argument_denies() -> None:
    schema = {"properties": {"customer": {"type": "object", "properties": {"id": {"type": "string"}}}}}
    text = policy(rule('args.customer.id == "7"', "allow"), head="applies_to: {tools: [a]}\n")
    policies = compiled(text, schemas={"a": schema})
    assert evaluate(policies, call("a", args={"customer": {"id": "7"}})).then is ALLOW
    assert evaluate(policies, call("a", args={"customer": {}})).is_error
    assert evaluate(policies, call("a", args={"customer": {"id": 7}})).is_error
    assert evaluate(policies, call("a")).is_error


def test_calls_in_several_threads_read_their_own_usage_and_risk() -> None:
    text = 'usage.count("a", duration("1h")) == 3 && risk_at_least("critical")'
    policies = compiled(policy(rule(text)))
    (key,) = policies.usage

    def answers(number: int) -> set[PolicyAnswer | None]:
        asked = call(usage={key: number}, risk=Risk.CRITICAL if number % 2 else Risk.LOW)
        return {evaluate(policies, asked).then for _ in range(300)}

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(answers, range(8))) == [{DENY if number == 3 else None} for number in range(8)]


def test_risk_is_asked_for_by_level() -> None:
    document = policy(rule('risk_at_least("high")'))
    assert [answer(document, risk=risk).then for risk in Risk] == [None, None, DENY, DENY]


def test_a_policy_in_shadow_decides_nothing_and_is_reported() -> None:
    shadow = policy(rule("true"), name="watched", head="mode: shadow\n")
    outcome = evaluate(compiled(shadow, policy(rule("true", "allow"))), call())
    assert outcome.then is ALLOW
    assert [(entry.policy_id, entry.rule_id, entry.then) for entry in outcome.shadow] == [("watched", "only", DENY)]


def test_rules_that_take_too_many_iterations_deny() -> None:
    loops = "shell.paths_read.all(a, shell.paths_written.all(b, a != b))"
    paths = tuple(f"/srv/{number}" for number in range(101))
    facts = Facts(shell=ShellFacts(complete=True, paths_read=paths, paths_written=paths))
    outcome = answer(policy(rule(loops, "allow")), facts=facts)
    assert (outcome.then, outcome.is_error) == (DENY, True)
    assert outcome.message == "the rules would take 10302 iterations for this call; at most 10000 are allowed"


def test_looking_for_a_value_in_a_list_counts_as_iterations() -> None:
    document = policy(rule('args.names.exists(x, x in args.names && x == "z")'), head="args: {names: [string]}\n")
    assert answer(document, args={"names": ["a"] * 1_000}).is_error


def test_all_rules_share_the_iterations() -> None:
    paths = tuple(f"/srv/{number}" for number in range(600))
    facts = Facts(shell=ShellFacts(complete=True, paths_read=paths))
    rules = [rule('shell.paths_read.exists(p, p == "/etc")', rule_id=f"r{number}") for number in range(17)]
    assert answer(policy(*rules[:16]), facts=facts).then is None
    assert answer(policy(*rules), facts=facts).is_error


def test_a_condition_over_commands_sees_their_parts() -> None:
    document = policy(
        rule(
            'shell.commands.all(c, c.program in ["git", "ls"]) && shell.paths_written.all(p, p.startsWith("/srv/"))',
            "allow",
        )
    )
    commands = (ShellCommand(program="git", subcommand="add", arguments=("x",)), ShellCommand(program="ls"))
    allowed = ShellFacts(complete=True, commands=commands, paths_written=("/srv/x",))
    assert answer(document, facts=Facts(shell=allowed)).then is ALLOW
    assert (
        answer(document, facts=Facts(shell=ShellFacts(complete=True, commands=(ShellCommand(program="rm"),)))).then
        is None
    )


def test_a_policy_for_tools_concerns_their_calls_and_the_actions_of_that_type() -> None:
    document = policy(rule("true"), head="applies_to: {tools: [refund, execute_sql]}\n")
    assert answer(document, tool="refund").then is DENY
    assert answer(document, action_type="execute_sql", tool="").then is DENY
    assert answer(document, tool="other").then is None


def test_an_evaluation_explains_what_each_rule_said() -> None:
    policies = compiled(policy(rule("true", "ask", "a"), rule(READS_SQL, "allow", "b")))
    evaluation = explain(policies, call(facts=sql("orders", complete=False)))
    assert [(result.rule.rule.rule_id, result.then, result.reason) for result in evaluation.results] == [
        ("a", ASK, ""),
        ("b", None, "the analysis of `sql` could not finish"),
    ]


def test_a_condition_that_does_not_fit_the_schema_of_a_tool_denies_calls_of_that_tool_alone() -> None:
    schemas = {"refund": {"type": "object", "properties": {"amount": {"type": "string"}}}}
    document = policy(rule("args.amount > 5"), args="amount: number", head="applies_to: {tools: [refund, pay]}\n")
    policies = compiled(document, schemas=schemas)
    assert evaluate(policies, call("refund", args={"amount": "1"})).is_error
    assert evaluate(policies, call("pay", args={"amount": 1})).then is None


@pytest.mark.parametrize(("condition", "args"), [
    ("args.a + args.b == 0.3", {"a": 0.1, "b": 0.2}),
    ("args.a + args.b <= 0.3", {"a": 0.1, "b": 0.2}),
    ("args.a - args.b == 0.1", {"a": 0.3, "b": 0.2}),
    ("args.a * args.b == 3.3", {"a": 1.1, "b": 3}),
    ("args.a * 100.0 == 1999", {"a": 19.99}),
    ("[args.a, args.b].all(x, x + 0.2 <= 0.4 && {'k': x + 0.1}['k'] < 1)", {"a": 0.1, "b": 0.2}),
    ("(args.a + args.b > 1000 ? 0.1 + 0.2 : args.a + args.a) == 0.2", {"a": 0.1, "b": 0.2}),
    ("args.a + args.b > 99999999999999", {"a": 99999999999999, "b": 0.1}),
])  # fmt: skip
def test_arithmetic_with_numbers_is_decimal(condition: str, args: dict[str, float]) -> None:
    assert answer(policy(rule(condition), args="a: number, b: number"), args=args).then is DENY
