"""Step reservation, the last admission stage: from here on a request holds reservations (spec 9.4)."""

from qwed.kernel.answer import Answer, denied
from qwed.kernel.case import Case, replace
from qwed.kernel.services import Services
from qwed.model import ErrorCode
from qwed.store.conversation import ConversationHistory, ConversationStep


def reserve_step(case: Case, services: Services) -> Case | Answer:
    """Return the case with its step reserved, or LOOP-001 / LOOP-002."""
    # Under a keyed name: callers may put personal data into the names of conversations.
    conversation = services.vault.fingerprint(case.context.conversation_id)
    outcome = services.store.reserve_step(case.agent, conversation, case.step)
    if isinstance(outcome, ErrorCode):
        return refuse_step(case, outcome, services.settings.max_steps)
    if not case.step.auto_numbered:
        return replace(case, reservation=outcome)
    context = replace(case.context, step_number=outcome.step.number)
    return replace(case, reservation=outcome, step=outcome.step, context=context)


def refuse_step(case: Case, code: ErrorCode, max_steps: int) -> Answer:
    """Build the refusal of a step, with what would pass."""
    if code is ErrorCode.STEP_LIMIT:
        return denied(
            code,
            f"conversation step limit exceeded (max {max_steps} steps)",
            check="step_limit",
            details={"limit": max_steps, "step_number": case.step.number},
        )
    return denied(
        code,
        details={"step_number": case.step.number},
    )


def refuse_loop(code: ErrorCode, past: ConversationHistory, step: ConversationStep) -> Answer:
    """Build the LOOP-003 or LOOP-004 refusal, with what would pass."""
    if code is ErrorCode.REPETITION:
        return denied(
            code,
            "repetitive action loop detected (max 2 consecutive identical actions)",
            details={"repeats": past.repeats},
        )
    if step.state_observed:
        return denied(
            code,
            "the same message on an unchanged answer was forwarded twice before without progress",
            suggestion="send another message, or this one once the other side has said something else",
        )
    return denied(
        code,
        "the same action on an unchanged state was approved twice before without progress",
    )
