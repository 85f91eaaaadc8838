"""Personal data in text: addresses, telephones, cards, accounts, and the numbers states give to people."""

import re
from collections.abc import Callable, Iterator

from qwed.guards._pii import checks
from qwed.guards._pii.named import MAX_CANDIDATES, named_numbers
from qwed.guards.spellings import in_every_spelling
from qwed.guards.text import MAX_SCANNED, UNSCANNED, Finding, lower

__all__ = ["MAX_CANDIDATES", "find_pii"]

_LOCAL_PART = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._%+-'"
_DOMAIN = re.compile(r"@(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}[^\W\d_]{2,24}(?![\w-])")
_MAX_LOCAL_PART = 64
_MAX_USERINFO = 256
_INSIDE_AUTHORITY = re.compile(r"[^\s/?#]*")

_DIGITS = re.compile(r"\d")
_ENDLESS = re.compile(r"\d{40,}")
"""Longer than any number looked for: nothing in it is one."""

# Only the first digit is consumed, so a number may begin inside what was just weighed and rejected. One pattern, so
# that a text is walked once; what shapes share is read first, and an empty group at the end says which one it was.
_NUMBER = re.compile(
    r"\d(?<!\d\d)(?=[\d .()/\u00a0-]{5})(?="
    r"\d\d(?:"
    r"(?P<s2>[- ])(?<![\d-]....)\d\d(?P=s2)\d{4}(?![\d-])(?P<ssn>)"
    r"|(?:\)[-. ]?|[-. ])[1-9]\d\d[-. ]\d{4}(?![\w-])(?P<american>)"
    r"|\.(?:\d{3}\.\d{3}-\d\d(?!\d)(?P<cpf>)|\d{4}\.\d{4}\.\d\d(?!\d)(?P<ahv>))"
    r"|\d(?:"
    r"(?P<s4>[ .\u00a0-])(?:\d{4}(?P=s4)\d{4}(?:(?P=s4)\d{1,4}(?:(?P=s4)\d{1,3})?)?(?!\d)(?P<fours>)"
    r"|\d{6}(?P=s4)\d{4,5}(?!\d)(?P<amex>)|\d{3} \d{4}(?![\w-])(?P<national>))"
    r"|\d \d{6}(?![\w-])(?P<area>)"
    r"|\d\d(?:[-+A]\d{3}[0-9A-Y](?!\w)(?P<hetu>)|-[1-8]\d{6}(?!\w)(?P<rrn>)"
    r"|\d\d[- ]?[A-Z](?!\w)(?P<dni>)|\d{11}[Xx](?!\w)(?P<resident>)|\d{7,13}(?!\d)(?P<long>))"
    r")|[ ]\d{4} \d{4}(?![\w-])(?P<city>))"
    r"|\d(?:\.\d{3}\.\d{3}/\d{4}-\d\d(?!\d)(?P<cnpj>)"
    r"|(?P<sn>[ .-])\d\d(?P=sn)\d\d(?P=sn)\d\d(?P=sn)\d\d(?![\w-]|[ .]\d)(?P<pairs>))"
    r"| \d\d \d\d \d[\dAB] \d{3} \d{3} \d\d(?!\d)(?P<nir>)"
    r")"
)
_INTERNATIONAL = re.compile(r"\+(?<![\w+]\+)[1-9](?:[ .()/-]{0,2}\d){7,14}(?!\d)")
_TRUNK = re.compile(r"(?<![\w.,+-])00[1-9]\d{0,2}(?:[ .()/-]{1,2}\d{1,8}){1,6}(?![\w-])")
_SIGNED = re.compile(r"\+\d{1,3}\.\d+")
_CONTIGUOUS_INTERNATIONAL = 11
"""Shortest `+` and digits without any separator that is taken for a number to dial; a sum looks the same."""
_COUNTRY_ONE = re.compile(r"(?:\+?1[-. ]?)?\(?\Z")
_ISSUERS = re.compile(
    r"4(?:\d{15}|\d{18})|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|3(?:0[0-5]|[689]\d)\d{11}|35(?:2[89]|[3-8]\d)\d{12,15}|(?:6011|65\d\d|64[4-9]\d|62\d\d|81\d\d)\d{12,15}"
    r"|(?:5018|5020|5038|6304|6759|676[1-3])\d{8,15}|(?:508[5-9]|60[89]\d|6521|6522)\d{12}|220[0-4]\d{12}"
)

