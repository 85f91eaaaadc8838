"""Parsing of action, context and options (CTX-001/002, STATE-001..004)."""

from qwed.kernel.answer import Answer, denied
from qwed.kernel.case import Case, replace
from qwed.kernel.request import NO_OPTIONS, Context, read_action, read_context, read_options
from qwed.kernel.services import Services
from qwed.model import ErrorCode
from qwed.model.ids import new_id
from qwed.store.conversation import ConversationStep


def require_context(case: Case, services: Services) -> Case | Answer:
    """Return the case with its action, context and options, or the refusal that names what is missing."""
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
    # Keyed: a reader of the tables must not be able to confirm a guess about the action.
    fingerprint = services.vault.fingerprint
    state = context.pre_action_state_hash
    state_fingerprint = None if state is None else fingerprint(f"{action.hash}|{state}")
    step = ConversationStep(context.step_number, fingerprint(action.hash), state_fingerprint)
    return replace(case, action=action, action_hash=action.hash, context=context, options=options, step=step)


def _context_of(case: Case, services: Services) -> Context | Answer:
    if case.context_raw is None and not case.context_required:
        # Ruling 4.20, relaxed by the operator: a call without a context gets a conversation of its own.
        return Context(conversation_id=new_id("alone"), step_number=1)
    return read_context(case.context_raw, state_required=services.settings.doom_loop_guard_required)
