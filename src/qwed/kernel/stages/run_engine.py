"""The verdict: what the action is and would do. One of the two stages that may wait."""

from collections.abc import Coroutine, Mapping
from typing import Any

import msgspec

from qwed.engines.pool import PoolFull
from qwed.engines.protocol import DEFAULT_SENSITIVE_COLUMNS, EngineRequest, Policy
from qwed.engines.table import ENGINES
from qwed.engines.verdicts import SETTLED, Question
from qwed.kernel.answer import Answer, denied
from qwed.kernel.case import Case, replace
from qwed.kernel.judging.content import read_content
from qwed.kernel.judging.judges import JUDGES, judge_tool, refuse_secrets, with_stated, with_touched
from qwed.kernel.judging.reach import held_to_reach
from qwed.kernel.judging.stray import may_select
from qwed.kernel.judging.told import at_place, put_at
from qwed.kernel.request import FILE, Action, read_action
from qwed.kernel.services import Services
from qwed.kernel.tools import TOOL, repaired, text_of
from qwed.waiting import Ticket
from qwed.words import ErrorCode, Status, Verdict

_GOOD = frozenset({Status.VERIFIED, Status.SIMPLIFIED})


def run_engine(case: Case, services: Services) -> Case | Answer | Coroutine[Any, None, Case | Answer]:
    """The case with its verdict; a coroutine where an engine worker has to be waited for."""
    case = replace(case, content=read_content(case.action))
    judge = JUDGES.get(case.subject.judge)
    if judge is None:
        return _ask_engine(case, services)
    return _with_verdict(case, judge(case))


def _with_verdict(case: Case, verdict: Verdict) -> Case:
    # What is read off a name, or stated, is no file and no address: it is told after those were held to the reach.
    told = with_stated(case, with_touched(case, held_to_reach(case, verdict)))
    return replace(case, verdict=refuse_secrets(case, told))


async def _ask_engine(case: Case, services: Services) -> Case | Answer:
    try:
        verdict = await _verdict_on(case, case.action, services)
        if _is_a_sentence(case, verdict):
            case = replace(case, subject=case.subject._replace(judge=TOOL, told=None))
            return _with_verdict(case, judge_tool(case))
        if verdict.status is Status.FAILED and verdict.corrected is not None:
            return await _try_repair(case, verdict, services)
    except PoolFull:
        return denied(ErrorCode.ENGINE_UNAVAILABLE, check="engine_available", retry_after=1)
    if not ENGINES[case.subject.judge].lasting:
        case = replace(case, lasting=False)
    return _with_verdict(case, verdict)


def _is_a_sentence(case: Case, verdict: Verdict) -> bool:
    """Whether what began like a query that reads, under a name that tells of no SQL, is none: `select a hotel`."""
    told = case.subject.told
    if told is None or told.sure or verdict.status is not Status.FAILED:
        return False
    return verdict.checks_failed == ("syntax_valid",) and may_select(told.text)


async def _verdict_on(case: Case, action: Action, services: Services) -> Verdict:
    told = case.subject.told
    # The same action of a tool that is described since is read in another place.
    place = action.hash if told is None else f"{action.hash} at {told.place}"
    question = Question(case.agent.organisation_id, case.subject.judge, place, _request_of(case, action), case.agent_id)
    asked = services.engines.ask(question)
    if not isinstance(asked, Ticket):
        return asked
    verdict = await asked
    services.engines.learn(question, verdict)
    return verdict


async def _try_repair(case: Case, verdict: Verdict, services: Services) -> Case:
    """Ruling 4.12: a repair counts only when it verifies itself."""
    corrected = _repaired(case, verdict.corrected or {})
    action = read_action(corrected)
    if isinstance(action, Answer):
        return _with_verdict(case, verdict)
    again = await _verdict_on(case, action, services)
    if again.status not in _GOOD or again.corrected is not None:
        # A repair that merely was not verified in time may be verified next time.
        return _with_verdict(replace(case, lasting=again.status in SETTLED), verdict)
    joined = Verdict(
        status=Status.CORRECTED,
        engine=verdict.engine,
        message=verdict.message,
        effects=again.effects,
        checks_passed=tuple(check for check in again.checks_passed if check not in verdict.checks_failed),
        checks_failed=verdict.checks_failed,
        result=verdict.result,
    )
    return _with_verdict(replace(case, corrected=corrected, executable=action), joined)


def _repaired(case: Case, fields: Mapping[str, Any]) -> dict[str, Any]:
    told = case.subject.told
    if told is None:
        return repaired(case.action, fields)
    (text,) = fields.values()
    members: dict[str, Any] = put_at(msgspec.json.decode(case.action.canonical), told.place, text)
    return members


def _request_of(case: Case, action: Action) -> EngineRequest:
    told = case.subject.told
    if told is not None:
        text = told.text if action is case.action else at_place(msgspec.json.decode(action.canonical), told.place)
        if told.judge == "code":
            return EngineRequest(code=text, parameters={"language": told.language}, policy=_policy_of(case))
        return EngineRequest(query=text, policy=_policy_of(case))
    return EngineRequest(
        query=text_of(action, "query"),
        code=text_of(action, "code"),
        parameters=_parameters_of(action),
        policy=_policy_of(case),
    )


def _parameters_of(action: Action) -> Mapping[str, Any]:
    given = action.parameters or {}
    return given if action.file is None else {**given, FILE: action.file}


def _policy_of(case: Case) -> Policy:
    allowed = case.agent.permissions
    sensitive = allowed.sensitive_columns
    return Policy(
        allowed_tables=allowed.allowed_tables,
        allowed_columns=allowed.allowed_columns,
        sensitive_columns=DEFAULT_SENSITIVE_COLUMNS if sensitive is None else sensitive,
        schema_ddl=allowed.schema_ddl,
        max_rows=allowed.max_rows,
    )
