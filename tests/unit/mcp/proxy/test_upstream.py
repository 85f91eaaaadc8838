"""Upstream listings: pages are joined, and their number and size are limited."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.server import Server
from mcp_types import ListToolsResult, PaginatedRequestParams, Tool

from qwed_mcp.proxy.upstream import MAX_LISTED, UnansweredRequestError, Upstream

Pages = Callable[[int], ListToolsResult]


def _tool(name: str, description: str = "") -> Tool:
    return Tool(name=name, description=description, input_schema={"type": "object"})


def listed(pages: Pages) -> tuple[Tool, ...] | str:
    """Return the tools of a server that lists so, or the error message."""

    async def page(_: Any, params: PaginatedRequestParams | None) -> ListToolsResult:
        return pages(int(params.cursor) if params is not None and params.cursor else 0)

    async def list_tools() -> tuple[Tool, ...] | str:
        async with Client(Server("x", on_list_tools=page), cache=None) as client:
            try:
                return await Upstream(client, 10.0, None).list_tools()
            except UnansweredRequestError as error:
                return str(error)

    return anyio.run(list_tools)


def test_the_tools_of_all_pages_are_one_list() -> None:
    def pages(at: int) -> ListToolsResult:
        return ListToolsResult(tools=[_tool(f"t{at}")], next_cursor=str(at + 1) if at < 9 else None)

    assert listed(pages) == tuple(_tool(f"t{number}") for number in range(10))


@pytest.mark.parametrize(
    ("pages", "expected"),
    [
        (lambda at: ListToolsResult(tools=[_tool(f"t{at}")], next_cursor="0"), "on more than 100 pages"),
        (lambda at: ListToolsResult(tools=[], next_cursor=str(at + 1)), "on more than 100 pages"),
        (
            lambda at: ListToolsResult(tools=[_tool(f"t{at}{n}") for n in range(MAX_LISTED + 1)]),
            "than 2000 tools",
        ),
        (
            lambda at: ListToolsResult(tools=[_tool("t", "w " * 3_000_000)], next_cursor=str(at + 1)),
            "definitions are too large",
        ),
    ],
)
def test_a_listing_without_end_is_none(pages: Pages, expected: str) -> None:
    assert expected in listed(pages)
