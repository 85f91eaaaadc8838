"""Values that are secret because of the name they are assigned to: in code, flags, elements, headers and sentences."""

import re
from collections.abc import Iterator

from qwed.guards._secrets.secret_names import (
    KEY_OR_TOKEN,
    PASSWORD,
    is_any_key,
    is_bare,
    is_password,
    is_strong,
)
from qwed.guards._secrets.value_heuristics import (
    is_base64_text,
    is_jumbled,
    is_non_secret,
    is_password_like,
    is_real_value,
    is_uuid,
    is_very_random,
    is_wordy,
    looks_random,
)
from qwed.guards.text_scan import MAX_SCANNED, UNSCANNED, TextFinding

MAX_CANDIDATES = 2_000
"""Possible assignments, or passwords in URLs, checked in one text; after that the rest is reported as unscanned."""
MAX_NAMES = 40_000
"""Words in one text that may begin the name of a secret; after that the rest is reported as unscanned."""
MAX_NESTING = 8
"""Average number of times a character is checked: a value may contain a name whose value contains a name, and so on."""

_SUFFIX = r"(?:[_-]?(?:\d{1,3}|prod(?:uction)?|dev|live|staging|stage|old|new|value|v\d))?"
_NAME = rf"(?P<name>{PASSWORD}|{KEY_OR_TOKEN}){_SUFFIX}"
_VALUE = (
    r"(?:\\?\"(?P<double>(?:[^\"\\\r\n]|\\[^\"']){1,4096})|\\?'(?P<single>(?:[^'\\\r\n]|\\[^\"']){1,4096})"
    r"|(?P<plain>[^\s\"'&;,=()\[\]\\<>|]{4,4096})(?P<after>[=(\[,)<]?))"
)
# Matched against lower-cased text at the places where a name begins.
_NAMED = re.compile(
    _NAME + r"\\?[\"'`]?\]?\s{0,8}"
    r"(?P<sign>:\s{0,2}[|>][+-]?\s{0,2}\n\s{1,16}|:\s{0,2}[a-z][\w.\[\]|]{0,32}\s{0,2}=|:=|=>|==?|:|\sis\s"
    r"|,?\s{0,24}\\?[\"']?value\\?[\"']?\s{0,4}[:=]|(?<=[\"']),|\{[^}]{0,160}?default\s{0,8}=|>|(?<=\s))(?P<gap>\s{0,8})"
    r"(?:[bfru@$]{1,2}(?=[\"'])|[\"']{2}(?=[\"']))?" + _VALUE
)
_VALUES = ("double", "single", "plain")

_LETTERS_ONLY = re.compile(r"[A-Za-z-]{6,}")
_NAME_IN_CODE = re.compile(r"[A-Za-z_.-]*")
_FIELD = re.compile(r"[a-z_]+\d{0,2}")
_ROLE = re.compile(r"[a-z]{1,12}:(?:[a-z]{1,12}:)?`")
_EXPANDED = re.compile(r"\$\{\w{0,60}\Z")
_ONE_WORD = re.compile(r"[^\s_./:,-]{8,}")
_PROSE_WEIGHT = 0.1
_MIN_PASSWORD = 4
_MIN_PLAIN_PASSWORD = 6


def find_assignments(text: str, lowered: str, names: list[int]) -> Iterator[TextFinding]:
    """Yield the values assigned to the name of a secret, in any notation."""
    position, candidates = 0, 0.0
    left = min(MAX_NESTING * len(text), MAX_SCANNED)
    for tried, start in enumerate(names):
        if tried == MAX_NAMES:
            yield TextFinding(UNSCANNED, start, len(text))
            return
        if start < position:
            continue
        match = _NAMED.match(lowered, start)
        if match is None:
            continue
        if left <= 0 or candidates >= MAX_CANDIDATES:
            yield TextFinding(UNSCANNED, start, len(text))
            return
        left -= match.end() - start
        # Two adjacent words are mostly prose, and most values named "key" are not secret: both count only a little.
        candidates += 1 if match["sign"] and match["name"] != "key" else _PROSE_WEIGHT
        group = next(name for name in _VALUES if match[name] is not None)
        begin, end = match.span(group)
        # A value that is not a secret may itself begin with the name of one.
        if _is_secret(match, group, text[begin:end], text):
            position = end if group != "plain" else _end_of_value(lowered, end)
            yield TextFinding("assignment", begin, position)


