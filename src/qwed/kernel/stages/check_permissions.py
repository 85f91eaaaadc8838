"""Permission check: may the agent use this tool, type or engine (AGENT-004, ACTION-001, rulings 4.4 and 4.5)."""

from qwed.guards.secrets import mask
from qwed.guards.tool_approval import ToolApprovalSystem
from qwed.kernel.analysis.unanalyzed_text import refuse_unanalyzed_text
from qwed.kernel.analysis.unregistered_tool import resolve_unregistered_tool
from qwed.kernel.answer import Answer, denied
from qwed.kernel.case import Case, replace
from qwed.kernel.request import quoted
from qwed.kernel.services import Services
from qwed.kernel.tools import (
    ACTION_TYPES,
    PATH,
    SHELL,
    TOOL,
    TOOL_CALL,
    ResolvedAction,
    Tool,
    analyzed_fields,
    custom_tool,
    family_of,
    resembles_built_in,
    resolve_registered_tool,
    values_of,
)
from qwed.model import ErrorCode

_MAX_NAME_LENGTH = 128
NO_ENGINE = frozenset({TOOL, PATH, SHELL})


def check_permissions(case: Case, services: Services) -> Case | Answer:
    """Return the case with its resolved action, or the refusal that names what is not allowed."""
    action = case.action
    if action.type != TOOL_CALL and action.type not in ACTION_TYPES:
        return _unknown_type(action.type)
    name = action.type if action.type != TOOL_CALL else action.tool
    if not name or len(name) > _MAX_NAME_LENGTH:
        return denied(ErrorCode.MISSING_FIELD, "`action.tool` must name the tool that is called")
    refusal = _refuse_blocked(case, name, action.type)
    if refusal is not None:
        return refusal
    resolved_action = _resolve_action(case, name, services)
    if isinstance(resolved_action, Answer):
        return resolved_action
    refusal = (
        _refuse_engine(case, resolved_action, services)
        or _refuse_conflicting_values(case, resolved_action)
        or refuse_unanalyzed_text(action, resolved_action)
    )
    return refusal or replace(case, resolved_action=resolved_action)


def _resolve_action(case: Case, name: str, services: Services) -> ResolvedAction | Answer:
    tool = services.tool(case.agent.organisation_id, name)
    refusal = _refuse_tool(case, name, tool)
    if refusal is not None:
        return refusal
    if tool is None:
        return resolve_unregistered_tool(name, custom_tool(name), case.action)
    return resolve_registered_tool(name, tool, case.action)


def _refuse_conflicting_values(case: Case, resolved_action: ResolvedAction) -> Answer | None:
    fields = () if resolved_action.custom else analyzed_fields(resolved_action)
    if len(values_of(case.action, fields)) <= 1:
        return None
    return denied(
        ErrorCode.VERIFICATION_FAILED,
        f"the action has two different values for {' or '.join(fields)}: send one",
        check="one_reading",
    )


def _unknown_type(name: str) -> Answer:
    types = sorted([*ACTION_TYPES, TOOL_CALL])
    return denied(
        ErrorCode.UNKNOWN_ACTION_TYPE,
        f"unknown action type {quoted(name)}",
        check="action_type_known",
        suggestion="call your own tools with type `tool_call`",
        details={"known": types},
    )


def _refuse_blocked(case: Case, *names: str) -> Answer | None:
    blocks = case.agent.blocks
    if not any(blocks(name) or any(map(blocks, family_of(name))) for name in names):
        return None
    return denied(
        ErrorCode.TOOL_NOT_ALLOWED,
        f"{quoted(names[0])} is blocked for this agent",
        check="tool_not_blocked",
        details={"tool": names[0]},
    )


def _refuse_tool(case: Case, name: str, tool: Tool | None) -> Answer | None:
    if tool is None and resembles_built_in(name):
        return _unknown_tool(case, name)  # ruling 4.4: another spelling of a built-in tool is refused
    allowed = case.agent.allowed_tools
    if allowed is None:
        return _unknown_tool(case, name) if tool is None else None
    if case.agent.allows(name):
        return None
    if case.action.type != TOOL_CALL and tool is not None and tool.has_engine:
        return None
    return denied(
        ErrorCode.TOOL_NOT_ALLOWED,
        f"{quoted(name)} is not among the agent's allowed tools",
        check="tool_allowed",
        suggestion="use one of the allowed tools",
        details={"tool": name, "allowed": sorted(allowed)},
    )


def _unknown_tool(case: Case, name: str) -> Answer:
    verdict = _APPROVALS.approve_tool_call(case.agent_id, name, dict(case.action.parameters or {}))
    return denied(
        ErrorCode.TOOL_NOT_ALLOWED,
        verdict.blocked_reason or f"unknown tool {quoted(name)}",
        check="tool_allowed",
        suggestion="register the tool, or name it in the agent's allowed_tools",
        details={"tool": mask(name)[:64], "risk_score": verdict.risk_score},
    )


_APPROVALS = ToolApprovalSystem()


def _refuse_engine(case: Case, resolved_action: ResolvedAction, services: Services) -> Answer | None:
    if resolved_action.analyzer in NO_ENGINE:
        return None
    allowed = case.agent.allowed_engines
    if allowed is not None and resolved_action.analyzer not in allowed:
        return denied(
            ErrorCode.TOOL_NOT_ALLOWED,
            f"the {resolved_action.analyzer} engine is not among the agent's allowed engines",
            check="engine_allowed",
            details={"engine": resolved_action.analyzer, "allowed": sorted(allowed)},
        )
    if resolved_action.analyzer not in services.engines.known():
        return denied(
            ErrorCode.VERIFICATION_FAILED,
            f"the {resolved_action.analyzer} engine is not installed here",
            check="engine_available",
            details={"engine": resolved_action.analyzer, "known": sorted(services.engines.known())},
        )
    return None
