"""Error of the cache."""


class CacheError(OSError):
    """The cache cannot be used; the message says why, and what to do."""

    def __init__(self, message: str, *, damaged: bool = False) -> None:
        super().__init__(message)
        self.damaged = damaged
        """True if only `clear()` helps."""
