"""What the client is told of a call that did not pass, and of one that did."""

from typing import Any

from mcp_types import CallToolResult, TextContent

from qwed_sdk.calls.checks import Permit, Refusal

_META = "qwed/"


def refused(refusal: Refusal) -> CallToolResult:
    """The refusal as a result that a model can read, and a program too."""
    code = f" ({refusal.code})" if refusal.code else ""
    text = f"{refusal.decision}: {refusal.reason}{code}"
    if refusal.suggestion:
        text = f"{text}. {refusal.suggestion}"
    answer = refusal.answer
    meta = {
        "decision": str(refusal.decision),
        "code": refusal.code,
        "action_id": None if answer is None else answer.action_id,
        "approval_id": None if answer is None else answer.approval_id,
    }
    return failed(text, {f"{_META}{name}": value for name, value in meta.items() if value})


def failed(text: str, meta: dict[str, Any] | None = None) -> CallToolResult:
    """A result that says what went wrong."""
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True, _meta=meta)


def passed(result: CallToolResult, permit: Permit) -> CallToolResult:
    """The server's result untouched, and under which action it is logged; what it says in our name is left out."""
    theirs = {name: value for name, value in (result.meta or {}).items() if not name.startswith(_META)}
    return result.model_copy(update={"meta": {**theirs, f"{_META}action_id": permit.action_id}})
