"""Admission: may this request be decided now? A pure function of the request and the snapshot.

The order is the order of the checks: caller, active agent, context, idempotency key, step, loops, budget. Nothing is
said to a stranger, and nothing is reserved for a request that is refused here. Each check that passes records its name.
"""

import hashlib
import math
from typing import Any

import msgspec

from qwed.domain.agent import Agent, AgentLimits, AgentStatus
from qwed.domain.budget import ONE_REQUEST, LimitExceeded, RequestCost
from qwed.domain.conversation import ConversationStep
from qwed.domain.credentials import API_KEY, prefix_of
from qwed.domain.snapshot import Snapshot, SnapshotKeys
from qwed.kernel.answer import Answer, Problem, denied, problem
from qwed.kernel.authentication import authenticate
from qwed.kernel.case import Case, replace
from qwed.kernel.privacy.subject_keys import Vault
from qwed.kernel.request import NO_OPTIONS, Context, read_action, read_context, read_options
from qwed.kernel.tools import ACTION_TYPES, TOOL_CALL
from qwed.model import Decision, ErrorCode, canonical, usd_from
from qwed.model.clock import rfc3339
from qwed.model.ids import new_id
from qwed.settings import Settings

_MAX_KEY_LENGTH = 255
_TOOL_CALLS = {TOOL_CALL: 1} | {name: 0 if tool.has_engine else 1 for name, tool in ACTION_TYPES.items()}
"""Number of tool calls that an action of each type counts for."""
_KEY_REUSED = "this key was used with another request: use a new key for a new request"
_KEY_IN_FLIGHT = "a request with this key is still being decided: retry when it is answered"
_BAD_KEY = "Idempotency-Key must be 1 to 255 printable ASCII characters"


class Admission(msgspec.Struct, frozen=True, gc=False):
    """The case as far as it was checked, and the refusal that stopped it."""

    case: Case
    refusal: Answer | None = None


def parse(case: Case, settings: Settings, vault: Vault) -> Case:
    """Return the case with its action, context and options, or with the refusal of what is missing (CTX, STATE)."""
    if case.malformed is not None:
        return replace(case, unparsed=denied(ErrorCode.MALFORMED, case.malformed))
    if case.context_raw is None and not case.context_required:
        # Ruling 4.20, relaxed by the operator: a call without a context gets a conversation of its own.
        context: Context | Answer = Context(conversation_id=new_id("alone"), step_number=1)
    else:
        context = read_context(case.context_raw, state_required=settings.doom_loop_guard_required)
    if isinstance(context, Answer):
        return replace(case, unparsed=context)
    options = NO_OPTIONS if case.options_raw is None else read_options(case.options_raw)
    if isinstance(options, Answer):
        return replace(case, unparsed=options)
    action = read_action(case.action_raw)
    if isinstance(action, Answer):
        return replace(case, unparsed=action)
    # Keyed: a reader of the tables must not be able to confirm a guess about the action.
    fingerprint, state = vault.fingerprint, context.pre_action_state_hash
    return replace(
        case,
        action=action,
        action_hash=action.hash,
        context=context,
        options=options,
        step=ConversationStep(
            context.step_number,
            fingerprint(action.hash),
            None if state is None else fingerprint(f"{action.hash}|{state}"),
        ),
        # Under a keyed name: callers may put personal data into the names of conversations.
        conversation_id=fingerprint(context.conversation_id),
        chain_id=None if options.chain_id is None else fingerprint(options.chain_id),
        body_hash="" if case.idempotency_key is None else _body_hash(case, vault),
    )


def _body_hash(case: Case, vault: Vault) -> str:
    return vault.fingerprint(
        hashlib.sha256(canonical([case.action_raw, case.context_raw, case.options_raw])).hexdigest()
    )


