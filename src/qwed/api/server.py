"""uvicorn's server, which lets go of those who wait for something before it waits for them to leave."""

import socket
from collections.abc import Callable

import uvicorn


class Server(uvicorn.Server):
    """Serves until it is asked to stop; then long polls and streams are told first."""

    def __init__(self, config: uvicorn.Config, let_go: Callable[[], None]) -> None:
        super().__init__(config)
        self._let_go = let_go

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish what is being answered, take up nothing new."""
        self._let_go()
        await super().shutdown(sockets)
