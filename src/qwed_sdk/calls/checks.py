"""A tool call before it runs and after it ran: permitted with its arguments, or refused with the reason."""

import logging
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from qwed.words import Decision, NotCanonical, canonical, sha256_of
from qwed.words.advice import spoken
from qwed_sdk.calls.own import Bound, Proposed, asked, log_execution, wait_for_decision
from qwed_sdk.errors import ActionDenied, ActionPending, QWEDError
from qwed_sdk.plain import NotPlain, plain
from qwed_sdk.records import Answer
from qwed_sdk.wire import Call, seconds

log = logging.getLogger("qwed_sdk")

TOOL_CALL = "tool_call"
LARGEST_RESULT = 64 << 20
"""Characters of a result that is hashed."""


@dataclass(frozen=True)
class Rules:
    """How calls of tools become actions, and how long a person is waited for."""

    actions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    options: Mapping[str, Any] | None = None
    wait: float = 0.0

    def __post_init__(self) -> None:
        seconds(self.wait, "wait")
        for tool, row in self.actions.items():
            if not isinstance(row, Mapping) or not row.get("type") or set(row) - {"type", "query", "code", "target"}:
                raise ValueError(f"the action of `{tool}` has a `type`, and names arguments for query, code or target")


class Permit(NamedTuple):
    """The tool may run, with these arguments: they are what was verified, a repair included."""

    tool: str
    action_id: str
    arguments: dict[str, Any]
    answer: Answer

    @property
    def attestation(self) -> str | dict[str, Any] | None:
        """The proof that it was permitted."""
        return self.answer.attestation

    def __bool__(self) -> bool:
        return True


class Refusal(NamedTuple):
    """The tool must not run."""

    tool: str
    reason: str
    code: str | None = None
    suggestion: str | None = None
    decision: str = Decision.DENIED
    answer: Answer | None = None

    def __bool__(self) -> bool:
        # A tuple is true, and `if checkpoint.before(...)` would run what was refused.
        return False

    def __str__(self) -> str:
        return str(self.error())

    def error(self) -> ActionDenied:
        """The same, to be raised."""
        kind = ActionPending if self.decision == Decision.PENDING else ActionDenied
        return kind(
            self.tool,
            self.reason,
            code=self.code,
            suggestion=self.suggestion,
            decision=self.decision,
            answer=self.answer,
        )


def before(
    bound: Bound, rules: Rules, tool: str, arguments: Mapping[str, Any], run: Hashable = None
) -> Call[Permit | Refusal]:
    """May the tool run? Whatever keeps that from being answered is a refusal."""
    try:
        action = action_of(rules, tool, arguments)
        conversation = bound.conversations.present if run is None else bound.conversations.of_run(run)
        first = answer = yield from asked(bound, conversation, None, Proposed(action, rules.options))
        if answer.is_pending and rules.wait > 0 and answer.action_id is not None:
            answer = yield from wait_for_decision(bound, answer.action_id, rules.wait)
            if Decision(answer.decision).permits and answer.attestation is None:
                return Refusal(tool, "it was permitted, but the agent was stopped since, or the permission revoked")
        if not same(action, action_of(rules, tool, arguments)):
            return Refusal(tool, "its arguments were changed while they were verified", answer=answer)
    except NotPlain as error:
        return Refusal(tool, f"its arguments cannot be verified: {error}")
    except QWEDError as error:
        return Refusal(tool, f"it could not be verified: {error.message}", error.code, error.suggestion)
    # What is looked up later may have a secret hidden in it, which is not what the tool should be given.
    return settled(rules, tool, arguments, answer, first.corrected)