def snapshot_keys_of(case: Case, vault: Vault) -> SnapshotKeys:
    """Return the names of all that the decision reads."""
    api_key, idempotency_key = case.credentials.api_key, case.idempotency_key
    return SnapshotKeys(
        case.agent_id,
        None if api_key is None else prefix_of(api_key, API_KEY),
        None if case.step is None or case.step.standalone else case.conversation_id,
        None if idempotency_key is None else vault.fingerprint(idempotency_key),
        case.chain_id,
        None if case.message is None else case.message.receiver_id,
        case.organisation_id,
        case.now,
    )


def admit(case: Case, snapshot: Snapshot, settings: Settings) -> Admission:
    """Admit an action, or refuse it."""
    if snapshot.stored_answer is not None:
        # Also where it is refused before its key is looked at: the stored answer is no conflict then.
        case = replace(case, remembered=snapshot.stored_answer)
    admission = _admit_caller(case, snapshot)
    if admission.refusal is not None:
        return admission
    case = admission.case
    if case.unparsed is not None:
        return Admission(case, case.unparsed)
    if case.idempotency_key is not None:
        refusal = _refuse_key(case, case.idempotency_key, snapshot)
        if refusal is not None or snapshot.stored_answer is not None:
            return Admission(case, refusal)
    action = case.action
    cost = max(action.cost.micros, settings.engine_price_usd)
    charge = RequestCost(cost, action.cost.tokens, 1, _TOOL_CALLS.get(action.type, 0))
    return admit_step(case, snapshot, charge, settings.max_steps)


def _admit_caller(case: Case, snapshot: Snapshot) -> Admission:
    agent, key = snapshot.agent, snapshot.key
    refusal = authenticate(case.credentials, agent, key)
    if refusal is not None or agent is None:
        return Admission(case, refusal)
    if case.stated_agent_id is not None and not agent.is_called(case.stated_agent_id):
        return Admission(case, denied(ErrorCode.MALFORMED, "`agent_id` in the body is not the agent in the path"))
    if snapshot.halted or agent.status is not AgentStatus.ACTIVE:
        return Admission(replace(case, agent=agent, key=key), refuse_inactive(agent, snapshot.halted))
    passed = (*case.checks_passed, "agent_active")
    return Admission(replace(case, agent=agent, key=key, tools=snapshot.tools, checks_passed=passed))


def _refuse_key(case: Case, key: str, snapshot: Snapshot) -> Answer | None:
    if not 0 < len(key) <= _MAX_KEY_LENGTH or not key.isascii() or not key.isprintable():
        return denied(ErrorCode.BAD_OPTION, _BAD_KEY)
    stored = snapshot.stored_answer
    if stored is None:
        return denied(ErrorCode.KEY_REUSED, _KEY_IN_FLIGHT) if snapshot.key_in_flight else None
    return None if stored.body_hash == case.body_hash else denied(ErrorCode.KEY_REUSED, _KEY_REUSED)


def admit_step(case: Case, snapshot: Snapshot, charge: RequestCost, max_steps: int) -> Admission:
    """Admit the step and the cost of a request, or refuse them (spec 9.2, 9.3 and 6.2, ruling 4.8)."""
    limits, max_steps = case.agent.limits, case.agent.steps_limit(max_steps)
    refused = snapshot.refuses(case.step, charge, limits, case.now, max_steps)
    if isinstance(refused, ErrorCode):
        return _refuse_step(refused, case, snapshot, max_steps)
    if limits.cost_per_request is not None or limits.tokens_per_request is not None:
        refusal = _refuse_over_request_limit(limits, charge)
        if refusal is not None:
            return Admission(case, refusal)
    if refused is not None:
        return Admission(case, refuse_budget(refused, case.now))
    passed = (*case.checks_passed, "within_budget", "rate_limit")
    return Admission(replace(case, charge=charge, checks_passed=passed))


def with_step_number(case: Case, snapshot: Snapshot) -> Case:
    """Return the case of a message without a step number with the next one."""
    if not case.step.auto_numbered:
        return case
    number = snapshot.next_step()
    return replace(case, step=replace(case.step, number=number), context=replace(case.context, step_number=number))


