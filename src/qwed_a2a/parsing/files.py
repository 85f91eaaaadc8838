"""Text of file contents, `data:` URLs, and notebooks."""

import base64
import binascii
import codecs
import hashlib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_LEGACY = frozenset({"latin-1", "latin1", "iso-8859-1", "windows-1252", "cp1252", "us-ascii"})
_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([\w.:-]+)", re.IGNORECASE)
_TEXT_TYPES = re.compile(r"\A(?:text/|application/(?:[\w.+-]*[+])?json)|\.(?:json|jsonl|ndjson|txt|md|csv|log)\W*\Z")
_MARKED = re.compile(rb"\"\0*c\0*l\0*a\0*i\0*m\0*e\0*d|\"\0*l\0*i\0*n\0*e\0*_?\0*i\0*t\0*e\0*m\0*s", re.IGNORECASE)
DATA_URL = re.compile(
    r"data:(?P<type>[\w.+/;=\"-]*?)(?:;base64,(?P<packed>[A-Za-z0-9+/_%=-]*)|,(?P<plain>[^\s\"<>`]*))", re.IGNORECASE
)
_MAGIC = re.compile(r"(?m)^[ \t]*%matplotlib[ \t]+\w+[ \t]*$")
"""Magic that only selects where a plot is shown; any other magic runs something."""


class DataUrlContent(NamedTuple):
    """Content of a `data:` URL."""

    content: bytes
    media_type: str


def decode_text(content: bytes, media_type: str = "", name: str = "") -> str | None:
    """Return the bytes as text, or None if they are not text; where text or JSON is expected, decode as a lenient
    reader does."""
    text = _decode_by_encoding(content, media_type)
    if text is None and (_TEXT_TYPES.search(f"{media_type} {name}".lower()) or _MARKED.search(content)):
        # In any encoding names and digits are ASCII, perhaps with zero bytes between them.
        return content.decode("latin-1").replace("\0", "")
    return text


def _decode_by_encoding(content: bytes, media_type: str) -> str | None:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return _decode_or_none(content, encoding)
    charset = _CHARSET.search(media_type)
    named = charset[1].lower() if charset else ""
    return _decode_or_none(content, named if named in _LEGACY else _guess_encoding(content))


def _guess_encoding(content: bytes) -> str:
    """Return UTF-16 if every other byte is zero, else UTF-8."""
    head = content[:200]
    if len(head) > 1 and len(head) % 2 == 0 and b"\0" in head:
        if not any(head[1::2]):
            return "utf-16-le"
        if not any(head[::2]):
            return "utf-16-be"
    return "utf-8"


def _decode_or_none(content: bytes, encoding: str) -> str | None:
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def decode_data_url(url: str) -> DataUrlContent | None:
    """Return the content of a `data:` URL, or None for any other URL."""
    match = DATA_URL.fullmatch("".join(url.split()))
    return None if match is None else data_url_content(match)


def data_url_content(match: re.Match[str]) -> DataUrlContent | None:
    """Return the content of a matched `data:` URL, or None if it is not base64."""
    if match["packed"] is None:
        return DataUrlContent(unquote_to_bytes(match["plain"]), match["type"])
    packed = unquote_to_bytes(match["packed"]).replace(b"-", b"+").replace(b"_", b"/").rstrip(b"=")
    try:
        return DataUrlContent(base64.b64decode(packed + b"=" * (-len(packed) % 4), validate=True), match["type"])
    except binascii.Error:
        return None


def file_summary(content: bytes | None, url: str, name: str, media_type: str) -> dict[str, Any]:
    """Return a file as a GENERAL payload describes it: by its digest, without its bytes."""
    members = {"name": name, "media_type": media_type, "url": url}
    summary: dict[str, Any] = {member: value for member, value in members.items() if value}
    if content is not None:
        summary |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    return summary


def notebook_code(value: Any) -> dict[str, Any] | None:
    """Return the program of all code cells of a notebook, or None if it is not a notebook."""
    cells = value.get("cells") if isinstance(value, Mapping) else None
    if not isinstance(cells, list):
        return None
    sources = [
        item.get("source", "") for item in cells if isinstance(item, Mapping) and item.get("cell_type") == "code"
    ]
    joined = "\n".join(_source(item) for item in sources)
    return {"code": _MAGIC.sub("", joined), "language": _language(value)} if joined.strip() else {}


def _source(source: Any) -> str:
    return "".join(map(str, source)) if isinstance(source, list) else str(source)


def _language(value: Mapping[str, Any]) -> str:
    metadata = value.get("metadata")
    for name in ("language_info", "kernelspec"):
        section = metadata.get(name) if isinstance(metadata, Mapping) else None
        language = (
            section.get("name" if name == "language_info" else "language") if isinstance(section, Mapping) else None
        )
        if isinstance(language, str) and language:
            return language
    return "python"
