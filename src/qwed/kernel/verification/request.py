"""Requests of the engine endpoints, one row for each engine (INTERFACES 2)."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec
from msgspec import Meta

from qwed.engines.pool import MAX_SECONDS
from qwed.engines.protocol import EngineRequest
from qwed.engines.registry import ENGINE_NAMES
from qwed.kernel.answer import Problem, problem
from qwed.kernel.request import FILE, without_file
from qwed.kernel.request_schema import FieldRule, RequestStruct, parse, quoted, unknown_field
from qwed.model import CanonicalJsonError, ErrorCode, sha256_of

DEFAULT_MS = 30_000
SHORTEST_MS = 1_000
LONGEST_MS = int(MAX_SECONDS * 1000)
CONSENSUS_MODES = ("single", "high", "maximum")
_CODE = "code"

_TEXT = Annotated[str, FieldRule("must be a text")]
_FLAG = Annotated[bool, FieldRule("must be true or false")]


def _refuse_mode(mode: str) -> str | None:
    return None if mode in CONSENSUS_MODES else f": unknown mode {quoted(mode)}: known are {', '.join(CONSENSUS_MODES)}"


_MODE = Annotated[
    str, Meta(extra_json_schema={"enum": [*CONSENSUS_MODES]}), FieldRule("must be a text", refuse=_refuse_mode)
]
PARAMETERS: dict[str, Any] = {
    "allow_mutation": _FLAG,
    "allowed_tables": Annotated[list[str], FieldRule("must be a list of texts")],
    "assumptions": Any,
    "claimed_result": Any,
    "conclusion": _TEXT,
    FILE: _TEXT,
    "context": _TEXT,
    "dialect": _TEXT,
    "format": _TEXT,
    "language": _TEXT,
    "min_confidence": Annotated[float, FieldRule("must be a number")],
    "mode": _MODE,
    "operation": _TEXT,
    "premises": Annotated[list[str] | str, FieldRule("must be a text or a list of texts")],
    "schema_ddl": _TEXT,
    "tolerance": Annotated[str | float, FieldRule("must be a number, or one written as a text")],
    "unit": _TEXT,
    "verification_mode": _MODE,
}
"""Types of the engines' parameters; their meaning is checked by the engine."""


class EngineOptions(RequestStruct):
    """Timeout, and whether to return a signed attestation."""

    unknown: ClassVar[str] = "unknown option {name}: known are {fields}"
    unknown_code: ClassVar[ErrorCode] = ErrorCode.BAD_OPTION
    timeout_ms: Annotated[
        int,
        Meta(ge=SHORTEST_MS, le=LONGEST_MS),
        FieldRule(
            f"must be from {SHORTEST_MS} to {LONGEST_MS}",
            ErrorCode.BAD_OPTION,
            wrong_type="must be a whole number",
        ),
    ] = DEFAULT_MS
    include_attestation: Annotated[bool, FieldRule("must be true or false", ErrorCode.BAD_OPTION)] = False


class EngineInputs(NamedTuple):
    """Fields that one engine takes."""

    texts: tuple[str, ...]
    """Accepted names of the input field."""
    parameters: tuple[str, ...] = ()
    summary: str = ""
    """Summary of its endpoint; empty if it has none."""
    about: str = ""
    """Description of its request."""
    instead: tuple[str, ...] = ()
    """Parameters that together replace the input."""
    required: tuple[str, ...] = ()
    any_values: bool = False
    """True if `params` may have any names: then the input is optional."""


_PACK = EngineInputs(("query",), ("operation",), any_values=True)

ENGINE_INPUTS: dict[str, EngineInputs] = {
    "math": EngineInputs(
        ("expression", "query"),
        ("operation", "claimed_result", "tolerance", "assumptions", "unit"),
        "Verify or compute a mathematical expression",
        "Claim such as `2+2 = 4`, expression, or operation with its claimed result.",
    ),
    "logic": EngineInputs(
        ("query",),
        ("premises", "conclusion"),
        "Check satisfiability or entailment",
        "Formula, or premises and a conclusion.",
        instead=("premises", "conclusion"),
    ),
    _CODE: EngineInputs(
        ("code", "query"),
        ("language",),
        "Verify that code is pure computation",
        "Code in one of the supported languages: `python` (default), `javascript`, `typescript`, `bash` or `sql`.",
    ),
    "sql": EngineInputs(
        ("query", "sql"),
        ("schema_ddl", "dialect", "allowed_tables", "allow_mutation"),
        "Verify that a SQL query only reads permitted data",
        "Query, and the tables and operations it may use.",
    ),
    "fact": EngineInputs(
        ("claim", "query"),
        ("context",),
        "Verify a claim against a text",
        "Claim; `context` is required, here or in `params`.",
        required=("context",),
    ),
    "stats": EngineInputs(
        ("query", "claim"),
        (FILE, "format"),
        "Verify a claim against a table; accepts a form upload",
        "Claim about a table, `csv`, `tsv`, `json` or `parquet`; `content_base64` is required, here or in `params`.",
        required=(FILE,),
    ),
    "image": EngineInputs(
        ("claim", "query"),
        (FILE,),
        "Verify a claim against an image; accepts a form upload",
        "Claim about an image; `content_base64` is required, here or in `params`.",
        required=(FILE,),
    ),
    "consensus": EngineInputs(
        ("query", "expression"),
        ("verification_mode", "mode", "min_confidence"),
        "Verify a claim by independent methods",
        "Claim, and how many independent methods must agree on it.",
    ),
    "legal": _PACK,
    "finance": _PACK,
    "ucp": _PACK,
    "tax": _PACK,
}
AUTO = EngineInputs(("query",), tuple(dict.fromkeys(name for row in ENGINE_INPUTS.values() for name in row.parameters)))
"""Fields of a body whose engine is not known yet."""


