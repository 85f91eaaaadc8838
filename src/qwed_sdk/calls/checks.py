"""A tool call before it runs and after it ran: permitted with its arguments, or refused with the reason."""

import logging
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from qwed.words import Decision, NotCanonical, sha256_of
from qwed_sdk.calls.own import Bound, Proposed, asked, log_execution, wait_for_decision
from qwed_sdk.errors import ActionDenied, ActionPending, QWEDError
from qwed_sdk.plain import NotPlain, plain
from qwed_sdk.records import Answer
from qwed_sdk.wire import Call

log = logging.getLogger("qwed_sdk")

TOOL_CALL = "tool_call"


@dataclass(frozen=True)
class Rules:
    """How calls of tools become actions, and how long a person is waited for."""

    actions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    options: Mapping[str, Any] | None = None
    wait: float = 0.0

    def __post_init__(self) -> None:
        for tool, row in self.actions.items():
            if not row.get("type") or set(row) - {"type", "query", "code", "target"}:
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


class Refusal(NamedTuple):
    """The tool must not run."""

    tool: str
    reason: str
    code: str | None = None
    suggestion: str | None = None
    decision: str = Decision.DENIED
    answer: Answer | None = None

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
        answer = yield from asked(bound, conversation, None, Proposed(action, rules.options))
        if answer.is_pending and rules.wait > 0 and answer.action_id is not None:
            answer = yield from wait_for_decision(bound, answer.action_id, rules.wait)
            if Decision(answer.decision).permits and answer.attestation is None:
                return Refusal(tool, "it was permitted, but the agent was stopped since, or the permission revoked")
    except NotPlain as error:
        return Refusal(tool, f"its arguments cannot be verified: {error}")
    except QWEDError as error:
        return Refusal(tool, f"it could not be verified: {error.message}", error.code, error.suggestion)
    return settled(rules, tool, arguments, answer)


def action_of(rules: Rules, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The action that a call is."""
    values = {name: plain(value, name) for name, value in arguments.items()}
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


def settled(rules: Rules, tool: str, arguments: Mapping[str, Any], answer: Answer) -> Permit | Refusal:
    """What an answer means for the tool: the arguments it may run with, or why it may not."""
    decision = Decision(answer.decision)
    if not decision.permits or answer.action_id is None:
        return _refusal(tool, answer)
    if answer.corrected is None:
        if decision is Decision.CORRECTED:
            return Refusal(tool, "it was corrected, but the correction did not come", answer=answer)
        return Permit(tool, answer.action_id, dict(arguments), answer)
    try:
        repaired = _repaired(rules, tool, arguments, answer.corrected)
    except (NotPlain, KeyError, TypeError):
        return Refusal(tool, "it was corrected in a way that its arguments cannot take", answer=answer)
    return Permit(tool, answer.action_id, repaired, answer)


def _refusal(tool: str, answer: Answer) -> Refusal:
    error = answer.error or {}
    reason = error.get("message") or f"the decision is {answer.decision}"
    return Refusal(tool, reason, error.get("code"), error.get("suggestion"), answer.decision, answer)


def _repaired(rules: Rules, tool: str, arguments: Mapping[str, Any], corrected: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with the repair in them; those it left alone stay the objects they are."""
    row = rules.actions.get(tool, {})
    repaired = {argument: corrected[member] for member, argument in row.items() if member != "type"}
    repaired |= corrected.get("parameters") or {}
    return {
        name: arguments[name] if name in arguments and plain(arguments[name], name) == value else value
        for name, value in repaired.items()
    }


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
        return None if result is None else f"sha256:{sha256_of(plain(result, 'result'))}"
    except (NotPlain, NotCanonical):
        return None
