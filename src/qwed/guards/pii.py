"""Personal data in text: e-mail addresses, telephone numbers, cards, US social security numbers, IBANs."""

import re
from collections.abc import Iterator

from qwed.guards.text import MAX_SCANNED, UNSCANNED, Finding

MAX_CANDIDATES = 2_000
"""Addresses or numbers of one kind weighed in one text; past it the rest is reported as unscanned."""

_LOCAL_PART = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._%+-"
_DOMAIN = re.compile(r"@(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}[^\W\d_]{2,24}(?![\w-])")
_MAX_LOCAL_PART = 64
_MAX_USERINFO = 256
_INSIDE_AUTHORITY = re.compile(r"[^\s/?#]*")

_ENOUGH_DIGITS = re.compile(r"\d(?:[ ().\u00a0-]{0,3}\d){8}")
# A pattern that begins with a plain class or letter lets the scan skip ahead; what must not precede it comes second.
_NORTH_AMERICAN = re.compile(
    r"[2-9](?<!\w.)(?<!\d\d[-. ].)(?<![02-9][-.].)\d\d(?:\)[-. ]?|[-. ])[2-9]\d\d[-. ]\d{4}(?![\w-])"
)
_COUNTRY_ONE = re.compile(r"(?:\+?1[-. ]?)?\(?\Z")
_INTERNATIONAL = re.compile(r"\+(?<![\w+]\+)[1-9](?:[ .()-]{0,2}\d){7,14}(?!\d)")
_CONTIGUOUS_INTERNATIONAL = 11
"""Shortest `+` and digits without any separator that is taken for a number to dial; a sum looks the same."""

# Only the first digit is consumed, so a number may begin inside what was just weighed and rejected.
_CARD = re.compile(
    r"\d(?<!\d\d)(?<!\d[.,]\d)(?=(\d{12,18}(?!\d)"
    r"|\d{3}([ .\u00a0-])\d{4}\2\d{4}\2\d{1,4}(?:\2\d{1,3})?(?!\d)"
    r"|\d{3}([ .\u00a0-])\d{6}\3\d{4,5}(?!\d)))"
)
_ISSUERS = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|3(?:0[0-5]|[689]\d)\d{11}|35(?:2[89]|[3-8]\d)\d{12,15}|(?:6011|65\d\d|64[4-9]\d|62\d\d|81\d\d)\d{12,15}"
)
_SSN = re.compile(r"\d\d\d(?<![\d-]...)(?<!000)(?<!666)(?<!9..)([- ])(?!00)\d\d\1(?!0000)\d{4}(?![\d-])")
_NAMED_SSN = re.compile(
    r"(?:[Ss][Ss][Nn]|[Ss]ocial [Ss]ecurity(?: [Nn]umber)?)\W{0,10}((?!000|666|9)\d{3}(?!00)\d\d(?!0000)\d{4})(?!\d)"
)
_NEVER_ISSUED = frozenset({"078051120", "219099999", "123456789"})

_IBAN_LENGTHS = {
    country: int(length)
    for length, countries in (
        ("15", "NO"),
        ("16", "BE"),
        ("18", "DK FI FO GL NL SD"),
        ("19", "MK SI"),
        ("20", "AT BA EE KZ LT LU MN XK"),
        ("21", "CH HR LI LV"),
        ("22", "BG BH CR DE GB GE IE ME RS VA"),
        ("23", "AE GI IL IQ OM SO TL"),
        ("24", "AD CZ DZ ES MD PK RO SA SE SK TN VG"),
        ("25", "LY PT ST"),
        ("26", "IS TR"),
        ("27", "BF BI CF DJ FR GR IT KM MC MG MR SM"),
        ("28", "AL AZ BJ BY CI CM CY DO GA GQ GT HN HU LB MA ML MZ NI PL PS QA SN SV TD TG UA"),
        ("29", "BR EG"),
        ("30", "JO KW MU YE"),
        ("31", "MT SC"),
        ("32", "LC"),
        ("33", "RU"),
    )
    for country in countries.split()
}
_IBAN = re.compile(r"[A-Za-z](?<![A-Za-z0-9].)[A-Za-z]\d\d(?:[ -]?[A-Za-z0-9]){11,30}")
_GROUPING = str.maketrans("", "", " -.\u00a0()")


