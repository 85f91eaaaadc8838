"""Spec 4.1: what an agent asks, read field by field; whatever does not fit is refused by name."""

import hashlib
import marshal
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from qwed.guards.secrets import find_secrets, mask
from qwed.kernel.answer import Answer, denied
from qwed.words import EffectKind, ErrorCode, MoneyError, NotCanonical, Risk, canonical, micros_from

STATE_SOURCES = ("file_tree", "db_snapshot", "conversation_digest", "git_tree", "custom")
LONGEST_NAME = 256
_HEX = frozenset("0123456789abcdef")
_CHAIN = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LONGEST_READ = 4096
"""Characters of a name that are looked at for a message, which shows far fewer."""


class Cost(msgspec.Struct, frozen=True):
    """What the action itself costs, in micro-dollars and tokens."""

    micros: int = 0
    tokens: int = 0


_FREE = Cost()


class Action(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The operation an agent wants to perform."""

    type: str
    query: str | None = None
    code: str | None = None
    target: str | None = None
    parameters: Mapping[str, Any] | None = None
    tool: str | None = None
    cost: Cost = _FREE
    effects: tuple[EffectKind, ...] = ()
    """What the asker says it does, beside what is found out: stated, it counts; unstated, it counts no less."""
    canonical: bytes = b""
    """INTERFACES 4: `{type, query, code, target, parameters, tool}` without what is absent, and without a file."""
    hash: str = ""
    """The SHA-256 of the action as it was sent: the fingerprint of loops, what approvals and attestations are about."""
    file: str | None = None
    """A file in base64, for the engine alone: everywhere else its hash stands in its place, and nothing is kept."""


class Context(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Spec 9.1."""

    conversation_id: str
    step_number: int
    user_intent: str | None = None
    pre_action_state_hash: str | None = None
    state_source: str | None = None
    subject: str | None = None


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Spec 4.1, `options`."""

    require_attestation: bool = False
    risk_threshold: Risk = Risk.CRITICAL
    chain_id: str | None = None
    """Which chain of attestations the one that is asked for continues."""


NO_OPTIONS = Options()

_ACTION_FIELDS = frozenset({"type", "action_type", "query", "code", "target", "parameters", "tool", "cost", "effects"})
_CONTEXT_FIELDS = frozenset(Context.__struct_fields__)
_OPTION_FIELDS = frozenset(Options.__struct_fields__)


FILE = "content_base64"
_TAKES_FILE = frozenset({"verify_stats", "verify_image"})

_known: dict[bytes, Action] = {}
_MOST_KNOWN = 4096
_LONGEST_KNOWN = 2048


def read_action(raw: Any) -> Action | Answer:
    """The action, or the refusal that names what is wrong with it. What was read of late is not read again."""
    try:
        # Unlike JSON, this tells NaN from null and 1 from "1" in a key; it is only ever written, never loaded.
        spelling = marshal.dumps(raw, 0)
    except ValueError:
        return _read_action(raw)
    known = _known.get(spelling)
    if known is not None:
        return known
    action = _read_action(raw)
    if len(spelling) <= _LONGEST_KNOWN and not isinstance(action, Answer):
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[spelling] = action
    return action


def _read_action(raw: Any) -> Action | Answer:
    if not isinstance(raw, Mapping):
        return denied(ErrorCode.MISSING_FIELD, "`action` must be an object with a `type`")
    unknown = _unknown(raw, _ACTION_FIELDS, "action")
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


def _with_canonical(kind: str, raw: Mapping[str, Any], cost: Cost, effects: tuple[EffectKind, ...]) -> Action | Answer:
    members: dict[str, Any] = {"type": kind}
    for name in ("query", "code", "target", "parameters", "tool"):
        value = raw.get(name)
        if value is not None:
            members[name] = value
    try:
        text = canonical(members)
    except NotCanonical as error:
        return denied(ErrorCode.NOT_DETERMINISTIC, f"action parameters are not deterministic JSON: {error}")
    action_hash = hashlib.sha256(text).hexdigest()
    file = file_of(raw)
    if file is not None:
        text = canonical({**members, "parameters": without_file(members["parameters"])})
    if "parameters" in members:
        # Our own copy: what the caller does to theirs afterwards must not change what was read.
        members["parameters"] = msgspec.json.decode(text)["parameters"]
    return Action(**members, cost=cost, effects=effects, canonical=text, hash=action_hash, file=file)


def without_file(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parameters with the hash of a file in its place."""
    file = parameters.get(FILE)
    if not isinstance(file, str):
        return parameters
    return {**parameters, FILE: f"sha256:{hashlib.sha256(file.encode()).hexdigest()}"}


def forget_actions() -> None:
    """Read everything anew: what was read of late may be about somebody who is erased."""
    _known.clear()


def file_of(raw: Mapping[str, Any]) -> str | None:
    """The file that an action of a kind that takes one carries."""
    parameters = raw.get("parameters")
    if raw.get("type", raw.get("action_type")) not in _TAKES_FILE or not isinstance(parameters, Mapping):
        return None
    file = parameters.get(FILE)
    return file if isinstance(file, str) else None


def _read_cost(raw: Any) -> Cost | Answer:
    if not isinstance(raw, Mapping):
        return denied(ErrorCode.MALFORMED, "`action.cost` must be an object with `usd` and `tokens`")
    unknown = _unknown(raw, frozenset({"usd", "tokens"}), "action.cost")
    if unknown is not None:
        return unknown
    tokens = raw.get("tokens", 0)
    if type(tokens) is not int or not 0 <= tokens <= 10**12:
        return denied(ErrorCode.MALFORMED, "`action.cost.tokens` must be a whole number of tokens")
    try:
        return Cost(micros_from(raw.get("usd", 0)), tokens)
    except MoneyError as error:
        return denied(ErrorCode.MALFORMED, f"`action.cost.usd` {error}")


_EFFECTS = frozenset(EffectKind)


def _read_effects(raw: Any) -> tuple[EffectKind, ...] | Answer:
    if not isinstance(raw, list | tuple):
        return denied(ErrorCode.MALFORMED, "`action.effects` must be a list of effects")
    for word in raw:
        if not isinstance(word, str) or word not in _EFFECTS:
            known = ", ".join(EffectKind)
            return denied(ErrorCode.MALFORMED, f"unknown effect {quoted(word)} in `action.effects`: known are {known}")
    return tuple(sorted(set(map(EffectKind, raw))))


def read_context(raw: Any, *, state_required: bool) -> Context | Answer:
    """The context, or the CTX or STATE refusal."""
    if not isinstance(raw, Mapping):
        return denied(ErrorCode.MISSING_CONTEXT)
    conversation_id, step_number = raw.get("conversation_id"), raw.get("step_number")
    if not isinstance(conversation_id, str) or not conversation_id.strip() or step_number is None:
        return denied(ErrorCode.MISSING_CONTEXT)
    if len(conversation_id) > LONGEST_NAME or not conversation_id.isprintable():
        return denied(ErrorCode.MISSING_CONTEXT, f"conversation_id must be 1 to {LONGEST_NAME} printable characters")
    # `type` and not `isinstance`: true is an int in Python, and no step number
    if type(step_number) is not int or step_number < 1:
        return denied(ErrorCode.INVALID_STEP)
    if len(raw) == 2:
        if state_required:
            return denied(ErrorCode.STATE_INCOMPLETE, "pre_action_state_hash and state_source are required here")
        return Context(conversation_id=conversation_id, step_number=step_number)
    return _read_rest(raw, state_required) or Context(**raw)


def _read_rest(raw: Mapping[str, Any], state_required: bool) -> Answer | None:
    unknown = _unknown(raw, _CONTEXT_FIELDS, "context")
    if unknown is not None:
        return unknown
    for name in ("user_intent", "subject"):
        if not isinstance(raw.get(name), str | None):
            return denied(ErrorCode.MALFORMED, f"`context.{name}` must be a string")
    if raw.get("subject") is not None and not is_subject(raw["subject"]):
        return denied(ErrorCode.MALFORMED, f"`context.subject` must be {SUBJECT}")
    return _refuse_state(raw.get("pre_action_state_hash"), raw.get("state_source"), state_required)


SUBJECT = f"1 to {LONGEST_NAME} printable characters"


def is_subject(text: str) -> bool:
    """Whether this can name whom content is about."""
    return bool(text.strip()) and len(text) <= LONGEST_NAME and text.isprintable()


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


def read_options(raw: Any) -> Options | Answer:
    """The options, or the refusal that names the bad one."""
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
    wrong = None if chain_id is None else _refuse_chain(chain_id)
    return wrong or Options(require_attestation=require_attestation, risk_threshold=threshold, chain_id=chain_id)


def _refuse_chain(chain_id: Any) -> Answer | None:
    if not (isinstance(chain_id, str) and _CHAIN.fullmatch(chain_id)):
        return denied(ErrorCode.BAD_OPTION, "`options.chain_id` must be 1 to 64 letters, digits, `_` or `-`")
    # It stands in every attestation of the chain, and masked it would be another one.
    if find_secrets(chain_id):
        return denied(ErrorCode.BAD_OPTION, "`options.chain_id` carries a secret: use an id")
    return None


def quoted(name: object) -> str:
    """User input for a message: in backticks, one line, short, without its secrets."""
    # Masked before it is cut: half of a secret is not recognised any more.
    text = "".join(char if char.isprintable() else "?" for char in mask(str(name)[:_LONGEST_READ])[:64])
    return f"`{text}`"


def _unknown(raw: Mapping[str, Any], known: frozenset[str], place: str) -> Answer | None:
    if known.issuperset(raw):
        return None
    name = next(name for name in raw if name not in known)
    return denied(ErrorCode.MALFORMED, f"unknown field {quoted(name)} in `{place}`: known are {_listed(known)}")


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names))
