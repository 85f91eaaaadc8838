"""uvicorn server that ends long polls and streams before it waits for connections to close."""

import socket
from collections.abc import Callable

import uvicorn


class Server(uvicorn.Server):
    """Server that notifies waiters first when it stops."""

    def __init__(self, config: uvicorn.Config, release_waiters: Callable[[], None]) -> None:
        super().__init__(config)
        self._release_waiters = release_waiters

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish requests in progress and accept no new ones."""
        self._release_waiters()
        await super().shutdown(sockets)
