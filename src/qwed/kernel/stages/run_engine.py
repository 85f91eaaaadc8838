"""Engine stage: the verdict on the action and its effects. One of the two stages that may wait."""

from collections.abc import Coroutine, Mapping
from typing import Any

import msgspec

from qwed.engines.pool import PoolFullError
from qwed.engines.protocol import DEFAULT_SENSITIVE_COLUMNS, DataPolicy, EngineRequest
from qwed.engines.registry import ENGINES
from qwed.engines.verdict_cache import CACHEABLE_STATUSES, VerdictRequest
from qwed.futures import Future
from qwed.kernel.analysis.call_facts import facts_of
from qwed.kernel.analysis.content_scan import scan_content
from qwed.kernel.analysis.executable_text import value_at, with_value_at
from qwed.kernel.analysis.permission_enforcement import enforce_allowlists, refuse_blocked_equivalent
from qwed.kernel.analysis.sql_statements import may_select
from qwed.kernel.analysis.tool_analyzers import (
    ANALYZERS,
    add_declared_effects,
    add_inferred_effects,
    analyze_tool,
    block_secret_leaks,
)
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
    if analyzer is not None:
        return _with_verdict(case, analyzer(case))
    request = _verdict_request(case, case.action)
    try:
        verdict = services.engines.ask(request)
    except PoolFullError:
        return _refuse_busy()
    if isinstance(verdict, Future) or verdict.status is Status.FAILED:
        return _await_verdict(case, request, verdict, services)
    return _with_engine_verdict(case, verdict)


def _with_engine_verdict(case: Case, verdict: Verdict) -> Case:
    if not ENGINES[case.resolved_action.analyzer].cacheable:
        case = replace(case, cacheable=False)
    return _with_verdict(case, verdict)


def _with_verdict(case: Case, verdict: Verdict) -> Case:
    """Return the case with the verdict after every rule on the effects that applies to it."""
    permissions = case.agent.permissions
    if permissions.allowed_paths is not None or permissions.allowed_domains is not None:
        verdict = enforce_allowlists(case, verdict)
    # Inferred and declared effects come after the allowlists: their targets are tool names, not files or addresses.
    if case.resolved_action.custom or verdict.effects:
        verdict = add_inferred_effects(case, verdict)
    if case.action.effects:
        verdict = add_declared_effects(case, verdict)
    if permissions.blocked_tools:
        verdict = refuse_blocked_equivalent(case, verdict)
    if case.content.secrets or verdict.effects:
        verdict = block_secret_leaks(case, verdict)
    return replace(case, verdict=verdict, facts=facts_of(case, verdict))


async def _await_verdict(
    case: Case, request: VerdictRequest, pending: Verdict | Future[Verdict], services: Services
) -> Case | Answer:
    try:
        verdict = await _resolve(request, pending, services)
        if _is_plain_text(case, verdict):
            case = replace(case, resolved_action=case.resolved_action._replace(analyzer=TOOL, executable_text=None))
            return _with_verdict(case, analyze_tool(case))
        if verdict.status is Status.FAILED and verdict.corrected is not None and not _is_embedded(case):
            return await _try_repair(case, verdict, services)
    except PoolFullError:
        return _refuse_busy()
    return _with_engine_verdict(case, verdict)


async def _resolve(request: VerdictRequest, pending: Verdict | Future[Verdict], services: Services) -> Verdict:
    """Return the verdict; one that had to be awaited is cached."""
    if not isinstance(pending, Future):
        return pending
    verdict = await pending
    services.engines.learn(request, verdict)
    return verdict


def _refuse_busy() -> Answer:
    return denied(ErrorCode.ENGINE_UNAVAILABLE, check="engine_available", retry_after=1)


def _is_embedded(case: Case) -> bool:
    executable_text = case.resolved_action.executable_text
    return executable_text is not None and executable_text.is_embedded


def _is_plain_text(case: Case, verdict: Verdict) -> bool:
    """Return True if a text in a parameter not named for SQL only began like a query: `select a hotel`."""
    executable_text = case.resolved_action.executable_text
    if executable_text is None or executable_text.is_explicit or verdict.status is not Status.FAILED:
        return False
    return verdict.checks_failed == ("syntax_valid",) and may_select(executable_text.normalized)


def _verdict_request(case: Case, action: Action) -> VerdictRequest:
    executable_text = case.resolved_action.executable_text
    # If the tool is registered later, the same action is read from another parameter.
    cache_key = action.hash if executable_text is None else f"{action.hash} at {executable_text.path}"
    return VerdictRequest(
        case.agent.organisation_id, case.resolved_action.analyzer, cache_key, _request_of(case, action), case.agent_id
    )


async def _try_repair(case: Case, verdict: Verdict, services: Services) -> Case:
    """Verify the repair that the engine offers; it counts only if it is verified itself (ruling 4.12)."""
    corrected = _with_correction(case, verdict.corrected or {})
    action = read_action(corrected)
    if isinstance(action, Answer):
        return _with_verdict(case, verdict)
    request = _verdict_request(case, action)
    repair_verdict = await _resolve(request, services.engines.ask(request), services)
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
        facts=repair_verdict.facts,
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
        parameters=action.parameters or {} if action.file is None else {**(action.parameters or {}), FILE: action.file},
        policy=_policy_of(case),
    )


def _stated_dialect(case: Case) -> Mapping[str, Any]:
    """Return the dialect that the call of an unregistered tool names, if another one is known: then both must agree."""
    stated = (case.action.parameters or {}).get("dialect")
    return {"dialect": stated} if stated is not None and case.agent.permissions.dialect else {}


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
