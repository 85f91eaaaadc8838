"""Which tools the client may see and call: those whose definition passed, as the server states it now."""

import logging
from collections.abc import Awaitable, Callable

import anyio
import anyio.to_thread
from mcp_types import Tool

from qwed_mcp.definitions.book import Book
from qwed_mcp.definitions.held import Held, Screened
from qwed_mcp.definitions.pages import BookError
from qwed_mcp.proxy.upstream import Unanswered, Upstream

log = logging.getLogger(__name__)


class Catalogue:
    """The last listing, never older than is said, and listed anew at once when the server says that it changed."""

    def __init__(
        self,
        upstream: Upstream,
        book: Book,
        relist: float,
        changed: Callable[[Screened], Awaitable[None]],
    ) -> None:
        self._upstream = upstream
        self._book = book
        self._relist = relist
        self._changed = changed
        self._turn = anyio.Lock()
        self._known: Screened | None = None
        self._passed: dict[str, Tool] = {}
        self._listed = float("-inf")
        self._changes = 0

    def stale(self) -> None:
        """What was listed no longer holds: the next to ask lists anew."""
        self._listed = float("-inf")
        self._changes += 1

    async def tools(self) -> tuple[Tool, ...]:
        """The tools that passed, listed anew; Unanswered where the server does not list them."""
        return (await self._anew(self._listed)).passed

    async def find(self, name: str) -> Tool | Held | None:
        """The tool of this name as it passed, or as it is held; None where the server has none."""
        await self.refresh()
        found = self._passed.get(name)
        if found is not None or self._known is None:
            return found
        return next((held for held in self._known.held if held.tool.name == name), None)

    async def refresh(self) -> None:
        """List anew where the last listing is too old."""
        if anyio.current_time() - self._listed >= self._relist:
            await self._anew(self._listed)

    async def release(self, held: Held, by: str) -> None:
        """Let a definition pass, and list anew."""
        try:
            await anyio.to_thread.run_sync(self._book.release, held, by)
            self.stale()
            await self.refresh()
        except (BookError, Unanswered) as error:
            log.warning("`%s` was released, and is not shown yet: %s", held.tool.name, error)

    async def _screened(self, tools: tuple[Tool, ...]) -> Screened:
        try:
            return await anyio.to_thread.run_sync(self._book.screen, tools)
        except BookError as error:
            raise Unanswered(f"nobody can tell which tools are what they were: {error}") from None

    async def _anew(self, since: float) -> Screened:
        async with self._turn:
            if self._known is not None and self._listed > since:
                return self._known  # somebody listed while we waited for our turn
            begun, changes = anyio.current_time(), self._changes
            tools = await self._upstream.tools()
            screened = await self._screened(tools)
            before, self._known = self._known, screened
            self._passed = {tool.name: tool for tool in screened.passed}
            # What changed while it was listed may not be in it.
            self._listed = begun if changes == self._changes else float("-inf")
        if before != screened:
            await self._changed(screened)
        return screened
