"""`qwed` with sockets that hold little: whoever does not read is noticed after kilobytes, not after megabytes."""

import socket
import sys

from qwed.cli import main, serve

_BYTES = 4096
_listen = serve._listen


def narrow(host: str, port: int) -> socket.socket:
    """A listening socket whose connections have it from there."""
    listening = _listen(host, port)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BYTES)
    return listening


if __name__ == "__main__":
    serve._listen = narrow
    sys.exit(main(sys.argv[1:]))
