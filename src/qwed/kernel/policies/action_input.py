"""Input of policies from an analyzed action: typed facts, effects, arguments, and the agent that acts."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from qwed.domain.agent import Agent
from qwed.domain.usage_window import NO_USAGE_VALUES, UsageValues
from qwed.kernel.case import Case
from qwed.kernel.request import Action
from qwed.kernel.tools import TOOL_CALL
from qwed.model import Facts, Verdict
from qwed.model.tool_name import server_of
from qwed.policy import PolicyAgent, PolicyInput, PolicyTool

_TEXT_FIELDS = ("query", "code", "target")


def policy_input(case: Case, now: float, usage: UsageValues = NO_USAGE_VALUES) -> PolicyInput:
    """Return the input for what would be executed: the repaired action, where there is one."""
    return _input_of(case, case.executable or case.action, _verdict_of(case), case.facts, now, usage)


def original_input(case: Case, now: float, usage: UsageValues = NO_USAGE_VALUES) -> PolicyInput:
    """Return the input for the action as it was sent, before its repair."""
    verdict = case.original_verdict or _verdict_of(case)
    return _input_of(case, case.action, verdict, verdict.facts, now, usage)


def _verdict_of(case: Case) -> Verdict:
    if case.verdict is None:
        raise RuntimeError("the case has no verdict")
    return case.verdict


def _input_of(
    case: Case, action: Action, verdict: Verdict, facts: Facts, now: float, usage: UsageValues
) -> PolicyInput:
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
        usage=usage,
    )


def arguments_of(action: Action) -> Mapping[str, Any]:
    """Return the parameters of an action and its text fields; a parameter of the same name counts."""
    texts = {name: value for name in _TEXT_FIELDS if (value := getattr(action, name)) is not None}
    parameters = action.parameters or {}
    if action.file is not None:
        # A file is replaced by its hash, as everywhere outside the engine.
        parameters = msgspec.json.decode(action.canonical).get("parameters") or {}
    return {**texts, **parameters}


def tool_name_of(case: Case, action: Action) -> str:
    """Return the name of the tool that is called, or an empty string for an action without one."""
    resolved = case.resolved_action
    return resolved.name if resolved.is_tool or action.type == TOOL_CALL else ""


def _tool_of(case: Case, action: Action) -> PolicyTool:
    name = tool_name_of(case, action)
    if not name:
        return PolicyTool()
    return PolicyTool(name=name, server=server_of(name) or "", registered=not case.resolved_action.custom)


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
