"""Catalogue of the tools that the client may see and call: those that passed the screening."""

import logging
from collections.abc import Awaitable, Callable

import anyio
import anyio.to_thread
from mcp_types import Tool

from qwed_mcp.proxy.upstream import UnansweredRequestError, Upstream
from qwed_mcp.tool_pinning.pin_file import PinFileError
from qwed_mcp.tool_pinning.quarantined import QuarantinedTool, ScreeningResult
from qwed_mcp.tool_pinning.registry import PinRegistry

log = logging.getLogger(__name__)


class ToolCatalog:
    """Last tool listing; it is refreshed after its maximum age and when the server reports a change."""

    def __init__(
        self,
        upstream: Upstream,
        registry: PinRegistry,
        max_age: float,
        on_change: Callable[[ScreeningResult], Awaitable[None]],
    ) -> None:
        self._upstream = upstream
        self._registry = registry
        self._max_age = max_age
        self._on_change = on_change
        self._lock = anyio.Lock()
        self._last: ScreeningResult | None = None
        self._passed: dict[str, Tool] = {}
        self._listed_at = float("-inf")
        self._changes = 0

    def invalidate(self) -> None:
        """Mark the listing as outdated, so that the next use lists again."""
        self._listed_at = float("-inf")
        self._changes += 1

    async def tools(self) -> tuple[Tool, ...]:
        """List again and return the tools that passed; raise UnansweredRequestError if the server does not answer."""
        return (await self._list_anew(self._listed_at)).passed

    async def find(self, name: str) -> Tool | QuarantinedTool | None:
        """Return the tool with this name, passed or quarantined, or None."""
        await self.refresh()
        tool = self._passed.get(name)
        if tool is not None or self._last is None:
            return tool
        return next((quarantined for quarantined in self._last.quarantined if quarantined.tool.name == name), None)

    async def refresh(self) -> None:
        """List again if the last listing is too old."""
        if anyio.current_time() - self._listed_at >= self._max_age:
            await self._list_anew(self._listed_at)

    async def release(self, tool: QuarantinedTool, by: str) -> None:
        """Release a definition and list again."""
        try:
            await anyio.to_thread.run_sync(self._registry.release, tool, by)
            self.invalidate()
            await self.refresh()
        except (PinFileError, UnansweredRequestError) as error:
            log.warning("mcp proxy tool `%s` was released but is not listed yet: %s", tool.tool.name, error)

    async def _screen(self, tools: tuple[Tool, ...]) -> ScreeningResult:
        try:
            return await anyio.to_thread.run_sync(self._registry.screen, tools)
        except PinFileError as error:
            raise UnansweredRequestError(f"the tools cannot be compared with their pins: {error}") from None

    async def _list_anew(self, since: float) -> ScreeningResult:
        async with self._lock:
            if self._last is not None and self._listed_at > since:
                return self._last  # another task listed while this one waited for the lock
            started, changes = anyio.current_time(), self._changes
            tools = await self._upstream.list_tools()
            screened = await self._screen(tools)
            previous, self._last = self._last, screened
            self._passed = {tool.name: tool for tool in screened.passed}
            # A change during the listing may be missing from it.
            self._listed_at = started if changes == self._changes else float("-inf")
        if previous != screened:
            await self._on_change(screened)
        return screened
