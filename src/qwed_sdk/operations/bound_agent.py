"""Operations of one agent, with its steps counted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from qwed.model import Decision
from qwed_sdk.errors import QWEDError, may_have_decided
from qwed_sdk.http_request import Acquire, Operation, Release
from qwed_sdk.models import Action, Agent, Answer, ApiRecord
from qwed_sdk.operations import agents
from qwed_sdk.step_counter import Conversation, ConversationRegistry


@dataclass(frozen=True)
class AgentBinding:
    """Agent that sends requests. Without a token, the client's key is sent for it."""

    agent_id: str
    agent_token: str | None = field(repr=False)
    conversations: ConversationRegistry = field(repr=False)

    def conversation(self, context: Mapping[str, Any] | None) -> Conversation | None:
        """Return the conversation to count in, or None if the caller counts."""
        context = context or {}
        if context.get("step_number") is not None:
            return None
        conversation_id = context.get("conversation_id")
        return self.conversations.current if conversation_id is None else self.conversations.for_id(conversation_id)


def verify_action(
    binding: AgentBinding,
    action: Mapping[str, Any],
    context: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Operation[Answer]:
    """Request a decision about an action of this agent.

    Args:
        action: The action: `type`, and `query`, `code`, `target` or `parameters`, and optionally `cost`.
        context: As for `QWEDClient.verify_action`; without it the call is the next step of the current conversation.
        options: `require_attestation`, `risk_threshold`, `chain_id` and `include_facts`.

    Returns:
        The decision, a refusal included. As a condition it is true for APPROVED only.

    Raises:
        QWEDTimeoutError: Other calls of the same conversation took the whole `timeout`.
        QWEDRequestError: The action contains values that are not JSON.
    """
    conversation = binding.conversation(context)
    return (yield from request_step(conversation, context, send_action(binding, action, options)))


def verify_tool_call(
    binding: AgentBinding,
    tool_name: str,
    parameters: Mapping[str, Any] | None = None,
    context: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    justification: str | None = None,
    effects: Sequence[str] | None = None,
) -> Operation[Answer]:
    """Request a decision about a tool call of this agent.

    Args:
        tool_name: Name of the tool.
        parameters: Arguments of the call.
        context: As for `QWEDClient.verify_action`; without it the call is the next step of the current conversation.
        options: `require_attestation`, `risk_threshold`, `chain_id` and `include_facts`.
        justification: Why the agent calls the tool, for the person who approves it.
        effects: Effects of the call, such as `SPEND`, in addition to those that are found.

    Returns:
        The decision, a refusal included. As a condition it is true for APPROVED only.

    Raises:
        QWEDTimeoutError: Other calls of the same conversation took the whole `timeout`.
        QWEDRequestError: The parameters contain values that are not JSON.
    """
    conversation = binding.conversation(context)

    def send(context: Mapping[str, Any] | None) -> Operation[Answer]:
        agent_id, token = binding.agent_id, binding.agent_token
        return agents.verify_tool_call(
            agent_id, tool_name, parameters, context, options, token, justification=justification, effects=effects
        )

    return (yield from request_step(conversation, context, send))


SendStep = Callable[[Mapping[str, Any] | None], Operation[Answer]]
"""Sends a request for a decision in a context."""


def send_action(binding: AgentBinding, action: Mapping[str, Any], options: Mapping[str, Any] | None) -> SendStep:
    """Return the request for a decision about an action."""
    return lambda context: agents.verify_action(binding.agent_id, action, context, options, binding.agent_token)


def request_step(
    conversation: Conversation | None, context: Mapping[str, Any] | None, send: SendStep
) -> Operation[Answer]:
    """Request a decision as the next step of a conversation, which is locked meanwhile."""
    if conversation is None:
        return (yield from send(context))
    yield Acquire(conversation)
    step = conversation.take_step()
    step_context = {**(context or {}), "conversation_id": conversation.conversation_id, "step_number": step}
    try:
        answer = yield from send(step_context)
    except QWEDError as error:
        if not may_have_decided(error):
            conversation.return_step(step)
        raise
    if not Decision(answer.decision).commits:
        conversation.return_step(step)
    # Released here, and not when the operation ends: it may go on to wait for a person.
    yield Release(conversation)
    return answer


def get_action(binding: AgentBinding, action_id: str) -> Operation[Action]:
    """Return the current state of an action of this agent.

    Args:
        action_id: Id of the action, `act_...`.

    Returns:
        The action.

    Raises:
        QWEDNotFoundError: The agent has no action with this id.
    """
    return (yield from agents.get_action(binding.agent_id, action_id, binding.agent_token))


def wait_for_decision(binding: AgentBinding, action_id: str, timeout: float = 300.0) -> Operation[Action]:
    """Wait until a person has decided about an action.

    Args:
        action_id: Id of the action, `act_...`.
        timeout: Seconds to wait at most, up to a day.

    Returns:
        The action once it is decided, or its state after `timeout` seconds.

    Raises:
        QWEDNotFoundError: The agent has no action with this id.
    """
    return (yield from agents.wait_for_decision(binding.agent_id, action_id, timeout, binding.agent_token))


def log_execution(
    binding: AgentBinding,
    action_id: str,
    success: bool,
    attestation: str | Mapping[str, Any] | None = None,
    result: Any = None,
    *,
    result_hash: str | None = None,
) -> Operation[Action]:
    """Record the outcome of a permitted action, once.

    Args:
        action_id: Id of the action, `act_...`.
        success: Whether the action was executed successfully.
        attestation: Attestation or receipt of the decision.
        result: Result of the action; only its hash is stored.
        result_hash: Hash of the result, in place of the result: `sha256:` and 64 hex digits.

    Returns:
        The action with its `execution`.

    Raises:
        QWEDNotFoundError: The agent has no action with this id.
        QWEDConflictError: The outcome is already recorded, or the action was not permitted.
    """
    return (
        yield from agents.log_execution(
            binding.agent_id, action_id, success, result, attestation, binding.agent_token, result_hash=result_hash
        )
    )


def get_agent(binding: AgentBinding) -> Operation[Agent]:
    """Return this agent.

    Returns:
        The agent, without its token.
    """
    return (yield from agents.get_agent(binding.agent_id, binding.agent_token))


def get_budget(binding: AgentBinding) -> Operation[ApiRecord]:
    """Return the limits of this agent, and what it has spent.

    Returns:
        Limits and current values of `cost`, `requests` and `tokens`.
    """
    return (yield from agents.get_agent_budget(binding.agent_id, binding.agent_token))


def get_activity(binding: AgentBinding, limit: int = 100, decision: str | None = None) -> Operation[list[Action]]:
    """Return the activity of this agent, newest first.

    Args:
        limit: Largest number of entries.
        decision: Only activities with this decision.

    Returns:
        The activities.
    """
    return (
        yield from agents.get_agent_activity(
            binding.agent_id, limit, decision=decision, agent_token=binding.agent_token
        )
    )


def request_trust_change(
    binding: AgentBinding, to_level: int, justification: str | None = None
) -> Operation[ApiRecord]:
    """Request one trust level more for this agent, which a person approves.

    Args:
        to_level: Requested level.
        justification: Why, for the person who approves.

    Returns:
        The request with its `approval_id` and `evidence`.

    Raises:
        QWEDConflictError: The evidence is not sufficient (see `details`), or a request is already open.
    """
    return (yield from agents.request_trust_change(binding.agent_id, to_level, justification, binding.agent_token))
