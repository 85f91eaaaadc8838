"""TCP proxy that a test can cut: connections stay open, and nothing passes until it is restored."""

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

_PIECE = 65_536


class CutProxy:
    """Proxy on its own port that forwards bytes both ways until it is cut."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._whole = threading.Event()
        self._whole.set()
        self._sockets: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, name: str) -> str:
        """Return the URL of a database behind the proxy."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{name}"

    def cut(self) -> None:
        """Forward nothing; connections are still accepted, as by a machine that does not answer."""
        self._whole.clear()

    def restore(self) -> None:
        """Forward again, first the bytes that were held back: none are lost."""
        self._whole.set()

    def close(self) -> None:
        """Close every connection."""
        self.restore()
        for connection in (self._listening, *self._sockets):
            _end(connection)

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                near, _address = self._listening.accept()
                threading.Thread(target=self._connect, args=(near,), daemon=True).start()

    def _connect(self, near: socket.socket) -> None:
        self._sockets.append(near)
        self._whole.wait()
        try:
            far = socket.create_connection(self._target)
        except OSError:
            _end(near)
            return
        self._sockets.append(far)
        threading.Thread(target=self._pass_on, args=(far, near), daemon=True).start()
        self._pass_on(near, far)

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(_PIECE):
                self._whole.wait()
                target.sendall(piece)
        self._whole.wait()
        _end(source)
        _end(target)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _end(one: socket.socket) -> None:
    # Closing alone would leave a thread blocked in its read.
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