_CODE = re.compile(
    r"[A-Za-z](?<![A-Za-z0-9].)(?=[A-Za-z]{0,5}[- ]?\d)(?:"
    r"(?=(?P<iban>[A-Za-z]\d\d(?:[ -]?[A-Za-z0-9]){11,30}))"
    r"|(?<=[A-CEGHJ-PR-TW-Z])(?=(?P<nino>[A-CEGHJ-NPR-TW-Z](?:\d{6}|[ -]\d\d[ -]\d\d[ -]\d\d[ -])[A-D])(?!\w))"
    r"|(?=(?P<pan>[A-Z]{2}[PCHABGJLFT][A-Z]\d{4}[A-Z])(?!\w))"
    r"|(?=(?P<codice_fiscale>[A-Z]{5}\d\d[A-EHLMPRST]\d\d[A-Z]\d{3}[A-Z])(?!\w))"
    r"|(?<=[XYZ])(?=(?P<dni>[- ]?\d{7}[- ]?[A-Z])(?!\w))|(?<=[STFGM])(?=(?P<nric>\d{7}[A-Z])(?!\w))"
    r"|(?=(?P<curp>[A-Z]{3}\d{6}[HMX][A-Z]{5}[A-Z0-9]\d)(?!\w))"
    r")"
)
_NEVER_NINO = ("BG", "GB", "KN", "NK", "NT", "TN", "ZZ")
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
_SHORTEST_CARD = 13
_GROUPING = str.maketrans("", "", " -./\u00a0()")


def find_pii(text: str) -> tuple[Finding, ...]:
    """Personal data in the first MAX_SCANNED characters, in order; what lies past them is one `unscanned` finding."""
    scanned = text if len(text) <= MAX_SCANNED else text[:MAX_SCANNED]
    found = in_every_spelling(scanned, _found)
    if len(text) > MAX_SCANNED:
        found.append(Finding(UNSCANNED, MAX_SCANNED, len(text)))
    return _disjoint(found) if found else ()


def _found(text: str) -> list[Finding]:
    addresses = _emails(text) if "@" in text else ()
    numbers = _numbers(text) if _DIGITS.search(text) else ()
    return [*addresses, *numbers]


def _numbers(text: str) -> Iterator[Finding]:
    if _ENDLESS.search(text):
        text = _ENDLESS.sub(lambda match: "_" * len(match[0]), text)
    # Of two findings of one span the first stays, and a name says more than a shape.
    yield from named_numbers(lower(text))
    yield from _weighed(_NUMBER, _NUMBER_JUDGES, text)
    yield from _weighed(_CODE, _CODE_JUDGES, text)
    yield from _international(text)


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
        local = before[len(before.rstrip(_LOCAL_PART)) :].lstrip(".'")
        if local and not _names_a_host(text, at, local, match.end()):
            yield Finding("email", at - len(local), match.end())


def _names_a_host(text: str, at: int, local: str, end: int) -> bool:
    """Whether `user@host` is the authority of a URL or a git remote, not a mailbox."""
    if local == "git" and text[end : end + 1] in (":", "/"):
        return True
    scheme = text.rfind("://", max(0, at - _MAX_USERINFO), at)
    return scheme >= 0 and bool(_INSIDE_AUTHORITY.fullmatch(text, scheme + 3, at))


Judge = Callable[[str], str]
"""What kind of personal data a written number is; empty where it is none."""


def _weighed(pattern: re.Pattern[str], judges: dict[str, Judge], text: str) -> Iterator[Finding]:
    for count, match in enumerate(pattern.finditer(text)):
        shape = match.lastgroup or ""
        if count == MAX_CANDIDATES:
            yield Finding(UNSCANNED, match.start(), len(text))
            return
        start, end = match.start(), match.end(shape)
        if shape == "iban":
            end = _end_of_iban(text[start:end], start)
        elif not _begins(text, start, shape):
            continue
        elif shape == "american":
            before = _COUNTRY_ONE.search(text, max(0, start - 4), start)
            start = before.start() if before else start
        kind = judges[shape](text[start:end])
        if kind:
            yield Finding(kind, start, end)


