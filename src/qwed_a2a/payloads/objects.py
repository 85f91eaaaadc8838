"""What an object is by its members, however they are spelt."""

import base64
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from qwed.words.normal import normalize
from qwed_a2a.message import PayloadType
from qwed_a2a.payloads.languages import language_named
from qwed_a2a.payloads.parts import Payload

_LABEL = re.compile(r"[\w.:/+#-]{0,64}")
"""A code that is no program: a currency, an error, a voucher. Nothing is called or imported in one word."""
_QUERIES = frozenset({"query", "queries", "sqlquery", "sql"})
_TOLD_BY = _QUERIES | {"claimedtotal", "lineitems", "assertions", "code"}
_COMMANDS = frozenset({"command", "cmd", "script", "shell", "bash"})
_BODIES = frozenset({"source", "sourcecode", "content", "contents", "text", "body", "program", "script", "snippet"})
_NAMES = ("filename", "filepath", "path", "name")
_MEDIA_TYPES = ("mimetype", "mediatype", "contenttype")
_TELLS = frozenset({"language", "lang", *_NAMES, *_MEDIA_TYPES})
_LONGEST = 512
_SEPARATORS = re.compile(r"[^a-z0-9]+")


@lru_cache(maxsize=4096)
def folded(name: str) -> str:
    """A member's name without capitals and separators: `claimedTotal` is `claimed_total`."""
    if name.isascii():
        return name.lower() if name.isalnum() else _SEPARATORS.sub("", name.lower())
    return "".join(filter(str.isalnum, normalize("NFKC", name).casefold()))


def members_of(value: Mapping[str, Any]) -> dict[str, Any]:
    """The members of an object by their folded names."""
    return {folded(name): member for name, member in value.items()}


def payloads_of(value: Mapping[str, Any], members: Mapping[str, Any]) -> list[Payload]:
    """The payloads that an object itself is, not those further inside; `members` by their folded names."""
    if members.keys().isdisjoint(_TOLD_BY):
        return []
    found = []
    if is_financial(members):
        found.append(Payload(PayloadType.FINANCIAL_TRANSACTION, {"data": dict(value)}))
    if _is_logic(members):
        found.append(Payload(PayloadType.LOGIC_ASSERTION, _named(value, "assertions")))
    code = _code(members)
    if code is not None:
        found.append(Payload(PayloadType.CODE_EXECUTION, code))
    asked = {name: member for name, member in value.items() if folded(name) in _QUERIES and member}
    if asked:
        found.append(Payload(PayloadType.DATA_QUERY, asked))
    return found


class Sent(NamedTuple):
    """What an object says to be the content of a file or a program, and of which."""

    bodies: tuple[str, ...]
    commands: tuple[str, ...]
    """Those that a name says to be commands."""
    packed: bytes | None
    language: str | None
    name: str
    media_type: str


def sent(members: Mapping[str, Any]) -> Sent:
    """The file or the program that an object is; `members` by their folded names."""
    commands = tuple(filter(None, (_joined(members.get(name)) for name in _COMMANDS & members.keys())))
    if members.keys().isdisjoint(_TELLS):
        return Sent(commands, commands, None, None, "", "")
    language = next(filter(None, (language_named(each) for each in _texts(members, ("language", "lang")))), None)
    name = next(iter(_texts(members, _NAMES)), "")
    bodies = tuple(filter(None, (_joined(members.get(each)) for each in sorted(_BODIES & members.keys()))))
    packed = _unpacked(members.get("bytes"))
    media_type = next(iter(_texts(members, _MEDIA_TYPES)), "")
    return Sent((*bodies, *commands), commands, packed, language, name, media_type)


def _texts(members: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    return [members[name] for name in names if isinstance(members.get(name), str) and len(members[name]) <= _LONGEST]


def _joined(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return " ".join(value)
    return value if isinstance(value, str) else ""


def _unpacked(value: Any) -> bytes | None:
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else None
    except ValueError:
        return None


def is_financial(members: Mapping[str, Any]) -> bool:
    """Whether a total is claimed, or amounts are listed for one; `members` by their folded names."""
    lines = members.get("lineitems")
    return "claimedtotal" in members or (isinstance(lines, list) and any(_has(each, "amount") for each in lines))


def _is_logic(members: Mapping[str, Any]) -> bool:
    claims = members.get("assertions")
    return isinstance(claims, list) and any(_has(each, "claim") for each in claims)


def _has(value: Any, name: str) -> bool:
    return isinstance(value, Mapping) and any(folded(each) == name for each in value)


def _named(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {name if folded(each) == name else each: member for each, member in value.items()}


def _code(members: Mapping[str, Any]) -> dict[str, Any] | None:
    code, language = members.get("code"), members.get("language", members.get("lang"))
    if isinstance(code, list) and code and all(isinstance(line, str) for line in code):
        code = "\n".join(line.rstrip("\n") for line in code)
    if not isinstance(code, str) or (language is None and _LABEL.fullmatch(code)):
        return None
    return {"code": code} if language is None else {"code": code, "language": language}
