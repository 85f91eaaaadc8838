"""What a cache says when it cannot be used."""


class CacheError(OSError):
    """The cache cannot be used; `str(error)` says why and what to do, `damaged` whether only clearing it helps."""

    def __init__(self, message: str, *, damaged: bool = False) -> None:
        super().__init__(message)
        self.damaged = damaged
