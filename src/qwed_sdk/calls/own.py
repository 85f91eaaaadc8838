"""The verbs of one agent: what it asks about itself, its steps counted for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from qwed.words import Decision
from qwed_sdk.calls import agents
from qwed_sdk.conversation import Conversation, Conversations
from qwed_sdk.errors import QWEDError, perhaps_decided
from qwed_sdk.records import Action, Agent, Answer, Known
from qwed_sdk.wire import Call, Free, Hold


@dataclass(frozen=True)
class Bound:
    """Who asks. Without a token the client's own key speaks for the agent."""

    agent_id: str
    agent_token: str | None = field(repr=False)
    conversations: Conversations = field(repr=False)

    def conversation(self, context: Mapping[str, Any] | None) -> Conversation | None:
        """The one to count in; None where the caller counts."""
        context = context or {}
        if context.get("step_number") is not None:
            return None
        named = context.get("conversation_id")
        return self.conversations.present if named is None else self.conversations.named(named)


def verify_action(
    bound: Bound,
    action: Mapping[str, Any],
    context: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Call[Answer]:
    """Spec 4: may this action happen? Without a context it is the next step of the present conversation."""
    conversation = bound.conversation(context)
    return (yield from asked(bound, conversation, context, Proposed(action, options)))


def verify_tool_call(
    bound: Bound,
    tool_name: str,
    parameters: Mapping[str, Any] | None = None,
    context: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    justification: str | None = None,
    effects: Sequence[str] | None = None,
) -> Call[Answer]:
    """Spec 5: may this tool be called?"""
    conversation = bound.conversation(context)
    question = _ToolCall(tool_name, parameters, options, justification, effects)
    return (yield from asked(bound, conversation, context, question))


@dataclass(frozen=True)
class Proposed:
    """An action that is asked about."""

    action: Mapping[str, Any]
    options: Mapping[str, Any] | None

    def ask(self, bound: Bound, context: Mapping[str, Any] | None) -> Call[Answer]:
        """The question itself."""
        return (yield from agents.verify_action(bound.agent_id, self.action, context, self.options, bound.agent_token))


@dataclass(frozen=True)
class _ToolCall:
    tool_name: str
    parameters: Mapping[str, Any] | None
    options: Mapping[str, Any] | None
    justification: str | None
    effects: Sequence[str] | None

    def ask(self, bound: Bound, context: Mapping[str, Any] | None) -> Call[Answer]:
        return (
            yield from agents.verify_tool_call(
                bound.agent_id,
                self.tool_name,
                self.parameters,
                context,
                self.options,
                bound.agent_token,
                justification=self.justification,
                effects=self.effects,
            )
        )


def asked(
    bound: Bound, conversation: Conversation | None, context: Mapping[str, Any] | None, question: Proposed | _ToolCall
) -> Call[Answer]:
    """The answer to a question as the next step of a conversation, which no other call takes meanwhile."""
    if conversation is None:
        return (yield from question.ask(bound, context))
    yield Hold(conversation)
    step = conversation.take()
    where = {**(context or {}), "conversation_id": conversation.conversation_id, "step_number": step}
    try:
        answer = yield from question.ask(bound, where)
    except QWEDError as error:
        if not perhaps_decided(error):
            conversation.give_back(step)
        raise
    if not Decision(answer.decision).commits:
        conversation.give_back(step)
    # Given back here, and not when the call ends: it may go on to wait for a person.
    yield Free(conversation)
    return answer


def get_action(bound: Bound, action_id: str) -> Call[Action]:
    """One action as it stands now."""
    return (yield from agents.get_action(bound.agent_id, action_id, bound.agent_token))


def wait_for_decision(bound: Bound, action_id: str, timeout: float = 300.0) -> Call[Action]:
    """The action once a person has decided, or as it stands after `timeout` seconds."""
    return (yield from agents.wait_for_decision(bound.agent_id, action_id, timeout, bound.agent_token))


def log_execution(
    bound: Bound,
    action_id: str,
    success: bool,
    attestation: str | Mapping[str, Any] | None = None,
    result: Any = None,
    *,
    result_hash: str | None = None,
) -> Call[Action]:
    """Spec 7.1: what became of a permitted action, once; of the result only its hash is kept."""
    return (
        yield from agents.log_execution(
            bound.agent_id, action_id, success, result, attestation, bound.agent_token, result_hash=result_hash
        )
    )


def get_agent(bound: Bound) -> Call[Agent]:
    """The agent as it stands now."""
    return (yield from agents.get_agent(bound.agent_id, bound.agent_token))


def get_budget(bound: Bound) -> Call[Known]:
    """Spec 6.1: what the agent may spend and has spent."""
    return (yield from agents.get_agent_budget(bound.agent_id, bound.agent_token))


def get_activity(bound: Bound, limit: int = 100, decision: str | None = None) -> Call[list[Action]]:
    """Spec 7.2: what the agent asked, newest first."""
    return (
        yield from agents.get_agent_activity(bound.agent_id, limit, decision=decision, agent_token=bound.agent_token)
    )


def request_trust_change(bound: Bound, to_level: int, justification: str | None = None) -> Call[Known]:
    """Spec 8.2: ask a person for one level more."""
    return (yield from agents.request_trust_change(bound.agent_id, to_level, justification, bound.agent_token))
