"""Tool results that the proxy returns for refused, failed and passed calls."""

from typing import Any

from mcp_types import CallToolResult, TextContent

from qwed_sdk.permits import Permit, Refusal

_META_PREFIX = "qwed/"


def refusal_result(refusal: Refusal) -> CallToolResult:
    """Return the refusal as a result that models and programs can read."""
    code = f" ({refusal.code})" if refusal.code else ""
    text = f"{refusal.decision}: {refusal.reason}{code}"
    if refusal.suggestion:
        text = f"{text}. {refusal.suggestion}"
    answer = refusal.answer
    details = ((answer.error if answer is not None else None) or {}).get("details") or {}
    meta = {
        "decision": str(refusal.decision),
        "code": refusal.code,
        "policy": details.get("policy"),
        "rule": details.get("rule"),
        "action_id": None if answer is None else answer.action_id,
        "approval_id": None if answer is None else answer.approval_id,
    }
    return error_result(text, {f"{_META_PREFIX}{name}": value for name, value in meta.items() if value})


def error_result(text: str, meta: dict[str, Any] | None = None) -> CallToolResult:
    """Return an error result with this text."""
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True, _meta=meta)


def with_action_id(result: CallToolResult, permit: Permit) -> CallToolResult:
    """Return the server's result with the action id; the server's own `qwed/` metadata is removed."""
    theirs = {name: value for name, value in (result.meta or {}).items() if not name.startswith(_META_PREFIX)}
    return result.model_copy(update={"meta": {**theirs, f"{_META_PREFIX}action_id": permit.action_id}})
