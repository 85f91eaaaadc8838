"""Uploaded files in an action: base64, bounded, and typed by content, not by name (ruling 4.22)."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

MAX_BYTES = 10 << 20
_MAX_TEXT = MAX_BYTES * 4 // 3 + 4
_BLANKS = str.maketrans("", "", " \t\r\n")

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"PAR1", "parquet"),
    (b"\x1f\x8b", "gzip"),
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"%PDF-", "pdf"),
    (b"\x7fELF", "elf"),
    (b"MZ", "exe"),
    (b"SQLite format 3\x00", "sqlite"),
    (b"\xd0\xcf\x11\xe0", "ole"),
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpeg"),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
    (b"BM", "bmp"),
    (b"II*\x00", "tiff"),
    (b"MM\x00*", "tiff"),
)


class UploadError(Exception):
    """The upload cannot be read; the message says why."""


def read_upload(parameters: Mapping[str, Any]) -> bytes:
    """Return the bytes of `content_base64`; raise UploadError if they are missing, too large or not base64."""
    text = parameters.get("content_base64")
    if not isinstance(text, str) or not text.strip():
        raise UploadError("no file was given: send its bytes as base64 in `content_base64`")
    # Many encoders break lines at 76 characters; line ends are not counted.
    if len(text) > _MAX_TEXT + _MAX_TEXT // 32:
        raise UploadError(f"the file is larger than {MAX_BYTES} bytes")
    try:
        content = base64.b64decode(text.translate(_BLANKS), validate=True)
    except (binascii.Error, ValueError):
        raise UploadError("`content_base64` is not valid base64: send the standard alphabet with its padding") from None
    if not content:
        raise UploadError("the file is empty")
    if len(content) > MAX_BYTES:
        raise UploadError(f"the file is larger than {MAX_BYTES} bytes")
    return content


def sniff(content: bytes) -> str:
    """Return the type of the first bytes, such as `png` or `gzip`, or `unknown`."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "webp"
    return next((kind for magic, kind in _MAGIC if content.startswith(magic)), "unknown")
