"""Secrets in the forms of particular languages: elements, flags, headers, calls, statements, sentences, addresses."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from qwed.guards._secrets.named import MAX_CANDIDATES
from qwed.guards._secrets.words import is_credentials, is_given, is_made_up, is_no_value, looks_random
from qwed.guards.text import UNSCANNED, Finding


class _Form(NamedTuple):
    kind: str
    anchors: tuple[str, ...]
    pattern: re.Pattern[str]
    judge: Callable[[str], bool]
    """What a value must look like."""
    line: str
    """What must stand earlier on the same line."""


def _any(_value: str) -> bool:
    return True


def _opens(value: str) -> bool:
    """Whether a value after the name of a scheme opens something."""
    return looks_random(value) or is_credentials(value)


def _form(kind: str, anchors: str, pattern: str, *, judge: Callable[[str], bool] = _any, line: str = "") -> _Form:
    return _Form(kind, tuple(anchors.split("|")), re.compile(pattern), judge, line)


# Matched against lower-cased text; every repetition is bounded.
_LOWERED = (
    _form(
        "assignment",
        "identified",
        r"identified\s{1,4}(?:with\s{1,4}\S{1,40}\s{1,4})?by\s{1,4}(?:password\s{1,4})?'([^'\n]{4,128})'",
    ),
    _form("assignment", "requirepass|masterauth", r"(?:requirepass|masterauth)\s{1,4}([^\s\"']{4,128})"),
    _form(
        "assignment",
        "password |passphrase |passcode |credentials |key |secret |token ",
        r"(?:pass(?:word|phrase|code)|credentials|(?:api|access)[ _-]key|secret|token)\s(?:for|of|to|on|at|in)\s"
        r"[\w '@./-]{1,60}?(?::|=|\sis:?)\s{1,4}[\"'`]?([^\s\"'`,;]{8,256})",
        judge=is_made_up,
    ),
    _form(
        "assignment",
        "password |passphrase |passcode ",
        r"pass(?:word|phrase|code)\s(?:(?:is|was|has been|now)\s)?(?:set|changed|reset|updated|switched)\sto:?\s{1,4}"
        r"[\"'`]?([^\s\"'`,;]{8,256})",
        judge=is_made_up,
    ),
    _form(
        "assignment",
        "mot de passe",
        r"mot de passe\s{0,2}(?::|=|est)\s{0,4}[\"'`]?([^\s\"'`,;]{8,256})",
        judge=is_made_up,
    ),
    _form(
        "assignment",
        "creds|credentials|login",
        r"\b(?:creds|credentials|login)\s?(?:are|is|:|=|with)\s{0,4}[\w.@-]{2,40}\s?[/:]\s?([^\s\"'`,;/]{8,128})(?!/)",
        judge=is_made_up,
    ),
    _form("assignment", ":5432:|:*:", r"(?m)^[\w.*-]{1,120}:(?:5432|\*):[\w*-]{1,64}:[\w*@.-]{1,64}:(\S{4,128})$"),
    _form("private_key", "private key", r"private key\W{1,6}(?:is\W{1,3})?((?:0x)?[0-9a-f]{64})(?![0-9a-f])"),
    _form("assignment", "bindpw ", r"bindpw\s{1,4}([^\s\"']{4,128})"),
    _form("assignment", "securestring", r"convertto-securestring\s{1,4}(?:-string\s{1,4})?[\"']([^\"'\n]{4,128})[\"']"),
    _form("assignment", "pass:", r"-pass(?:in|out)?\s{1,4}pass:([^\s\"']{4,128})"),
    _form("assignment", "password('", r"password\('([^'\n]{4,128})'\)"),
    _form("assignment", "/p:", r"/p:([^\s\"']{4,128})", line="freerdp"),
    _form("assignment", "-w ", r"-w\s{1,4}[\"']?([^\s\"'$-][^\s\"'$]{3,127})", line="ldap"),
    _form("assignment", "-a |--auth", r"-(?:a|-auth)[ =]{1,2}[\"']?[^\s:\"'$]{1,64}:([^\s\"'$@]{3,128})", line="http"),
    _form("assignment", "chpasswd", r"[\w.-]{1,32}:([^\s\"'|:$\]]{4,128})[\"']?\s{0,4}\|\s{0,4}(?:sudo\s)?chpasswd"),
    _form(
        "assignment",
        "password(|secret(|token(",
        r"(?:password|secret|token)\((?:(?<=set.{9})|(?<=set.{7})|(?<=set.{6})|(?<=set_.{9})|(?<=\.password.))\s?[\"']([^\"'\n]{4,256})[\"']",
    ),
    _form(
        "assignment",
        "auth(|login(|credential(|credentials(|auth=(|auth = (",
        r"(?:basic_?auth|httpbasicauth|httpdigestauth|passwordcredentials?|networkcredential|usernamepassword\w{0,20}|\.auth|\.login"
        r"|auth\s?=\s?)\(\s?[\"'][^\"'\n]{1,80}[\"']\s?,\s?[\"']([^\"'\n]{4,256})[\"']",
    ),
    _form(
        "assignment",
        "-u |--user|--proxy-user",
        r"-(?:u|-user|-proxy-user)[ =]{1,2}[\"']?[^\s:\"'$]{1,64}:([^\s\"'$@]{3,128})",
        line="curl",
    ),
    _form("assignment", "net user", r"net\s{1,4}user\s{1,4}[\w.-]{1,32}\s{1,4}([^\s/*][^\s]{3,64})\s"),
    _form("assignment", "@tcp(|@unix(", r"[\w.-]{1,64}:([^\s@/:\"'\]]{3,128})@(?:tcp|unix)\("),
    _form(
        "connection_string",
        "jdbc:oracle|sqlplus",
        r"(?:jdbc:oracle:\w{2,5}:|sqlplus\s{1,4}(?:-\w\s{1,4})?)\w{1,32}/([^\s@/\"']{3,64})@",
    ),
    _form(
        "authorization",
        "authorization",
        r"authorization\\?[\"']?\s{0,4}[:=,]\s{0,4}\\?[\"']?(?:[a-z_-]{3,24}\s{1,4})?([a-z0-9._~+/=-]{16,4096})",
        judge=_opens,
    ),
    _form(
        "authorization",
        "auth",
        r"auth\\?[\"']?\s{0,2}[:=]\s{0,2}\\?[\"']?([a-z0-9+/]{8,512}={0,2})(?![a-z0-9+/])",
        judge=is_credentials,
    ),
    _form("authorization", "bearer", r"bearer\s{1,4}([a-z0-9._~+/=-]{16,4096})", judge=_opens),
    _form("authorization", "basic ", r"basic\s{1,4}([a-z0-9+/]{12,512}={0,2})", judge=_opens),
    _form(
        "seed_phrase",
        "mnemonic|phrase",
        r"(?:mnemonic|(?:seed|recovery|backup|wallet)[ _-]?phrase)\W{1,12}(?:is\W{1,4})?"
        r"((?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})",
    ),
)
# Flags tell `-p` from `-P`, so these read the text as it came.
_WRITTEN = (
    _form(
        "assignment",
        "mysql|mariadb",
        r"(?:mysql|mariadb)[\w-]{0,12}\s[^\n|;&]{0,120}?(?<=\s)-p[\"']?([^\s\"'$-][^\s\"'$]{2,127})",
    ),
    _form(
        "assignment",
        "sshpass|login|mongo|twine|rdesktop",
        r"(?:sshpass|(?:docker|podman|skopeo|cf|oc|az|buildah|registry)\slogin|mongo\w{0,8}|twine\supload|rdesktop)"
        r"\b[^\n|;&]{0,160}?\s-p[ =]?[\"']?([^\s\"'$<-][^\s\"'$]{2,127})",
    ),
    _form("assignment", "_PAT", r"_PAT\s?[:=]\s{0,4}[\"']?([A-Za-z0-9]{20,200})(?![A-Za-z0-9])", judge=looks_random),
    _form("assignment", "7z|rar ", r"\b(?:7za?|rar)\s[^\n|;&]{0,120}?\s-h?p([^\s\"'$-][^\s\"'$]{3,127})"),
    _form("okta_token", "SSWS", r"SSWS\s{1,4}(00[A-Za-z0-9_-]{38,42})"),
    _form("assignment", "ssh-keygen", r"ssh-keygen\b[^\n|;&]{0,120}?\s-[NP]\s?[\"']?([^\s\"'$-][^\s\"'$]{3,127})"),
    _form("assignment", "redis-cli", r"redis-cli\b[^\n|;&]{0,120}?\s-a\s{1,4}[\"']?([^\s\"'$-][^\s\"'$]{2,127})"),
    _form(
        "assignment",
        "sqlcmd |zip -",
        r"(?:sqlcmd|unzip|zip)\b[^\n|;&]{0,120}?\s-P\s{0,4}[\"']?([^\s\"'$-][^\s\"'$]{2,127})",
    ),
    _form(
        "assignment",
        "smbclient|rpcclient",
        r"(?:smbclient|rpcclient)\b[^\n|;&]{0,120}?\s-U\s{0,4}[\"']?[\w.\\/-]{1,64}%([^\s\"'$]{3,128})",
    ),
    _form(
        "assignment", "htpasswd", r"htpasswd\s-\w{0,6}b\w{0,6}\s[^\s]{1,120}\s[\w.@-]{1,64}\s[\"']?([^\s\"'$]{4,128})"
    ),
)


def special_forms(text: str, lowered: str) -> Iterator[Finding]:
    """Secrets in notations of their own."""
    # Most texts mention none of the anchors, which is told soonest this way.
    for forms, searched in ((_LOWERED, lowered), (_WRITTEN, text)):
        for form in forms:
            for anchor in form.anchors:
                if anchor in searched:
                    yield from _found(form, text, searched)
                    break


def _found(form: _Form, text: str, searched: str) -> Iterator[Finding]:
    count = 0
    for begin, end in _around(form, searched):
        for match in form.pattern.finditer(searched, begin, end):
            if count == MAX_CANDIDATES:
                yield Finding(UNSCANNED, match.start(), len(text))
                return
            count += 1
            start, stop = match.span(match.lastindex or 0)
            if _counts(form, text[start:stop]) and _stands_on_line(form.line, searched, match.start()):
                yield Finding(form.kind, start, stop)


_BEFORE, _AFTER, _FAR_AFTER = 400, 800, 5_000
"""How far from its anchor a match begins and ends."""


def _around(form: _Form, searched: str) -> Iterator[tuple[int, int]]:
    """The parts of the text that a match can lie in: the rest need not be looked at letter by letter."""
    after = _FAR_AFTER if form.kind == "authorization" else _AFTER
    places = sorted(at for anchor in form.anchors for at in _places(anchor, searched))
    begin = end = -1
    for at in places:
        if at - _BEFORE > end:
            if end >= 0:
                yield begin, end
            begin = max(0, at - _BEFORE)
        end = at + after
    if end >= 0:
        yield begin, end


def _places(anchor: str, searched: str) -> Iterator[int]:
    at = searched.find(anchor)
    while at >= 0:
        yield at
        at = searched.find(anchor, at + 1)


def _stands_on_line(word: str, searched: str, at: int) -> bool:
    begin = max(searched.rfind("\n", 0, at), at - _LONGEST_LINE, 0)
    return not word or searched.find(word, begin, at) >= 0


_LONGEST_LINE = 2_000


def _counts(form: _Form, value: str) -> bool:
    return not is_no_value(value) and is_given(value) and form.judge(value)
