"""Pagination of lists."""

from collections.abc import Mapping
from typing import Any

from qwed_sdk.errors import QWEDProtocolError
from qwed_sdk.http_request import Operation, request_json

MAX_PAGE_SIZE = 1000


def fetch_entries(
    path: str,
    member: str,
    limit: int,
    filters: Mapping[str, Any] | None = None,
    agent_token: str | None = None,
) -> Operation[list[dict[str, Any]]]:
    """Return the first `limit` entries of a list, fetched page by page."""
    collected: list[dict[str, Any]] = []
    cursor = None
    while len(collected) < limit:
        query = {**(filters or {}), "limit": min(limit - len(collected), MAX_PAGE_SIZE), "cursor": cursor}
        page = yield from request_json("GET", path, query=query, agent_token=agent_token)
        entries = entries_of(page, member)
        collected += entries
        cursor = page.get("next_cursor")
        if cursor is None or not entries:
            break
    return collected[:limit]


def entries_of(page: Mapping[str, Any], member: str) -> list[dict[str, Any]]:
    """Return the objects that a page lists; raise QWEDProtocolError if there is no such list."""
    entries = page.get(member)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise QWEDProtocolError(f"the answer has no list `{member}`: is this a qwed server?")
    return entries