# A password can contain any character; a delimiter before another assignment, a blank or the end is not part of it.
_MORE = re.compile(r"(?:[&=()\[\]<>|](?![\s/]|\Z|[\w.-]{1,40}\\?[\"']?\s?[=:(])[^\s\"'&;,=()\[\]\\<>|{}]{1,64}){1,16}")


def _end_of_value(lowered: str, end: int) -> int:
    """Return the end of an unquoted value, including delimiters inside it."""
    more = _MORE.match(lowered, end)
    return more.end() if more else end


def _is_secret(match: re.Match[str], group: str, value: str, text: str) -> bool:
    # The cheapest checks come first: hostile text consists of candidates that are rejected.
    if len(value) < _MIN_PASSWORD or not _is_plausible(match, group, value, text):
        return False
    return is_real_value(value)


def _is_plausible(match: re.Match[str], group: str, value: str, text: str) -> bool:
    if group == "plain" and (_is_code(match, value) or is_non_secret(value)):
        return False
    special = _SPECIAL_SIGNS.get(match["sign"])
    if special is not None and not special(match, group, value):
        return False
    if is_password(match["name"]):
        return _is_password(match, group, value, text)
    return _is_key(match, group, value, text)


def _is_code(match: re.Match[str], value: str) -> bool:
    # `${NAME:?message}` prints the message if the variable is not set.
    if value[0] == "?" and _EXPANDED.search(match.string, max(0, match.start() - _LONGEST_INTRODUCTION), match.start()):
        return True
    if _ROLE.match(value) and match["sign"] == ":" and not match["gap"]:
        return True
    return (
        match["after"] in ("(", "[")
        or value[0] in "{-"
        or value[-1] == ":"
        or ("\n" in match["gap"] and match["sign"] != ">")
    )


def _is_listed(match: re.Match[str], group: str, value: str) -> bool:
    """Return True if name and value are a pair of a list.

    `("password", "hunter2")` is a pair, `("password", "email2")` are two fields, `("etc/passwd", ...)` are paths.
    """
    if match.string.endswith("/", 0, match.start("name")):
        return False
    return group != "plain" and not _FIELD.fullmatch(value)


def _is_element(match: re.Match[str], group: str, _value: str) -> bool:
    return group == "plain" and _CLOSING_TAG.match(match.string, match.end("plain")) is not None


_CLOSING_TAG = re.compile(r"\s{0,40}</")


def _is_introduced(match: re.Match[str], group: str, value: str) -> bool:
    """Return True if the text before the name says that a value follows, which is required if only a space separates
    them."""
    if _NAME_IN_CODE.fullmatch(value):
        return False
    password_like = is_password(match["name"]) and is_password_like(value)
    random = looks_random(value)
    if (password_like and random) if group == "plain" else (password_like or random):
        return True
    if (
        not password_like
        and _is_named_key(match)
        and (is_uuid(value) or (is_very_random(value) and not value.startswith("0x")))
    ):
        return True
    before = match.string[max(0, match.start() - _LONGEST_INTRODUCTION) : match.start()]
    return _INTRODUCTION.search(before) is not None or (group == "single" and _STATEMENT.search(before) is not None)


def _is_named_key(match: re.Match[str]) -> bool:
    """Return True if the name says what the key is for, as in `api key`."""
    name_position = match["name"], match.string, match.start("name")
    if is_password(match["name"]) or is_any_key(*name_position) or is_bare(*name_position):
        return False
    before = match.string[max(0, match.start() - _LONGEST_INTRODUCTION) : match.start()]
    return "authorization" not in before  # a scheme of that header


