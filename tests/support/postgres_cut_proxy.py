"""PostgreSQL proxy that cuts a connection at a COMMIT, before or after the server receives it."""

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

_COMMIT = b"COMMIT\0"


class CommitCutProxy:
    """Proxy from 127.0.0.1 to the socket of a server."""

    def __init__(self, home: str) -> None:
        self._place = f"{home}/.s.PGSQL.5432"
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._cut: str | None = None
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, name: str) -> str:
        """Return the URL of a database behind the proxy."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{name}?sslmode=disable&gssencmode=disable"

    def cut_at_commit(self, when: str) -> None:
        """Cut the next connection that commits: `before` the server receives it, or `after` it is done."""
        self._cut = when

    def _accept(self) -> None:
        while True:
            try:
                near, _address = self._listening.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(self._place)
            threading.Thread(target=self._forward, args=(near, far), daemon=True).start()
            threading.Thread(target=_pump, args=(far, near), daemon=True).start()

    def _forward(self, near: socket.socket, far: socket.socket) -> None:
        with suppress(OSError):
            while data := near.recv(1 << 16):
                if self._cut is not None and _COMMIT in data:
                    self._end(near, far, data)
                    return
                far.sendall(data)
        _close(near, far)

    def _end(self, near: socket.socket, far: socket.socket, data: bytes) -> None:
        when, self._cut = self._cut, None
        self.cuts += 1
        # The client receives nothing more, whatever the outcome.
        near.shutdown(socket.SHUT_RDWR)
        if when == "after":
            far.sendall(data)
            far.shutdown(socket.SHUT_WR)
        else:
            _close(near, far)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._listening.close()


def _pump(far: socket.socket, near: socket.socket) -> None:
    with suppress(OSError):
        while data := far.recv(1 << 16):
            with suppress(OSError):
                near.sendall(data)
    _close(near, far)


def _close(*ends: socket.socket) -> None:
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
