"""What a hook says beside its exit code, in the words each agent reads."""

import json
from typing import TYPE_CHECKING

from qwed_sdk.calls.checks import Refusal

if TYPE_CHECKING:
    from qwed_sdk.hook.asking import Verdict


def said_of(agent: str, refusal: Refusal | None) -> str | None:
    """What goes to standard output, for agents that read it."""
    if agent == "cursor" and refusal is None:
        return json.dumps({"permission": "allow"})
    if agent == "cursor":
        return json.dumps({"permission": "deny", "user_message": str(refusal), "agent_message": str(refusal)})
    if agent == "copilot-cli" and refusal is not None:
        return json.dumps({"permissionDecision": "deny", "permissionDecisionReason": str(refusal)})
    return None


def hand_over(refusal: Refusal) -> str:
    """That the person before Claude Code is to decide."""
    told = {"hookEventName": "PreToolUse", "permissionDecision": "ask", "permissionDecisionReason": str(refusal)}
    return json.dumps({"hookSpecificOutput": told})


def whole(verdict: "Verdict") -> str:
    """Everything, as one JSON value."""
    refusal, answer = verdict
    reason = None if refusal is None else str(refusal)
    return json.dumps(
        {"allowed": refusal is None, "reason": reason, "answer": None if answer is None else answer.to_dict()}
    )
