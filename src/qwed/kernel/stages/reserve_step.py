"""Spec 9.4: claim the step. Last of admission: only past here is anything held."""

from qwed.kernel.answer import Answer, denied
from qwed.kernel.case import Case, replace
from qwed.kernel.services import Services
from qwed.store.conversation import Past, Step
from qwed.words import ErrorCode


def reserve_step(case: Case, services: Services) -> Case | Answer:
    """The case holding its step, or LOOP-001 / LOOP-002."""
    # Under a keyed name: what callers call their conversations may name people.
    conversation = services.vault.fingerprint(case.context.conversation_id)
    outcome = services.store.reserve_step(case.agent, conversation, case.step)
    if isinstance(outcome, ErrorCode):
        return refuse_step(case, outcome, services.settings.max_steps)
    if not case.step.allotted:
        return replace(case, reservation=outcome)
    context = replace(case.context, step_number=outcome.step.number)
    return replace(case, reservation=outcome, step=outcome.step, context=context)


def refuse_step(case: Case, code: ErrorCode, max_steps: int) -> Answer:
    """The refusal of a step, with what would pass."""
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


def refuse_loop(code: ErrorCode, past: Past, step: Step) -> Answer:
    """LOOP-003 and LOOP-004, with what would pass."""
    if code is ErrorCode.REPETITION:
        return denied(
            code,
            "repetitive action loop detected (max 2 consecutive identical actions)",
            details={"repeats": past.repeats},
        )
    if step.witnessed:
        return denied(
            code,
            "the same message on an unchanged answer was forwarded twice before without progress",
            suggestion="send another message, or this one once the other side has said something else",
        )
    return denied(
        code,
        "the same action on an unchanged state was approved twice before without progress",
    )
