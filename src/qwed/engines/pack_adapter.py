"""Adapter from a domain pack to an engine: one check, called by name with named values, and its result as a verdict.

`parameters` holds the name of the check in `operation` and its values; `query` stands for the value that the check
declares as its text. A call that is not possible is BLOCKED, and the answer lists the possible ones.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from qwed.engines._packs.limits import refuse_size
from qwed.engines._packs.to_json import to_json
from qwed.engines.protocol import EngineRequest
from qwed.model import Status, Verdict
from qwed.model.suggestions import closest_names, did_you_mean
from qwed.model.tolerances import parse_tolerances
from qwed.packs.check import PackCheck
from qwed.packs.result import CheckStatus, Result
from qwed.packs.tolerances import bound_parameters

_STATUS = {
    CheckStatus.VERIFIED: Status.VERIFIED,
    CheckStatus.FAILED: Status.FAILED,
    CheckStatus.UNVERIFIABLE: Status.INCONCLUSIVE,
}
_IN_VERDICT = ("verified", "message")
"""Members that the verdict already contains."""
OPERATION = "operation"


def pack_engine(engine: str, checks: Mapping[str, PackCheck]) -> Callable[[EngineRequest], Verdict]:
    """Return the `verify` function of a pack's engine."""

    def verify(request: EngineRequest) -> Verdict:
        """Run the check named by `operation`; BLOCKED with the known checks if there is none."""
        error = refuse_size(request)
        if error:
            return _blocked(engine, error)
        values = {name: value for name, value in request.parameters.items() if value is not None}
        operation = values.pop(OPERATION, None)
        check = checks.get(operation) if isinstance(operation, str) else None
        if check is None:
            return _blocked(engine, _unknown_operation(operation, checks), operations=_describe_checks(checks))
        error = _take_query(check, values, request.query) or _argument_error(check, values)
        if error:
            return _blocked(engine, error, operations=_describe_checks({check.name: check}))
        bounded = bound_parameters(values, parse_tolerances(request.policy.tolerances))
        return _with_notes(_answer(engine, check, bounded.values), bounded.notes)

    return verify


def _with_notes(verdict: Verdict, notes: tuple[str, ...]) -> Verdict:
    """Return the verdict with the notes on what was asked for and is not permitted."""
    if not notes:
        return verdict
    return replace(verdict, message="; ".join((verdict.message, *notes)), result={**verdict.result, "notes": [*notes]})


def _unknown_operation(operation: Any, checks: Mapping[str, PackCheck]) -> str:
    names = ", ".join(checks)
    if operation is None:
        return f"`operation` is required: known are {names}"
    return f"unknown operation `{str(operation)[:60]}`: {did_you_mean(operation, checks)}known are {names}"


def _take_query(check: PackCheck, values: dict[str, Any], query: str) -> str:
    """Put the query into the value that the check declares; return an error message or an empty string."""
    if not query:
        return ""
    if check.text is None:
        return f"`{check.name}` reads no `query`: it takes {', '.join(check.takes)}, each by its name"
    if values.setdefault(check.text, query) != query:
        return f"`query` stands for `{check.text}` here, and both are given: give one of them"
    return ""


def _argument_error(check: PackCheck, values: Mapping[str, Any]) -> str:
    missing = [name for name in check.required if name not in values]
    extra = [name for name in values if name not in check.takes]
    if extra:
        takes = f"{did_you_mean(extra[0], check.takes)}it takes {', '.join(check.takes)}"
        return f"`{check.name}` takes no `{extra[0][:60]}`: {_nesting_advice(extra, missing, check)}{takes}"
    if not missing:
        return ""
    named = [f"`{name}`" for name in missing]
    listed = f"{', '.join(named[:-1])} and {named[-1]} are" if len(named) > 1 else f"{named[0]} is"
    return f"{listed} required for `{check.name}`"


def _nesting_advice(extra: list[str], missing: list[str], check: PackCheck) -> str:
    """Return advice if the members of the single required object were passed next to it."""
    is_flattened = (
        len(check.required) == len(missing) == 1 and len(extra) > 1 and not closest_names(extra[0], check.takes)
    )
    return f"if it is of the `{missing[0]}`, put all of that under `{missing[0]}`; " if is_flattened else ""


def _answer(engine: str, check: PackCheck, values: Mapping[str, Any]) -> Verdict:
    try:
        result = check.ask(**values)
    except ImportError as missing:
        return _not_installed(engine, missing)
    return _verdict(engine, check, result)


def _verdict(engine: str, check: PackCheck, result: Result) -> Verdict:
    members = {name: value for name, value in result.items() if name not in _IN_VERDICT}
    return Verdict(
        status=_STATUS[result.status],
        engine=engine,
        message=str(to_json(result.message)),
        checks_passed=(check.name,) if result.verified else (),
        checks_failed=() if result.verified else (check.name,),
        result={OPERATION: check.name, **to_json(members)},
    )


def _not_installed(engine: str, missing: ImportError) -> Verdict:
    """Return ERROR for a check whose library is missing."""
    return Verdict(
        status=Status.ERROR,
        engine=engine,
        message=f"the engine `{engine}` needs a library that is not installed, install `qwed[{engine}]`",
        checks_failed=("engine_answered",),
        result={"error": type(missing).__name__, "missing": str(missing.name or "")[:80]},
    )


def _blocked(engine: str, message: str, **result: Any) -> Verdict:
    return Verdict(status=Status.BLOCKED, engine=engine, message=message, checks_failed=("input_valid",), result=result)


def _describe_checks(checks: Mapping[str, PackCheck]) -> list[dict[str, Any]]:
    """Describe the available checks."""
    return [
        {
            OPERATION: check.name,
            "says": check.says,
            "required": list(check.required),
            "optional": list(check.optional),
            "query": check.text,
        }
        for check in checks.values()
    ]
