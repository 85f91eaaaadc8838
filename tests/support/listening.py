"""Listening sockets as `qwed serve` opens them."""

import socket

from qwed.cli import serve
from qwed.cli.multiprocess.process import bind_socket

listen, reserve_address = serve.listen, serve.reserve_address


def replace_bind(buffer_bytes: int) -> None:
    """Let `qwed serve` bind sockets with send buffers of this size, which their connections inherit."""

    def bind_small_buffers(host: str, port: int, *, shared: bool = False) -> socket.socket:
        bound = bind_socket(host, port, shared=shared)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer_bytes)
        return bound

    serve.bind_socket = bind_small_buffers
