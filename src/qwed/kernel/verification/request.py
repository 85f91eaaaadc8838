"""Parsing of the engine endpoints' bodies, one row for each engine (INTERFACES 2)."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from qwed.engines.pool import MAX_SECONDS
from qwed.engines.protocol import EngineRequest
from qwed.kernel.answer import Problem, problem
from qwed.kernel.body_parsing import refuse_body
from qwed.kernel.request import FILE, quoted, without_file
from qwed.kernel.verification.parameters import refuse_wrong_kinds
from qwed.model import CanonicalJsonError, ErrorCode, sha256_of

DEFAULT_MS = 30_000
SHORTEST_MS = 1_000
LONGEST_MS = int(MAX_SECONDS * 1000)
OPTIONS = ("timeout_ms", "include_attestation")
_CODE = "code"


class EngineInputs(NamedTuple):
    """Fields that one engine takes."""

    texts: tuple[str, ...]
    """Accepted names of the input field."""
    parameters: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()
    """Parameters that together replace the input."""
    required: tuple[str, ...] = ()
    any_values: bool = False
    """True if `params` may have any names: then the input is optional."""


_PACK = EngineInputs(("query",), ("operation",), any_values=True)

ENGINE_INPUTS: dict[str, EngineInputs] = {
    "math": EngineInputs(("expression", "query"), ("operation", "claimed_result", "tolerance", "assumptions", "unit")),
    "logic": EngineInputs(("query",), ("premises", "conclusion"), instead=("premises", "conclusion")),
    _CODE: EngineInputs(("code", "query"), ("language",)),
    "sql": EngineInputs(("query", "sql"), ("schema_ddl", "dialect", "allowed_tables", "allow_mutation")),
    "fact": EngineInputs(("claim", "query"), ("context",), required=("context",)),
    "stats": EngineInputs(("query", "claim"), (FILE, "format"), required=(FILE,)),
    "image": EngineInputs(("claim", "query"), (FILE,), required=(FILE,)),
    "consensus": EngineInputs(("query", "expression"), ("verification_mode", "mode", "min_confidence")),
    "legal": _PACK,
    "finance": _PACK,
    "ucp": _PACK,
    "tax": _PACK,
}
AUTO = EngineInputs(("query",), tuple(dict.fromkeys(name for row in ENGINE_INPUTS.values() for name in row.parameters)))
"""Fields of a body whose engine is not known yet."""


class VerifyOptions(NamedTuple):
    """Options of a verification (INTERFACES 2, `options`)."""

    seconds: float = DEFAULT_MS / 1000
    attest: bool = False


class VerificationRequest(NamedTuple):
    """One input for one engine."""

    engine: str
    request: EngineRequest
    options: VerifyOptions
    digest: str
    """Hash of everything that determines the verdict."""


def read_request(engine: str, raw: Any) -> VerificationRequest | Problem:
    """Parse the body of `/verify/<engine>`, or return the problem with it."""
    body = read_body(ENGINE_INPUTS[engine], raw)
    return body if isinstance(body, Problem) else build_request(engine, *body)


_NULLABLE = ("operation",)
"""Fields that may be null for engines that do not have them."""


def read_engine_name(raw: Any) -> str | Problem | None:
    """Return the engine named by `type`, None if there is none, or the problem with an unknown one."""
    named = raw.get("type") if isinstance(raw, Mapping) else None
    if named is None or (isinstance(named, str) and named in ENGINE_INPUTS):
        return named
    return problem(ErrorCode.UNKNOWN_TYPE, f"unknown type {quoted(str(named))}: known are {', '.join(ENGINE_INPUTS)}")


def read_typed_request(engine: str, raw: Mapping[str, Any]) -> VerificationRequest | Problem:
    """Parse a body that names its engine, in which the input is always `query`."""
    rest = {name: value for name, value in raw.items() if name not in _NULLABLE or value is not None}
    rest.pop("type")
    body = read_body(ENGINE_INPUTS[engine]._replace(texts=("query",)), rest, ("type",))
    return body if isinstance(body, Problem) else build_request(engine, *body)


def read_body(
    row: EngineInputs, raw: Any, read_before: tuple[str, ...] = ()
) -> tuple[str, dict[str, Any], VerifyOptions] | Problem:
    """Parse the input, the parameters and the options of a body, or return the problem with it."""
    refusal = refuse_body(raw, (*row.texts, *read_before, *row.parameters, "params", "options"))
    if refusal is not None and row.any_values and isinstance(raw, Mapping):
        return problem(ErrorCode.MALFORMED, f"{refusal.message}; if it is a value of the check, put it in `params`")
    if refusal is not None:
        return refusal
    parameters = _read_parameters(row, raw)
    if isinstance(parameters, Problem):
        return parameters
    options = read_options(raw.get("options"))
    if isinstance(options, Problem):
        return options
    text = _read_text(row, raw, parameters)
    return text if isinstance(text, Problem) else (text, parameters, options)


def build_request(
    engine: str, text: str, parameters: Mapping[str, Any], options: VerifyOptions
) -> VerificationRequest | Problem:
    """Build the request for `engine`; a Problem if its parameters are not plain JSON values."""
    values = dict(parameters)
    strict = engine == _CODE or (engine == "sql" and values.pop("allow_mutation", False) is not True)
    try:
        digest = sha256_of({"engine": engine, "input": text, "parameters": without_file(values), "strict": strict})
    except CanonicalJsonError as error:
        return problem(ErrorCode.MALFORMED, f"the parameters are not plain JSON values: {error}")
    code = text if engine == _CODE else ""
    query = "" if engine == _CODE else text
    return VerificationRequest(
        engine, EngineRequest(query=query, code=code, parameters=values, strict=strict), options, f"sha256:{digest}"
    )


def _read_parameters(row: EngineInputs, raw: Mapping[str, Any]) -> dict[str, Any] | Problem:
    """Parse the parameters in the body or in `params`; the same name in both is refused."""
    nested = raw.get("params")
    if nested is not None:
        refusal = refuse_body(nested, _known_names(row, nested))
        if refusal is not None:
            return problem(ErrorCode.MALFORMED, f"in `params`: {refusal.message}")
    top_level = {name: raw[name] for name in row.parameters if raw.get(name) is not None}
    from_params = {name: value for name, value in (nested or {}).items() if value is not None}
    duplicate = next((name for name in top_level if name in from_params), None)
    if duplicate is not None:
        return problem(ErrorCode.MALFORMED, f"`{duplicate}` is in the body and in `params`: send it once")
    parameters = top_level | from_params
    refusal = refuse_wrong_kinds({name: value for name, value in parameters.items() if name in row.parameters})
    if refusal is not None:
        return refusal
    missing = next((name for name in row.required if name not in parameters), None)
    if missing is not None:
        return problem(ErrorCode.MISSING_FIELD, f"`{missing}` is required")
    return parameters


def _known_names(row: EngineInputs, nested: Any) -> tuple[str, ...]:
    return tuple(nested) if row.any_values and isinstance(nested, Mapping) else row.parameters


def _read_text(row: EngineInputs, raw: Mapping[str, Any], parameters: Mapping[str, Any]) -> str | Problem:
    names = [name for name in row.texts if raw.get(name) is not None]
    if not names:
        if row.any_values or (row.instead and all(name in parameters for name in row.instead)):
            return ""
        return problem(ErrorCode.MISSING_FIELD, f"`{row.texts[0]}` is required")
    if len(names) > 1:
        return problem(ErrorCode.MALFORMED, f"`{names[0]}` and `{names[1]}` are the same field: send one of them")
    text = raw[names[0]]
    if not isinstance(text, str):
        advice = ": send other values by name in `params` or, with a client, as `checkout=`"
        return problem(ErrorCode.MALFORMED, f"`{names[0]}` must be a text{advice if row.any_values else ''}")
    if not _is_encodable(text):
        return problem(ErrorCode.MALFORMED, f"`{names[0]}` holds half of a surrogate pair")
    return text


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_options(raw: Any) -> VerifyOptions | Problem:
    """Parse the timeout and whether a signed statement is requested (INTERFACES 2)."""
    if raw is None:
        return VerifyOptions()
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
    return VerifyOptions(milliseconds / 1000, attest)
