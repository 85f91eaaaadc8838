"""AGENT-004 and ACTION-001, rulings 4.4 and 4.5: is this tool, type or engine the agent's to use?"""

from qwed.guards.secrets import mask
from qwed.guards.tool_approval import ToolApprovalSystem
from qwed.kernel.answer import Answer, denied
from qwed.kernel.case import Case, replace
from qwed.kernel.judging.custom import custom_subject
from qwed.kernel.judging.stray import refuse_stray
from qwed.kernel.request import quoted
from qwed.kernel.services import Services
from qwed.kernel.tools import (
    ACTION_TYPES,
    PATH,
    SHELL,
    TOOL,
    TOOL_CALL,
    Subject,
    Tool,
    custom_tool,
    fields_judged,
    readings,
    resembles_built_in,
    subject_of,
)
from qwed.words import ErrorCode

_LONGEST_NAME = 128
NO_ENGINE = frozenset({TOOL, PATH, SHELL})


def check_permissions(case: Case, services: Services) -> Case | Answer:
    """The case with its subject, or the refusal that names what is not allowed."""
    action = case.action
    if action.type != TOOL_CALL and action.type not in ACTION_TYPES:
        return _unknown_type(action.type)
    name = action.type if action.type != TOOL_CALL else action.tool
    if not name or len(name) > _LONGEST_NAME:
        return denied(ErrorCode.MISSING_FIELD, "`action.tool` must name the tool that is called")
    refusal = _refuse_blocked(case, name, action.type)
    if refusal is not None:
        return refusal
    subject = _subject_of(case, name, services)
    if isinstance(subject, Answer):
        return subject
    refusal = (
        _refuse_engine(case, subject, services) or _refuse_two_readings(case, subject) or refuse_stray(action, subject)
    )
    return refusal or replace(case, subject=subject)


def _subject_of(case: Case, name: str, services: Services) -> Subject | Answer:
    row = services.tool(case.agent.organisation_id, name)
    refusal = _refuse_tool(case, name, row)
    if refusal is not None:
        return refusal
    if row is None:
        return custom_subject(name, custom_tool(name), case.action)
    return subject_of(name, row, case.action)


def _refuse_two_readings(case: Case, subject: Subject) -> Answer | None:
    fields = () if subject.custom else fields_judged(subject)
    if len(readings(case.action, fields)) <= 1:
        return None
    return denied(
        ErrorCode.VERIFICATION_FAILED,
        f"the action gives its {' or '.join(fields)} twice, and differently: give it once",
        check="one_reading",
    )


def _unknown_type(name: str) -> Answer:
    known = sorted([*ACTION_TYPES, TOOL_CALL])
    return denied(
        ErrorCode.UNKNOWN_ACTION_TYPE,
        f"unknown action type {quoted(name)}",
        check="action_type_known",
        suggestion="call your own tools with type `tool_call`",
        details={"known": known},
    )


def _refuse_blocked(case: Case, *names: str) -> Answer | None:
    if not any(map(case.agent.blocks, names)):
        return None
    return denied(
        ErrorCode.TOOL_NOT_ALLOWED,
        f"{quoted(names[0])} is blocked for this agent",
        check="tool_not_blocked",
        details={"tool": names[0]},
    )


def _refuse_tool(case: Case, name: str, row: Tool | None) -> Answer | None:
    if row is None and resembles_built_in(name):
        return _unknown_tool(case, name)  # ruling 4.4: a spelling of another tool is no tool of its own
    allowed = case.agent.allowed_tools
    if allowed is None:
        return _unknown_tool(case, name) if row is None else None
    if case.agent.allows(name):
        return None
    if case.action.type != TOOL_CALL and row is not None and row.has_engine:
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


def _refuse_engine(case: Case, subject: Subject, services: Services) -> Answer | None:
    if subject.judge in NO_ENGINE:
        return None
    allowed = case.agent.allowed_engines
    if allowed is not None and subject.judge not in allowed:
        return denied(
            ErrorCode.TOOL_NOT_ALLOWED,
            f"the {subject.judge} engine is not among the agent's allowed engines",
            check="engine_allowed",
            details={"engine": subject.judge, "allowed": sorted(allowed)},
        )
    if subject.judge not in services.engines.known():
        return denied(
            ErrorCode.VERIFICATION_FAILED,
            f"the {subject.judge} engine is not installed here",
            check="engine_available",
            details={"engine": subject.judge, "known": sorted(services.engines.known())},
        )
    return None
