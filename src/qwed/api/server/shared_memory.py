"""Shared-memory cell with one writer and many readers."""

import os
import struct
import zlib

_HEAD = struct.Struct("!II")
_TRIES = 5
MAX_BYTES = 1 << 20


class SharedCell:
    """Text in a memfd, written by one process and read by any; a torn read is retried."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    @classmethod
    def new(cls) -> "SharedCell":
        """Return an empty cell, to be inherited by descriptor. The kernel frees it with its last process."""
        return cls(os.memfd_create("qwed-shared-cell"))

    def write(self, text: bytes) -> None:
        """Replace the text; a text over MAX_BYTES is not written."""
        if len(text) <= MAX_BYTES:
            os.pwrite(self.descriptor, _HEAD.pack(len(text), zlib.crc32(text)) + text, 0)

    def read(self) -> bytes:
        """Return the text, or empty bytes if there is none."""
        for _ in range(_TRIES):
            data = os.pread(self.descriptor, _HEAD.size + MAX_BYTES, 0)
            if len(data) < _HEAD.size:
                return b""
            length, checksum = _HEAD.unpack_from(data)
            text = data[_HEAD.size : _HEAD.size + length]
            if zlib.crc32(text) == checksum:
                return text
        return b""