def _optional(names: tuple[str, ...]) -> list[Any]:
    kinds = {name: kind if kind is Any else kind | None for name, kind in PARAMETERS.items()}
    return [(name, kinds[name], None) for name in names]


def _parameters_type(engine: str, names: tuple[str, ...]) -> type[Any]:
    doc = {"__doc__": f"Parameters of the {engine} engine."}
    return msgspec.defstruct(
        f"{engine.title()}Params", _optional(names), bases=(RequestStruct,), namespace=doc, kw_only=True
    )


def _request_type(engine: str, row: EngineInputs) -> type[Any]:
    text: list[Any] = [(row.texts[0], str | None, None) if row.instead else (row.texts[0], str)]
    nested: list[Any] = [("params", PARAMETER_TYPES[engine] | None, None), ("options", EngineOptions | None, None)]
    name, doc = f"Verify{engine.title()}Request", {"__doc__": row.about}
    return msgspec.defstruct(
        name, text + _optional(row.parameters) + nested, bases=(RequestStruct,), namespace=doc, kw_only=True
    )


PARAMETER_TYPES = {engine: _parameters_type(engine, row.parameters) for engine, row in ENGINE_INPUTS.items()}
"""Type of the parameters of each engine."""
REQUEST_TYPES = {engine: _request_type(engine, row) for engine, row in ENGINE_INPUTS.items() if row.summary}
"""Type of the body of each engine's endpoint."""
AnyParams: type[Any] = msgspec.defstruct(
    "AnyParams",
    _optional(AUTO.parameters),
    bases=(RequestStruct,),
    namespace={"__doc__": "Parameters of the detected engine; if `type` names a pack, the values of its check."},
    forbid_unknown_fields=False,
    kw_only=True,
)
"""Parameters of every engine."""


def _refuse_engine(name: Any) -> str | None:
    if isinstance(name, str) and name in ENGINE_INPUTS:
        return None
    return f"=unknown type {quoted(str(name))}: known are {', '.join(ENGINE_INPUTS)}"


EngineName = Annotated[
    Any,
    Meta(extra_json_schema={"anyOf": [{"enum": [*ENGINE_NAMES]}, {"type": "null"}]}),
    FieldRule(code=ErrorCode.UNKNOWN_TYPE, refuse=_refuse_engine),
]
_OPTIONAL_TEXT = Annotated[Any, Meta(extra_json_schema={"anyOf": [{"type": "string"}, {"type": "null"}]})]


class BatchItem(RequestStruct):
    """One input; without `type` the engine is detected. `params` are those of the engine, or the values of a check."""

    query: _OPTIONAL_TEXT = None
    type: EngineName = None
    operation: _OPTIONAL_TEXT = None
    params: Any = None


class VerifyAnyRequest(BatchItem):
    """Any input. `type` names the engine, otherwise it is detected; `operation` names a check of a pack."""

    options: EngineOptions | None = None


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
    item = parse({"type": named}, BatchItem)
    return item if isinstance(item, Problem) else named


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
    refusal = unknown_field(raw, (*row.texts, *read_before, *row.parameters, "params", "options"))
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
        refusal = unknown_field(nested, _known_names(row, nested))
        if refusal is not None:
            return problem(ErrorCode.MALFORMED, f"in `params`: {refusal.message}")
    top_level = {name: raw[name] for name in row.parameters if raw.get(name) is not None}
    from_params = {name: value for name, value in (nested or {}).items() if value is not None}
    duplicate = next((name for name in top_level if name in from_params), None)
    if duplicate is not None:
        return problem(ErrorCode.MALFORMED, f"`{duplicate}` is in the body and in `params`: send it once")
    parameters = top_level | from_params
    known = parse({name: value for name, value in parameters.items() if name in row.parameters}, AnyParams)
    if isinstance(known, Problem):
        return known
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
    if not isinstance(raw, Mapping | None):
        return problem(ErrorCode.BAD_OPTION, "`options` must be an object")
    options = parse({} if raw is None else raw, EngineOptions)
    return (
        options
        if isinstance(options, Problem)
        else VerifyOptions(options.timeout_ms / 1000, options.include_attestation)
    )
