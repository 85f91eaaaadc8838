"""The client before the proxy, told unasked: that the list of tools changed, in the manner of its version."""

from collections.abc import Callable
from typing import Any

from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

_MOST_LISTENING = 8


class Audience:
    """Knows the client from its last request; to one that never asked nothing is news."""

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self._session: ServerSession | None = None
        self.learn: Callable[[Any], None] = lambda _: None
        """Whoever else wants to know how the client's requests look."""
        self.listen = ListenHandler(self._bus, max_subscriptions=_MOST_LISTENING)
        """Serves those who subscribe; older clients are told without that."""

    def met(self, ctx: Any) -> ServerSession:
        """Remember whose request this is."""
        session: ServerSession = ctx.session
        self._session = session
        self.learn(ctx)
        return session

    @property
    def session(self) -> ServerSession | None:
        """The way to the client, where it has spoken."""
        return self._session

    async def tools_changed(self) -> None:
        """Say that the list is another now."""
        if self._session is not None:
            await self._session.send_tool_list_changed()
        await self._bus.publish(ToolsListChanged())
