"""Parsing of a verification request: action, context and options, field by field (spec 4.1)."""

import hashlib
import marshal
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta

from qwed.kernel.answer import Answer, Problem, denied
from qwed.kernel.request_schema import MAX_NAME_LENGTH, FieldRule, RequestStruct, matching, parse, quoted
from qwed.model import CanonicalJsonError, Decision, EffectKind, ErrorCode, MoneyError, Risk, canonical, micros_from

__all__ = [
    "MAX_NAME_LENGTH",
    "Action",
    "ActionCost",
    "ActionOptions",
    "Context",
    "quoted",
    "read_action",
    "read_context",
    "read_options",
]

STATE_SOURCES = ("file_tree", "db_snapshot", "conversation_digest", "git_tree", "custom")
SUBJECT = f"1 to {MAX_NAME_LENGTH} printable characters"


class ActionCost(msgspec.Struct, frozen=True):
    """Cost of the action itself, in micro-dollars and tokens."""

    micros: int = 0
    tokens: int = 0


_FREE = ActionCost()


class Action(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The operation an agent wants to perform."""

    type: str
    query: str | None = None
    code: str | None = None
    target: str | None = None
    parameters: Mapping[str, Any] | None = None
    tool: str | None = None
    cost: ActionCost = _FREE
    effects: tuple[EffectKind, ...] = ()
    """Effects that the caller declares, in addition to the analyzed ones."""
    canonical: bytes = b""
    """`{type, query, code, target, parameters, tool}` without absent members and without a file (INTERFACES 4)."""
    hash: str = ""
    """SHA-256 of the action as sent: used for loop detection, approvals and attestations."""
    file: str | None = None
    """A file in base64, for the engine only: everywhere else it is replaced by its hash, and it is not stored."""


def money_error(amount: Any) -> str | None:
    """Return what is wrong with an amount of US dollars, or None."""
    try:
        micros_from(amount)
    except MoneyError as error:
        return str(error)
    return None


_DOLLARS = "US dollars, at most six decimals"
_AMOUNT: list[dict[str, Any]] = [
    {"type": "number", "minimum": 0, "maximum": 10**9, "description": _DOLLARS},
    {"type": "string", "pattern": r"^[0-9]{1,9}(\.[0-9]{1,6})?$", "description": "the same as text"},
]
Amount = Annotated[Any, Meta(extra_json_schema={"anyOf": _AMOUNT}), FieldRule(refuse=money_error)]
OptionalAmount = Annotated[
    Any, Meta(extra_json_schema={"anyOf": [*_AMOUNT, {"type": "null"}]}), FieldRule(refuse=money_error)
]


def _refuse_effects(effects: list[Any]) -> str | None:
    unknown = [word for word in effects if not isinstance(word, str) or word not in _EFFECTS]
    if not unknown:
        return None
    return f"=unknown effect {quoted(unknown[0])} in `action.effects`: known are {', '.join(EffectKind)}"


_EFFECTS = frozenset(EffectKind)
Effects = Annotated[
    list[Any],
    Meta(
        description="declared effects: added to the detected ones, never in place of them",
        extra_json_schema={"items": {"enum": [*EffectKind]}},
    ),
    FieldRule("must be a list of effects", refuse=_refuse_effects),
]


class CostRequest(RequestStruct):
    """Cost of the action itself; an agent can state more than the engine's price, never less."""

    prefix: ClassVar[str] = "action.cost."
    unknown: ClassVar[str] = "unknown field {name} in `action.cost`: known are {sorted_fields}"
    usd: Amount = 0
    tokens: Annotated[int, Meta(ge=0, le=10**12), FieldRule("must be a whole number of tokens")] = 0


_OptionalText = Annotated[str, FieldRule("must be a string")] | None
_ActionType = Annotated[Any, Meta(extra_json_schema={"type": "string"})]


class ActionRequest(RequestStruct):
    """Action (spec 4.1). `type` may be spelled `action_type`; one of the two is required."""

    prefix: ClassVar[str] = "action."
    unknown: ClassVar[str] = "unknown field {name} in `action`: known are {sorted_fields}"
    type: _ActionType = UNSET
    action_type: _ActionType = UNSET
    query: _OptionalText = None
    code: _OptionalText = None
    target: _OptionalText = None
    parameters: Annotated[dict[Any, Any], FieldRule("must be an object")] | None = None
    tool: _OptionalText = None
    cost: Annotated[CostRequest, FieldRule("must be an object with `usd` and `tokens`")] | None = None
    effects: Effects | None = None


def is_subject(text: str) -> bool:
    """Return True if the text can name a data subject."""
    return bool(text.strip()) and len(text) <= MAX_NAME_LENGTH and text.isprintable()


def _refuse_conversation(name: str) -> str | None:
    if len(name) <= MAX_NAME_LENGTH and name.isprintable():
        return None if name and not name.isspace() else ""
    return "" if name.isspace() else f"=conversation_id must be 1 to {MAX_NAME_LENGTH} printable characters"


def _refuse_source(source: Any) -> str | None:
    known = ", ".join(STATE_SOURCES)
    return None if source in STATE_SOURCES else f"=unknown state_source {quoted(source)}: use one of {known}"


class Context(RequestStruct, frozen=True, gc=False):  # type: ignore[misc]  # msgspec allows a frozen subclass
    """Context of an action (spec 9.1)."""

    prefix: ClassVar[str] = "context."
    unknown: ClassVar[str] = "unknown field {name} in `context`: known are {sorted_fields}"
    conversation_id: Annotated[
        str,
        Meta(extra_json_schema={"minLength": 1, "maxLength": MAX_NAME_LENGTH}),
        FieldRule("", ErrorCode.MISSING_CONTEXT, _refuse_conversation),
    ]
    step_number: Annotated[int, Meta(ge=1), FieldRule("", ErrorCode.INVALID_STEP)]
    user_intent: _OptionalText = None
    pre_action_state_hash: (
        Annotated[str, Meta(pattern="^[0-9a-f]{64}$", max_length=64), FieldRule("", ErrorCode.STATE_HASH_INVALID)]
        | None
    ) = None
    state_source: Annotated[
        Any,
        Meta(extra_json_schema={"anyOf": [{"enum": [*STATE_SOURCES]}, {"type": "null"}]}),
        FieldRule("", ErrorCode.STATE_SOURCE_UNKNOWN, _refuse_source),
    ] = None
    subject: (
        Annotated[
            str,
            Meta(
                description="person whom the content is about",
                extra_json_schema={"minLength": 1, "maxLength": MAX_NAME_LENGTH},
            ),
            FieldRule(
                f"must be {SUBJECT}",
                wrong_type="must be a string",
                refuse=lambda name: None if is_subject(name) else "",
            ),
        ]
        | None
    ) = None


class OptionsRequest(RequestStruct):
    """Options of the decision (spec 4.1)."""

    prefix: ClassVar[str] = "options."
    unknown: ClassVar[str] = "unknown option {name}: known are {sorted_fields}"
    unknown_code: ClassVar[ErrorCode] = ErrorCode.BAD_OPTION
    require_attestation: Annotated[bool, FieldRule("must be true or false", ErrorCode.BAD_OPTION)] = False
    risk_threshold: Annotated[
        Literal["low", "medium", "high", "critical"],
        FieldRule("must be low, medium, high or critical", ErrorCode.BAD_OPTION),
    ] = "critical"
    include_facts: Annotated[bool, FieldRule("must be true or false", ErrorCode.BAD_OPTION)] = False
    chain_id: (
        Annotated[
            str,
            Meta(extra_json_schema={"pattern": "^[A-Za-z0-9_-]{1,64}$"}),
            # It is part of every attestation of the chain, and masked it would be another chain.
            FieldRule(
                "must be 1 to 64 letters, digits, `_` or `-`",
                ErrorCode.BAD_OPTION,
                matching("[A-Za-z0-9_-]{1,64}"),
                secret="carries a secret: use an id",  # noqa: S106
            ),
        ]
        | None
    ) = None


class ActionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a request (spec 4.1, `options`)."""

    require_attestation: bool = False
    risk_threshold: Risk = Risk.CRITICAL
    chain_id: str | None = None
    """Chain of attestations that the requested attestation continues."""
    include_facts: bool = False
    """True if the answer shows what was found in the action."""


NO_OPTIONS = ActionOptions()

FILE = "content_base64"
_TAKES_FILE = frozenset({"verify_stats", "verify_image"})

_cache: dict[bytes, Action] = {}
_MAX_CACHED = 4096
_MAX_CACHED_LENGTH = 2048


def read_action(raw: Any) -> Action | Answer:
    """Parse the action, or return the refusal that names the problem. Recent results are cached."""
    try:
        # Unlike JSON, marshal distinguishes NaN from null and 1 from "1" in a key; the bytes are never loaded.
        spelling = marshal.dumps(raw, 0)
    except ValueError:
        return _read_action(raw)
    cached = _cache.get(spelling)
    if cached is not None:
        return cached
    action = _read_action(raw)
    if len(spelling) <= _MAX_CACHED_LENGTH and not isinstance(action, Answer):
        if len(_cache) >= _MAX_CACHED:
            _cache.clear()
        _cache[spelling] = action
    return action


def _read_action(raw: Any) -> Action | Answer:
    if not isinstance(raw, Mapping):
        return denied(ErrorCode.MISSING_FIELD, "`action` must be an object with a `type`")
    request = parse(raw, ActionRequest)
    if isinstance(request, Problem):
        return _refused(request)
    kind = request.action_type if request.type is UNSET else request.type
    if not isinstance(kind, str) or not kind:
        return denied(ErrorCode.MISSING_FIELD, "`action.type` must be a non-empty string")
    if request.action_type not in (UNSET, kind):
        return denied(ErrorCode.MALFORMED, "`action.type` and `action.action_type` differ: give one")
    return _with_canonical(kind, raw, request)


def _refused(error: Problem) -> Answer:
    return Answer(decision=Decision.DENIED, error=error)


def _with_canonical(kind: str, raw: Mapping[str, Any], request: ActionRequest) -> Action | Answer:
    members: dict[str, Any] = {"type": kind}
    for name in ("query", "code", "target", "parameters", "tool"):
        value = raw.get(name)
        if value is not None:
            members[name] = value
    try:
        text = canonical(members)
        cost = _FREE if request.cost is None else ActionCost(micros_from(request.cost.usd), request.cost.tokens)
    except CanonicalJsonError as error:
        return denied(ErrorCode.NOT_DETERMINISTIC, f"action parameters are not deterministic JSON: {error}")
    except MoneyError as error:
        return denied(ErrorCode.MALFORMED, f"`action.cost.usd` {error}")
    action_hash = hashlib.sha256(text).hexdigest()
    file = file_of(raw)
    if file is not None:
        text = canonical({**members, "parameters": without_file(members["parameters"])})
    if "parameters" in members:
        # Our own copy: later changes by the caller must not affect the parsed action.
        members["parameters"] = msgspec.json.decode(text)["parameters"]
    effects = tuple(sorted(set(map(EffectKind, request.effects or ()))))
    return Action(**members, cost=cost, effects=effects, canonical=text, hash=action_hash, file=file)


def without_file(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the parameters with a file replaced by its hash."""
    file = parameters.get(FILE)
    if not isinstance(file, str):
        return parameters
    return {**parameters, FILE: f"sha256:{hashlib.sha256(file.encode()).hexdigest()}"}


def clear_action_cache() -> None:
    """Clear the cache: it may contain data of an erased subject."""
    _cache.clear()


def file_of(raw: Mapping[str, Any]) -> str | None:
    """Return the file in an action of a type that takes one, or None."""
    parameters = raw.get("parameters")
    if raw.get("type", raw.get("action_type")) not in _TAKES_FILE or not isinstance(parameters, Mapping):
        return None
    file = parameters.get(FILE)
    return file if isinstance(file, str) else None


def read_context(raw: Any, *, state_required: bool) -> Context | Answer:
    """Parse the context, or return the CTX or STATE refusal."""
    if not isinstance(raw, Mapping):
        return denied(ErrorCode.MISSING_CONTEXT)
    if len(raw) == 2 and not state_required:
        try:
            brief = msgspec.convert(raw, Context)
            if _refuse_conversation(brief.conversation_id) is None:
                return brief
        except msgspec.ValidationError:
            pass
    context = parse(raw, Context)
    if not isinstance(context, Problem):
        has_state = context.pre_action_state_hash is not None
        if has_state is not (context.state_source is not None) or (state_required and not has_state):
            return denied(ErrorCode.STATE_INCOMPLETE)
        return context
    if raw.get("conversation_id") is None or raw.get("step_number") is None:
        return denied(ErrorCode.MISSING_CONTEXT)
    return denied(ErrorCode.STATE_INCOMPLETE) if _is_half_a_state(raw, context) else _refused(context)


def _is_half_a_state(raw: Mapping[str, Any], error: Problem) -> bool:
    half = (raw.get("pre_action_state_hash") is None) is not (raw.get("state_source") is None)
    return half and error.code in (ErrorCode.STATE_HASH_INVALID.code, ErrorCode.STATE_SOURCE_UNKNOWN.code)


def read_options(raw: Any) -> ActionOptions | Answer:
    """Parse the options, or return the refusal that names the bad one."""
    if raw is None or raw == {}:
        return NO_OPTIONS
    if not isinstance(raw, Mapping):
        return denied(ErrorCode.BAD_OPTION, "`options` must be an object")
    options = parse(raw, OptionsRequest)
    if isinstance(options, Problem):
        return _refused(options)
    return ActionOptions(
        require_attestation=options.require_attestation,
        risk_threshold=Risk.of(options.risk_threshold),
        chain_id=options.chain_id,
        include_facts=options.include_facts,
    )
