"""`POST /audit/erase`: the owner has all content about one subject destroyed."""

from qwed.api.access import OWNER, require_actor
from qwed.api.http import Call, Response, ok, refused
from qwed.kernel.answer import Problem
from qwed.kernel.keeping.erasure import erase, read_erasure


async def erase_subject(call: Call) -> Response:
    """Destroy the key of a subject."""
    actor = require_actor(call, OWNER)
    if isinstance(actor, Problem):
        return refused(actor)
    subject = read_erasure(call.json())
    if isinstance(subject, Problem):
        return refused(subject)
    outcome = await call.driver.drive(erase(subject, actor, call.services))
    return refused(outcome) if isinstance(outcome, Problem) else ok(outcome)
