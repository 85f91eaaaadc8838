"""Notifications to the client that the tool list changed, in the way of its protocol version."""

from collections.abc import Callable
from typing import Any

from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

_MAX_SUBSCRIPTIONS = 8


class ClientNotifier:
    """Notifier of the client that sent the last request; without a request there is nothing to notify."""

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self._session: ServerSession | None = None
        self.on_request: Callable[[Any], None] = lambda _: None
        """Hook that receives the context of each request."""
        self.listen = ListenHandler(self._bus, max_subscriptions=_MAX_SUBSCRIPTIONS)
        """Handler of subscriptions; older clients are notified without one."""

    def remember_client(self, ctx: Any) -> ServerSession:
        """Remember the session of the request."""
        session: ServerSession = ctx.session
        self._session = session
        self.on_request(ctx)
        return session

    @property
    def session(self) -> ServerSession | None:
        """Session of the client, or None before its first request."""
        return self._session

    async def notify_tools_changed(self) -> None:
        """Notify the client that the tool list changed."""
        if self._session is not None:
            await self._session.send_tool_list_changed()
        await self._bus.publish(ToolsListChanged())
