"""Loop detection: LOOP-003 and LOOP-004 are checked here at low cost, and again when the step commits."""

from qwed.kernel.answer import Answer
from qwed.kernel.case import Case
from qwed.kernel.services import Services
from qwed.kernel.stages.reserve_step import refuse_loop


def detect_loops(case: Case, _services: Services) -> Case | Answer:
    """Return the case, or the refusal of a loop."""
    if case.reservation is None:
        raise RuntimeError("no step is reserved")
    past = case.reservation.conversation.history
    code = past.refuses_loop(case.step)
    return case if code is None else refuse_loop(code, past, case.step)
