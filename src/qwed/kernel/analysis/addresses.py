"""Finds the hosts that a text names: addresses with and without a scheme, recipients, connection strings, shares."""

import re
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

from qwed.model.unicode_normal import normalize

_LONGEST = 65_536
_MOST = 200
"""Addresses of one text; a text with more is refused as a whole."""

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}:[/\\]{2,}[^\s\"'<>`{}|^]*|(?<![\w/:\\])//[^\s/\"'<>`]{2,}")
_NO_SLASHES = re.compile(r"\s*(?:https?|wss?|ftps?|sftp|ssh|ldaps?|smb|gopher):[^\s/]\S*", re.IGNORECASE)
_ASSIGNED = re.compile(
    r"(?<![\w.-])(?:host(?:name|addr)?|server|data\s?source|addr|proxy|remote|endpoint|broker|bootstrap[._]servers)"
    r"\s{0,4}=\s{0,4}(?:tcp:|np:)?[\"']?([^\s;,&\"']{1,512})",
    re.IGNORECASE,
)
_SHARE = re.compile(r"\s*\\\\(?:\?\\UNC\\)?([^\\/\s]{1,255})")
_MAIL = re.compile(r"[^\s<>()\[\],;:\"'@]{1,64}@(?:\[[^\]\s]{1,64}\]|[^\s<>()\[\],;:\"'@/]{1,255})")
_LOGIN = re.compile(r"[\w.+-]{1,64}@([\w.-]{1,255}):\S*")
_PART, _REST = r"(?:0x[0-9a-f]{1,8}|\d{1,10})", r"(?::\d{1,5})?(?:/\S*)?"
_IPV4 = re.compile(rf"{_PART}(?:\.{_PART}){{3}}{_REST}", re.IGNORECASE)
_ONE_NUMBER = re.compile(rf"(?:0x[0-9a-f]{{8}}|0[0-7]{{10,11}}){_REST}", re.IGNORECASE)
_IPV6 = re.compile(rf"\[[0-9a-f:.%]{{2,64}}\]{_REST}|(?=[^:]*:[^:]*:)[0-9a-f:]{{3,39}}(?:%\w+)?", re.IGNORECASE)
_RESOLVED = re.compile(r"[\w.*-]{1,255}:\d{1,5}:(\[?[0-9a-fA-F.:]{3,45}\]?|[\w.-]{1,255}:\d{1,5})")
"""Host, port and the address to use for them, as in `curl --resolve`."""
_CLOCK = re.compile(r"\d{1,2}:\d{2}:\d{2}")
_NAME = re.compile(
    r"(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,62})\.){1,10}(xn--[a-z0-9-]{1,59}|[A-Za-z]{2,24})\.?(:\d{1,5})?(?:/\S*)?"
)
_ENDINGS_TEXT = """
com net org edu gov mil int io ai dev app cloud xyz info biz online site shop tech store live me tv cc co us uk de
fr eu nl ch at it es se no fi dk pl cz ru ua cn jp kr in au nz ca br mx ar za sg hk tw id th vn ph my il tr gr pt ie
be hu ro bg sk si hr rs lt lv ee is lu li onion example test invalid localhost local internal corp lan home link
click top work page space website host pro name mobi asia email agency digital network systems solutions zone run gg
to fm ly gl so im re la ws tk ml ga cf gq icu buzz fun stream download win bid loan date review trade racing cyou
cfd sbs rest bar lol monster quest hair beauty skin makeup pics ngrok nip sslip pub
"""
_ENDINGS = frozenset(_ENDINGS_TEXT.split())
"""Last labels of names that a text without a scheme must have; other dotted words are files and attributes."""

_TRAILING = ".,;:!?)]}"
_HOST = re.compile(r"[a-z0-9._-]+")
_AMBIGUOUS = re.compile(r"[\x00-\x20\\@]")


def hosts_within(text: str) -> Iterator[str]:
    """Yield the addresses that stand anywhere in a text, as they are written."""
    if len(text) > _LONGEST:
        yield text
        return
    for form in dict.fromkeys((text, *_decoded(text))):
        yield from (match[0].rstrip(_TRAILING) for match in _limited(_URL, form))
        yield from (match[1] for match in _limited(_ASSIGNED, form))
        yield from (match[0].strip() for match in (_NO_SLASHES.match(form),) if match)
        yield from (match[1] for match in (_SHARE.match(form),) if match)


def _limited(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    for count, match in enumerate(pattern.finditer(text)):
        if count == _MOST:
            raise TooManyAddressesError(f"more than {_MOST} addresses in one text")
        yield match


class TooManyAddressesError(ValueError):
    """A text names more addresses than are checked."""


def _decoded(text: str) -> Iterator[str]:
    """Yield the text as a later reader may decode it."""
    for _ in range(2):
        plain = unquote(text) if "%" in text else text
        if plain == text:
            break
        text = plain
        yield text
    if not text.isascii():
        yield normalize("NFKC", text)


def whole_host(text: str) -> str | None:
    """Return the host if a text as a whole is an address without a scheme, such as `evil.example:443` or an IP."""
    text = text.strip()
    if not text or len(text) > _LONGEST:
        return None
    if _IPV4.fullmatch(text) or _ONE_NUMBER.fullmatch(text):
        return text
    if _IPV6.fullmatch(text) and not _CLOCK.fullmatch(text):
        return text if text.startswith("[") else f"[{text}]"
    resolved = _RESOLVED.fullmatch(text)
    if resolved is not None:
        return resolved[1]
    login = _LOGIN.fullmatch(text)
    if login is not None:
        return login[1]
    name = _NAME.fullmatch(text)
    if name is None:
        return None
    return text if name[2] or name[1].lower() in _ENDINGS or name[1].lower().startswith("xn--") else None


def recipients_in(text: str) -> Iterator[str]:
    """Yield the domains of the mail addresses in a text."""
    for form in dict.fromkeys((text, *_decoded(text))):
        yield from (match[0].rpartition("@")[2].rstrip(_TRAILING) for match in _limited(_MAIL, form[:_LONGEST]))


def host_of(address: str) -> str | None:
    r"""Return the host on which all URL parsers agree; None where they differ, as over `\\` and `@`."""
    if _AMBIGUOUS.search(address):
        return None
    try:
        parts = urlsplit(address if "//" in address else f"//{address}")
        host = parts.hostname
    except ValueError:
        return None
    if host is None or parts.path.startswith(":"):
        return None
    plain = to_ascii(host)
    return plain if plain is not None and _HOST.fullmatch(plain) else None


def to_ascii(host: str) -> str | None:
    """Return the name in the letters of DNS; None if parsers may read it as different names."""
    if host.isascii():
        return host.lower()
    if not all(character.isascii() or character.isalpha() for character in host) or normalize("NFKC", host) != host:
        return None
    try:
        return host.encode("idna").decode("ascii").lower()
    except UnicodeError:
        return None
