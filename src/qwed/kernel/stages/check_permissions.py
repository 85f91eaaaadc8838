"""Permission check: may the agent use this tool, type or engine (AGENT-004, ACTION-001, rulings 4.4 and 4.5)."""

from qwed.guards.secrets import mask
from qwed.guards.text_scan import NO_STRINGS, strings_in
from qwed.guards.tool_approval import ToolApprovalSystem
from qwed.kernel.analysis.causes import advice_for
from qwed.kernel.analysis.permission_enforcement import listed
from qwed.kernel.analysis.sql_statements import has_statement
from qwed.kernel.analysis.unregistered_tool import resolve_unregistered_tool
from qwed.kernel.answer import Answer, denied
from qwed.kernel.case import Case, replace
from qwed.kernel.request import Action, quoted
from qwed.kernel.services import Services
from qwed.kernel.tools import (
    ACTION_TYPES,
    KNOWN_TYPES,
    PATH,
    SHELL,
    TOOL,
    TOOL_CALL,
    ResolvedAction,
    Tool,
    analyzed_fields,
    custom_tool,
    family_of,
    find_tool,
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
    if action.type not in KNOWN_TYPES:
        return _unknown_type(action.type)
    name = action.type if action.type != TOOL_CALL else action.tool
    if not name or len(name) > _MAX_NAME_LENGTH:
        return denied(ErrorCode.MISSING_FIELD, "`action.tool` must name the tool that is called")
    if case.agent.permissions.blocked_tools and _is_blocked(case, name):
        return _refuse_blocked(name)
    checks = [*case.checks_passed, "tool_not_blocked"]
    resolved_action = _resolve_action(case, name, checks)
    if isinstance(resolved_action, Answer):
        return resolved_action
    refusal = (
        _refuse_engine(case, resolved_action, services, checks)
        or _refuse_conflicting_values(action, resolved_action)
        or _refuse_unanalyzed_text(action, resolved_action)
    )
    return refusal or replace(case, resolved_action=resolved_action, checks_passed=(*checks, "one_reading"))


def _resolve_action(case: Case, name: str, checks: list[str]) -> ResolvedAction | Answer:
    tool = find_tool(case.tools, name)
    refusal = _refuse_tool(case, name, tool)
    if refusal is not None:
        return refusal
    checks.append("tool_allowed")
    if tool is None:
        return resolve_unregistered_tool(name, custom_tool(name), case.action)
    # Under its registered name: the rules of the tool are found by it, however the call spells it.
    return resolve_registered_tool(tool.name, tool, case.action)


def _refuse_conflicting_values(action: Action, resolved_action: ResolvedAction) -> Answer | None:
    if resolved_action.custom:
        return None
    fields = analyzed_fields(resolved_action)
    if len(values_of(action, fields)) <= 1:
        return None
    return _refused(f"the action has two different values for {' or '.join(fields)}: send one")


_USED_FIELDS = {
    "sql": ("query", "target"),
    "code": ("code", "query", "target"),
    PATH: ("target", "query"),
    TOOL: ("target", "query"),
    SHELL: ("query",),
}
"""Fields that each analyzer uses; the other engines use the query and the target."""


def _refuse_unanalyzed_text(action: Action, resolved_action: ResolvedAction) -> Answer | None:
    """Return the refusal of an action with text that is not analyzed: its executor may read every field."""
    if action.tool is not None and action.type != TOOL_CALL:
        return _refused("`tool` is allowed only with type `tool_call`")
    used = _USED_FIELDS.get(resolved_action.analyzer, ("query", "target"))
    for field in ("query", "code", "target"):
        if getattr(action, field) and field not in used:
            return _refused(f"`{field}` is not used by `{resolved_action.name}`: leave it out")
    strings = strings_in(action.parameters) if action.parameters else NO_STRINGS
    if not strings.complete:
        return _refused("the parameters are too large to be checked: send fewer", "parameters_readable")
    if resolved_action.custom:
        return None
    if resolved_action.analyzer == SHELL and any(text != path.rpartition(".")[2] for path, text in strings):
        return _refused("send the whole command in `query`, without other texts")
    if resolved_action.analyzer == "sql" and has_statement(action):
        return _refused("send one statement in `query`, without other statements")
    return None


def _refused(message: str, check: str = "one_reading") -> Answer:
    return denied(ErrorCode.VERIFICATION_FAILED, message, check=check)


def _unknown_type(name: str) -> Answer:
    types = sorted([*ACTION_TYPES, TOOL_CALL])
    return denied(
        ErrorCode.UNKNOWN_ACTION_TYPE,
        f"unknown action type {quoted(name)}",
        check="action_type_known",
        suggestion="call your own tools with type `tool_call`",
        details={"known": types},
    )


def _is_blocked(case: Case, name: str) -> bool:
    blocks = case.agent.blocks
    return any(blocks(one) or any(map(blocks, family_of(one))) for one in {name, case.action.type})


def _refuse_blocked(name: str) -> Answer:
    return denied(
        ErrorCode.TOOL_NOT_ALLOWED,
        f"{quoted(name)} is blocked for this agent",
        check="tool_not_blocked",
        suggestion=advice_for(("tool_not_blocked",)),
        details={"tool": name},
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
        f"{quoted(name)} is not among the agent's allowed tools: {listed(sorted(allowed))}",
        check="tool_allowed",
        suggestion="use one of the allowed tools, or ask an owner to add this one to `allowed_tools`",
        details={"tool": name, "allowed": sorted(allowed)},
    )


def _unknown_tool(case: Case, name: str) -> Answer:
    verdict = _APPROVALS.approve_tool_call(case.agent_id, name, dict(case.action.parameters or {}))
    return denied(
        ErrorCode.TOOL_NOT_ALLOWED,
        verdict.blocked_reason or f"unknown tool {quoted(name)}",
        check="tool_allowed",
        suggestion="ask an owner to register the tool, or to name it in the agent's allowed_tools",
        details={"tool": mask(name)[:64], "risk_score": verdict.risk_score},
    )


_APPROVALS = ToolApprovalSystem()


def _refuse_engine(case: Case, resolved_action: ResolvedAction, services: Services, checks: list[str]) -> Answer | None:
    if resolved_action.analyzer in NO_ENGINE:
        return None
    allowed = case.agent.allowed_engines
    if allowed is not None and resolved_action.analyzer not in allowed:
        names = listed(sorted(allowed))
        return denied(
            ErrorCode.TOOL_NOT_ALLOWED,
            f"the {resolved_action.analyzer} engine is not among the agent's allowed engines: {names}",
            check="engine_allowed",
            suggestion=advice_for(("engine_allowed",)),
            details={"engine": resolved_action.analyzer, "allowed": sorted(allowed)},
        )
    if resolved_action.analyzer not in services.engines.known():
        return denied(
            ErrorCode.VERIFICATION_FAILED,
            f"the {resolved_action.analyzer} engine is not installed here",
            check="engine_available",
            suggestion=advice_for(("engine_available",)),
            details={"engine": resolved_action.analyzer, "known": sorted(services.engines.known())},
        )
    checks.append("engine_allowed")
    return None
