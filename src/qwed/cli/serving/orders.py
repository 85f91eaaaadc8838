"""What a supervisor tells a worker on its command line, and what the worker says back."""

import msgspec


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """Who it is, where it listens, and the descriptors that it was handed. Nothing secret."""

    path: list[str]
    number: int
    supervisor: int
    """Its process id."""
    host: str
    port: int
    line: int
    """Where it says that it is ready."""
    bound: int
    """Where its engine workers ask for their turn."""
    engine_workers: int
    slates: list[int]
    """The supervisor's, then one of each worker, its own among them."""

    def written(self) -> str:
        """As a word of the command line."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def read(cls, word: str) -> "Orders":
        """Orders that were `written`."""
        return msgspec.json.decode(word, type=cls)


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """It listens; on the very first start, with the owner's key."""

    owner_key: str | None = None
