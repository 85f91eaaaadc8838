"""The bytes of a file as text, where they are text; addresses that hold their own content; notebooks."""

import base64
import binascii
import codecs
import hashlib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_LEGACY = frozenset({"latin-1", "latin1", "iso-8859-1", "windows-1252", "cp1252", "us-ascii"})
_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([\w.:-]+)", re.IGNORECASE)
_MEANT = re.compile(r"\A(?:text/|application/(?:[\w.+-]*[+])?json)|\.(?:json|jsonl|ndjson|txt|md|csv|log)\W*\Z")
_MARKED = re.compile(rb"\"\0*c\0*l\0*a\0*i\0*m\0*e\0*d|\"\0*l\0*i\0*n\0*e\0*_?\0*i\0*t\0*e\0*m\0*s", re.IGNORECASE)
DATA_URL = re.compile(
    r"data:(?P<type>[\w.+/;=\"-]*?)(?:;base64,(?P<packed>[A-Za-z0-9+/_%=-]*)|,(?P<plain>[^\s\"<>`]*))", re.IGNORECASE
)
_MAGIC = re.compile(r"(?m)^[ \t]*%matplotlib[ \t]+\w+[ \t]*$")
"""What only says where a plot is shown; any other magic runs something."""


class Decoded(NamedTuple):
    """What an address holds by itself."""

    content: bytes
    media_type: str


def text_of(content: bytes, media_type: str = "", name: str = "") -> str | None:
    """The bytes as text, None where they are none: where text or JSON is meant, as a lenient reader takes them."""
    text = _strictly(content, media_type)
    if text is None and (_MEANT.search(f"{media_type} {name}".lower()) or _MARKED.search(content)):
        # Whatever the encoding, names and digits are ASCII, perhaps with zeros between them.
        return content.decode("latin-1").replace("\0", "")
    return text


def _strictly(content: bytes, media_type: str) -> str | None:
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return _decoded(content, encoding)
    charset = _CHARSET.search(media_type)
    named = charset[1].lower() if charset else ""
    return _decoded(content, named if named in _LEGACY else _unmarked(content))


def _unmarked(content: bytes) -> str:
    """UTF-8, unless every other byte is a zero."""
    head = content[:200]
    if len(head) > 1 and len(head) % 2 == 0 and b"\0" in head:
        if not any(head[1::2]):
            return "utf-16-le"
        if not any(head[::2]):
            return "utf-16-be"
    return "utf-8"


def _decoded(content: bytes, encoding: str) -> str | None:
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def from_address(url: str) -> Decoded | None:
    """What a `data:` address holds, None for any other."""
    match = DATA_URL.fullmatch("".join(url.split()))
    return None if match is None else held_in(match)


def held_in(match: re.Match[str]) -> Decoded | None:
    """What a `data:` address in a text holds; None where it is no base64."""
    if match["packed"] is None:
        return Decoded(unquote_to_bytes(match["plain"]), match["type"])
    packed = unquote_to_bytes(match["packed"]).replace(b"-", b"+").replace(b"_", b"/").rstrip(b"=")
    try:
        return Decoded(base64.b64decode(packed + b"=" * (-len(packed) % 4), validate=True), match["type"])
    except binascii.Error:
        return None


def described(content: bytes | None, url: str, name: str, media_type: str) -> dict[str, Any]:
    """A file as a GENERAL payload tells of it: by its digest, not by its bytes."""
    told = {"name": name, "media_type": media_type, "url": url}
    shown: dict[str, Any] = {member: said for member, said in told.items() if said}
    if content is not None:
        shown |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    return shown


def notebook_code(value: Any) -> dict[str, Any] | None:
    """The program that the code cells of a notebook are together, None where it is no notebook."""
    cells = value.get("cells") if isinstance(value, Mapping) else None
    if not isinstance(cells, list):
        return None
    sources = [
        each.get("source", "") for each in cells if isinstance(each, Mapping) and each.get("cell_type") == "code"
    ]
    joined = "\n".join(_source(each) for each in sources)
    return {"code": _MAGIC.sub("", joined), "language": _language(value)} if joined.strip() else {}


def _source(source: Any) -> str:
    return "".join(map(str, source)) if isinstance(source, list) else str(source)


def _language(value: Mapping[str, Any]) -> str:
    about = value.get("metadata")
    for name in ("language_info", "kernelspec"):
        said = about.get(name) if isinstance(about, Mapping) else None
        told = said.get("name" if name == "language_info" else "language") if isinstance(said, Mapping) else None
        if isinstance(told, str) and told:
            return told
    return "python"
