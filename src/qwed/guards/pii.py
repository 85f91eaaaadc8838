"""Personal data in text: email addresses, phone numbers, cards, bank accounts, and national identity numbers."""

import re
from collections.abc import Callable, Iterator

from qwed.guards._pii import check_digits
from qwed.guards._pii.labelled_numbers import MAX_CANDIDATES, find_labelled_numbers
from qwed.guards.deobfuscation import find_in_decoded
from qwed.guards.text_scan import MAX_SCANNED, UNSCANNED, TextFinding, is_plain, lower_same_length
from qwed.model.data_files import read_rules

__all__ = ["MAX_CANDIDATES", "find_pii"]

_LOCAL_PART = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._%+-'"
_DOMAIN = re.compile(r"@(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}[^\W\d_]{2,24}(?![\w-])")
_MAX_LOCAL_PART = 64
_MAX_USERINFO = 256
_INSIDE_AUTHORITY = re.compile(r"[^\s/?#]*")

_DIGITS = re.compile(r"\d")
_ENDLESS = re.compile(r"\d{40,}")
"""Runs of digits longer than any number that is searched for."""

# Only the first digit is consumed, so a number can begin inside a rejected candidate. It is one pattern, so that a text
# is scanned once; common prefixes are matched first, and an empty group at the end says which form matched.
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
"""Minimum length of `+` and digits without separators to count as a phone number; shorter ones may be sums."""
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
_IBAN_LENGTHS = {country: int(length) for country, length in read_rules(__file__, "iban_lengths.txt").items()}
_SHORTEST_CARD = 13
_GROUPING = str.maketrans("", "", " -./\u00a0()")


def find_pii(text: str) -> tuple[TextFinding, ...]:
    """Return the personal data in the first MAX_SCANNED characters, in order; the rest is one `unscanned` finding."""
    if is_plain(text):
        return ()
    scanned = text if len(text) <= MAX_SCANNED else text[:MAX_SCANNED]
    findings = find_in_decoded(scanned, _find_all)
    if len(text) > MAX_SCANNED:
        findings.append(TextFinding(UNSCANNED, MAX_SCANNED, len(text)))
    return _drop_overlapping(findings) if findings else ()


def _find_all(text: str) -> list[TextFinding]:
    addresses = _emails(text) if "@" in text else ()
    numbers = _numbers(text) if _DIGITS.search(text) else ()
    return [*addresses, *numbers]


def _numbers(text: str) -> Iterator[TextFinding]:
    if _ENDLESS.search(text):
        text = _ENDLESS.sub(lambda match: "_" * len(match[0]), text)
    # Of two findings with the same span the first is kept, and a label is more specific than a format.
    yield from find_labelled_numbers(lower_same_length(text))
    yield from _find_candidates(_NUMBER, _NUMBER_CLASSIFIERS, text)
    yield from _find_candidates(_CODE, _CODE_CLASSIFIERS, text)
    yield from _international(text)


def _drop_overlapping(findings: list[TextFinding]) -> tuple[TextFinding, ...]:
    """Return the findings in order; of two that overlap, keep the one that begins first or is longer."""
    disjoint: list[TextFinding] = []
    for finding in sorted(findings, key=lambda item: (item.start, -item.end)):
        if not disjoint or finding.start >= disjoint[-1].end:
            disjoint.append(finding)
    return tuple(disjoint)


def _emails(text: str) -> Iterator[TextFinding]:
    for count, match in enumerate(_DOMAIN.finditer(text)):
        at = match.start()
        if count == MAX_CANDIDATES:
            yield TextFinding(UNSCANNED, at, len(text))
            return
        before = text[max(0, at - _MAX_LOCAL_PART) : at]
        local = before[len(before.rstrip(_LOCAL_PART)) :].lstrip(".'")
        if local and not _is_userinfo(text, at, local, match.end()):
            yield TextFinding("email", at - len(local), match.end())


def _is_userinfo(text: str, at: int, local: str, end: int) -> bool:
    """Return True if `user@host` is the authority of a URL or a git remote, not a mailbox."""
    if local == "git" and text[end : end + 1] in (":", "/"):
        return True
    scheme = text.rfind("://", max(0, at - _MAX_USERINFO), at)
    return scheme >= 0 and bool(_INSIDE_AUTHORITY.fullmatch(text, scheme + 3, at))


NumberClassifier = Callable[[str], str]
"""Function that returns the kind of personal data of a written number, or ""."""


def _find_candidates(
    pattern: re.Pattern[str], classifiers: dict[str, NumberClassifier], text: str
) -> Iterator[TextFinding]:
    for count, match in enumerate(pattern.finditer(text)):
        shape = match.lastgroup or ""
        if count == MAX_CANDIDATES:
            yield TextFinding(UNSCANNED, match.start(), len(text))
            return
        start, end = match.start(), match.end(shape)
        if shape == "iban":
            end = _end_of_iban(text[start:end], start)
        elif not _is_start(text, start, shape):
            continue
        elif shape == "american":
            before = _COUNTRY_ONE.search(text, max(0, start - 4), start)
            start = before.start() if before else start
        kind = classifiers[shape](text[start:end])
        if kind:
            yield TextFinding(kind, start, end)


