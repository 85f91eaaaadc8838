"""Engine stage: the verdict on the action and its effects. One of the two stages that may wait."""

from collections.abc import Coroutine, Mapping
from typing import Any

import msgspec

from qwed.engines.pool import PoolFullError
from qwed.engines.protocol import DEFAULT_SENSITIVE_COLUMNS, DataPolicy, EngineRequest
from qwed.engines.registry import ENGINES
from qwed.engines.verdict_cache import CACHEABLE_STATUSES, VerdictRequest
from qwed.futures import Future
from qwed.kernel.analysis.allowlists import enforce_allowlists
from qwed.kernel.analysis.blocked_equivalents import refuse_blocked_equivalent
from qwed.kernel.analysis.content_scan import scan_content
from qwed.kernel.analysis.executable_text import value_at, with_value_at
from qwed.kernel.analysis.tool_analyzers import (
    ANALYZERS,
    add_declared_effects,
    add_inferred_effects,
    analyze_tool,
    block_secret_leaks,
)
from qwed.kernel.analysis.unanalyzed_text import may_select
from qwed.kernel.answer import Answer, denied
from qwed.kernel.case import Case, replace
from qwed.kernel.request import FILE, Action, read_action
from qwed.kernel.services import Services
from qwed.kernel.tools import TOOL, text_of, with_fields_replaced
from qwed.model import ErrorCode, Status, Verdict

_PASSING = frozenset({Status.VERIFIED, Status.SIMPLIFIED})


def run_engine(case: Case, services: Services) -> Case | Answer | Coroutine[Any, None, Case | Answer]:
    """Return the case with its verdict; a coroutine if an engine worker must be awaited."""
    case = replace(case, content=scan_content(case.action))
    analyzer = ANALYZERS.get(case.resolved_action.analyzer)
    if analyzer is None:
        return _ask_engine(case, services)
    return _with_verdict(case, analyzer(case))


def _with_verdict(case: Case, verdict: Verdict) -> Case:
    # Inferred and declared effects come after the allowlists: their targets are tool names, not files or addresses.
    extended = add_declared_effects(case, add_inferred_effects(case, enforce_allowlists(case, verdict)))
    return replace(case, verdict=block_secret_leaks(case, refuse_blocked_equivalent(case, extended)))


async def _ask_engine(case: Case, services: Services) -> Case | Answer:
    try:
        verdict = await _verdict_on(case, case.action, services)
        if _is_plain_text(case, verdict):
            case = replace(case, resolved_action=case.resolved_action._replace(analyzer=TOOL, executable_text=None))
            return _with_verdict(case, analyze_tool(case))
        if verdict.status is Status.FAILED and verdict.corrected is not None and not _is_embedded(case):
            return await _try_repair(case, verdict, services)
    except PoolFullError:
        return denied(ErrorCode.ENGINE_UNAVAILABLE, check="engine_available", retry_after=1)
    if not ENGINES[case.resolved_action.analyzer].cacheable:
        case = replace(case, cacheable=False)
    return _with_verdict(case, verdict)


def _is_embedded(case: Case) -> bool:
    executable_text = case.resolved_action.executable_text
    return executable_text is not None and executable_text.is_embedded


def _is_plain_text(case: Case, verdict: Verdict) -> bool:
    """Return True if a text in a parameter not named for SQL only began like a query: `select a hotel`."""
    executable_text = case.resolved_action.executable_text
    if executable_text is None or executable_text.is_explicit or verdict.status is not Status.FAILED:
        return False
    return verdict.checks_failed == ("syntax_valid",) and may_select(executable_text.normalized)


async def _verdict_on(case: Case, action: Action, services: Services) -> Verdict:
    executable_text = case.resolved_action.executable_text
    # If the tool is registered later, the same action is read from another parameter.
    cache_key = action.hash if executable_text is None else f"{action.hash} at {executable_text.path}"
    question = VerdictRequest(
        case.agent.organisation_id, case.resolved_action.analyzer, cache_key, _request_of(case, action), case.agent_id
    )
    verdict_or_future = services.engines.ask(question)
    if not isinstance(verdict_or_future, Future):
        return verdict_or_future
    verdict = await verdict_or_future
    services.engines.learn(question, verdict)
    return verdict


async def _try_repair(case: Case, verdict: Verdict, services: Services) -> Case:
    """Verify the repair that the engine offers; it counts only if it is verified itself (ruling 4.12)."""
    corrected = _with_correction(case, verdict.corrected or {})
    action = read_action(corrected)
    if isinstance(action, Answer):
        return _with_verdict(case, verdict)
    repair_verdict = await _verdict_on(case, action, services)
    if repair_verdict.status not in _PASSING or repair_verdict.corrected is not None:
        # A repair that timed out may be verified next time.
        return _with_verdict(replace(case, cacheable=repair_verdict.status in CACHEABLE_STATUSES), verdict)
    corrected_verdict = Verdict(
        status=Status.CORRECTED,
        engine=verdict.engine,
        message=verdict.message,
        effects=repair_verdict.effects,
        checks_passed=tuple(check for check in repair_verdict.checks_passed if check not in verdict.checks_failed),
        checks_failed=verdict.checks_failed,
        result=verdict.result,
    )
    return _with_verdict(replace(case, corrected=corrected, executable=action), corrected_verdict)


def _with_correction(case: Case, fields: Mapping[str, Any]) -> dict[str, Any]:
    executable_text = case.resolved_action.executable_text
    if executable_text is None:
        return with_fields_replaced(case.action, fields)
    (text,) = fields.values()
    members: dict[str, Any] = with_value_at(msgspec.json.decode(case.action.canonical), executable_text.path, text)
    return members


def _request_of(case: Case, action: Action) -> EngineRequest:
    executable_text = case.resolved_action.executable_text
    if executable_text is not None:
        text = (
            executable_text.normalized
            if action is case.action
            else value_at(msgspec.json.decode(action.canonical), executable_text.path)
        )
        if executable_text.analyzer == "code":
            return EngineRequest(code=text, parameters={"language": executable_text.language}, policy=_policy_of(case))
        return EngineRequest(query=text, parameters=_stated_dialect(case), policy=_policy_of(case))
    return EngineRequest(
        query=text_of(action, "query"),
        code=text_of(action, "code"),
        parameters=_parameters_of(action),
        policy=_policy_of(case),
    )


def _stated_dialect(case: Case) -> Mapping[str, Any]:
    """Return the dialect that the call of an unregistered tool names, if another one is known: then both must agree."""
    stated = (case.action.parameters or {}).get("dialect")
    return {"dialect": stated} if stated is not None and case.agent.permissions.dialect else {}


def _parameters_of(action: Action) -> Mapping[str, Any]:
    parameters = action.parameters or {}
    return parameters if action.file is None else {**parameters, FILE: action.file}


def _policy_of(case: Case) -> DataPolicy:
    allowed = case.agent.permissions
    sensitive = allowed.sensitive_columns
    return DataPolicy(
        allowed_tables=allowed.allowed_tables,
        allowed_columns=allowed.allowed_columns,
        sensitive_columns=DEFAULT_SENSITIVE_COLUMNS if sensitive is None else sensitive,
        schema_ddl=allowed.schema_ddl,
        max_rows=allowed.max_rows,
        # The row describes the database of this tool; the permissions, that of the agent's other actions.
        dialect=case.resolved_action.tool.dialect or allowed.dialect,
        allowed_functions=allowed.allowed_functions or (),
        tolerances=allowed.tolerances or (),
    )