_NOT_BEFORE = {
    "long": re.compile(r"\d[.,]\Z"),
    "american": re.compile(r"\w\Z|\d\d[-. ]\Z|[02-9][-.]\Z"),
    **dict.fromkeys(("national", "area", "city", "pairs"), re.compile(r"[\w.+-]\Z|\d[ /]\Z")),
    **dict.fromkeys(("dni", "hetu", "rrn", "resident"), re.compile(r"[\w/.]\Z")),
}
"""What makes a number part of another one."""


def _begins(text: str, start: int, shape: str) -> bool:
    before = _NOT_BEFORE.get(shape)
    return before is None or not before.search(text, max(0, start - 3), start)


def _digits(written: str) -> str:
    """The digits alone, in the writing of computers."""
    bare = written.translate(_GROUPING)
    return bare if bare.isascii() else str(int(bare)).zfill(len(bare))


def _long(written: str) -> str:
    digits = _digits(written)
    if len(digits) < _SHORTEST_CARD:
        return ""
    if _is_card(digits):
        return "card"
    if len(digits) == 15 and checks.nir(digits):
        return "nir"
    return "resident_id" if len(digits) == 18 and checks.resident_id(digits) else ""


def _fours(written: str) -> str:
    digits = _digits(written)
    if len(digits) == 12:
        return "aadhaar" if checks.verhoeff(digits) else ""
    return "card" if _is_card(digits) else ""


def _is_card(digits: str) -> bool:
    return _ISSUERS.fullmatch(digits) is not None and checks.luhn(digits)


def _checked(kind: str, check: Callable[[str], bool]) -> Judge:
    return lambda written: kind if check(_digits(written)) else ""


def _national(written: str) -> str:
    return "phone" if _DIALLED.match(written) else ""


_NEVER_DIALLED = re.compile(r"^\(?[01]\d\d")
_DIALLED = re.compile(r"0[1-9]|020 ")


def _is_iban(written: str) -> bool:
    return bool(written) and checks.mod_97(written)


def _is_nino(written: str) -> bool:
    return not written.startswith(_NEVER_NINO)


def _anyway(_written: str) -> bool:
    return True


_NUMBER_JUDGES: dict[str, Judge] = {
    "long": _long,
    "fours": _fours,
    "amex": _checked("card", _is_card),
    "ssn": _checked("ssn", checks.ssn),
    "american": lambda written: "" if _NEVER_DIALLED.search(written) else "phone",
    "national": _national,
    "area": _national,
    "city": _national,
    "pairs": _national,
    "cpf": _checked("cpf", checks.cpf),
    "cnpj": _checked("cnpj", checks.cnpj),
    "nir": _checked("nir", checks.nir),
    "ahv": _checked("ahv", checks.ahv),
    "resident": lambda written: "resident_id" if checks.resident_id(written) else "",
    "dni": _checked("dni", checks.dni),
    "hetu": lambda written: "hetu" if checks.hetu(written) else "",
    "rrn": _checked("rrn", checks.rrn),
}
_CODE_JUDGES: dict[str, Judge] = {
    "iban": _checked("iban", _is_iban),
    "nino": _checked("nino", _is_nino),
    "pan": _checked("pan", _anyway),
    "codice_fiscale": _checked("codice_fiscale", checks.codice_fiscale),
    "dni": _checked("dni", checks.dni),
    "nric": _checked("nric", checks.nric),
    "curp": _checked("curp", _anyway),
}


def _end_of_iban(grouped: str, start: int) -> int:
    """Where as many letters and digits as the country has are over; the start where that is not the end of a word."""
    length = _IBAN_LENGTHS.get(grouped[:2].upper(), 0)
    seen = 0
    for index, character in enumerate(grouped if length else ""):
        seen += character.isalnum()
        if seen == length:
            return start if grouped[index + 1 : index + 2].isalnum() else start + index + 1
    return start


def _international(text: str) -> Iterator[Finding]:
    if "+" in text:
        for match in _INTERNATIONAL.finditer(text):
            contiguous = match[0][1:].isdigit()
            if _SIGNED.fullmatch(match[0]):
                continue
            if not contiguous or len(match[0]) >= _CONTIGUOUS_INTERNATIONAL:
                yield Finding("phone", *match.span())
    if " 00" in text or text.startswith("00") or ":00" in text:
        for match in _TRUNK.finditer(text):
            if 10 <= len(match[0].translate(_GROUPING)) <= 17:
                yield Finding("phone", *match.span())