_NOT_BEFORE = {
    "long": re.compile(r"\d[.,]\Z"),
    "american": re.compile(r"\w\Z|\d\d[-. ]\Z|[02-9][-.]\Z"),
    **dict.fromkeys(("national", "area", "city", "pairs"), re.compile(r"[\w.+-]\Z|\d[ /]\Z")),
    **dict.fromkeys(("dni", "hetu", "rrn", "resident"), re.compile(r"[\w/.]\Z")),
}
"""Text before a number that makes it part of another one."""


def _is_start(text: str, start: int, shape: str) -> bool:
    before = _NOT_BEFORE.get(shape)
    return before is None or not before.search(text, max(0, start - 3), start)


def _digits(written: str) -> str:
    """Return the digits alone, as ASCII."""
    bare = written.translate(_GROUPING)
    return bare if bare.isascii() else str(int(bare)).zfill(len(bare))


def _long_number_kind(written: str) -> str:
    digits = _digits(written)
    if len(digits) < _SHORTEST_CARD:
        return ""
    if _is_card(digits):
        return "card"
    if len(digits) == 15 and check_digits.nir(digits):
        return "nir"
    return "resident_id" if len(digits) == 18 and check_digits.resident_id(digits) else ""


def _grouped_number_kind(written: str) -> str:
    digits = _digits(written)
    if len(digits) == 12:
        return "aadhaar" if check_digits.verhoeff(digits) else ""
    return "card" if _is_card(digits) else ""


def _is_card(digits: str) -> bool:
    return _ISSUERS.fullmatch(digits) is not None and check_digits.luhn(digits)


def _checked_by(kind: str, check: Callable[[str], bool]) -> NumberClassifier:
    return lambda written: kind if check(_digits(written)) else ""


def _national_number_kind(written: str) -> str:
    return "phone" if _DIALLED.match(written) else ""


_NEVER_DIALLED = re.compile(r"^\(?[01]\d\d")
_DIALLED = re.compile(r"0[1-9]|020 ")


def _is_iban(written: str) -> bool:
    return bool(written) and check_digits.mod_97(written)


def _is_nino(written: str) -> bool:
    return not written.startswith(_NEVER_NINO)


def _always(_written: str) -> bool:
    return True


_NUMBER_CLASSIFIERS: dict[str, NumberClassifier] = {
    "long": _long_number_kind,
    "fours": _grouped_number_kind,
    "amex": _checked_by("card", _is_card),
    "ssn": _checked_by("ssn", check_digits.ssn),
    "american": lambda written: "" if _NEVER_DIALLED.search(written) else "phone",
    "national": _national_number_kind,
    "area": _national_number_kind,
    "city": _national_number_kind,
    "pairs": _national_number_kind,
    "cpf": _checked_by("cpf", check_digits.cpf),
    "cnpj": _checked_by("cnpj", check_digits.cnpj),
    "nir": _checked_by("nir", check_digits.nir),
    "ahv": _checked_by("ahv", check_digits.ahv),
    "resident": lambda written: "resident_id" if check_digits.resident_id(written) else "",
    "dni": _checked_by("dni", check_digits.dni),
    "hetu": lambda written: "hetu" if check_digits.hetu(written) else "",
    "rrn": _checked_by("rrn", check_digits.rrn),
}
_CODE_CLASSIFIERS: dict[str, NumberClassifier] = {
    "iban": _checked_by("iban", _is_iban),
    "nino": _checked_by("nino", _is_nino),
    "pan": _checked_by("pan", _always),
    "codice_fiscale": _checked_by("codice_fiscale", check_digits.codice_fiscale),
    "dni": _checked_by("dni", check_digits.dni),
    "nric": _checked_by("nric", check_digits.nric),
    "curp": _checked_by("curp", _always),
}


def _end_of_iban(grouped: str, start: int) -> int:
    """Return the end of an IBAN of the length that the country uses, or `start` if the word continues after it."""
    length = _IBAN_LENGTHS.get(grouped[:2].upper(), 0)
    seen = 0
    for index, character in enumerate(grouped if length else ""):
        seen += character.isalnum()
        if seen == length:
            return start if grouped[index + 1 : index + 2].isalnum() else start + index + 1
    return start


def _international(text: str) -> Iterator[TextFinding]:
    if "+" in text:
        for match in _INTERNATIONAL.finditer(text):
            contiguous = match[0][1:].isdigit()
            if _SIGNED.fullmatch(match[0]):
                continue
            if not contiguous or len(match[0]) >= _CONTIGUOUS_INTERNATIONAL:
                yield TextFinding("phone", *match.span())
    if " 00" in text or text.startswith("00") or ":00" in text:
        for match in _TRUNK.finditer(text):
            if 10 <= len(match[0].translate(_GROUPING)) <= 17:
                yield TextFinding("phone", *match.span())
