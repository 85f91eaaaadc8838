"""Output of the hook, in the format that each agent reads."""

import json
from typing import TYPE_CHECKING

from qwed_sdk.permits import Refusal

if TYPE_CHECKING:
    from qwed_sdk.hook.decide import HookDecision


def output_for(agent: str, refusal: Refusal | None) -> str | None:
    """Return the text for standard output, or None if the agent reads none."""
    if agent == "cursor" and refusal is None:
        return json.dumps({"permission": "allow"})
    if agent == "cursor":
        return json.dumps({"permission": "deny", "user_message": str(refusal), "agent_message": str(refusal)})
    if agent == "copilot-cli" and refusal is not None:
        return json.dumps({"permissionDecision": "deny", "permissionDecisionReason": str(refusal)})
    return None


def ask_person_output(refusal: Refusal) -> str:
    """Return the output that makes Claude Code ask its user."""
    output = {"hookEventName": "PreToolUse", "permissionDecision": "ask", "permissionDecisionReason": str(refusal)}
    return json.dumps({"hookSpecificOutput": output})


def json_output(decision: "HookDecision") -> str:
    """Return the whole decision as one JSON value."""
    refusal, answer = decision
    reason = None if refusal is None else str(refusal)
    return json.dumps(
        {"allowed": refusal is None, "reason": reason, "answer": None if answer is None else answer.to_dict()}
    )
