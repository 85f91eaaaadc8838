"""What narrows lets an agent do nothing that it might not do before, whatever the lists say (ruling 4.28)."""

import dataclasses
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from qwed.domain.agent import Agent, AgentLimits, Permissions
from qwed.domain.budget import NO_COST, NO_USAGE, RequestCost, exceeded_limit
from qwed.guards.path import PathLocation, resolve
from qwed.kernel.agents.narrowing import narrows, wider_fields
from qwed.kernel.tools import TOOLS
from tests.support.stores import agent_of

SERVERS, NAMES = ("shop", "mail"), ("refund", "Task", "send_email", "drop_table")
CALLS = [*NAMES, *(f"mcp__{server}__{name}" for server in SERVERS for name in ("refund", "list"))]
ENTRIES = [*CALLS, *(f"mcp__{server}__*" for server in SERVERS)]
FILES = ["/srv", "/srv/app", "/srv/app/notes.txt", "/srv/other", "/srv/../etc/passwd", "/etc/passwd"]
_lists = st.lists(st.sampled_from(ENTRIES), max_size=4, unique=True).map(tuple)
_words = st.none() | st.lists(st.sampled_from(["orders", "customers", "salaries"]), max_size=3, unique=True).map(tuple)
_paths = st.none() | st.lists(st.sampled_from(["/srv", "/srv/app", "/etc", "/srv/app/../other"]), max_size=2).map(tuple)
_limit = st.none() | st.integers(0, 5)
_permissions = st.builds(
    Permissions,
    allowed_tools=st.none() | _lists,
    blocked_tools=_lists,
    allowed_tables=_words,
    allowed_functions=_words,
    sensitive_columns=_words,
    allowed_paths=_paths,
    max_rows=st.none() | st.integers(1, 5),
)
_limits = st.builds(AgentLimits, daily_cost=_limit, requests_per_hour=_limit, tokens_per_day=_limit)
_agents = st.builds(
    lambda permissions, limits, steps: dataclasses.replace(
        agent_of(), permissions=permissions, limits=limits, max_conversation_steps=steps
    ),
    _permissions,
    _limits,
    st.none() | st.integers(1, 99),
)
_DEFAULT_STEPS = 50


def _may_call(agent: Agent, tool: str) -> bool:
    """Return True if the tool is known to the agent, allowed and not blocked."""
    known = tool in TOOLS if agent.allowed_tools is None else agent.allows(tool)
    return known and not agent.blocks(tool)


@given(_agents, _agents, st.sampled_from(CALLS), st.sampled_from(FILES), st.integers(0, 6))
def test_what_narrows_permits_nothing_new(before: Agent, after: Agent, tool: str, file: str, amount: int) -> None:
    if not narrows(before, after, (), _DEFAULT_STEPS):
        return
    assert not _may_call(after, tool) or _may_call(before, tool)
    old, new = before.permissions, after.permissions
    if resolve(file, new.allowed_paths).location is PathLocation.INSIDE:
        assert resolve(file, old.allowed_paths).location is PathLocation.INSIDE
    cost = RequestCost(cost=amount, tokens=amount, requests=1)
    if exceeded_limit(NO_USAGE, NO_COST, cost, after.limits) is None:
        assert exceeded_limit(NO_USAGE, NO_COST, cost, before.limits) is None
    assert after.steps_limit(_DEFAULT_STEPS) <= before.steps_limit(_DEFAULT_STEPS)


@given(_agents)
def test_no_change_narrows(agent: Agent) -> None:
    assert narrows(agent, dataclasses.replace(agent), (), _DEFAULT_STEPS)


@given(_agents, _agents, _agents)
def test_two_steps_that_narrow_are_one(first: Agent, second: Agent, third: Agent) -> None:
    if narrows(first, second, (), _DEFAULT_STEPS) and narrows(second, third, (), _DEFAULT_STEPS):
        assert narrows(first, third, (), _DEFAULT_STEPS)


@given(_agents, _agents)
def test_both_directions_narrow_only_where_nothing_changes_in_effect(one: Agent, other: Agent) -> None:
    if narrows(one, other, (), _DEFAULT_STEPS) and narrows(other, one, (), _DEFAULT_STEPS):
        assert [_may_call(one, tool) for tool in CALLS] == [_may_call(other, tool) for tool in CALLS]


@given(_agents, st.sampled_from(["schema_ddl", "dialect"]), st.sampled_from([None, "a", "b"]))
def test_another_reading_of_statements_is_never_narrower(agent: Agent, field: str, value: Any) -> None:
    permissions = msgspec.structs.replace(agent.permissions, **{field: value})
    after = dataclasses.replace(agent, permissions=permissions)
    expected = () if value is None else (f"permissions.{field}",)
    assert wider_fields(agent, after, (), _DEFAULT_STEPS) == expected
