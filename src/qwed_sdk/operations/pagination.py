"""Pagination of lists."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from qwed.model.endpoints import Endpoint
from qwed_sdk.errors import QWEDProtocolError
from qwed_sdk.http_request import Operation, call

T = TypeVar("T")
MAX_PAGE_SIZE = 1000


def fetch_entries(
    kind: Callable[[dict[str, Any]], T],
    endpoint: Endpoint,
    member: str,
    *ids: str,
    limit: int,
    filters: Mapping[str, Any] | None = None,
    agent_token: str | None = None,
) -> Operation[list[T]]:
    """Return the first `limit` entries of a list, fetched page by page."""
    collected: list[T] = []
    cursor = None
    while len(collected) < limit:
        query = {**(filters or {}), "limit": min(limit - len(collected), MAX_PAGE_SIZE), "cursor": cursor}
        page = yield from call(dict, endpoint, *ids, query=query, agent_token=agent_token)
        entries = entries_of(page, member, kind)
        collected += entries
        cursor = page.get("next_cursor")
        if cursor is None or not entries:
            break
    return collected[:limit]


def entries_of(page: Mapping[str, Any], member: str, kind: Callable[[dict[str, Any]], T]) -> list[T]:
    """Return the objects that a page lists; raise QWEDProtocolError if there is no such list."""
    entries = page.get(member)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise QWEDProtocolError(f"the answer has no list `{member}`: is this a qwed server?")
    return [kind(entry) for entry in entries]
