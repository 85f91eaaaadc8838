"""Secrets in language-specific syntax: XML elements, flags, headers, calls, statements, sentences, URLs."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from qwed.guards._secrets.assignments import MAX_CANDIDATES
from qwed.guards._secrets.value_heuristics import (
    has_all_classes,
    is_composed,
    is_credentials,
    is_non_secret,
    is_password_like,
    is_real_value,
    is_strongly_composed,
    is_very_random,
    looks_random,
)
from qwed.guards.text_scan import UNSCANNED, TextFinding


class _SyntaxPattern(NamedTuple):
    kind: str
    anchors: tuple[str, ...]
    pattern: re.Pattern[str]
    condition: Callable[[str], bool]
    """Condition on the value."""
    line: str
    """Text that must occur earlier on the same line."""
    near: int
    """Characters around an anchor in which a match begins and ends; 0 for the usual ones."""


def _any(_value: str) -> bool:
    return True


def _is_generated(value: str) -> bool:
    return is_password_like(value) or is_strongly_composed(value)


def _is_unmistakable(value: str) -> bool:
    """Return True if a value after a name and a colon is a password whatever the name: `ana:Cobalt!river73`."""
    return has_all_classes(value) and len(_PAIR_OF_DIGITS.findall(value)) == 1 and _is_generated(value)


_PAIR_OF_DIGITS = re.compile(r"\d{2,}")


def _has_digit(value: str) -> bool:
    return any(map(str.isdigit, value))


def _is_diceware(value: str) -> bool:
    """Return True if the words are no sentence: none of them says how the others belong together."""
    return _PROSE.isdisjoint(value.lower().replace("-", " ").split())


_PROSE_TEXT = """
the and for with from that this are was not you your must can cannot will should may has have who which when where
what how any all each every some more than then only also into out new old too very is required optional minimum
maximum length characters words word letters needed missing empty wrong invalid incorrect expired given entered please
enter use used using set see ask asked same different between after before without again never always same until
"""
_PROSE = frozenset(_PROSE_TEXT.split())


def _is_credential(value: str) -> bool:
    """Return True if a value after the name of an authentication scheme is a credential."""
    return looks_random(value) or is_credentials(value)


def _pattern(
    kind: str, anchors: str, pattern: str, *, condition: Callable[[str], bool] = _any, line: str = "", near: int = 0
) -> _SyntaxPattern:
    return _SyntaxPattern(kind, tuple(anchors.split("|")), re.compile(pattern), condition, line, near)


# Matched against lower-cased text; every repetition is bounded.
_LOWERED = (
    _pattern(
        "assignment",
        "identified",
        r"identified\s{1,4}(?:with\s{1,4}\S{1,40}\s{1,4})?by\s{1,4}(?:password\s{1,4})?['\"]([^'\"\n]{4,128})['\"]",
    ),
    _pattern("assignment", "requirepass|masterauth", r"(?:requirepass|masterauth)\s{1,4}([^\s\"']{4,128})"),
    _pattern(
        "assignment",
        "creds|credentials|login|zugangsdaten|identifiants|credencia|credenzial|inloggegevens|logowania|get in with"
        "|log in with|sign in with",
        r"\b(?:creds|credentials|login|zugangsdaten|identifiants|credencia\w{1,4}|credenziali|inloggegevens"
        r"|logowania|(?:get|log|sign) in)\s?(?:are|is|:|=|with)\s{0,4}"
        r"[\w.@-]{2,40}\s?[/:]\s?([^\s\"'`,;/]{8,128})(?!/)",
        condition=_is_generated,
        near=170,
    ),
    _pattern(
        "assignment",
        "root |root:|root/|admin:|admin |svc_|svc-|zugang:|zugang |creds ",
        r"\b(?:root|admin|svc[\w-]{0,24}|zugang|creds)\b"
        r"[\w ,>-]{0,40}?"
        r"\s{0,2}[/:](?!/)\s{0,2}(?:[\w.@-]{2,40}\s?[/:]\s?)?(?!\S{0,64}@(?:[\w-]{1,60}[.:/]\w|localhost))([!-.0-~]{8,64})",
        condition=has_all_classes,
        near=150,
    ),
    _pattern(
        "assignment",
        ":543|:6432:|:3306:|:*:",
        r"(?m)^[\w.*-]{1,120}:(?:543\d|6432|3306|\*):[\w*-]{1,64}:[\w*@.-]{1,64}:(?!\S*::)(\S{4,128})$",
    ),
    _pattern(
        "private_key",
        "private key|secret key|wallet key",
        r"(?<![0-9a-f])((?:0x)?[0-9a-f]{64})[\"'`)]{0,2}\s{1,3}(?:is|was|=|\(|<?-)\s{0,2}[^\n.]{0,24}"
        r"(?:private|secret|wallet) key",
    ),
    _pattern(
        "private_key",
        "wallet|metamask|ledger|trezor|phantom",
        r"(?:wallet|metamask|ledger|trezor|phantom)[^\n]{0,40}\b(?:pk|key|secret|priv)\b"
        r"[^\n0-9a-f]{0,3}[\s:=]{1,3}((?:0x)?[0-9a-f]{64})(?![0-9a-f])",
        near=140,
    ),
    _pattern(
        "one_time_code",
        " code| passcode| pin|-code|otp",
        r"\b(?:verification|security|login|log-in|sign-?in|access|one[- ]time|otp|2fa|mfa|two-factor|authentication"
        r"|authenticat\w{2,3}|confirmation|recovery|alarm|door|entry|gate|safe|vault)[ -](?:pass)?(?:code|pin)\b"
        r"[^\n.!?:=]{0,32}(?:\sis\s|\s?[:=]\s?)[\"'*`]{0,2}(\d(?:[ -]?\d){3,9})(?![\w.,/-]?\d)",
        near=120,
    ),
    _pattern(
        "pin",
        "pin |pin:",
        r"\bpin(?:\s(?:of|for|to|number)[^\n.!?:=]{0,32}|\snumber)?(?:\sis|\s?:)\s{1,2}[\"'*`]{0,2}(\d{4}(?:\d{1,4})?)(?![\w.,/-]?\d)",
        near=90,
    ),
    _pattern(
        "recovery_code",
        "backup code|recovery code|rescue code|scratch code",
        r"(?:backup|recovery|rescue|scratch) codes?[^\n:]{0,32}"
        r"[\s:]{1,4}((?:[\s,;*-]{0,4}[a-z0-9]{4,6}-[a-z0-9]{4,6}\b){1,20})",
        near=250,
    ),
    _pattern(
        "assignment",
        "log in|login|sign in|log on|logon",
        r"\b(?:use|with|using|type|enter|try)\s{1,2}[\"'`]{0,1}([!-~]{8,64}?)[\"'`]{0,1}"
        r"\s{1,2}(?:to|and|when|for)\s[^\n.:]{0,24}(?:log|sign)[ -]?(?:in|on)",
        condition=has_all_classes,
        near=110,
    ),
    _pattern(
        "assignment",
        "/user:|/u:",
        r"/u(?:ser)?:[\w.@\\-]{1,64}\s{1,3}([^\s\"'/$][^\s\"']{5,127})",
        condition=_is_generated,
    ),
    _pattern(
        "cookie",
        "sessid|connect.sid|session|aspnet|li_at|auth_token|remember_|csrftoken|wordpress_logged|cf_clearance|xs=|sid=|_auth|aspxauth",
        r"(?<![\w-])(?:phpsessid|jsessionid|asp\.net_sessionid|\.aspnet\w{0,8}(?:\.[\w.]{1,40})?|\.aspxauth|connect\.sid|laravel_session"
        r"|_[a-z]{2,20}_session|sessionid|session_token|li_at|auth_token|remember_(?:token|user_token|web_\w{1,64})"
        r"|wordpress_logged_in_\w{1,40}|__secure-[\w.-]{1,40}|__host-[\w.-]{1,40}|cf_clearance|__secure-next-auth\.session-token)"
        r"\s?=\s?[\"']?([a-z0-9%_.+/=~|*:-]{20,4096})",
        condition=looks_random,
    ),
    _pattern("private_key", "private key", r"private key\W{1,6}(?:is\W{1,3})?((?:0x)?[0-9a-f]{64})(?![0-9a-f])"),
    _pattern(
        "assignment",
        "machine |default login",
        r"(?:machine\s{1,4}\S{1,120}|default)\s{1,8}login\s{1,4}\S{1,80}\s{1,8}password\s{1,4}[\"']?([^\s\"']{4,128})",
    ),
    _pattern("assignment", "bindpw ", r"bindpw\s{1,4}([^\s\"']{4,128})"),
    _pattern(
        "assignment", "securestring", r"convertto-securestring\s{1,4}(?:-string\s{1,4})?[\"']([^\"'\n]{4,128})[\"']"
    ),
    _pattern("assignment", "pass:", r"-pass(?:in|out)?\s{1,4}pass:([^\s\"']{4,128})"),
    _pattern("assignment", "password('", r"password\('([^'\n]{4,128})'\)"),
    _pattern("assignment", "/p:", r"/p:([^\s\"']{4,128})", line="rdp"),
    _pattern(
        "assignment",
        "login|root|admin",
        r"\b(?:root|admin|login)\b[\w ,'\u2019]{0,60}?\s(?:is|now|to|was)\s{1,2}([!-~]{8,64})",
        condition=has_all_classes,
        near=150,
    ),
    _pattern(
        "assignment",
        ":",
        r":(?<=[\w)]:)(?=[a-z0-9_.-]{0,60}[!#$%^&*?+~])([a-z0-9!#$%^&*?+~_.-]{10,64})(?=[\s)\],]|\Z)",
        condition=_is_unmistakable,
    ),
    _pattern("assignment", "psk", r"psk\s?[:=]\s?\"([^\"\n]{8,63})\""),
    _pattern("assignment", "psk", r"psk\s?[:=]\s?([!-~]{8,63})", condition=_is_generated),
    _pattern(
        "assignment",
        "wifi|wi-fi|wlan|ssid",
        r"\b(?:wi-?fi|wlan|ssid)\b[^\n]{0,50}?(?:[/:]\s{0,2}|\skey\s)([!-~]{8,64})(?=\s|\Z)",
        condition=_is_generated,
        near=130,
    ),
    _pattern(
        "assignment",
        "log in as|login as|log on as|sign in as|ssh in as|connect as",
        r"\b(?:log ?in|log on|sign in|ssh in|connect)\sas\s[\w.@-]{1,40}"
        r"\s{1,2}(?:with|using|and|/)\s{1,2}([!-~]{8,64})",
        condition=_is_generated,
        near=140,
    ),
    _pattern(
        "assignment",
        "wifi|wi-fi|wlan|hotspot",
        r"\b(?:wi-?fi|wlan|hotspot)\s?(?:network\s)?(?:key|code|schl\u00fcssel)(?:\s(?:is|ist|lautet)\s|\s?[:=]\s{0,2})[\"'`]?([!-~]{8,63})",
        condition=is_composed,
        near=130,
    ),
    _pattern(
        "one_time_code",
        "totp|2fa|mfa|authenticator|otp",
        r"\b(?:totp|2fa|mfa|authenticator|h?otp)\s(?:seed|secret|key|setup key|setup code)"
        r"(?:\sis\s|\s?[:=]\s{0,2})[\"'`]?([a-z2-7]{16,64}|(?:[a-z2-7]{4}[ -]){3,15}[a-z2-7]{4})(?![\w-])",
        condition=_has_digit,
        near=130,
    ),
    _pattern(
        "seed_phrase",
        "seed",
        r"\b(?:bip-?(?:32|39|44)|wallet|master|hd)[ _-](?:wallet )?seed\b"
        r"[^\n0-9]{0,16}?(?<!\w)((?:0x)?[0-9a-f]{32,128})(?!\w)",
        near=220,
    ),
    _pattern(
        "assignment",
        "passphrase",
        r"passphrase(?:\s(?:is|was)\s|\s?[:=]\s{0,2})[\"'`]?"
        r"((?:[a-z]{3,9}[ -]){3,7}[a-z]{3,9})(?=[\"'`.]?\s{0,2}(?:\n|\Z))",
        condition=_is_diceware,
        near=120,
    ),
    _pattern(
        "assignment",
        "mysqli|mysql_|pdo(|imap_open|getconnection|ldap_bind|ftp_login|auth_password|pymysql.connect|mysqldb.connect",
        r"(?:mysqli(?:_(?:real_)?connect)?|mysql_p?connect|pdo|imap_open|getconnection|ldap_bind|ftp_login|ssh2_auth_password"
        r"|(?:pymysql|mysqldb)\.connect)\(\s{0,8}[^\s,][^,\n]{0,200},\s{0,8}[\"'][^\"'\n]{1,80}[\"']\s{0,4},\s{0,8}[\"']([^\"'\n]{4,128})[\"']",
        near=460,
    ),
    _pattern(
        "assignment",
        " pat|access token",
        r"\b(?:pat|access token)(?:\sis\s|\s?[:=]\s{0,2})[\"'`]?([a-z0-9]{20,100})(?![\w-])",
        condition=is_very_random,
        near=140,
    ),
    _pattern(
        "password_hash",
        "enable secret|enable password|username ",
        r"(?m)^\s{0,8}(?:enable|username\s\S{1,64})\b[\w ]{0,24}"
        r"\s(?:secret|password)\s[4-9]\s(\$\S{8,128}|[./0-9a-z]{43})\s?$",
    ),
    _pattern("assignment", "auth ", r"(?m)^auth\s([!-~]{8,64})(?=\s|$)", condition=_is_generated, near=80),
    _pattern(
        "assignment",
        "admin:|root:|user:",
        r"\b(?:admin|root|user):([^\s@/:\"']{8,64})@(?=[\w-]{1,60}\.[\w-])",
        condition=_is_generated,
        near=140,
    ),
    _pattern("assignment", "http-basic.", r"http-basic\.\S{1,80}\s\S{1,64}\s([!-~]{8,64})", condition=_is_generated),
    _pattern(
        "assignment",
        "add-generic-password|add-internet-password|keychain",
        r"(?:add-(?:generic|internet)-password|keychain)\b[^\n]{0,120}?\s-w\s([^\s\"'$-][^\s\"'$]{5,127})",
        condition=_is_generated,
    ),
    _pattern(
        "assignment",
        " p=| pw=| pass=",
        r"\bu(?:ser)?=[\w.@\\-]{1,64}[\s;,]{1,3}p(?:ass|w)?=([^\s\"'$;,]{6,127})",
        condition=_is_generated,
        near=140,
    ),
    _pattern("cookie", "cookie value", r"cookie value\W{1,4}([a-z0-9%._+/=-]{20,4096})", condition=looks_random),
    _pattern("assignment", "snmp-server community", r"snmp-server\scommunity\s([!-~]{6,64})\s"),
    _pattern(
        "assignment", "secret ", r"\b(?:enable|privilege\s\d{1,2}|username\s\S{1,64})\ssecret\s(?:\d\s)?([!-~]{6,128})"
    ),
    _pattern("assignment", "<<<", r"<<<\s?[\"']?([^\s\"'$]{8,128})", condition=_is_generated),
    _pattern(
        "assignment",
        "echo ",
        r"echo\s(?:-\w\s)?[\"']?([^\s\"'$|]{6,128})[\"']?\s{0,2}\|\s{0,2}(?:sudo|su|passwd|kinit|cryptsetup|openssl|gpg|docker|vncpasswd)\b",
        condition=_is_generated,
        near=160,
    ),
    _pattern("assignment", 'assword:"', r"assword:?\s?\"[\s;]{1,4}send\s{1,2}\"([^\"\n\\]{4,128})"),
    _pattern(
        "assignment",
        "add_user|adduser|create_user|create-user|change_password|set_password|set-password",
        r"(?:add_user|adduser|create[_-]user|change_password|set[_-]password)\s{1,2}[\w.@-]{1,64}\s{1,2}[\"']?([!-~]{6,128})",
        condition=_is_generated,
        near=160,
    ),
    _pattern(
        "password_hash",
        "mysql|authentication_string|identified by password|md5",
        r"(?:mysql|authentication_string|by password)[^\n]{0,60}(\*[0-9a-f]{40})\b|(\*[0-9a-f]{40})[^\n]{0,40}mysql"
        r"|(?:postgres|role|pg_|user)[^\n]{0,40}\b(md5[0-9a-f]{32})\b",
        condition=_any,
    ),
    _pattern("authorization", "geniekey ", r"geniekey\s{1,4}([0-9a-f-]{36})"),
    _pattern("assignment", "-w ", r"-w\s{1,4}[\"']?([^\s\"'$-][^\s\"'$]{3,127})", line="ldap"),
    _pattern(
        "assignment", "-a |--auth", r"-(?:a|-auth)[ =]{1,2}[\"']?[^\s:\"'$]{1,64}:([^\s\"'$@]{3,128})", line="http"
    ),
    _pattern("assignment", "chpasswd", r"[\w.-]{1,32}:([^\s\"'|:$\]]{4,128})[\"']?\s{0,4}\|\s{0,4}(?:sudo\s)?chpasswd"),
    _pattern(
        "assignment",
        "password(|secret(|token(",
        r"(?:password|secret|token)\((?:(?<=set.{9})|(?<=set.{7})|(?<=set.{6})|(?<=set_.{9})|(?<=\.password.))\s?[\"']([^\"'\n]{4,256})[\"']",
    ),
    _pattern(
        "assignment",
        "auth(|login(|credential(|credentials(|auth=(|auth = (",
        r"(?:basic_?auth|httpbasicauth|httpdigestauth|passwordcredentials?|networkcredential|usernamepassword\w{0,20}|\.auth|\.login"
        r"|auth\s?=\s?)\(\s?[\"'][^\"'\n]{1,80}[\"']\s?,\s?[\"']([^\"'\n]{4,256})[\"']",
    ),
    _pattern(
        "assignment",
        "-u |--user|--proxy-user",
        r"-(?:u|-user|-proxy-user)[ =]{1,2}[\"']?[^\s:\"'$]{1,64}:([^\s\"'$@]{3,128})",
        line="curl",
    ),
    _pattern("assignment", "net user", r"net\s{1,4}user\s{1,4}[\w.-]{1,32}\s{1,4}([^\s/*][^\s]{3,64})\s"),
    _pattern("assignment", "@tcp(|@unix(", r"[\w.-]{1,64}:([^\s@/:\"'\]]{3,128})@(?:tcp|unix)\("),
    _pattern(
        "connection_string",
        "jdbc:oracle|sqlplus",
        r"(?:jdbc:oracle:\w{2,5}:|sqlplus\s{1,4}(?:-\w\s{1,4})?)\w{1,32}/([^\s@/\"']{3,64})@",
    ),
    _pattern(
        "authorization",
        "authorization",
        r"authorization\\?[\"']?\s{0,4}[:=,]\s{0,4}\\?[\"']?(?:[a-z_-]{3,24}\s{1,4})?([a-z0-9._~+/=-]{16,4096})",
        condition=_is_credential,
    ),
    _pattern(
        "authorization",
        "auth",
        r"auth\\?[\"']?\s{0,2}[:=]\s{0,2}\\?[\"']?([a-z0-9+/]{8,512}={0,2})(?![a-z0-9+/])",
        condition=is_credentials,
    ),
    _pattern("authorization", "bearer", r"bearer\s{1,4}([a-z0-9._~+/=-]{16,4096})", condition=_is_credential),
    _pattern("authorization", "basic ", r"basic\s{1,4}([a-z0-9+/]{12,512}={0,2})", condition=_is_credential),
    _pattern(
        "seed_phrase",
        "mnemonic|phrase",
        r"(?:mnemonic|(?:seed|recovery|backup|wallet)[ _-]?phrase)\W{1,12}(?:is\W{1,4})?"
        r"((?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})",
    ),
)
# Flags are case-sensitive (`-p` and `-P`), so these match the original text.
_WRITTEN = (
    _pattern(
        "assignment",
        "mysql|mariadb",
        r"(?:mysql|mariadb)[\w-]{0,12}\s[^\n|;&]{0,120}?(?<=\s)-p[\"']?([^\s\"'$-][^\s\"'$]{2,127})",
    ),
    _pattern(
        "assignment",
        "sshpass|login|mongo|twine|rdesktop|usermod|useradd",
        r"(?:sshpass|user(?:mod|add)|(?:docker|podman|skopeo|cf|oc|az|buildah|registry)\slogin|mongo\w{0,8}|twine\supload|rdesktop)"
        r"\b[^\n|;&]{0,160}?\s-p[ =]?[\"']?([^\s\"'$<-][^\s\"'$]{2,127})",
    ),
    _pattern(
        "assignment", "_PAT", r"_PAT\s?[:=]\s{0,4}[\"']?([A-Za-z0-9]{20,200})(?![A-Za-z0-9])", condition=looks_random
    ),
    _pattern("assignment", "7z|rar ", r"\b(?:7za?|(?:un)?rar)\s[^\n|;&]{0,120}?\s-h?p([^\s\"'$-][^\s\"'$]{3,127})"),
    _pattern("okta_token", "SSWS", r"SSWS\s{1,4}(00[A-Za-z0-9_-]{38,42})"),
    _pattern("assignment", "ssh-keygen", r"ssh-keygen\b[^\n|;&]{0,120}?\s-[NP]\s?[\"']?([^\s\"'$-][^\s\"'$]{3,127})"),
    _pattern("assignment", "openssl", r"openssl\senc\b[^\n|;&]{0,120}?\s-k\s{1,4}[\"']?([^\s\"'$-][^\s\"'$]{3,127})"),
    _pattern("assignment", "redis-cli", r"redis-cli\b[^\n|;&]{0,120}?\s-a\s{1,4}[\"']?([^\s\"'$-][^\s\"'$]{2,127})"),
    _pattern(
        "assignment",
        "sqlcmd |zip -",
        r"(?:sqlcmd|unzip|zip)\b[^\n|;&]{0,120}?\s-P\s{0,4}[\"']?([^\s\"'$-][^\s\"'$]{2,127})",
    ),
    _pattern(
        "assignment",
        "smbclient|rpcclient",
        r"(?:smbclient|rpcclient)\b[^\n|;&]{0,120}?\s-U\s{0,4}[\"']?[\w.\\/-]{1,64}%([^\s\"'$]{3,128})",
    ),
    _pattern(
        "assignment",
        " -u| -U| -l| --user",
        r"\s(?:-u|-U|-l|--user(?:name)?)[ =]?[\"']?[\w.@\\-]{1,64}[\"']?\s[^\n|;&]{0,80}?"
        r"(?<=\s)-[pPwW][ =]?[\"']?([^\s\"'$-][^\s\"'$]{6,127})",
        condition=_is_generated,
    ),
    _pattern(
        "assignment",
        " -p | -P ",
        r"\s-[pP]\s{1,2}[\"']?([^\s\"'$-][^\s\"'$]{6,127})[\"']?\s[^\n|;&]{0,60}?-[uUl]\s",
        condition=_is_generated,
        near=220,
    ),
    _pattern("assignment", " -u ", r"\s-u\s{1,2}[\w.@-]{1,64},([^\s\"'$,]{6,127})", condition=_is_generated, near=200),
    _pattern(
        "assignment", "htpasswd", r"htpasswd\s-\w{0,6}b\w{0,6}\s[^\s]{1,120}\s[\w.@-]{1,64}\s[\"']?([^\s\"'$]{4,128})"
    ),
)


def find_special_forms(text: str, lowered: str, vocabulary: str) -> Iterator[TextFinding]:
    """Yield the secrets in language-specific syntax; `vocabulary` has every word of the text."""
    # Most texts contain none of the anchors, so this check comes first.
    for stems, searched, words in ((_LOWERED_STEMS, lowered, vocabulary.lower()), (_WRITTEN_STEMS, text, vocabulary)):
        if len(words) > _LONG:
            letters = frozenset(words)
            stems = [row for row in stems if letters.issuperset(row[0])]
        present = [(anchor, pattern) for stem, anchor, pattern in stems if stem in words]
        for pattern in {pattern.pattern: pattern for anchor, pattern in present if anchor in searched}.values():
            yield from _find_matches(pattern, text, searched)


_LONG = 1 << 14
_Stems = list[tuple[str, str, _SyntaxPattern]]


def _stems_of(patterns: tuple[_SyntaxPattern, ...]) -> _Stems:
    """Return each anchor after its longest word, which is looked for first."""
    return [(max(anchor.split(), key=len), anchor, pattern) for pattern in patterns for anchor in pattern.anchors]


_LOWERED_STEMS, _WRITTEN_STEMS = _stems_of(_LOWERED), _stems_of(_WRITTEN)


def _find_matches(pattern: _SyntaxPattern, text: str, searched: str) -> Iterator[TextFinding]:
    count = 0
    for begin, end in _search_windows(pattern, searched):
        for match in pattern.pattern.finditer(searched, begin, end):
            if count == MAX_CANDIDATES:
                yield TextFinding(UNSCANNED, match.start(), len(text))
                return
            count += 1
            start, stop = match.span(match.lastindex or 0)
            if _is_secret(pattern, text[start:stop]) and _is_on_line(pattern.line, searched, match.start()):
                yield TextFinding(pattern.kind, start, stop)


_BEFORE, _AFTER, _FAR_AFTER = 400, 800, 5_000
"""Maximum distance from an anchor to the start and the end of a match."""


def _search_windows(pattern: _SyntaxPattern, searched: str) -> Iterator[tuple[int, int]]:
    """Yield the parts of the text that can contain a match, so that the rest need not be scanned."""
    before = pattern.near or _BEFORE
    after = pattern.near or (_FAR_AFTER if pattern.kind == "authorization" else _AFTER)
    positions = sorted(position for anchor in pattern.anchors for position in _positions(anchor, searched))
    begin = end = -1
    for position in positions:
        if position - before > end:
            if end >= 0:
                yield begin, end
            begin = max(0, position - before)
        end = position + after
    if end >= 0:
        yield begin, end


def _positions(anchor: str, searched: str) -> Iterator[int]:
    position = searched.find(anchor)
    while position >= 0:
        yield position
        position = searched.find(anchor, position + 1)


def _is_on_line(word: str, searched: str, position: int) -> bool:
    begin = max(searched.rfind("\n", 0, position), position - _LONGEST_LINE, 0)
    return not word or searched.find(word, begin, position) >= 0


_LONGEST_LINE = 2_000


def _is_secret(pattern: _SyntaxPattern, value: str) -> bool:
    if pattern.kind == "password_hash":
        return pattern.condition(value)
    return not is_non_secret(value) and is_real_value(value) and pattern.condition(value)
