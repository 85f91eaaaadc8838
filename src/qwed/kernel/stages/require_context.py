"""CTX-001/002 and STATE-001..004: what is asked, and where in which conversation."""

from qwed.kernel.answer import Answer, denied
from qwed.kernel.case import Case, replace
from qwed.kernel.request import NO_OPTIONS, Context, read_action, read_context, read_options
from qwed.kernel.services import Services
from qwed.store.conversation import Step
from qwed.words import ErrorCode
from qwed.words.ids import new_id


def require_context(case: Case, services: Services) -> Case | Answer:
    """The case with its action, context and options, or the refusal that names what is missing."""
    if case.malformed is not None:
        return denied(ErrorCode.MALFORMED, case.malformed)
    context = _context_of(case, services)
    if isinstance(context, Answer):
        return context
    options = NO_OPTIONS if case.options_raw is None else read_options(case.options_raw)
    if isinstance(options, Answer):
        return options
    action = read_action(case.action_raw)
    if isinstance(action, Answer):
        return action
    # Keyed: what lies in the tables must not tell what was asked to whoever guesses it.
    fingerprint = services.vault.fingerprint
    state = context.pre_action_state_hash
    bound = None if state is None else fingerprint(f"{action.hash}|{state}")
    step = Step(context.step_number, fingerprint(action.hash), bound)
    return replace(case, action=action, action_hash=action.hash, context=context, options=options, step=step)


def _context_of(case: Case, services: Services) -> Context | Answer:
    if case.context_raw is None and not case.context_required:
        # Ruling 4.20, loosened by the operator: a call without a place stands alone in a conversation of its own.
        return Context(conversation_id=new_id("alone"), step_number=1)
    return read_context(case.context_raw, state_required=services.settings.doom_loop_guard_required)
