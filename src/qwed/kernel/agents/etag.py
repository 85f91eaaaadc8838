"""ETag of an agent: one digest for each part, so that a stale one tells which parts have changed."""

from base64 import urlsafe_b64encode
from hashlib import sha256

import msgspec

from qwed.domain.agent import Agent
from qwed.kernel.answer import Problem, problem
from qwed.model import ErrorCode, canonical

PARTS = ("name", "description", "permissions", "budget", "labels", "max_conversation_steps", "trust_level", "status")
_BYTES = 6


def etag_of(agent: Agent) -> str:
    """Return the ETag of the agent as it is, in quotes."""
    parts = (
        agent.name,
        agent.description,
        msgspec.to_builtins(agent.permissions),
        msgspec.to_builtins(agent.limits),
        dict(agent.labels),
        agent.max_conversation_steps,
        int(agent.trust),
        str(agent.status),
    )
    return f'"{".".join(map(_digest, parts))}"'


def _digest(part: object) -> str:
    return urlsafe_b64encode(sha256(canonical([part])).digest()[:_BYTES]).decode()


def refuse_stale(agent: Agent, if_match: str | None) -> Problem | None:
    """Return the problem if `If-Match` names another state of the agent, with the parts that have changed, or None."""
    if if_match is None or if_match.strip() == "*":
        return None
    current = etag_of(agent)
    tags = [tag.strip() for tag in if_match.split(",")]
    if current in tags:
        return None
    if not all(_is_etag(tag) for tag in tags):
        return problem(
            ErrorCode.MALFORMED,
            "`If-Match` must be an ETag in quotes, as GET /agents/{agent_id} returns it, or `*`",
        )
    changed = _changed_parts(tags[-1], current)
    return problem(
        ErrorCode.PRECONDITION_FAILED,
        f"the agent was changed since it was read: {', '.join(changed)}",
        details={"changed": changed, "etag": current},
    )


def _is_etag(tag: str) -> bool:
    return len(tag) >= 2 and tag[0] == '"' == tag[-1] and '"' not in tag[1:-1]


def _changed_parts(stale: str, current: str) -> list[str]:
    before, now = stale.strip('"').split("."), current.strip('"').split(".")
    if len(before) != len(now):
        return [*PARTS]
    return [name for name, old, new in zip(PARTS, before, now, strict=True) if old != new]
