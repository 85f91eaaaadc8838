"""Admission of a message: what can be decided without its content, before any engine runs (ruling 4.14)."""

import math
from collections.abc import Collection

from qwed.domain.access_lists import AccessLists
from qwed.domain.budget import NO_COST, ONE_REQUEST, exceeded_limit
from qwed.guards.tool_approval import fold_name
from qwed.kernel.a2a.message import EngineName, InterceptedMessage, MessageVerdict, Sender
from qwed.kernel.a2a.verdict_record import verdict_of_problem
from qwed.kernel.admission import inactive_problem
from qwed.kernel.answer import Problem, problem
from qwed.kernel.services import Services
from qwed.model import ErrorCode, canonical

BYPASSED = MessageVerdict(True, EngineName.BYPASS, "the sender is trusted and its messages not verified")


def verdict_without_content(
    message: InterceptedMessage, sender: Sender, trusted: Collection[str], services: Services
) -> MessageVerdict | None:
    """Return the verdict on a message whose content need not be inspected, or None if it must be.

    It takes the pair's token, once per message. Everything else is only read here, and read again when the message is
    committed. `trusted` are further agents whose messages the operator does not inspect.
    """
    lists = services.store.access_lists(sender.organisation_id)
    is_trusted = lists.trusts(message.sender)
    wait = _take_token(message, sender, services)
    refusal = _listed(message, sender, lists, services)
    if refusal is not None:
        verdict = MessageVerdict(False, EngineName.TRUST_BOUNDARY, refusal)
    elif wait > 0:
        verdict = verdict_of_problem(_over_rate(wait, services.settings.a2a_messages_per_minute))
    elif (stopped := _stopped(sender, services)) is not None:
        verdict = verdict_of_problem(stopped)
    elif sender.proven and (is_trusted or message.sender in trusted):
        verdict = BYPASSED
    else:
        return None
    # A listed sender is counted too, so that a flood of refusals does not write a flood of leaves.
    return verdict._replace(over_rate=wait > 0)


def organisation_halted() -> Problem:
    """Return the error for a message of an organisation whose agents are all stopped."""
    return problem(ErrorCode.AGENT_SUSPENDED, "every agent of the organisation is stopped")


def _listed(message: InterceptedMessage, sender: Sender, lists: AccessLists, services: Services) -> str | None:
    refusal = lists.refusal(message.sender, message.receiver)
    if refusal is None and services.settings.a2a_strict and sender.agent is None and not lists.trusts(message.sender):
        return "only registered and trusted agents may send here"
    return refusal


def _over_rate(wait: float, per_minute: int) -> Problem:
    limit, seconds = f"{per_minute} messages per minute", math.ceil(wait)
    reason = f"more than {limit} from this sender to this receiver: try again in {seconds} seconds"
    return problem(ErrorCode.RATE_LIMITED, reason, check=EngineName.TRUST_BOUNDARY, retry_after=seconds)


def _stopped(sender: Sender, services: Services) -> Problem | None:
    """Return the problem of a sender that is stopped or has no request left in its budget."""
    agent = sender.agent
    if agent is None:
        return organisation_halted() if services.store.halted(sender.organisation_id) else None
    if services.stopped(agent):
        return inactive_problem(agent, services.store.halted(agent.organisation_id))
    if agent.limits.requests_per_hour is None and agent.limits.requests_per_day is None:
        return None
    counters = services.store.usage_counters(agent.agent_id, services.clock.now())
    exceeded = exceeded_limit(counters, NO_COST, ONE_REQUEST, agent.limits)
    return None if exceeded is None else problem(exceeded.code, exceeded.message)


def _take_token(message: InterceptedMessage, sender: Sender, services: Services) -> float:
    """Count the message and return 0.0 if the pair is within its rate, else the seconds until it is again.

    All spellings of a name share one rate, otherwise a sender could multiply its rate by varying its name.
    """
    per_minute = services.settings.a2a_messages_per_minute
    if per_minute == 0:
        return 0.0
    # Under a keyed name: the names of agents may contain personal data.
    names = canonical([fold_name(message.sender), fold_name(message.receiver)])
    pair = services.vault.fingerprint(names.decode())
    return services.store.take_token(sender.organisation_id, pair, per_minute, services.clock.now())