def action_of(rules: Rules, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The action that a call is."""
    if not isinstance(arguments, Mapping) or not isinstance(tool, str) or not tool:
        raise NotPlain("a call is the name of a tool and a mapping of arguments")
    values: dict[str, Any] = plain(arguments)
    row = rules.actions.get(tool)
    if row is None:
        return {"type": TOOL_CALL, "tool": tool, "parameters": values}
    action: dict[str, Any] = {"type": row["type"]}
    for member, argument in row.items():
        if member != "type":
            action[member] = _text(values.pop(argument, None), argument)
    return {**action, "parameters": values} if values else action


def _text(value: Any, argument: str) -> str:
    if not isinstance(value, str):
        raise NotPlain(f"`{argument}` must be text")
    return value


def settled(
    rules: Rules,
    tool: str,
    arguments: Mapping[str, Any],
    answer: Answer,
    corrected: Mapping[str, Any] | None = None,
) -> Permit | Refusal:
    """What an answer means for the tool: the arguments it may run with, or why it may not.

    `corrected` is the repair where it came before the answer.
    """
    corrected = answer.corrected if corrected is None else corrected
    decision = Decision(answer.decision)
    if not decision.permits:
        return _refusal(tool, answer)
    if not answer.action_id:
        return Refusal(tool, "it was permitted without an id to log it under", answer=answer)
    if corrected is None:
        if decision is Decision.CORRECTED:
            return Refusal(tool, "it was corrected, but the correction did not come", answer=answer)
        return Permit(tool, answer.action_id, dict(arguments), answer)
    try:
        repaired = _repaired(rules, tool, arguments, corrected)
    except NotPlain:
        return Refusal(tool, "it was corrected in a way that its arguments cannot take", answer=answer)
    return Permit(tool, answer.action_id, repaired, answer)


def _refusal(tool: str, answer: Answer) -> Refusal:
    error = answer.error or {}
    reason = error.get("message") or f"the decision is {answer.decision}"
    code = error.get("code")
    return Refusal(tool, reason, code, spoken(code, error.get("suggestion")), answer.decision, answer)


def _repaired(rules: Rules, tool: str, arguments: Mapping[str, Any], corrected: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with the repair in them; those it left alone stay the objects they are."""
    action, values = action_of(rules, tool, arguments), plain(arguments)
    parameters = corrected.get("parameters") or {}
    if not isinstance(parameters, dict) or _frame(corrected) != _frame(action):
        raise NotPlain("a correction is the same action with other values")
    row = rules.actions.get(tool, {})
    repaired = {argument: _text(corrected[member], argument) for member, argument in row.items() if member != "type"}
    repaired |= parameters
    return {
        name: arguments[name] if same(values[name], value) else _alike(values[name], value, name)
        for name, value in repaired.items()
    }


def _frame(action: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a repair leaves alone: which action it is, and which values it has."""
    parameters = action.get("parameters") or {}
    return action.get("type"), action.get("tool"), set(action) - {"parameters"}, set(parameters)


def _alike(value: Any, repaired: Any, name: str) -> Any:
    kinds = {type(value), type(repaired)}
    if len(kinds) > 1 and kinds != {int, float}:
        raise NotPlain(f"`{name}` is of another kind")
    return repaired


def same(one: Any, other: Any) -> bool:
    """Whether two values are one in JSON."""
    # Not `==`, to which 1 and True are the same.
    try:
        return canonical(one) == canonical(other)
    except NotCanonical:
        return False


def after(bound: Bound, permit: Permit, success: bool, result: Any = None) -> Call[bool]:
    """Log what became of it; whether that was kept. Of the result only a hash leaves this process."""
    try:
        yield from log_execution(bound, permit.action_id, success, permit.attestation, result_hash=_hash_of(result))
    except QWEDError as error:
        # The tool has run. Raising now would tell its caller that it had not.
        log.warning("the outcome of %s (%s) was not logged: %s", permit.tool, permit.action_id, error)
        return False
    return True


def _hash_of(result: Any) -> str | None:
    """None where there is no result, or none that is JSON."""
    try:
        return None if result is None else f"sha256:{sha256_of(plain(result, 'result', LARGEST_RESULT))}"
    except (NotPlain, NotCanonical):
        return None