def _refuse_step(code: ErrorCode, case: Case, snapshot: Snapshot, max_steps: int) -> Admission:
    """Build the refusal of a step, with what would pass. A loop counts as a request."""
    step = case.step
    if code is ErrorCode.STEP_LIMIT:
        message = f"conversation step limit exceeded (max {max_steps} steps)"
        details = {"limit": max_steps, "step_number": step.number}
        return Admission(case, denied(code, message, check="step_limit", details=details))
    if code is ErrorCode.REPLAY:
        return Admission(case, denied(code, details={"step_number": step.number}))
    case = replace(case, charge=ONE_REQUEST)
    if code is ErrorCode.REPETITION:
        message = "repetitive action loop detected (max 2 consecutive identical actions)"
        return Admission(case, denied(code, message, details={"repeats": snapshot.history.repeats}))
    if step.state_observed:
        message = "the same message on an unchanged answer was forwarded twice before without progress"
        advice = "send another message, or this one once the other side has said something else"
        return Admission(case, denied(code, message, suggestion=advice))
    message = "the same action on an unchanged state was approved twice before without progress"
    return Admission(case, denied(code, message))


def _refuse_over_request_limit(limits: AgentLimits, charge: RequestCost) -> Answer | None:
    if limits.cost_per_request is not None and charge.cost > limits.cost_per_request:
        details = {"limit": usd_from(limits.cost_per_request), "requested": usd_from(charge.cost)}
        return _exceeded(ErrorCode.COST_EXCEEDED, "cost limit per request exceeded", details, final=True)
    if limits.tokens_per_request is not None and charge.tokens > limits.tokens_per_request:
        details = {"limit": limits.tokens_per_request, "requested": charge.tokens}
        return _exceeded(ErrorCode.TOKENS_EXCEEDED, "token limit per request exceeded", details, final=True)
    return None


def refuse_budget(exceeded: LimitExceeded, now: float) -> Answer:
    """Build the refusal of a request that a limit does not allow now, with the time from which it may."""
    show = usd_from if exceeded.code is ErrorCode.COST_EXCEEDED else int
    details = {
        "limit": show(exceeded.limit),
        "current": show(exceeded.current),
        "reset_at": rfc3339(exceeded.reset_at),
    }
    wait = max(1, math.ceil(exceeded.reset_at - now))
    return _exceeded(exceeded.code, exceeded.message, details, final=False, retry_after=wait)


def _exceeded(
    code: ErrorCode, message: str, details: dict[str, Any], *, final: bool, retry_after: int | None = None
) -> Answer:
    what = "lower the cost of this action" if final else "retry the same step after `reset_at`"
    suggestion = f"{what}, or ask an owner to raise the limit"
    return Answer(
        decision=Decision.BUDGET_EXCEEDED,
        error=problem(
            code,
            message,
            details=details,
            final=final,
            check="within_budget",
            suggestion=suggestion,
            retry_after=retry_after,
        ),
    )


def refuse_inactive(agent: Agent, halted: bool) -> Answer:
    """Return AGENT-003 for an agent that is not active or a halted organisation."""
    return Answer(decision=Decision.DENIED, error=inactive_problem(agent, halted))


def inactive_problem(agent: Agent, halted: bool) -> Problem:
    """Return the error for an agent that is stopped."""
    details = {"agent_id": agent.agent_id}
    if agent.status is AgentStatus.RETIRED:
        return problem(ErrorCode.AGENT_RETIRED, details=details)
    if not halted:
        return problem(ErrorCode.AGENT_SUSPENDED, details=details)
    return problem(
        ErrorCode.AGENT_SUSPENDED,
        "every agent of the organisation is stopped",
        suggestion="an owner or approver ends the halt with POST /reactivate-all",
        details=details,
    )
