"""Lists that the server gives in pages."""

from collections.abc import Mapping
from typing import Any

from qwed_sdk.errors import QWEDProtocolError
from qwed_sdk.wire import Call, ask

LARGEST_PAGE = 1000


def listed(
    path: str,
    member: str,
    limit: int,
    narrowed: Mapping[str, Any] | None = None,
    agent_token: str | None = None,
) -> Call[list[dict[str, Any]]]:
    """The first `limit` entries, over as many pages as they take."""
    found: list[dict[str, Any]] = []
    cursor = None
    while len(found) < limit:
        query = {**(narrowed or {}), "limit": min(limit - len(found), LARGEST_PAGE), "cursor": cursor}
        page = yield from ask("GET", path, query=query, agent_token=agent_token)
        entries = entries_of(page, member)
        found += entries
        cursor = page.get("next_cursor")
        if cursor is None or not entries:
            break
    return found[:limit]


def entries_of(page: Mapping[str, Any], member: str) -> list[dict[str, Any]]:
    """The objects that a page lists."""
    entries = page.get(member)
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise QWEDProtocolError(f"an answer without a list of `{member}`: is this a qwed server?")
    return entries
