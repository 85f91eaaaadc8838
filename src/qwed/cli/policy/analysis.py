"""Analysis of a call with the real engines, for policies that are tried without a server."""

from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from qwed.cli.backend import open_engines

if TYPE_CHECKING:
    from qwed.domain.agent import Agent
    from qwed.kernel.answer import Answer
    from qwed.kernel.case import Case
    from qwed.kernel.request import Action
    from qwed.kernel.services import Services
    from qwed.policy import PolicyAgent, PolicyInput
    from qwed.policy.document import PolicyTest
    from qwed.policy.policy_tests import Usage

DEFAULT_NOW = "2026-03-02T12:00:00+00:00"
"""Time of a test that names none: a Monday at noon."""
_DEFAULT_TRUST = 2
_ORGANISATION = "org_policy_test"
_PATIENCE = 60.0

AnalyzeCall = Callable[["PolicyTest", "Usage"], "PolicyInput | str"]


@contextmanager
def open_analysis() -> Iterator[AnalyzeCall]:
    """Yield a function that analyzes the calls of tests with the engines of this process."""
    with open_engines() as gate:
        yield lambda test, usage: analyze_call(test, usage, gate.services)


def analyze_call(test: "PolicyTest", usage: "Usage", services: "Services") -> "PolicyInput | str":
    """Return the input of the rules for the call of a test, or why it is refused before them."""
    from qwed.futures import run_in_thread
    from qwed.kernel.answer import Answer
    from qwed.kernel.request import read_action

    action = read_action(_as_sent(test.action))
    if isinstance(action, Answer):
        return _reason(action)
    agent = agent_of(test.agent)
    now = datetime.fromisoformat(test.now or DEFAULT_NOW)
    outcome = run_in_thread(_assess(_case_of(action, agent, now), services), _PATIENCE)
    return _reason(outcome) if isinstance(outcome, Answer) else _input_of(outcome, agent, now, usage)


def _as_sent(action: Mapping[str, Any]) -> dict[str, Any]:
    """Return the action as a client sends it; a test names the tool in `tool_name`."""
    sent = dict(action)
    if "tool_name" in sent:
        sent["tool"] = sent.pop("tool_name")
    return sent


def agent_of(stated: Mapping[str, Any]) -> "PolicyAgent":
    """Return the agent of a test: of level 2, unless it says otherwise."""
    from qwed.policy import PolicyAgent

    trust = stated.get("trust", _DEFAULT_TRUST)
    return PolicyAgent(
        agent_id=stated.get("id", "agent_test"),
        name=stated.get("name", "test"),
        type=stated.get("type", "autonomous"),
        trust=trust,
        registered_trust=trust,
        labels=stated.get("labels", {}),
        principal=stated.get("principal", "user_test"),
    )


def _case_of(action: "Action", agent: "PolicyAgent", now: datetime) -> "Case":
    from qwed.kernel.case import Case, Credentials

    return Case(
        agent_id=agent.agent_id,
        credentials=Credentials(organisation_id=_ORGANISATION),
        action_raw=None,
        now=now.timestamp(),
        agent=_registered(agent, action),
        action=action,
        action_hash=action.hash,
    )


def _registered(agent: "PolicyAgent", action: "Action") -> "Agent":
    """Return an agent that may call the tool of the action: whether it may is no question of a policy."""
    from qwed.domain.agent import Agent, AgentLimits, AgentStatus, Permissions
    from qwed.model import Trust

    return Agent(
        agent_id=agent.agent_id,
        organisation_id=_ORGANISATION,
        name=agent.name,
        type=agent.type,
        principal_id=agent.principal,
        trust=Trust(agent.trust),
        status=AgentStatus.ACTIVE,
        permissions=Permissions(allowed_tools=None if action.tool is None else (action.tool,)),
        limits=AgentLimits(),
        token_prefix="",
        token_digest=b"",
        created_at=0.0,
    )


async def _assess(case: "Case", services: "Services") -> "Case | Answer":
    from qwed.kernel.answer import Answer
    from qwed.kernel.stages.assess_risk import assess_risk
    from qwed.kernel.stages.check_permissions import check_permissions
    from qwed.kernel.stages.run_engine import run_engine

    outcome: Case | Answer | Coroutine[Any, None, Case | Answer] = case
    for stage in (check_permissions, run_engine, assess_risk):
        outcome = stage(case, services)
        if isinstance(outcome, CoroutineType):
            outcome = await outcome
        if isinstance(outcome, Answer):
            return outcome
        case = outcome  # type: ignore[assignment] # neither a coroutine nor an answer here
    return case


def _input_of(case: "Case", agent: "PolicyAgent", now: datetime, usage: "Usage") -> "PolicyInput":
    from qwed.kernel.policies.action_input import policy_input

    return replace(policy_input(case, now.timestamp(), usage), agent=agent)


def _reason(answer: "Answer") -> str:
    return answer.decision.value if answer.error is None else answer.error.message
