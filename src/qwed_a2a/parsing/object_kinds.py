"""Classification of JSON objects by their members, in any spelling."""

import base64
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from qwed.model.unicode_normal import normalize
from qwed_a2a.message import PayloadType
from qwed_a2a.parsing.language_detection import language_named
from qwed_a2a.parsing.payload_types import Payload

_LABEL = re.compile(r"[\w.:/+#-]{0,64}")
"""A code that is not a program: a currency, an error, a voucher. One word calls and imports nothing."""
_QUERIES = frozenset({"query", "queries", "sqlquery", "sql"})
_PAYLOAD_MEMBERS = _QUERIES | {"claimedtotal", "lineitems", "assertions", "code"}
_COMMANDS = frozenset({"command", "cmd", "script", "shell", "bash"})
_BODIES = frozenset({"source", "sourcecode", "content", "contents", "text", "body", "program", "script", "snippet"})
_NAMES = ("filename", "filepath", "path", "name")
_MEDIA_TYPES = ("mimetype", "mediatype", "contenttype")
_FILE_MEMBERS = frozenset({"language", "lang", *_NAMES, *_MEDIA_TYPES})
_MAX_TEXT_LENGTH = 512
_SEPARATORS = re.compile(r"[^a-z0-9]+")


@lru_cache(maxsize=4096)
def fold_name(name: str) -> str:
    """Return a member's name without capitals and separators: `claimedTotal` equals `claimed_total`."""
    if name.isascii():
        return name.lower() if name.isalnum() else _SEPARATORS.sub("", name.lower())
    return "".join(filter(str.isalnum, normalize("NFKC", name).casefold()))


def folded_members(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of an object by their folded names."""
    return {fold_name(name): member for name, member in value.items()}


def payloads_of(value: Mapping[str, Any], members: Mapping[str, Any]) -> list[Payload]:
    """Return the payloads that an object itself is, without nested ones; `members` by their folded names."""
    if members.keys().isdisjoint(_PAYLOAD_MEMBERS):
        return []
    payloads = []
    if is_financial(members):
        payloads.append(Payload(PayloadType.FINANCIAL_TRANSACTION, {"data": dict(value)}))
    if _is_logic(members):
        payloads.append(Payload(PayloadType.LOGIC_ASSERTION, _with_plain_name(value, "assertions")))
    code = _code_payload(members)
    if code is not None:
        payloads.append(Payload(PayloadType.CODE_EXECUTION, code))
    queries = {name: member for name, member in value.items() if fold_name(name) in _QUERIES and member}
    if queries:
        payloads.append(Payload(PayloadType.DATA_QUERY, queries))
    return payloads


class FileObject(NamedTuple):
    """File or program that an object describes."""

    bodies: tuple[str, ...]
    commands: tuple[str, ...]
    """Bodies whose member name says that they are commands."""
    packed: bytes | None
    language: str | None
    name: str
    media_type: str


def file_object(members: Mapping[str, Any]) -> FileObject:
    """Return the file or program that an object describes; `members` by their folded names."""
    commands = tuple(filter(None, (_joined_text(members.get(name)) for name in _COMMANDS & members.keys())))
    if members.keys().isdisjoint(_FILE_MEMBERS):
        return FileObject(commands, commands, None, None, "", "")
    language = next(filter(None, (language_named(text) for text in _short_texts(members, ("language", "lang")))), None)
    name = next(iter(_short_texts(members, _NAMES)), "")
    bodies = tuple(filter(None, (_joined_text(members.get(text)) for text in sorted(_BODIES & members.keys()))))
    packed = _decode_base64(members.get("bytes"))
    media_type = next(iter(_short_texts(members, _MEDIA_TYPES)), "")
    return FileObject((*bodies, *commands), commands, packed, language, name, media_type)


def _short_texts(members: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    return [
        members[name] for name in names if isinstance(members.get(name), str) and len(members[name]) <= _MAX_TEXT_LENGTH
    ]


def _joined_text(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return " ".join(value)
    return value if isinstance(value, str) else ""


def _decode_base64(value: Any) -> bytes | None:
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else None
    except ValueError:
        return None


def is_financial(members: Mapping[str, Any]) -> bool:
    """Return True if the object claims a total, or lists amounts; `members` by their folded names."""
    lines = members.get("lineitems")
    return "claimedtotal" in members or (isinstance(lines, list) and any(_has_member(line, "amount") for line in lines))


def _is_logic(members: Mapping[str, Any]) -> bool:
    claims = members.get("assertions")
    return isinstance(claims, list) and any(_has_member(claim, "claim") for claim in claims)


def _has_member(value: Any, name: str) -> bool:
    return isinstance(value, Mapping) and any(fold_name(key) == name for key in value)


def _with_plain_name(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {name if fold_name(key) == name else key: member for key, member in value.items()}


def _code_payload(members: Mapping[str, Any]) -> dict[str, Any] | None:
    code, language = members.get("code"), members.get("language", members.get("lang"))
    if isinstance(code, list) and code and all(isinstance(line, str) for line in code):
        code = "\n".join(line.rstrip("\n") for line in code)
    if not isinstance(code, str) or (language is None and _LABEL.fullmatch(code)):
        return None
    return {"code": code} if language is None else {"code": code, "language": language}
