"""Handlers of approvals (ruling 4.10)."""

from collections.abc import Callable, Coroutine
from typing import Any

from qwed.api.server.auth import APPROVERS, require_actor, require_key
from qwed.api.server.endpoint import RequestContext, Response, error_response, json_response
from qwed.kernel.admin import approvals
from qwed.kernel.admin.pages import PageQuery, approvals_page
from qwed.kernel.answer import Problem
from qwed.kernel.audit_change import Actor
from qwed.kernel.body_parsing import read_fields
from qwed.kernel.services import Services
from qwed.kernel.views.activity_views import approval_view
from qwed.store.protocol import ApprovalRecord

_Resolve = Callable[[str, approvals.ApprovalComment, Actor, Services], Coroutine[Any, None, ApprovalRecord | Problem]]


async def list_approvals(request: RequestContext) -> Response:
    """Return a page of the organisation's approvals, newest first."""
    key = require_key(request)
    if isinstance(key, Problem):
        return error_response(key)
    page = await request.run_blocking(approvals_page, key.organisation_id, PageQuery(**request.query), request.services)
    return error_response(page) if isinstance(page, Problem) else json_response(page)


async def get_approval(request: RequestContext) -> Response:
    """Return one approval."""
    key = require_key(request)
    if isinstance(key, Problem):
        return error_response(key)
    approval = await request.run_blocking(
        approvals.find_approval, request.path["approval_id"], key.organisation_id, request.services
    )
    return await _approval_response(approval, request)


async def approve(request: RequestContext) -> Response:
    """Approve a pending request."""
    return await _resolve(request, approvals.approve)


async def reject(request: RequestContext) -> Response:
    """Reject a pending request."""
    return await _resolve(request, approvals.reject)


async def _resolve(request: RequestContext, act: _Resolve) -> Response:
    actor = require_actor(request, APPROVERS)
    if isinstance(actor, Problem):
        return error_response(actor)
    fields = read_fields(request.json(), ("reason",), ("approver",))
    if isinstance(fields, Problem):
        return error_response(fields)
    comment = approvals.ApprovalComment(fields["reason"], fields.get("approver"))
    outcome = await request.driver.run(act(request.path["approval_id"], comment, actor, request.services))
    return await _approval_response(outcome, request)


async def _approval_response(outcome: ApprovalRecord | Problem, request: RequestContext) -> Response:
    return (
        error_response(outcome)
        if isinstance(outcome, Problem)
        else json_response(await request.run_blocking(approval_view, outcome, request.services))
    )