_LONGEST_INTRODUCTION = 64
_INTRODUCTION = re.compile(
    r"(?:(?<![\w-])--?(?:[a-z0-9]{1,20}-){0,4}|\b(?:define|env|arg|setx|set(?:\s-\w{1,3})?|property)\s{1,4}[\w.]{0,40}"
    r"|\blogin\s{1,4}\S{1,40}\s{1,8}|mysqladmin\s[^\n]{0,50}|(?:store|key))\Z"
)
_STATEMENT = re.compile(r"\b(?:user|role|with|by|encrypted|login)\s{1,4}(?:\S{1,40}\s{1,4}){0,2}\Z")
_SPECIAL_SIGNS = {",": _is_listed, ">": _is_element, "": _is_introduced}


def _is_password(match: re.Match[str], group: str, value: str, text: str) -> bool:
    if match["sign"] in (",", " is "):
        return len(value) >= _MIN_PLAIN_PASSWORD and not _NAME_IN_CODE.fullmatch(value) and " " not in value
    if group == "plain":
        return _is_plain_password(match, value, text)
    # `:'name'` is a variable of a SQL shell, and `: some words` is prose.
    variable = match["sign"] == ":" and not match["gap"] and match.string[match.start("sign") - 1].isspace()
    return not variable and not (match["sign"] == ":" and " " in value.strip())


def _is_plain_password(match: re.Match[str], value: str, text: str) -> bool:
    """Return True if an unquoted word looks like a value, because it may also be a variable or prose."""
    if not _NAME_IN_CODE.fullmatch(value):
        return len(value) >= _MIN_PLAIN_PASSWORD and not value.startswith("/")
    if match["after"] == "=":
        return is_base64_text(value)
    if match["sign"] == ">" or is_jumbled(value):
        return True
    pasted = match["sign"] == "=" and not match["gap"] and not match["after"]
    variable = "pass" in value.lower() and not _is_capital(match, text)
    return pasted and bool(_LETTERS_ONLY.fullmatch(value)) and not variable


def _is_key(match: re.Match[str], group: str, value: str, text: str) -> bool:
    name_position = match["name"], match.string, match.start("name")
    if match.string.endswith(":", 0, name_position[2]):
        # Part of a resource name such as `arn:aws:kms:...:key/...`.
        return False
    if is_non_secret(value) or (is_uuid(value) and is_bare(*name_position) and not _is_qualified(match)):
        return False
    if is_any_key(*name_position):
        return text[match.start("name")].isupper() and is_very_random(value) and not _is_harmless_key(match)
    if looks_random(value) and (not is_wordy(value) or (group != "plain" and not is_bare(*name_position))):
        return True
    if match["sign"] == "," or not is_strong(*name_position) or (group == "plain" and not _is_capital(match, text)):
        return False
    return _ONE_WORD.fullmatch(value) is not None or (group != "plain" and "=" in match["sign"])


def _is_qualified(match: re.Match[str]) -> bool:
    """Return True if the name is a part of another one, as in `API_TOKEN` and `X-Server-Token`."""
    if match.string.endswith("_", 0, match.start("name")):
        return True
    before = match.string[max(0, match.start("name") - _LONGEST_INTRODUCTION) : match.start("name")]
    return _HEADER.search(before) is not None


_HEADER = re.compile(r"(?<![\w-])x-(?!csrf|xsrf|request|correlation|idempotency)[a-z-]{2,40}-\Z")


def _is_harmless_key(match: re.Match[str]) -> bool:
    return match.string.endswith(_HARMLESS_KEYS, 0, match.start("name"))


_HARMLESS_KEYS_TEXT = "public_ pub_ primary_ foreign_ cache_ partition_ sort_ object_ host_ row_ websocket-"
_HARMLESS_KEYS = tuple(_HARMLESS_KEYS_TEXT.split())


def _is_capital(match: re.Match[str], text: str) -> bool:
    """Return True if the name is written like an environment variable, whose value needs no quotes."""
    pasted = match["sign"] == "=" and not match["gap"] and not match["after"]
    return pasted and text[match.start("name")].isupper()
