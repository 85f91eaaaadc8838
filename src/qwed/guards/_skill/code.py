"""Suspicious content of a skill manifest: code, commands and credential paths, in any encoding."""

import base64
import binascii
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from qwed.guards._skill.domains import to_latin
from qwed.guards.deobfuscation import decode_escapes
from qwed.guards.path import resolve
from qwed.model.data_files import read_patterns
from qwed.model.unicode_normal import normalize

MAX_VALUES = 10_000
MAX_CHARACTERS = 1 << 18
MAX_DEPTH = 64
_MAX_PATHS = 1_000
_METADATA = frozenset({"name", "description", "source_url"})
_SUSPICIOUS = tuple(
    (re.compile(pattern, re.IGNORECASE), what)
    for what, patterns in read_patterns(__file__, "suspicious_code.txt")
    for pattern in patterns
)
_GLUE = re.compile(r"''|\"\"|(?<=\w)\\(?=\w)|\\\r?\n|['\"]\s{0,9}\+\s{0,9}['\"]|/\*[^*]{0,200}\*/")
"""Text that disappears when the code runs; it can split any word."""
_FIELD_GAP = re.compile(r"\$\{?ifs\}?", re.IGNORECASE)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{12,}={0,2}")
_PATH = re.compile(r"[^\s'\"`=,;|&()<>\[\]]*[/\\][^\s'\"`=,;|&()<>\[\]]*")


class SuspiciousText(NamedTuple):
    """Text of a manifest, and the reason why it is suspicious."""

    text: str
    what: str


def manifest_problem(manifest: Mapping[Any, Any]) -> str:
    """Return why the manifest cannot be scanned completely, or ""; only a manifest without a problem is scanned."""
    stack: list[tuple[Any, int]] = [(manifest, 0)]
    values = characters = 0
    while stack:
        value, depth = stack.pop()
        values += 1
        characters += len(value) if isinstance(value, str) else 0
        if values > MAX_VALUES or characters > MAX_CHARACTERS or depth > MAX_DEPTH:
            return "the manifest is too large to be scanned, shorten it"
        if not _is_json(value):
            return f"the manifest holds a `{type(value).__name__}`, which is not a JSON value"
        if isinstance(value, Mapping):
            stack += ((item, depth + 1) for pair in value.items() for item in pair)
        elif isinstance(value, list | tuple):
            stack += ((item, depth + 1) for item in value)
    return ""


def _is_json(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(key, str) for key in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | int | list | tuple)


def find_suspicious(manifest: Mapping[str, Any]) -> Iterator[SuspiciousText]:
    """Yield every text with code or a credential path, except in the fields that describe the skill."""
    # Only text can be a description: an object under the same name is scanned like the rest.
    scanned = {key: value for key, value in manifest.items() if key not in _METADATA or not isinstance(value, str)}
    paths = 0
    for text in _texts(scanned):
        plain = normalize("NFKC", text)
        for reading in _readings(plain):
            yield from (SuspiciousText(plain, what) for pattern, what in _SUSPICIOUS if pattern.search(reading))
        for path in _paths(plain):
            paths += 1
            if paths > _MAX_PATHS:
                yield SuspiciousText(plain, "names more paths than can be checked")
                return
            if resolve(path, None).sensitive:
                yield SuspiciousText(plain, "reads credentials")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _command(value)
        for key, item in value.items():
            yield key
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        # The words of one command can be harmless one by one, so they are also joined.
        yield " ".join(item for item in value if isinstance(item, str))
        for item in value:
            yield from _texts(item)


def _command(value: Mapping[str, Any]) -> Iterator[str]:
    command, arguments = value.get("command"), value.get("args")
    if isinstance(command, str) and isinstance(arguments, list | tuple):
        yield " ".join((command, *(argument for argument in arguments if isinstance(argument, str))))


def _readings(plain: str) -> Iterator[str]:
    """Yield the text in every form in which a program that runs it may decode it."""
    readings = {plain: None}
    decoded = decode_escapes(plain)
    readings[plain if decoded is None else decoded.text] = None
    if not plain.isascii():
        readings[to_latin(plain)] = None
    for text in list(readings):
        readings[_FIELD_GAP.sub(" ", _GLUE.sub("", text))] = None
        readings[" ".join(_decode_base64_runs(text))] = None
    yield from readings


def _decode_base64_runs(text: str) -> Iterator[str]:
    """Yield the decoded text of every base64 run that decodes to text."""
    for match in _BASE64.finditer(text):
        run = match[0].rstrip("=").replace("-", "+").replace("_", "/")
        try:
            decoded = base64.b64decode(run[: len(run) - (len(run) % 4 == 1)] + "=" * (-len(run) % 4)).decode()
        except (binascii.Error, UnicodeDecodeError):
            continue
        if decoded.isprintable() or "\n" in decoded:
            yield decoded


def _paths(plain: str) -> Iterator[str]:
    if "/" not in plain and "\\" not in plain:
        return
    if "\n" not in plain and "://" not in plain:
        yield plain
    for match in _PATH.finditer(plain):
        if "://" not in match[0] or match[0].lower().startswith("file:"):
            yield match[0]
