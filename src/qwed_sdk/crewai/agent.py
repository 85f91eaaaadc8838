"""A `crewai.Agent` whose every tool, wherever it comes from, is asked about before it runs."""

import copy
from collections.abc import Mapping
from typing import Any, Self

from crewai import Agent
from crewai.agents.tools_handler import ToolsHandler
from crewai.hooks import HookAborted, get_before_tool_call_hooks, register_before_tool_call_hook
from pydantic import PrivateAttr

from qwed_sdk.crewai.settings import Guard, guard_from
from qwed_sdk.crewai.tool import READERS, VerifiedTool, verified

_BACKSTORY = (
    "You are careful. Every tool you call is verified first: a refusal says why and what to change, "
    "and asking for the same thing again does not help."
)
_OF_A_RUN = frozenset(
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
"""What belongs to the agent that is wrapped, or to where it was read from, and not to its description."""


class QWEDVerifiedAgent(Agent):  # type: ignore[misc] # CrewAI is not installed where types are checked
    """`QWEDVerifiedAgent(agent=researcher, qwed_settings={...})`, or the fields of an agent and `agent_id=...`."""

    backstory: str = _BACKSTORY
    _qwed: Guard | None = PrivateAttr(default=None)

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
        given = {"agent_id": agent_id, "agent_token": agent_token, "client": client}
        given |= {"actions": actions, "options": options, "wait": wait}
        silent = qwed_settings is None and all(value is None for value in given.values())
        kept = agent._qwed if silent and isinstance(agent, QWEDVerifiedAgent) else None
        guard = kept or guard_from(qwed_settings, given)
        super().__init__(**fields if agent is None else _described(agent, fields))
        self._qwed = guard

    def copy(self) -> Self:
        """Another agent like this one, verified like this one; a crew makes them for `kickoff_for_each`."""
        twin = type(self)(agent=self)
        twin.llm = copy.copy(self._llm_for_copy())
        return twin

    def _add_skill_loader_tool(self, *tools: Any, **rest: Any) -> list[Any]:
        # The one place both ways of running an agent pass with all its tools: its own, the task's, the crew's.
        watch()
        # Without a cache: what is in it was verified for nobody, or for another agent.
        self.tools_handler = ToolsHandler()
        return verified(super()._add_skill_loader_tool(*tools, **rest), self._qwed)


def watch() -> None:
    """Has CrewAI call `stop_unverified` before each tool, once however many agents there are."""
    if stop_unverified not in get_before_tool_call_hooks():
        register_before_tool_call_hook(stop_unverified)


def stop_unverified(context: Any) -> None:
    """Stops a tool of a verified agent that asks nobody, as after a change inside CrewAI; no other agent's."""
    if not isinstance(context.agent, QWEDVerifiedAgent):
        return
    tool = getattr(context.tool, "_original_tool", None)
    if not isinstance(tool, VerifiedTool) and type(tool) not in READERS:
        raise HookAborted(f"`{context.tool_name}` is not verified", source="qwed")


def _described(agent: Any, fields: Mapping[str, Any]) -> dict[str, Any]:
    if fields:
        raise TypeError(f"`{min(fields)}` is given beside an agent: change the agent, or leave it out")
    if type(agent) is not Agent and not isinstance(agent, QWEDVerifiedAgent):
        raise TypeError(
            f"`agent` must be a crewai Agent, not `{type(agent).__name__}`: "
            "a class of your own inherits from QWEDVerifiedAgent instead of Agent"
        )
    # Not getattr, which warns about each field CrewAI has deprecated.
    return {name: agent.__dict__[name] for name in agent.model_fields_set - _OF_A_RUN}
