"""Messages between supervisor and worker: the worker's command-line argument and its ready message."""

import msgspec


class WorkerArgs(msgspec.Struct, frozen=True, kw_only=True):
    """Identity, listen address and inherited descriptors of a worker; contains no secret."""

    path: list[str]
    number: int
    supervisor: int
    """Process id of the supervisor."""
    host: str
    port: int
    ready_fd: int
    """Descriptor of the socket for the ready message."""
    limiter_fd: int
    """Descriptor of the socket to the global engine limiter."""
    engine_workers: int
    cell_fds: list[int]
    """Descriptors of the shared-memory cells: the supervisor's first, then one per worker."""

    def encode(self) -> str:
        """Return the arguments as one command-line word."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def decode(cls, word: str) -> "WorkerArgs":
        """Parse the word that `encode` returned."""
        return msgspec.json.decode(word, type=cls)


class WorkerReady(msgspec.Struct, frozen=True, kw_only=True):
    """Message of a worker that listens; at the very first start it carries the owner's key."""

    owner_key: str | None = None
