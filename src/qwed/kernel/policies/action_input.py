"""Input of policies from an analyzed action: typed facts, effects, arguments, and the agent that acts."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from qwed.domain.agent import Agent
from qwed.kernel.case import Case
from qwed.kernel.request import Action
from qwed.kernel.tools import TOOL_CALL
from qwed.model import Facts, Verdict
from qwed.model.tool_name import server_of
from qwed.policy import PolicyAgent, PolicyInput, PolicyTool

_TEXT_FIELDS = ("query", "code", "target")


def policy_input(case: Case, now: float) -> PolicyInput:
    """Return the input for what would be executed: the repaired action, where there is one."""
    return _input_of(case, case.executable or case.action, _verdict_of(case), case.facts, now)


def original_input(case: Case, now: float) -> PolicyInput:
    """Return the input for the action as it was sent, before its repair."""
    verdict = case.original_verdict or _verdict_of(case)
    return _input_of(case, case.action, verdict, verdict.facts, now)


def _verdict_of(case: Case) -> Verdict:
    if case.verdict is None:
        raise RuntimeError("the case has no verdict")
    return case.verdict


def _input_of(case: Case, action: Action, verdict: Verdict, facts: Facts, now: float) -> PolicyInput:
    return PolicyInput(
        action_type=action.type,
        tool=_tool_of(case, action),
        args=arguments_of(action),
        effects=verdict.effects,
        risk=case.risk,
        checks_failed=verdict.checks_failed,
        facts=facts,
        agent=_agent_of(case.agent),
        now=datetime.fromtimestamp(now, UTC),
    )


def arguments_of(action: Action) -> Mapping[str, Any]:
    """Return the parameters of an action and its text fields; a parameter of the same name counts."""
    texts = {name: value for name in _TEXT_FIELDS if (value := getattr(action, name)) is not None}
    parameters = action.parameters or {}
    if action.file is not None:
        # A file is replaced by its hash, as everywhere outside the engine.
        parameters = msgspec.json.decode(action.canonical).get("parameters") or {}
    return {**texts, **parameters}


def _tool_of(case: Case, action: Action) -> PolicyTool:
    resolved = case.resolved_action
    if not resolved.is_tool and action.type != TOOL_CALL:
        return PolicyTool()
    name = resolved.name
    return PolicyTool(name=name, server=server_of(name) or "", registered=not resolved.custom)


def _agent_of(agent: Agent) -> PolicyAgent:
    return PolicyAgent(
        agent_id=agent.agent_id,
        name=agent.name,
        type=agent.type,
        trust=int(agent.trust),
        registered_trust=int(agent.registered_trust),
        labels=agent.labels,
        principal=agent.principal_id,
    )
