"""Parsing of a verification request: action, context and options, field by field (spec 4.1)."""

import hashlib
import marshal
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from qwed.guards.secrets import find_secrets, mask
from qwed.kernel.answer import Answer, denied
from qwed.model import CanonicalJsonError, EffectKind, ErrorCode, MoneyError, Risk, canonical, micros_from

STATE_SOURCES = ("file_tree", "db_snapshot", "conversation_digest", "git_tree", "custom")
MAX_NAME_LENGTH = 256
_HEX = frozenset("0123456789abcdef")
_CHAIN = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MAX_SCANNED = 4096
"""Characters of a name that are scanned for a message, which shows far fewer."""


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


class Context(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Context of an action (spec 9.1)."""

    conversation_id: str
    step_number: int
    user_intent: str | None = None
    pre_action_state_hash: str | None = None
    state_source: str | None = None
    subject: str | None = None


class ActionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a request (spec 4.1, `options`)."""

    require_attestation: bool = False
    risk_threshold: Risk = Risk.CRITICAL
    chain_id: str | None = None
    """Chain of attestations that the requested attestation continues."""


NO_OPTIONS = ActionOptions()

_ACTION_FIELDS = frozenset({"type", "action_type", "query", "code", "target", "parameters", "tool", "cost", "effects"})
_CONTEXT_FIELDS = frozenset(Context.__struct_fields__)
_OPTION_FIELDS = frozenset(ActionOptions.__struct_fields__)


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
    unknown = _refuse_unknown(raw, _ACTION_FIELDS, "action")
    if unknown is not None:
        return unknown
    kind = raw.get("type", raw.get("action_type"))
    if not isinstance(kind, str) or not kind:
        return denied(ErrorCode.MISSING_FIELD, "`action.type` must be a non-empty string")
    if "action_type" in raw and raw["action_type"] != kind:
        return denied(ErrorCode.MALFORMED, "`action.type` and `action.action_type` differ: give one")
    cost = _read_cost(raw["cost"]) if raw.get("cost") is not None else _FREE
    if isinstance(cost, Answer):
        return cost
    effects = _read_effects(raw["effects"]) if raw.get("effects") is not None else ()
    if isinstance(effects, Answer):
        return effects
    return _refuse_types(raw) or _with_canonical(kind, raw, cost, effects)


def _refuse_types(raw: Mapping[str, Any]) -> Answer | None:
    for name in ("query", "code", "target", "tool"):
        if not isinstance(raw.get(name), str | None):
            return denied(ErrorCode.MALFORMED, f"`action.{name}` must be a string")
    if not isinstance(raw.get("parameters"), Mapping | None):
        return denied(ErrorCode.MALFORMED, "`action.parameters` must be an object")
    return None


def _with_canonical(
    kind: str, raw: Mapping[str, Any], cost: ActionCost, effects: tuple[EffectKind, ...]
) -> Action | Answer:
    members: dict[str, Any] = {"type": kind}
    for name in ("query", "code", "target", "parameters", "tool"):
        value = raw.get(name)
        if value is not None:
            members[name] = value
    try:
        text = canonical(members)
    except CanonicalJsonError as error:
        return denied(ErrorCode.NOT_DETERMINISTIC, f"action parameters are not deterministic JSON: {error}")
    action_hash = hashlib.sha256(text).hexdigest()
    file = file_of(raw)
    if file is not None:
        text = canonical({**members, "parameters": without_file(members["parameters"])})
    if "parameters" in members:
        # Our own copy: later changes by the caller must not affect the parsed action.
        members["parameters"] = msgspec.json.decode(text)["parameters"]
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


def _read_cost(raw: Any) -> ActionCost | Answer:
    if not isinstance(raw, Mapping):
        return denied(ErrorCode.MALFORMED, "`action.cost` must be an object with `usd` and `tokens`")
    unknown = _refuse_unknown(raw, frozenset({"usd", "tokens"}), "action.cost")
    if unknown is not None:
        return unknown
    tokens = raw.get("tokens", 0)
    if type(tokens) is not int or not 0 <= tokens <= 10**12:
        return denied(ErrorCode.MALFORMED, "`action.cost.tokens` must be a whole number of tokens")
    try:
        return ActionCost(micros_from(raw.get("usd", 0)), tokens)
    except MoneyError as error:
        return denied(ErrorCode.MALFORMED, f"`action.cost.usd` {error}")


_EFFECTS = frozenset(EffectKind)


def _read_effects(raw: Any) -> tuple[EffectKind, ...] | Answer:
    if not isinstance(raw, list | tuple):
        return denied(ErrorCode.MALFORMED, "`action.effects` must be a list of effects")
    for word in raw:
        if not isinstance(word, str) or word not in _EFFECTS:
            names = ", ".join(EffectKind)
            return denied(ErrorCode.MALFORMED, f"unknown effect {quoted(word)} in `action.effects`: known are {names}")
    return tuple(sorted(set(map(EffectKind, raw))))


def read_context(raw: Any, *, state_required: bool) -> Context | Answer:
    """Parse the context, or return the CTX or STATE refusal."""
    if not isinstance(raw, Mapping):
        return denied(ErrorCode.MISSING_CONTEXT)
    conversation_id, step_number = raw.get("conversation_id"), raw.get("step_number")
    if not isinstance(conversation_id, str) or not conversation_id.strip() or step_number is None:
        return denied(ErrorCode.MISSING_CONTEXT)
    if len(conversation_id) > MAX_NAME_LENGTH or not conversation_id.isprintable():
        return denied(ErrorCode.MISSING_CONTEXT, f"conversation_id must be 1 to {MAX_NAME_LENGTH} printable characters")
    # `type` and not `isinstance`: true is an int in Python, but not a step number
    if type(step_number) is not int or step_number < 1:
        return denied(ErrorCode.INVALID_STEP)
    if len(raw) == 2:
        if state_required:
            return denied(ErrorCode.STATE_INCOMPLETE, "pre_action_state_hash and state_source are required here")
        return Context(conversation_id=conversation_id, step_number=step_number)
    return _read_rest(raw, state_required) or Context(**raw)


def _read_rest(raw: Mapping[str, Any], state_required: bool) -> Answer | None:
    unknown = _refuse_unknown(raw, _CONTEXT_FIELDS, "context")
    if unknown is not None:
        return unknown
    for name in ("user_intent", "subject"):
        if not isinstance(raw.get(name), str | None):
            return denied(ErrorCode.MALFORMED, f"`context.{name}` must be a string")
    if raw.get("subject") is not None and not is_subject(raw["subject"]):
        return denied(ErrorCode.MALFORMED, f"`context.subject` must be {SUBJECT}")
    return _refuse_state(raw.get("pre_action_state_hash"), raw.get("state_source"), state_required)


SUBJECT = f"1 to {MAX_NAME_LENGTH} printable characters"


def is_subject(text: str) -> bool:
    """Return True if the text can name a data subject."""
    return bool(text.strip()) and len(text) <= MAX_NAME_LENGTH and text.isprintable()


def _refuse_state(state_hash: Any, source: Any, required: bool) -> Answer | None:
    if state_hash is None and source is None:
        return denied(ErrorCode.STATE_INCOMPLETE) if required else None
    if state_hash is None or source is None:
        return denied(ErrorCode.STATE_INCOMPLETE)
    if not isinstance(state_hash, str) or len(state_hash) != 64 or not _HEX.issuperset(state_hash):
        return denied(ErrorCode.STATE_HASH_INVALID)
    if source not in STATE_SOURCES:
        message = f"unknown state_source {quoted(source)}: use one of {', '.join(STATE_SOURCES)}"
        return denied(ErrorCode.STATE_SOURCE_UNKNOWN, message)
    return None


def read_options(raw: Any) -> ActionOptions | Answer:
    """Parse the options, or return the refusal that names the bad one."""
    if raw is None or raw == {}:
        return NO_OPTIONS
    if not isinstance(raw, Mapping):
        return denied(ErrorCode.BAD_OPTION, "`options` must be an object")
    for name in raw:
        if name not in _OPTION_FIELDS:
            return denied(ErrorCode.BAD_OPTION, f"unknown option {quoted(name)}: known are {_listed(_OPTION_FIELDS)}")
    require_attestation = raw.get("require_attestation", False)
    if not isinstance(require_attestation, bool):
        return denied(ErrorCode.BAD_OPTION, "`options.require_attestation` must be true or false")
    try:
        threshold = Risk.of(raw.get("risk_threshold", "critical"))
    except (KeyError, TypeError):
        return denied(ErrorCode.BAD_OPTION, "`options.risk_threshold` must be low, medium, high or critical")
    chain_id = raw.get("chain_id")
    refusal = None if chain_id is None else _refuse_chain(chain_id)
    return refusal or ActionOptions(
        require_attestation=require_attestation, risk_threshold=threshold, chain_id=chain_id
    )


def _refuse_chain(chain_id: Any) -> Answer | None:
    if not (isinstance(chain_id, str) and _CHAIN.fullmatch(chain_id)):
        return denied(ErrorCode.BAD_OPTION, "`options.chain_id` must be 1 to 64 letters, digits, `_` or `-`")
    # It is part of every attestation of the chain, and masked it would be another chain.
    if find_secrets(chain_id):
        return denied(ErrorCode.BAD_OPTION, "`options.chain_id` carries a secret: use an id")
    return None


def quoted(name: object) -> str:
    """Return user input for a message: in backticks, one line, short, without secrets."""
    # Masked before it is cut: half a secret would not be recognised.
    text = "".join(char if char.isprintable() else "?" for char in mask(str(name)[:_MAX_SCANNED])[:64])
    return f"`{text}`"


def _refuse_unknown(raw: Mapping[str, Any], fields: frozenset[str], location: str) -> Answer | None:
    if fields.issuperset(raw):
        return None
    name = next(name for name in raw if name not in fields)
    return denied(ErrorCode.MALFORMED, f"unknown field {quoted(name)} in `{location}`: known are {_listed(fields)}")


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names))
