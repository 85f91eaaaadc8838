"""`qwed` with small socket buffers: a client that does not read is noticed after kilobytes."""

import socket
import sys

from qwed.cli import main, serve

_BYTES = 4096
_listen = serve._listen


def listen_small_buffers(host: str, port: int) -> socket.socket:
    """Return a listening socket whose connections inherit small buffers."""
    listening = _listen(host, port)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BYTES)
    return listening


if __name__ == "__main__":
    serve._listen = listen_small_buffers
    sys.exit(main(sys.argv[1:]))
