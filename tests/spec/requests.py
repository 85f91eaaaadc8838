"""Actions of every risk level and helpers to read answers."""

import base64
import hashlib
import json
from typing import Any

import httpx

from tests.conftest import AgentConversation

Json = dict[str, Any]

SUM: Json = {"type": "calculate", "query": "2+2"}
FALSE: Json = {"type": "calculate", "query": "x = x + 1"}
WRONG_SUM: Json = {"type": "calculate", "query": "2+2 = 5"}
UNDECIDED: Json = {"type": "calculate", "query": "is seven a lucky number"}
EMAIL: Json = {"type": "send_email", "parameters": {"to": "user@example.com", "body": "Your order has shipped"}}
WRITE: Json = {"type": "file_write", "target": "reports/today.txt"}
DELETE: Json = {"type": "file_delete", "target": "reports/today.txt"}

# Guide, Risk assessment: LOW read_file, database_read; MEDIUM send_email, api_call; HIGH file_write,
# database_write; CRITICAL execute_code, file_delete, DROP.
OF_RISK: dict[str, tuple[Json, ...]] = {
    "low": (SUM, {"type": "read_file", "target": "notes.txt"}, {"type": "database_read"}),
    "medium": (EMAIL, {"type": "api_call", "target": "https://example.com/orders"}),
    "high": (WRITE, {"type": "database_write"}),
    "critical": (DELETE, {"type": "execute_code", "code": "print(1 + 1)"}, {"type": "shell_command", "query": "rm x"}),
}

TRUST_WORDS = ("untrusted", "supervised", "autonomous", "trusted")
RISK_WORDS = ("low", "medium", "high", "critical")


def said(answer: Json) -> tuple[str, str | None]:
    """Return the decision and the error code."""
    return answer["decision"], (answer.get("error") or {}).get("code")


def another(number: int) -> Json:
    """Return a low-risk action that differs from the previous one."""
    return {"type": "calculate", "query": f"{number} + 1"}


def tool_call(tool: str, **parameters: Any) -> Json:
    """Return a tool call as an action."""
    return {"type": "tool_call", "tool": tool, "parameters": parameters}


def question(action: Json, conversation: str = "conv_1", step: int = 1) -> Json:
    """Return a complete request body."""
    return {"action": action, "context": {"conversation_id": conversation, "step_number": step}}


def hash_of(action: Json) -> str:
    """Return the SHA-256 of the sorted, compact JSON that identifies an action (INTERFACES 4)."""
    named = {k: v for k, v in action.items() if k not in ("cost", "effects") and v is not None}
    return hashlib.sha256(json.dumps(named, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def trust_of(ask: AgentConversation) -> int:
    """Return the agent's current trust level."""
    level: int = ask.api.get(f"/agents/{ask.agent_id}").json()["trust_level"]
    return level


def changes_of(ask: AgentConversation, *events: str) -> list[Json]:
    """Return the changes of the agent, oldest first; only those of the given events, if any are given."""
    listed = ask.activity(kind="change", limit=1000)["activities"][::-1]
    return [each for each in listed if not events or each["event"] in events]


def settle(client: httpx.Client, approval_id: str, verb: str = "approve", **body: Any) -> httpx.Response:
    """Approve or reject a request."""
    return client.post(f"/approvals/{approval_id}/{verb}", json={"reason": "looked at it", **body})


def action_of(ask: AgentConversation, action_id: str, client: httpx.Client | None = None, **query: Any) -> Json:
    """Return the present state of the action."""
    found = (client or ask.api).get(f"/agents/{ask.agent_id}/actions/{action_id}", params=query)
    assert found.status_code == 200, found.text
    read: Json = found.json()
    return read


def refusal_of(response: httpx.Response) -> tuple[int, str]:
    """Return the HTTP status and the error code."""
    return response.status_code, response.json()["error"]["code"]


def proof_of(answer: Json) -> str | None:
    """Return how an answer can be proven: `token`, `receipt` or nothing."""
    shown = answer.get("attestation")
    if isinstance(shown, dict):
        assert set(shown) == {"index", "leaf", "path", "head"}
        return "receipt"
    return None if shown is None else "token"


def claims_of(attestation: str) -> Json:
    """Return the claims of an attestation without checking its signature."""
    body = attestation.split(".")[1]
    claims: Json = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return claims
