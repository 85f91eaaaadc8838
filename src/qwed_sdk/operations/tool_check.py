"""Decision about a tool call before it runs, and record of its outcome afterwards."""

import logging
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from qwed.model import CanonicalJsonError, Decision, sha256_of
from qwed.model.error_advice import client_advice
from qwed_sdk.errors import QWEDError
from qwed_sdk.http_request import Operation, parse_seconds
from qwed_sdk.models import Answer
from qwed_sdk.operations.bound_agent import AgentBinding, log_execution, request_step, send_action, wait_for_decision
from qwed_sdk.permits import Permit, Refusal, is_same_json
from qwed_sdk.to_json import NotJsonSerializableError, to_plain_json

log = logging.getLogger("qwed_sdk")

TOOL_CALL = "tool_call"
MAX_RESULT_CHARS = 64 << 20
"""Largest result, in characters, that is hashed."""


@dataclass(frozen=True)
class Rules:
    """Mapping of tools to actions, options, and seconds to wait for a person."""

    actions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    options: Mapping[str, Any] | None = None
    wait: float = 0.0

    def __post_init__(self) -> None:
        parse_seconds(self.wait, "wait")
        for tool, row in self.actions.items():
            if not isinstance(row, Mapping) or not row.get("type") or set(row) - {"type", "query", "code", "target"}:
                raise ValueError(f"the action of `{tool}` has a `type`, and names arguments for query, code or target")


def before(
    binding: AgentBinding, rules: Rules, tool: str, arguments: Mapping[str, Any], run: Hashable = None
) -> Operation[Permit | Refusal]:
    """Request a decision about a tool call; return a Refusal for any error."""
    try:
        action = action_of(rules, tool, arguments)
        conversation = binding.conversations.current if run is None else binding.conversations.for_run(run)
        first = answer = yield from request_step(conversation, None, send_action(binding, action, rules.options))
        if answer.is_pending and rules.wait > 0 and answer.action_id is not None:
            answer = yield from wait_for_decision(binding, answer.action_id, rules.wait)
            if Decision(answer.decision).permits and answer.attestation is None:
                return Refusal(tool, "it was permitted, but the agent was suspended or the permission revoked since")
        if not is_same_json(action, action_of(rules, tool, arguments)):
            return Refusal(tool, "its arguments were changed while they were verified", answer=answer)
    except NotJsonSerializableError as error:
        return Refusal(tool, f"its arguments cannot be verified: {error}")
    except QWEDError as error:
        return Refusal(tool, f"it could not be verified: {error.message}", error.code, error.suggestion)
    # The correction of the first answer: a later lookup may mask secrets, which the tool must receive unmasked.
    return permit_or_refusal(rules, tool, arguments, answer, first.corrected)


def action_of(rules: Rules, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the action that a tool call is."""
    if not isinstance(arguments, Mapping) or not isinstance(tool, str) or not tool:
        raise NotJsonSerializableError("a call must have the name of a tool and a mapping of arguments")
    values: dict[str, Any] = to_plain_json(arguments)
    row = rules.actions.get(tool)
    if row is None:
        return {"type": TOOL_CALL, "tool": tool, "parameters": values}
    action: dict[str, Any] = {"type": row["type"]}
    for member, argument in row.items():
        if member != "type":
            action[member] = _require_text(values.pop(argument, None), argument)
    return {**action, "parameters": values} if values else action


def _require_text(value: Any, argument: str) -> str:
    if not isinstance(value, str):
        raise NotJsonSerializableError(f"`{argument}` must be text")
    return value


def permit_or_refusal(
    rules: Rules,
    tool: str,
    arguments: Mapping[str, Any],
    answer: Answer,
    corrected: Mapping[str, Any] | None = None,
) -> Permit | Refusal:
    """Return the Permit or Refusal that an answer means for a tool call.

    `corrected` is the correction, if it came before the answer.
    """
    corrected = answer.corrected if corrected is None else corrected
    decision = Decision(answer.decision)
    if not decision.permits:
        return _refusal(tool, answer)
    if not answer.action_id:
        return Refusal(tool, "it was permitted without an action id", answer=answer)
    if corrected is None:
        if decision is Decision.CORRECTED:
            return Refusal(tool, "it was corrected, but the answer has no correction", answer=answer)
        return Permit(tool, answer.action_id, dict(arguments), answer)
    try:
        corrected_arguments = _corrected_arguments(rules, tool, arguments, corrected)
    except NotJsonSerializableError:
        return Refusal(tool, "its correction does not fit its parameters", answer=answer)
    return Permit(tool, answer.action_id, corrected_arguments, answer)


def _refusal(tool: str, answer: Answer) -> Refusal:
    error = answer.error or {}
    reason = error.get("message") or f"the decision is {answer.decision}"
    code = error.get("code")
    return Refusal(tool, reason, code, client_advice(code, error.get("suggestion")), answer.decision, answer)


def _corrected_arguments(
    rules: Rules, tool: str, arguments: Mapping[str, Any], corrected: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments with the correction applied; unchanged ones stay the same objects."""
    action, values = action_of(rules, tool, arguments), to_plain_json(arguments)
    parameters = corrected.get("parameters") or {}
    if not isinstance(parameters, dict) or _fixed_parts(corrected) != _fixed_parts(action):
        raise NotJsonSerializableError("a correction must be the same action with other values")
    row = rules.actions.get(tool, {})
    new_values = {
        argument: _require_text(corrected[member], argument) for member, argument in row.items() if member != "type"
    }
    new_values |= parameters
    return {
        name: arguments[name] if is_same_json(values[name], value) else _require_same_kind(values[name], value, name)
        for name, value in new_values.items()
    }


def _fixed_parts(action: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the parts of an action that a correction must not change."""
    parameters = action.get("parameters") or {}
    return action.get("type"), action.get("tool"), set(action) - {"parameters"}, set(parameters)


def _require_same_kind(value: Any, new_value: Any, name: str) -> Any:
    kinds = {type(value), type(new_value)}
    if len(kinds) > 1 and kinds != {int, float}:
        raise NotJsonSerializableError(f"`{name}` has another type")
    return new_value


def after(binding: AgentBinding, permit: Permit, success: bool, result: Any = None) -> Operation[bool]:
    """Record the outcome; return False if that failed. Only a hash of the result leaves this process."""
    try:
        yield from log_execution(binding, permit.action_id, success, permit.attestation, result_hash=_hash_of(result))
    except QWEDError as error:
        # The tool has run. Raising now would suggest to the caller that it had not.
        log.warning("the outcome of %s (%s) was not logged: %s", permit.tool, permit.action_id, error)
        return False
    return True


def _hash_of(result: Any) -> str | None:
    """Return the hash of the result, or None if there is no result or it is not JSON."""
    try:
        return None if result is None else f"sha256:{sha256_of(to_plain_json(result, 'result', MAX_RESULT_CHARS))}"
    except (NotJsonSerializableError, CanonicalJsonError):
        return None