def find_pii(text: str) -> tuple[Finding, ...]:
    """Personal data in the first MAX_SCANNED characters, in order; what lies past them is one `unscanned` finding."""
    scanned = text if len(text) <= MAX_SCANNED else text[:MAX_SCANNED]
    found: list[Finding] = []
    if "@" in scanned:
        found += _emails(scanned)
    if _ENOUGH_DIGITS.search(scanned):
        found += (*_cards(scanned), *_social_security(scanned), *_phones(scanned), *_ibans(scanned))
    if len(text) > MAX_SCANNED:
        found.append(Finding(UNSCANNED, MAX_SCANNED, len(text)))
    return _disjoint(found) if found else ()


def _disjoint(found: list[Finding]) -> tuple[Finding, ...]:
    """In order; of two that overlap the one that begins first, or reaches further, stays."""
    kept: list[Finding] = []
    for finding in sorted(found, key=lambda each: (each.start, -each.end)):
        if not kept or finding.start >= kept[-1].end:
            kept.append(finding)
    return tuple(kept)


def _emails(text: str) -> Iterator[Finding]:
    for count, match in enumerate(_DOMAIN.finditer(text)):
        at = match.start()
        if count == MAX_CANDIDATES:
            yield Finding(UNSCANNED, at, len(text))
            return
        before = text[max(0, at - _MAX_LOCAL_PART) : at]
        local = before[len(before.rstrip(_LOCAL_PART)) :].lstrip(".")
        if local and not _names_a_host(text, at, local, match.end()):
            yield Finding("email", at - len(local), match.end())


def _names_a_host(text: str, at: int, local: str, end: int) -> bool:
    """Whether `user@host` is the authority of a URL or a git remote, not a mailbox."""
    if local == "git" and text[end : end + 1] in (":", "/"):
        return True
    scheme = text.rfind("://", max(0, at - _MAX_USERINFO), at)
    return scheme >= 0 and bool(_INSIDE_AUTHORITY.fullmatch(text, scheme + 3, at))


def _cards(text: str) -> Iterator[Finding]:
    for count, match in enumerate(_CARD.finditer(text)):
        if count == MAX_CANDIDATES:
            yield Finding(UNSCANNED, match.start(), len(text))
            return
        digits = str(int((match[0] + match[1]).translate(_GROUPING)))
        if _ISSUERS.fullmatch(digits) and _passes_luhn(digits):
            yield Finding("card", match.start(), match.end(1))


def _passes_luhn(digits: str) -> bool:
    numbers = [int(digit) for digit in reversed(digits)]
    doubled = (sum(divmod(2 * number, 10)) for number in numbers[1::2])
    return (sum(numbers[::2]) + sum(doubled)) % 10 == 0


def _social_security(text: str) -> Iterator[Finding]:
    for match in _SSN.finditer(text):
        if match[0].translate(_GROUPING) not in _NEVER_ISSUED:
            yield Finding("ssn", *match.span())
    for match in _NAMED_SSN.finditer(text):
        if match[1] not in _NEVER_ISSUED:
            yield Finding("ssn", *match.span(1))


def _phones(text: str) -> Iterator[Finding]:
    for match in _NORTH_AMERICAN.finditer(text):
        before = _COUNTRY_ONE.search(text, max(0, match.start() - 4), match.start())
        yield Finding("phone", before.start() if before else match.start(), match.end())
    if "+" not in text:
        return
    for match in _INTERNATIONAL.finditer(text):
        contiguous = match[0][1:].isdigit()
        if not contiguous or len(match[0]) >= _CONTIGUOUS_INTERNATIONAL:
            yield Finding("phone", *match.span())


def _ibans(text: str) -> Iterator[Finding]:
    count = 0
    for match in _IBAN.finditer(text):
        length = _IBAN_LENGTHS.get(match[0][:2].upper())
        if length is None:
            continue
        count += 1
        if count > MAX_CANDIDATES:
            yield Finding(UNSCANNED, match.start(), len(text))
            return
        end = _end_of(match[0], length)
        if end and _passes_mod_97(match[0][:end].translate(_GROUPING)):
            yield Finding("iban", match.start(), match.start() + end)


def _end_of(grouped: str, length: int) -> int:
    """Where the `length`-th letter or digit ends; 0 where there are fewer or the run goes on without a break."""
    seen = 0
    for index, character in enumerate(grouped):
        seen += character.isalnum()
        if seen == length:
            return 0 if grouped[index + 1 : index + 2].isalnum() else index + 1
    return 0


def _passes_mod_97(account: str) -> bool:
    rearranged = account[4:] + account[:4]
    return int("".join(str(int(character, 36)) for character in rearranged)) % 97 == 1
