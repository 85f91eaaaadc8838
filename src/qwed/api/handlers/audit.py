"""Handlers of `/audit/*`: the organisation's log, its heads, proofs and erasure (INTERFACES 4)."""

from collections.abc import Callable
from typing import Any

from qwed.api.server.auth import OWNER, require_actor, require_key
from qwed.api.server.endpoint import RequestContext, Response, error_response, json_response
from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit import audit_log
from qwed.kernel.pagination import LOG_CURSOR, read_limit
from qwed.kernel.privacy.erasure import erase, read_erasure
from qwed.model import ErrorCode


async def audit_head(request: RequestContext) -> Response:
    """Return the newest signed head."""
    return await _query_log(request, audit_log.newest_head)


async def audit_entries(request: RequestContext) -> Response:
    """Return a page of leaves, oldest first."""
    return await _query_log(
        request, audit_log.log_entries, _query_number(request, "from_index", 0), read_limit(request.query.get("limit"))
    )


async def audit_inclusion(request: RequestContext) -> Response:
    """Return a proof that a leaf is in the log."""
    return await _query_log(
        request, audit_log.prove_inclusion, _requested_leaf(request), _query_number(request, "size")
    )


async def audit_consistency(request: RequestContext) -> Response:
    """Return a proof that the log has only grown."""
    first = _query_number(request, "from")
    if first is None:
        first = problem(ErrorCode.MISSING_FIELD, "`from` is required: the size of the log that you know")
    return await _query_log(request, audit_log.prove_consistency, first, _query_number(request, "to"))


async def _query_log(request: RequestContext, query: Callable[..., Any], *args: Any) -> Response:
    """Run a log query for a key of the organisation; without one, no argument error is disclosed."""
    key = require_key(request)
    if isinstance(key, Problem):
        return error_response(key)
    for value in args:
        if isinstance(value, Problem):
            return error_response(value)
    # In a thread: a proof takes forty reads, a page a thousand.
    result = await request.run_blocking(query, key.organisation_id, *args, request.services)
    return error_response(result) if isinstance(result, Problem) else json_response(result)


def _requested_leaf(request: RequestContext) -> int | str | Problem:
    """Return the index or the activity id of the requested leaf."""
    names = [name for name in ("index", "activity_id") if name in request.query]
    if len(names) != 1:
        return problem(ErrorCode.BAD_OPTION, "give `index` or `activity_id`, one of the two")
    return request.query["activity_id"] if names == ["activity_id"] else _parse_number("index", request.query["index"])


def _query_number(request: RequestContext, name: str, default: int | None = None) -> int | Problem | None:
    text = request.query.get(name)
    return default if text is None else _parse_number(name, text)


def _parse_number(name: str, text: str) -> int | Problem:
    if not LOG_CURSOR.fullmatch(text):
        return problem(ErrorCode.BAD_OPTION, f"`{name}` must be a whole number of at most 18 digits")
    return int(text)


async def erase_subject(request: RequestContext) -> Response:
    """Destroy the key of a subject."""
    actor = require_actor(request, OWNER)
    if isinstance(actor, Problem):
        return error_response(actor)
    subject = read_erasure(request.json())
    if isinstance(subject, Problem):
        return error_response(subject)
    outcome = await request.driver.run(erase(subject, actor, request.services))
    return error_response(outcome) if isinstance(outcome, Problem) else json_response(outcome)
