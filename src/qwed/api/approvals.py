"""Ruling 4.10: what waits for a person, and the person's answer."""

import re
from collections.abc import Callable, Coroutine
from typing import Any

from qwed.api.access import APPROVERS, require_actor, require_key
from qwed.api.http import Call, Response, ok, refused
from qwed.api.paging import limit_of
from qwed.kernel.answer import Problem, problem
from qwed.kernel.bodies import read_fields
from qwed.kernel.change import Actor
from qwed.kernel.people import approvals
from qwed.kernel.services import Services
from qwed.kernel.views.agents import View
from qwed.kernel.views.record import ApprovalView, approval_view
from qwed.store.archive import within_size
from qwed.store.protocol import ApprovalQuery, KeptApproval
from qwed.words import ErrorCode

_CURSOR = re.compile(r"apr_[0-9a-f]{1,64}")
_Act = Callable[[str, approvals.Said, Actor, Services], Coroutine[Any, None, KeptApproval | Problem]]


class ApprovalsView(View, frozen=True, kw_only=True):
    """A page of approvals, newest first."""

    approvals: list[ApprovalView]
    next_cursor: str | None


async def list_approvals(call: Call) -> Response:
    """The organisation's approvals, newest first."""
    key = require_key(call)
    if isinstance(key, Problem):
        return refused(key)
    limit = limit_of(call)
    if isinstance(limit, Problem):
        return refused(limit)
    state = call.query.get("state")
    if state not in (None, *approvals.STATES):
        return refused(problem(ErrorCode.BAD_OPTION, f"`state` must be one of {', '.join(approvals.STATES)}"))
    cursor = call.query.get("cursor")
    if cursor is not None and not _CURSOR.fullmatch(cursor):
        return refused(problem(ErrorCode.BAD_OPTION, "`cursor` must be the `next_cursor` of an earlier page"))
    now = call.services.clock.now()
    query = ApprovalQuery(key.organisation_id, limit + 1, cursor, state, call.query.get("agent_id"), now)
    found = await call.look(call.services.store.list_approvals, query)
    page = [approval_view(approval, call.services) for approval in within_size(found[:limit])]
    following = page[-1].approval_id if len(found) > len(page) else None
    return ok(ApprovalsView(approvals=page, next_cursor=following))


async def get_approval(call: Call) -> Response:
    """One approval."""
    key = require_key(call)
    if isinstance(key, Problem):
        return refused(key)
    return _answer(approvals.find_approval(call.path["approval_id"], key.organisation_id, call.services), call)


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
    return _answer(outcome, call)


def _answer(outcome: KeptApproval | Problem, call: Call) -> Response:
    return refused(outcome) if isinstance(outcome, Problem) else ok(approval_view(outcome, call.services))
