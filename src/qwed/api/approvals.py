"""Ruling 4.10: what waits for a person, and the person's answer."""

from collections.abc import Callable, Coroutine
from typing import Any

from qwed.api.access import APPROVERS, require_actor, require_key
from qwed.api.http import Call, Response, ok, refused
from qwed.kernel.answer import Problem
from qwed.kernel.bodies import read_fields
from qwed.kernel.change import Actor
from qwed.kernel.people import approvals
from qwed.kernel.people.listing import Asked, approvals_page
from qwed.kernel.services import Services
from qwed.kernel.views.record import approval_view
from qwed.store.protocol import KeptApproval

_Act = Callable[[str, approvals.Said, Actor, Services], Coroutine[Any, None, KeptApproval | Problem]]


async def list_approvals(call: Call) -> Response:
    """The organisation's approvals, newest first."""
    key = require_key(call)
    if isinstance(key, Problem):
        return refused(key)
    page = await call.look(approvals_page, key.organisation_id, Asked(**call.query), call.services)
    return refused(page) if isinstance(page, Problem) else ok(page)


async def get_approval(call: Call) -> Response:
    """One approval."""
    key = require_key(call)
    if isinstance(key, Problem):
        return refused(key)
    found = await call.look(approvals.find_approval, call.path["approval_id"], key.organisation_id, call.services)
    return await _answer(found, call)


async def approve(call: Call) -> Response:
    """Permit what waits."""
    return await _settle(call, approvals.approve)


async def reject(call: Call) -> Response:
    """Refuse what waits."""
    return await _settle(call, approvals.reject)


async def _settle(call: Call, act: _Act) -> Response:
    actor = require_actor(call, APPROVERS)
    if isinstance(actor, Problem):
        return refused(actor)
    said = read_fields(call.json(), ("reason",), ("approver",))
    if isinstance(said, Problem):
        return refused(said)
    words = approvals.Said(said["reason"], said.get("approver"))
    outcome = await call.driver.drive(act(call.path["approval_id"], words, actor, call.services))
    return await _answer(outcome, call)


async def _answer(outcome: KeptApproval | Problem, call: Call) -> Response:
    return (
        refused(outcome) if isinstance(outcome, Problem) else ok(await call.look(approval_view, outcome, call.services))
    )
