"""Properties of policies that hold for every expression: absent facts never allow, and order never matters."""

import random
from itertools import islice

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qwed.model.effect import Effect, EffectKind
from qwed.model.facts import (
    ClaimFacts,
    CodeFacts,
    EmailFacts,
    Facts,
    HttpFacts,
    ShellCommand,
    ShellFacts,
    SqlFacts,
)
from qwed.policy import CompiledPolicies, PolicyAnswer, PolicyInput, PolicySource, compile_policies, evaluate
from qwed.policy.facts_schema import GROUPS
from tests.support.policy_calls import agent, call, compiled, policy, rule

steady = settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)

ATOMS = {
    "sql": ["sql.has_where", "sql.tables.all(t, t == 'a')", "sql.tables.exists(t, t == 'a')", "sql.columns == []"],
    "shell": [
        "shell.commands.all(c, c.program == 'ls')",
        "shell.commands.exists(c, c.options.all(o, o != '-f'))",
        "shell.hosts == []",
        "shell.paths_written.size() < 2",
    ],
    "http": ["http.method == 'GET'", "http.host.endsWith('.com')", "http.path != '/'"],
    "email": ["email.domains.all(d, d == 'a.com')", "email.recipients.size() < 3"],
    "code": ["code.imports.all(i, i != 'os')", "code.effects.all(e, e.kind == 'READ')"],
    "claim": ["claim.status == 'VERIFIED'", "claim.status in ['FAILED', 'VERIFIED']"],
}
FREE = [
    "true",
    "false",
    "tool.name == 'x'",
    "risk == 'high'",
    "agent.trust > 1",
    "tool.registered",
    "now.getHours() > 1",
]


def conditions(groups: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Return conditions that may read these groups."""
    atoms = st.sampled_from([*FREE, *(atom for group in groups for atom in ATOMS[group])])
    return st.recursive(
        atoms,
        lambda inner: st.one_of(
            st.builds("({} && {})".format, inner, inner),
            st.builds("({} || {})".format, inner, inner),
            st.builds("!({})".format, inner),
            st.builds("({} ? {} : {})".format, inner, inner, inner),
            st.builds("(({}) == ({}))".format, inner, inner),
            st.builds("[1, 2].all(v, {})".format, inner),
            st.builds("[1, 2].exists(v, {})".format, inner),
            st.builds("[].all(v, v == {})".format, inner),
        ),
        max_leaves=8,
    )


def facts_of(group: str, *, complete: bool) -> Facts:
    """Return facts that have everything but this group, which is absent or incomplete."""
    groups = {
        "sql": SqlFacts(complete=True, statements=("select",), tables=("a",)),
        "shell": ShellFacts(complete=True, commands=(ShellCommand(program="ls"),)),
        "http": HttpFacts(complete=True, method="GET", host="a.com", path="/"),
        "email": EmailFacts(complete=True, recipients=("b@a.com",), domains=("a.com",)),
        "code": CodeFacts(complete=True, imports=("math",), effects=(Effect(EffectKind.READ),)),
        "claim": ClaimFacts(complete=True, status="VERIFIED"),
    }
    kind = type(groups[group])
    values: dict[str, object] = {**groups, group: kind(complete=False) if not complete else None}
    return Facts(**values)  # type: ignore[arg-type] # the groups by their names


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("is_absent", [True, False], ids=["absent", "incomplete"])
def test_no_condition_that_reads_a_group_allows_where_it_is_absent_or_incomplete(group: str, is_absent: bool) -> None:
    others = tuple(name for name in GROUPS if name != group)

    @steady
    @given(conditions((group, *others[:2])))
    def never_allows(condition: str) -> None:
        policies = compile_policies([PolicySource("p.yaml", policy(rule(condition, "allow")))])
        if not isinstance(policies, CompiledPolicies) or group not in policies.rules[0].condition.groups:
            return
        outcome = evaluate(policies, call("x", facts=facts_of(group, complete=is_absent)))
        assert outcome.then is not PolicyAnswer.ALLOW

    never_allows()


@steady
@given(conditions(("sql",)), st.booleans())
def test_a_deny_over_an_incomplete_group_at_least_asks_where_the_group_matters(condition: str, has_where: bool) -> None:
    policies = compile_policies([PolicySource("p.yaml", policy(rule(condition)))])
    if not isinstance(policies, CompiledPolicies) or "sql" not in policies.rules[0].condition.groups:
        return
    known = call("x", facts=Facts(sql=SqlFacts(complete=True, tables=("a",), has_where=has_where)))
    unknown = call("x", facts=Facts(sql=SqlFacts(complete=False)))
    if evaluate(policies, known).then is PolicyAnswer.DENY:
        assert evaluate(policies, unknown).then in (PolicyAnswer.DENY, PolicyAnswer.ASK)


@steady
@given(conditions(("sql", "shell", "email")))
def test_a_condition_that_compiles_has_a_value_where_its_groups_are_there(condition: str) -> None:
    policies = compile_policies([PolicySource("p.yaml", policy(rule(condition)))])
    if isinstance(policies, CompiledPolicies):
        outcome = evaluate(policies, call("x", facts=facts_of("claim", complete=True)))
        assert not outcome.is_error


@steady
@given(
    conditions(("sql", "shell")), st.sampled_from(["x", "y"]), st.booleans(), st.sampled_from(["allow", "ask", "deny"])
)
def test_a_rule_that_the_index_finds_by_its_tool_answers_as_one_that_it_does_not(
    condition: str, tool: str, is_complete: bool, then: str
) -> None:
    found = compile_policies([PolicySource("p.yaml", policy(rule(f"tool.name == 'x' && {condition}", then)))])
    always = compile_policies([PolicySource("p.yaml", policy(rule(f"!(tool.name != 'x') && {condition}", then)))])
    if isinstance(found, CompiledPolicies) and isinstance(always, CompiledPolicies):
        asked = call(tool, facts=Facts(sql=SqlFacts(complete=is_complete, tables=("a",))))
        assert evaluate(found, asked) == evaluate(always, asked)


def test_neither_the_order_of_the_files_nor_of_their_rules_matters() -> None:
    chance = random.Random(5)
    answers = ("allow", "ask", "deny")
    for _ in range(150):
        documents = [
            [
                rule(
                    chance.choice([*FREE, *ATOMS["sql"], *ATOMS["shell"], "args.n > 3", "args.n / 0 > 1"]),
                    chance.choice(answers),
                    f"r{number}",
                )
                for number in range(chance.randint(1, 4))
            ]
            for _ in range(chance.randint(1, 5))
        ]
        names = [f"p{number}" for number in range(len(documents))]
        asked = _call(chance)
        outcomes = set()
        for _ in islice(iter(int, 1), 4):
            order = chance.sample(range(len(documents)), len(documents))
            texts = [
                policy(*chance.sample(documents[number], len(documents[number])), name=names[number], args="n: integer")
                for number in order
            ]
            outcomes.add(evaluate(compiled(*texts), asked))
        assert len(outcomes) == 1


def _call(chance: random.Random) -> PolicyInput:
    facts = facts_of(chance.choice(GROUPS), complete=chance.random() < 0.5)
    return call("x", facts=facts, args={"n": chance.choice([1, 9])}, agent=agent(trust=chance.randint(0, 3)))
