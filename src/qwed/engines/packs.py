"""The domain packs as engines: one check, asked by name with named values, and its result as a verdict.

`parameters` hold the name of the check in `operation`, and its values beside it; `query` stands for the value that
the check calls its text. Whatever cannot be asked is BLOCKED, and the answer tells what can.
"""

from collections.abc import Callable, Mapping
from typing import Any

from qwed.engines._packs.limits import refuse_size
from qwed.engines._packs.plain import plain
from qwed.engines.protocol import EngineRequest
from qwed.packs.question import Question
from qwed.packs.result import Result, Standing
from qwed.words import Status, Verdict
from qwed.words.near import near, perhaps

_STATUS = {
    Standing.VERIFIED: Status.VERIFIED,
    Standing.FAILED: Status.FAILED,
    Standing.UNVERIFIABLE: Status.INCONCLUSIVE,
}
_TOLD = ("verified", "message")
"""What the verdict says of every result."""
OPERATION = "operation"


def verifying(engine: str, questions: Mapping[str, Question]) -> Callable[[EngineRequest], Verdict]:
    """The `verify` of a pack's engine."""

    def verify(request: EngineRequest) -> Verdict:
        """What the check named by `operation` finds; what cannot be asked is BLOCKED with what can."""
        wrong = refuse_size(request)
        if wrong:
            return _refused(engine, wrong)
        values = {name: value for name, value in request.parameters.items() if value is not None}
        named = values.pop(OPERATION, None)
        asked = questions.get(named) if isinstance(named, str) else None
        if asked is None:
            return _refused(engine, _unknown(named, questions), operations=_listed(questions))
        wrong = _take_query(asked, values, request.query) or _wrong(asked, values)
        if wrong:
            return _refused(engine, wrong, operations=_listed({asked.name: asked}))
        return _answer(engine, asked, values)

    return verify


def _unknown(named: Any, questions: Mapping[str, Question]) -> str:
    known = ", ".join(questions)
    if named is None:
        return f"`operation` is required: known are {known}"
    return f"unknown operation `{str(named)[:60]}`: {perhaps(named, questions)}known are {known}"


def _take_query(asked: Question, values: dict[str, Any], query: str) -> str:
    """Put the query where the check reads it; what is wrong with that, if anything is."""
    if not query:
        return ""
    if asked.text is None:
        return f"`{asked.name}` reads no `query`: it takes {', '.join(asked.takes)}, each by its name"
    if values.setdefault(asked.text, query) != query:
        return f"`query` stands for `{asked.text}` here, and both are given: give one of them"
    return ""


def _wrong(asked: Question, values: Mapping[str, Any]) -> str:
    missing = [name for name in asked.required if name not in values]
    beside = [name for name in values if name not in asked.takes]
    if beside:
        takes = f"{perhaps(beside[0], asked.takes)}it takes {', '.join(asked.takes)}"
        return f"`{asked.name}` takes no `{beside[0][:60]}`: {_inside(beside, missing, asked)}{takes}"
    if not missing:
        return ""
    named = [f"`{name}`" for name in missing]
    listed = f"{', '.join(named[:-1])} and {named[-1]} are" if len(named) > 1 else f"{named[0]} is"
    return f"{listed} required for `{asked.name}`"


def _inside(beside: list[str], missing: list[str], asked: Question) -> str:
    """Advice for whoever laid the members of the one value that is needed beside it."""
    laid_out = len(asked.required) == len(missing) == 1 and len(beside) > 1 and not near(beside[0], asked.takes)
    return f"if it is of the `{missing[0]}`, put all of that under `{missing[0]}`; " if laid_out else ""


def _answer(engine: str, asked: Question, values: Mapping[str, Any]) -> Verdict:
    try:
        result = asked.ask(**values)
    except ImportError as missing:
        return _not_installed(engine, missing)
    return _verdict(engine, asked, result)


def _verdict(engine: str, asked: Question, result: Result) -> Verdict:
    told = {name: value for name, value in result.items() if name not in _TOLD}
    return Verdict(
        status=_STATUS[result.status],
        engine=engine,
        message=str(plain(result.message)),
        checks_passed=(asked.name,) if result.verified else (),
        checks_failed=() if result.verified else (asked.name,),
        result={OPERATION: asked.name, **plain(told)},
    )


def _not_installed(engine: str, missing: ImportError) -> Verdict:
    """ERROR: the check is there, and a library of it is not."""
    return Verdict(
        status=Status.ERROR,
        engine=engine,
        message=f"the engine `{engine}` needs a library that is not here, install `qwed[{engine}]`",
        checks_failed=("engine_answered",),
        result={"error": type(missing).__name__, "missing": str(missing.name or "")[:80]},
    )


def _refused(engine: str, message: str, **result: Any) -> Verdict:
    return Verdict(status=Status.BLOCKED, engine=engine, message=message, checks_failed=("input_valid",), result=result)


def _listed(questions: Mapping[str, Question]) -> list[dict[str, Any]]:
    """What can be asked, for whoever asked for something else."""
    return [
        {
            OPERATION: each.name,
            "says": each.says,
            "required": list(each.required),
            "optional": list(each.optional),
            "query": each.text,
        }
        for each in questions.values()
    ]
