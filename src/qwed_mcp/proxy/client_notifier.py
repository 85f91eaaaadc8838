"""Notifications to the client that the tool list changed, in the way of its protocol version."""

from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

_MAX_SUBSCRIPTIONS = 8


class ClientNotifier:
    """Notifier of the client that sent the last request; without a request there is nothing to notify."""

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self.session: ServerSession | None = None
        """Session of the client, or None before its first request."""
        self.listen = ListenHandler(self._bus, max_subscriptions=_MAX_SUBSCRIPTIONS)
        """Handler of subscriptions; older clients are notified without one."""

    async def notify_tools_changed(self) -> None:
        """Notify the client that the tool list changed."""
        if self.session is not None:
            await self.session.send_tool_list_changed()
        await self._bus.publish(ToolsListChanged())
