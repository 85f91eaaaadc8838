"""`crewai.Agent` whose tools, wherever they come from, are verified before they run."""

import copy
from collections.abc import Mapping
from typing import Any, Self

from crewai import Agent
from crewai.agents.tools_handler import ToolsHandler
from crewai.hooks import HookAborted, get_before_tool_call_hooks, register_before_tool_call_hook
from pydantic import PrivateAttr

from qwed_sdk.crewai.settings import GuardSettings, parse_settings
from qwed_sdk.crewai.tool import READ_ONLY_TOOLS, VerifiedTool, wrap_tools

_BACKSTORY = (
    "You are careful. Every tool you call is verified first: a refusal says why and what to change, "
    "and asking for the same thing again does not help."
)
_RUNTIME_FIELDS = frozenset(
    {
        "agent_executor",
        "cache_handler",
        "checkpoint_kickoff_event_id",
        "config",
        "crew",
        "execution_context",
        "from_repository",
        "id",
        "tools_handler",
        "tools_results",
    }
)
"""Fields that belong to a running agent or its source, and are not copied."""


class QWEDVerifiedAgent(Agent):  # type: ignore[misc] # CrewAI is not installed where types are checked
    """`QWEDVerifiedAgent(agent=researcher, qwed_settings={...})`, or the fields of an agent and `agent_id=...`."""

    backstory: str = _BACKSTORY
    _qwed: GuardSettings | None = PrivateAttr(default=None)

    def __init__(
        self,
        *,
        agent: Agent | None = None,
        qwed_settings: Mapping[str, Any] | None = None,
        agent_id: str | None = None,
        agent_token: str | None = None,
        client: Any = None,
        actions: Mapping[str, Mapping[str, str]] | None = None,
        options: Mapping[str, Any] | None = None,
        wait: float | None = None,
        **fields: Any,
    ) -> None:
        keywords = {"agent_id": agent_id, "agent_token": agent_token, "client": client}
        keywords |= {"actions": actions, "options": options, "wait": wait}
        is_bare = qwed_settings is None and all(value is None for value in keywords.values())
        inherited = agent._qwed if is_bare and isinstance(agent, QWEDVerifiedAgent) else None
        guard = inherited or parse_settings(qwed_settings, keywords)
        super().__init__(**fields if agent is None else _fields_of(agent, fields))
        self._qwed = guard

    def copy(self) -> Self:
        """Return a copy with the same verification; `kickoff_for_each` makes such copies."""
        duplicate = type(self)(agent=self)
        duplicate.llm = copy.copy(self._llm_for_copy())
        return duplicate

    def _add_skill_loader_tool(self, *tools: Any, **rest: Any) -> list[Any]:
        # Both ways of running an agent pass here with all its tools: its own, the task's, the team's.
        register_hook()
        # Without CrewAI's cache: its results were not verified, or for another agent.
        self.tools_handler = ToolsHandler()
        return wrap_tools(super()._add_skill_loader_tool(*tools, **rest), self._qwed)


def register_hook() -> None:
    """Register `stop_unverified` with CrewAI, once for all agents."""
    if stop_unverified not in get_before_tool_call_hooks():
        register_before_tool_call_hook(stop_unverified)


def stop_unverified(context: Any) -> None:
    """Stop a tool of a verified agent that is not wrapped, as after a change inside CrewAI."""
    if not isinstance(context.agent, QWEDVerifiedAgent):
        return
    tool = getattr(context.tool, "_original_tool", None)
    if not isinstance(tool, VerifiedTool) and type(tool) not in READ_ONLY_TOOLS:
        raise HookAborted(f"`{context.tool_name}` is not verified", source="qwed")


def _fields_of(agent: Any, fields: Mapping[str, Any]) -> dict[str, Any]:
    if fields:
        raise TypeError(f"`{min(fields)}` is given together with an agent: change the agent, or leave it out")
    if type(agent) is not Agent and not isinstance(agent, QWEDVerifiedAgent):
        raise TypeError(
            f"`agent` must be a crewai Agent, not `{type(agent).__name__}`: "
            "a custom class must inherit from QWEDVerifiedAgent instead of Agent"
        )
    # Not getattr, which warns about each field CrewAI has deprecated.
    return {name: agent.__dict__[name] for name in agent.model_fields_set - _RUNTIME_FIELDS}
