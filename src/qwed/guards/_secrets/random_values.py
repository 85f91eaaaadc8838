"""Random values beside a word that says secret: the value is found first, then its surroundings are read.

Entropy alone is no sign: digests, identifiers, images and lock files are random too.
"""

import re
from collections.abc import Iterator

from qwed.guards._secrets.languages import LANGUAGES, alternation
from qwed.guards._secrets.token_rules import vendor_rules
from qwed.guards._secrets.value_heuristics import entropy, is_non_secret, is_real_value, is_uuid, is_wordy
from qwed.guards.text_scan import UNSCANNED, TextFinding

MAX_VALUES = 4_000
"""Random values whose surroundings are read in one text; after that the rest is reported as unscanned."""
_VALUE = re.compile(
    r"(?<![\w+/.~$\\-])(?<!h1:)(?<!md5:)(?<!sha1:)(?<!sha256:)(?<!sha512:)[A-Za-z0-9_][A-Za-z0-9+/_.~-]{14,198}[A-Za-z0-9]={0,2}(?![\w+/.~-])"
)
_BEFORE, _AFTER = 90, 40
_MIN_ENTROPY, _MIN_HEX_ENTROPY = 3.6, 3.0
_MIN_MIXED = 20
_HEX = re.compile(r"(?:0x)?(?:[0-9a-f]+|[0-9A-F]+)")
_WORDS = rf"(?:{alternation(LANGUAGES.key)}|{alternation(LANGUAGES.password)})"
_WORD_LIST = (*LANGUAGES.key, *LANGUAGES.password)
# A name, an operator, the value: in code, JSON, a header, an option, a line of an environment file.
_ASSIGNED = re.compile(
    rf"{_WORDS}s?(?:[ _.-]?\w{{1,12}}){{0,5}}[\"'`\])]{{0,3}}"
    r"\s{0,3}(?:[:=>|,\u2192\uff1a]|=>|:=|->|\sis|\s)[\s\"'`(\[]{0,4}\Z"
)
_VENDOR_VALUE = re.compile(
    r"[\w.-]{0,20}[\"'`\])]{0,3}\s{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\"'`\s=>]{0,40}(?P<value>[\w=~+/.:%-]{14,200})"
)
# What stands beside a word such as "key" and is meant to be seen.
_HARMLESS = re.compile(
    r"public|\bpub|websocket|page|next|cursor|continuation|sync|fingerprint|thumbprint|digest|checksum|hash|integrity|sha-?\d"
    r"|md5|commit|revision|etag|nonce|csrf|xsrf"
    r"|signature|certificate|cache|partition|primary|foreign|\brow|object|idempotency|correlation|request.?id|trace|span"
    r"|(?:key|token|secret|access|client|account|session)[ _-]?(?:id|name|file|path|type|version|alias|arn|uri|url)"
    r"|version|\bdata:|base64,|ssh-(?:rsa|ed25519|dss)|ecdsa-|\bid\b|uuid|guid|tokeniz|monkey|keyword|keyboard|author[^i]"
    r"|schl\u00fcsselw|\u516c\u94a5|\u516c\u958b"
)


def find_random_values(text: str, lowered: str, random: str) -> Iterator[TextFinding]:
    """Yield the random values that an assignment, a header or a sentence calls a secret."""
    words = list(_placed_words(text, random))
    yield from _vendor_values(text, lowered, words)
    shaped = (match for match in _values(text, words) if _HEX.fullmatch(match[0]) or _is_mixed(match[0]))
    for count, match in enumerate(shaped):
        if count == MAX_VALUES:
            yield TextFinding(UNSCANNED, match.start(), len(text))
            return
        if _is_secret(match, lowered):
            yield TextFinding("assignment", *match.span())


def _vendor_values(text: str, lowered: str, words: list[tuple[int, str]]) -> Iterator[TextFinding]:
    """Yield the values of a vendor's form that are assigned to a name with the vendor in it."""
    for count, (position, name) in enumerate(_vendor_positions(lowered, words)):
        if count == MAX_VALUES:
            yield TextFinding(UNSCANNED, position, len(text))
            return
        match = _VENDOR_VALUE.match(text, position + len(name))
        if match is None or is_wordy(match["value"]) or not is_real_value(match["value"]):
            continue
        named = lowered[max(0, position - _VENDOR_WORD) : match.start("value")]
        for rule in vendor_rules()[name]:
            if rule.pattern.fullmatch(match["value"]) and _is_random(match["value"], named):
                yield TextFinding(rule.kind, *match.span("value"))
                break


_VENDOR_WORD = 20


def _vendor_positions(lowered: str, words: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield where the name of a vendor stands in a word with a digit, or before it."""
    names = tuple(vendor_rules())
    for position, word in words:
        start = max(0, position - _VENDOR_BEFORE)
        window = lowered[start : position + len(word)]
        for name in [name for name in names if name in window]:
            yield start + window.rfind(name), name


_VENDOR_BEFORE = 60


def _values(text: str, words: list[tuple[int, str]]) -> Iterator[re.Match[str]]:
    for position, word in words:
        yield from _VALUE.finditer(text, position, position + len(word))


def _placed_words(text: str, random: str) -> Iterator[tuple[int, str]]:
    """Yield the words in which a value may be, with their positions."""
    position = 0
    for word in random.split("\n") if random else ():
        position = text.find(word, position)
        if _VALUE.search(word):
            yield position, word
        position += len(word)


def _is_secret(match: re.Match[str], lowered: str) -> bool:
    value = match[0]
    before = lowered[max(0, match.start() - _BEFORE) : match.start()].rpartition("\n\n")[2]
    if not _is_named(value, before, lowered, match.end()) or _HARMLESS.search(before):
        return False
    is_other = is_wordy(value) or is_uuid(value) or is_non_secret(value) or _PATH.search(value)
    return not is_other and is_real_value(value)


# A directory before, or an ending after.
_PATH = re.compile(r"^[a-z]{2,}/|\.[a-z]{2,4}[0-9]?$")


def _is_named(value: str, before: str, lowered: str, end: int) -> bool:
    if _HEX.fullmatch(value):
        is_long = len(value) >= _MIN_MIXED and _has_word(before) and entropy(value) >= _MIN_HEX_ENTROPY
        return is_long and _ASSIGNED.search(before) is not None
    return _is_called_secret(before, lowered, end) and entropy(value) >= _MIN_ENTROPY


def _has_word(lowered: str) -> bool:
    return any(word in lowered for word in _WORD_LIST)


def _is_random(value: str, named: str) -> bool:
    """Return True if the value is no digest and no identifier; those need a word for a secret too."""
    if is_uuid(value) or _HEX.fullmatch(value):
        return _has_word(named) and not _HARMLESS.search(named)
    return entropy(value) >= _MIN_HEX_ENTROPY and is_real_value(value)


def _is_mixed(value: str) -> bool:
    return len(value) >= _MIN_MIXED and not value.islower() and not value.isupper() and any(map(str.isdigit, value))


def _is_called_secret(before: str, lowered: str, end: int) -> bool:
    """Return True if a word for a secret stands before the value on its line, or directly after it."""
    line = before.rpartition("\n")[2] or before
    after = lowered[end : end + _AFTER].partition("\n")[0]
    return _has_word(line) or _IS_THE.match(after) is not None


_IS_THE = re.compile(
    rf"[\"'`)\]]{{0,2}}[;,]?\s{{1,4}}(?:(?:#|//|--|/\*)\s?|(?:{alternation(LANGUAGES.copula)})\s)(?![^\n]{{0,24}}publi)[^.:=,;]{{0,24}}{_WORDS}"
)
