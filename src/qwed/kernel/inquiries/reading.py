"""INTERFACES 2: the bodies of the engine endpoints, one row for each engine, read field by field."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from qwed.engines.pool import LONGEST_SECONDS
from qwed.engines.protocol import EngineRequest
from qwed.kernel.answer import Problem, problem
from qwed.kernel.bodies import refuse_body
from qwed.kernel.inquiries.parameters import refuse_kinds
from qwed.kernel.request import FILE, quoted, without_file
from qwed.words import ErrorCode, NotCanonical, sha256_of

DEFAULT_MS = 30_000
SHORTEST_MS = 1_000
LONGEST_MS = int(LONGEST_SECONDS * 1000)
OPTIONS = ("timeout_ms", "include_attestation")
_CODE = "code"


class Asked(NamedTuple):
    """What one engine is asked with."""

    texts: tuple[str, ...]
    """The names the input itself goes by."""
    parameters: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()
    """Parameters that together stand in place of the input."""
    required: tuple[str, ...] = ()
    any_values: bool = False
    """Whether `params` hold values by names that the engine alone knows; then the input is one of them, or none."""


_PACK = Asked(("query",), ("operation",), any_values=True)

ASKED: dict[str, Asked] = {
    "math": Asked(("expression", "query"), ("operation", "claimed_result", "tolerance", "assumptions", "unit")),
    "logic": Asked(("query",), ("premises", "conclusion"), instead=("premises", "conclusion")),
    _CODE: Asked(("code", "query"), ("language",)),
    "sql": Asked(("query", "sql"), ("schema_ddl", "dialect", "allowed_tables", "allow_mutation")),
    "fact": Asked(("claim", "query"), ("context",), required=("context",)),
    "stats": Asked(("query", "claim"), (FILE, "format"), required=(FILE,)),
    "image": Asked(("claim", "query"), (FILE,), required=(FILE,)),
    "consensus": Asked(("query", "expression"), ("verification_mode", "mode", "min_confidence")),
    "legal": _PACK,
    "finance": _PACK,
    "ucp": _PACK,
    "tax": _PACK,
}
AUTO = Asked(("query",), tuple(dict.fromkeys(name for row in ASKED.values() for name in row.parameters)))
"""Where the engine is still to be found: its parameters are known by then."""


class Options(NamedTuple):
    """INTERFACES 2, `options`."""

    seconds: float = DEFAULT_MS / 1000
    attest: bool = False


class Inquiry(NamedTuple):
    """One input for one engine."""

    engine: str
    request: EngineRequest
    options: Options
    digest: str
    """The hash of everything that decides the verdict."""


def read_inquiry(engine: str, raw: Any) -> Inquiry | Problem:
    """The question in the body of `/verify/<engine>`, or what is wrong with it."""
    body = read_body(ASKED[engine], raw)
    return body if isinstance(body, Problem) else inquiry_of(engine, *body)


_NULLABLE = ("operation",)
"""What is no field of some engines, and may stand there as null."""


def engine_named(raw: Any) -> str | Problem | None:
    """The engine that `type` names, None where nothing is named, or the Problem of an unknown one."""
    named = raw.get("type") if isinstance(raw, Mapping) else None
    if named is None or (isinstance(named, str) and named in ASKED):
        return named
    return problem(ErrorCode.UNKNOWN_TYPE, f"unknown type {quoted(str(named))}: known are {', '.join(ASKED)}")


def read_typed(engine: str, raw: Mapping[str, Any]) -> Inquiry | Problem:
    """The question in a body that names its engine, in which the input is always `query`."""
    rest = {name: value for name, value in raw.items() if name not in _NULLABLE or value is not None}
    rest.pop("type")
    body = read_body(ASKED[engine]._replace(texts=("query",)), rest, ("type",))
    return body if isinstance(body, Problem) else inquiry_of(engine, *body)


def read_body(row: Asked, raw: Any, read_before: tuple[str, ...] = ()) -> tuple[str, dict[str, Any], Options] | Problem:
    """The input, the parameters and the options of a body, or what is wrong with it."""
    wrong = refuse_body(raw, (*row.texts, *read_before, *row.parameters, "params", "options"))
    if wrong is not None and row.any_values and isinstance(raw, Mapping):
        return problem(ErrorCode.MALFORMED, f"{wrong.message}; if it is a value of the check, put it in `params`")
    if wrong is not None:
        return wrong
    parameters = _parameters(row, raw)
    if isinstance(parameters, Problem):
        return parameters
    options = read_options(raw.get("options"))
    if isinstance(options, Problem):
        return options
    text = _text(row, raw, parameters)
    return text if isinstance(text, Problem) else (text, parameters, options)


def inquiry_of(engine: str, text: str, parameters: Mapping[str, Any], options: Options) -> Inquiry | Problem:
    """The question for `engine`; a Problem where its parameters are no plain values."""
    kept = dict(parameters)
    strict = engine == _CODE or (engine == "sql" and kept.pop("allow_mutation", False) is not True)
    try:
        digest = sha256_of({"engine": engine, "input": text, "parameters": without_file(kept), "strict": strict})
    except NotCanonical as why:
        return problem(ErrorCode.MALFORMED, f"the parameters are no plain values: {why}")
    code = text if engine == _CODE else ""
    query = "" if engine == _CODE else text
    return Inquiry(
        engine, EngineRequest(query=query, code=code, parameters=kept, strict=strict), options, f"sha256:{digest}"
    )


def _parameters(row: Asked, raw: Mapping[str, Any]) -> dict[str, Any] | Problem:
    """What stands beside the input or in `params`; the same name in both places is one too many."""
    given = raw.get("params")
    if given is not None:
        wrong = refuse_body(given, _names_in(row, given))
        if wrong is not None:
            return problem(ErrorCode.MALFORMED, f"in `params`: {wrong.message}")
    beside = {name: raw[name] for name in row.parameters if raw.get(name) is not None}
    inside = {name: value for name, value in (given or {}).items() if value is not None}
    twice = next((name for name in beside if name in inside), None)
    if twice is not None:
        return problem(ErrorCode.MALFORMED, f"`{twice}` stands in the body and in `params`: give it once")
    found = beside | inside
    wrong = refuse_kinds({name: value for name, value in found.items() if name in row.parameters})
    if wrong is not None:
        return wrong
    missing = next((name for name in row.required if name not in found), None)
    if missing is not None:
        return problem(ErrorCode.MISSING_FIELD, f"`{missing}` is required")
    return found


def _names_in(row: Asked, given: Any) -> tuple[str, ...]:
    return tuple(given) if row.any_values and isinstance(given, Mapping) else row.parameters


def _text(row: Asked, raw: Mapping[str, Any], parameters: Mapping[str, Any]) -> str | Problem:
    names = [name for name in row.texts if raw.get(name) is not None]
    if not names:
        if row.any_values or (row.instead and all(name in parameters for name in row.instead)):
            return ""
        return problem(ErrorCode.MISSING_FIELD, f"`{row.texts[0]}` is required")
    if len(names) > 1:
        return problem(ErrorCode.MALFORMED, f"`{names[0]}` and `{names[1]}` are the same field: give one of them")
    text = raw[names[0]]
    if not isinstance(text, str):
        advice = ": give another value by its name, in `params` or, to a client, as `checkout=`"
        return problem(ErrorCode.MALFORMED, f"`{names[0]}` must be a text{advice if row.any_values else ''}")
    if not _is_whole(text):
        return problem(ErrorCode.MALFORMED, f"`{names[0]}` holds half of a surrogate pair")
    return text


def _is_whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_options(raw: Any) -> Options | Problem:
    """INTERFACES 2: how long it may take and whether a signed statement is wanted."""
    if raw is None:
        return Options()
    if not isinstance(raw, Mapping):
        return problem(ErrorCode.BAD_OPTION, "`options` must be an object")
    unknown = next((name for name in raw if name not in OPTIONS), None)
    if unknown is not None:
        return problem(ErrorCode.BAD_OPTION, f"unknown option {quoted(str(unknown))}: known are {', '.join(OPTIONS)}")
    milliseconds, attest = raw.get("timeout_ms", DEFAULT_MS), raw.get("include_attestation", False)
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int):
        return problem(ErrorCode.BAD_OPTION, "`timeout_ms` must be a whole number")
    if not SHORTEST_MS <= milliseconds <= LONGEST_MS:
        return problem(ErrorCode.BAD_OPTION, f"`timeout_ms` must be from {SHORTEST_MS} to {LONGEST_MS}")
    if not isinstance(attest, bool):
        return problem(ErrorCode.BAD_OPTION, "`include_attestation` must be true or false")
    return Options(milliseconds / 1000, attest)
