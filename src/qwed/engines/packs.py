"""The domain packs as engines: one check, asked by name with named values, and its result as a verdict."""

from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from qwed.engines.protocol import EngineRequest
from qwed.packs.question import Question
from qwed.packs.result import Result, Standing
from qwed.words import Status, Verdict
from qwed.words.exact import shown

_STATUS = {
    Standing.VERIFIED: Status.VERIFIED,
    Standing.FAILED: Status.FAILED,
    Standing.UNVERIFIABLE: Status.INCONCLUSIVE,
}
OPERATION = "operation"


def verifying(engine: str, questions: Mapping[str, Question]) -> Callable[[EngineRequest], Verdict]:
    """The `verify` of a pack's engine."""

    def verify(request: EngineRequest) -> Verdict:
        """What the check named by `operation` finds; what cannot be asked is BLOCKED with what can."""
        values = dict(request.parameters)
        asked = questions.get(str(values.pop(OPERATION, "")))
        if asked is None:
            return _refused(engine, f"`operation` must be one of {', '.join(questions)}")
        if request.query and asked.text is not None:
            values.setdefault(asked.text, request.query)
        wrong = _wrong(asked, values)
        if wrong:
            return _refused(engine, wrong)
        return _verdict(engine, asked, asked.ask(**values))

    return verify


def _wrong(asked: Question, values: Mapping[str, Any]) -> str:
    beside = next((name for name in values if name not in asked.takes), None)
    if beside is not None:
        return f"`{asked.name}` takes no `{beside[:60]}`: it takes {', '.join(asked.takes)}"
    missing = next((name for name in asked.required if name not in values), None)
    return "" if missing is None else f"`{missing}` is required for `{asked.name}`"


def _verdict(engine: str, asked: Question, result: Result) -> Verdict:
    return Verdict(
        status=_STATUS[result.status],
        engine=engine,
        message=result.message,
        checks_passed=(asked.name,) if result.verified else (),
        checks_failed=() if result.verified else (asked.name,),
        result={"operation": asked.name, **plain(result)},
    )


def _refused(engine: str, message: str) -> Verdict:
    return Verdict(status=Status.BLOCKED, engine=engine, message=message, checks_failed=("input_valid",))


def plain(value: Any) -> Any:
    """As JSON: decimals as their digits, days as ISO 8601."""
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in value]
    if isinstance(value, Decimal):
        return shown(value)
    if isinstance(value, date):
        return value.isoformat()
    return value
