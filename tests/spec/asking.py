"""What the readings share: actions of every risk, and short ways to read an answer."""

import hashlib
import json
from typing import Any

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
    """The decision and the error code."""
    return answer["decision"], (answer.get("error") or {}).get("code")


def another(number: int) -> Json:
    """A low risk action unlike the one before it."""
    return {"type": "calculate", "query": f"{number} + 1"}


def hash_of(action: Json) -> str:
    """INTERFACES 4, written out again: SHA-256 of the sorted, compact JSON of what identifies an action."""
    named = {k: v for k, v in action.items() if k != "cost" and v is not None}
    return hashlib.sha256(json.dumps(named, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
