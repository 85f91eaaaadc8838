"""INTERFACES 6: messages between agents, and the lists that say who may send to whom."""

from collections.abc import Mapping
from typing import Any, Protocol

from qwed_sdk.errors import QWEDArgumentError
from qwed_sdk.records import Known, Lists, Verdict
from qwed_sdk.wire import Call, ask

AGENT_HEADER = "QWED-Agent-Id"
"""Says whose token is shown before the body does: a server takes more from whom it knows."""


class Model(Protocol):
    """An `AgentMessage`, or whatever else can say itself as JSON."""

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        """Its members as JSON values."""


def intercept(message: Mapping[str, Any] | Model, agent_token: str | None = None) -> Call[Verdict]:
    """May this message reach its recipient? A refusal is a verdict too; the server names it with a trace id."""
    body = dict(message) if isinstance(message, Mapping) else _dumped(message)
    sender = body.get("sender_agent_id")
    # Asked once: a message that was judged twice is counted twice.
    return Verdict(
        (
            yield from ask(
                "POST",
                "/a2a/intercept",
                body,
                agent_token=agent_token,
                headers=_named(sender) if agent_token is not None else {},
                must_have="status",
            )
        )
    )


def _dumped(message: Model) -> dict[str, Any]:
    if not hasattr(message, "model_dump"):
        raise QWEDArgumentError(f"a message is a mapping or an AgentMessage, not {type(message).__name__}")
    return message.model_dump(mode="json")


def _named(sender: Any) -> dict[str, str]:
    plain = isinstance(sender, str) and sender.isascii() and sender.isprintable() and sender == sender.strip()
    return {AGENT_HEADER: sender} if plain and sender else {}


def a2a_health() -> Call[Known]:
    """Whether messages are judged here, and which guards do it."""
    return Known((yield from ask("GET", "/a2a/health", public=True, must_have="status")))


def a2a_metrics() -> Call[Known]:
    """What became of the organisation's messages since the server started."""
    return Known((yield from ask("GET", "/a2a/metrics")))


def a2a_lists() -> Call[Lists]:
    """Who is blocked, which pairs are, and who is trusted."""
    return Lists((yield from ask("GET", "/a2a/lists")))


def block_agent(agent_id: str) -> Call[Known]:
    """This agent sends and receives nothing."""
    return (yield from _listed("PUT", "blocks", agent_id=agent_id))


def unblock_agent(agent_id: str) -> Call[Known]:
    """It may again."""
    return (yield from _listed("DELETE", "blocks", agent_id=agent_id))


def block_pair(sender: str, receiver: str) -> Call[Known]:
    """The one sends nothing to the other; the other way round it may."""
    return (yield from _listed("PUT", "pairs", sender=sender, receiver=receiver))


def unblock_pair(sender: str, receiver: str) -> Call[Known]:
    """It may again."""
    return (yield from _listed("DELETE", "pairs", sender=sender, receiver=receiver))


def trust_agent(agent_id: str) -> Call[Known]:
    """What this agent sends is forwarded without verification, once it has proven who it is."""
    return (yield from _listed("PUT", "trusted", agent_id=agent_id))


def revoke_agent(agent_id: str) -> Call[Known]:
    """What it sends is verified again."""
    return (yield from _listed("DELETE", "trusted", agent_id=agent_id))


def _listed(method: str, which: str, **entry: str) -> Call[Known]:
    return Known((yield from ask(method, f"/a2a/{which}", entry)))
