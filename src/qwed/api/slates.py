"""A text that one process writes and others of the same machine read, in memory that they share."""

import os
import struct
import zlib

_HEAD = struct.Struct("!II")
_TRIES = 5
LARGEST = 1 << 20


class Slate:
    """Written by one, read by any; a text that is being written is read again, never in half."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    @classmethod
    def new(cls) -> "Slate":
        """An empty one, to be handed on by its descriptor. It is gone with the last process that has it."""
        return cls(os.memfd_create("qwed-slate"))

    def write(self, text: bytes) -> None:
        """Put this in place of what stands there; what is too long to be read again is not written."""
        if len(text) <= LARGEST:
            os.pwrite(self.descriptor, _HEAD.pack(len(text), zlib.crc32(text)) + text, 0)

    def read(self) -> bytes:
        """What stands there; nothing where nobody has written."""
        for _ in range(_TRIES):
            found = os.pread(self.descriptor, _HEAD.size + LARGEST, 0)
            if len(found) < _HEAD.size:
                return b""
            length, sum_ = _HEAD.unpack_from(found)
            text = found[_HEAD.size : _HEAD.size + length]
            if zlib.crc32(text) == sum_:
                return text
        return b""
