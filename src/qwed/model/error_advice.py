"""Advice for users of the SDK and the CLI (ruling 4.11).

`ErrorCode.advice` addresses a program that sends HTTP itself. This table says the same to users who never see HTTP.
"""

import re

from qwed.model.errors import ErrorCode as E

_LATER = "try again a little later"
CLIENT_ADVICE: dict[E, str] = {
    E.AGENT_NOT_REGISTERED: "register the agent (`register_agent`, `qwed agents register`), or check its id",
    E.INVALID_AGENT_TOKEN: "set QWED_AGENT_TOKEN to this agent's token, or QWED_API_KEY to a key of the organisation",
    E.AGENT_SUSPENDED: "an owner or approver can put the kill switch back (`reactivate_all`)",
    E.REPLAY: "use a step_number greater than any committed one",
    E.MALFORMED: "change what the message names",
    E.UNKNOWN_TYPE: "use a type that is known there: the server may be older than this client",
    E.BAD_OPTION: "change what the message names",
    E.KEY_REUSED: "ask anew",
    E.NOT_FOUND: "check the id",
    E.METHOD_NOT_ALLOWED: "compare the versions: the server may be older than this client",
    E.CONFLICT: "put the kill switch back (`reactivate_all`)",
    E.NO_CREDENTIAL: "set QWED_API_KEY, or give `api_key`",
    E.UNKNOWN_CREDENTIAL: (
        "an organisation's key (`qwed_live_...`) is `api_key` or QWED_API_KEY; "
        "an agent's token (`qwed_agent_...`) is for a QWEDAgentClient or QWED_AGENT_TOKEN"
    ),
    E.ROLE_NOT_SUFFICIENT: "set QWED_API_KEY to a key of the organisation: an agent's token is for that agent alone",
    E.ENGINE_UNAVAILABLE: _LATER,
    E.RATE_LIMITED: _LATER,
    E.DEPENDENCY_DOWN: _LATER,
    E.OVERLOADED: _LATER,
}
_MENTIONS_HTTP = re.compile(r"\b(?:GET|PUT|POST|DELETE) /|\b(?:X-API-Key|Authorization|Retry-After|Idempotency-Key)\b")
_BY_CODE = {code.code: text for code, text in CLIENT_ADVICE.items()}


def client_advice(code: str | None, suggestion: str | None) -> str | None:
    """Return the server's suggestion in words for SDK and CLI users, or None if it only concerns HTTP."""
    if suggestion is None or _MENTIONS_HTTP.search(suggestion) is None:
        return suggestion
    return _BY_CODE.get(code or "")
