"""INTERFACES 4: `/audit/*`. The log of the caller's organisation, its heads and its proofs."""

from collections.abc import Callable
from typing import Any

from qwed.api.access import require_key
from qwed.api.http import Call, Response, ok, refused
from qwed.kernel.answer import Problem, problem
from qwed.kernel.paging import PLACE, read_limit
from qwed.kernel.proving import audit
from qwed.words import ErrorCode


async def audit_head(call: Call) -> Response:
    """The newest signed head."""
    return await _asked(call, audit.newest_head)


async def audit_entries(call: Call) -> Response:
    """A page of leaves, oldest first."""
    return await _asked(call, audit.log_entries, _number(call, "from_index", 0), read_limit(call.query.get("limit")))


async def audit_inclusion(call: Call) -> Response:
    """That a leaf stands in the log."""
    return await _asked(call, audit.prove_inclusion, _wanted(call), _number(call, "size"))


async def audit_consistency(call: Call) -> Response:
    """That the log has only grown."""
    first = _number(call, "from")
    if first is None:
        first = problem(ErrorCode.MISSING_FIELD, "`from` is required: the size of the log as you know it")
    return await _asked(call, audit.prove_consistency, first, _number(call, "to"))


async def _asked(call: Call, ask: Callable[..., Any], *given: Any) -> Response:
    """What a key of the organisation is answered; whoever has none is told nothing of what was wrong."""
    key = require_key(call)
    if isinstance(key, Problem):
        return refused(key)
    for value in given:
        if isinstance(value, Problem):
            return refused(value)
    # In a thread: a proof is forty look-ups, a page a thousand.
    found = await call.look(ask, key.organisation_id, *given, call.services)
    return refused(found) if isinstance(found, Problem) else ok(found)


def _wanted(call: Call) -> int | str | Problem:
    """Which leaf: by its index, or by its activity."""
    given = [name for name in ("index", "activity_id") if name in call.query]
    if len(given) != 1:
        return problem(ErrorCode.BAD_OPTION, "give `index` or `activity_id`, one of the two")
    return call.query["activity_id"] if given == ["activity_id"] else _whole("index", call.query["index"])


def _number(call: Call, name: str, default: int | None = None) -> int | Problem | None:
    text = call.query.get(name)
    return default if text is None else _whole(name, text)


def _whole(name: str, text: str) -> int | Problem:
    if not PLACE.fullmatch(text):
        return problem(ErrorCode.BAD_OPTION, f"`{name}` must be a whole number of at most 18 digits")
    return int(text)
