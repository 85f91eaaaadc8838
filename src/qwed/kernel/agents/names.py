"""Names of agents: unique in an organisation, and accepted wherever an id is (ruling 4.28)."""

from collections.abc import Sequence

from qwed.domain.agent import MAX_NAME_LENGTH, Agent, is_agent_id, name_key_of
from qwed.guards.tool_approval import fold_name
from qwed.kernel.answer import Problem, problem
from qwed.kernel.request_schema import quoted
from qwed.kernel.services import Services
from qwed.model import ErrorCode
from qwed.store.protocol import Store

MAX_LISTED = 10
"""Ids that an ambiguous name lists."""


def resolve_agent_id(text: str, organisation_id: str, store: Store) -> str | Problem:
    """Return the id of the agent that the text names in this organisation, or the problem if it names several.

    An id is returned as it is, and so is a text that names no agent: whoever looks it up finds none.
    """
    if is_agent_id(text) or len(text) > MAX_NAME_LENGTH:
        return text
    ids = store.agents_named(organisation_id, name_key_of(text), MAX_LISTED + 1)
    if len(ids) > 1:
        return _ambiguous(text, ids)
    return ids[0] if ids else text


def _ambiguous(text: str, ids: Sequence[str]) -> Problem:
    listed = [*ids[:MAX_LISTED]]
    message = f"more than one agent is named {quoted(text)}: use an id, one of {', '.join(listed)}"
    return problem(ErrorCode.AMBIGUOUS_NAME, message, details={"agent_ids": listed})


def refuse_name(agent: Agent, services: Services) -> Problem | None:
    """Return the problem with the name of a new or renamed agent, or None."""
    if is_agent_id(fold_name(agent.name)):
        return problem(ErrorCode.MALFORMED, "`name` has the form of an agent's id: choose another name")
    ids = services.store.agents_named(agent.organisation_id, agent.name_key, 2)
    holder = next((agent_id for agent_id in ids if agent_id != agent.agent_id), None)
    if holder is None:
        return None
    return problem(
        ErrorCode.CONFLICT,
        f"the name {quoted(agent.name)} is in use by {holder}",
        check="name_unused",
        suggestion="choose another name, or use that agent; the name of a retired agent stays taken",
        details={"name": agent.name, "agent_id": holder},
    )
