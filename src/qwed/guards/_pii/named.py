"""Numbers that are personal because of the words before them: identities, passports, telephones, days of birth."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from qwed.guards._pii import checks
from qwed.guards.text import UNSCANNED, Finding

MAX_CANDIDATES = 2_000
"""Addresses or numbers of one kind weighed in one text; past it the rest is reported as unscanned."""
MAX_WORDS = 20_000
"""Words in one text before which a number is looked for."""

_GAP = (
    r"[^\w\n]{0,8}(?:(?:no|nr|num|number|numero|n\u00famero|nummer|num\u00e9ro|id|code|card|is|was|are|my|his|her|the|of|on|at|le|am"
    r"|me|us|holder|line|phone|office|home|work|or|ein)\b[^\w\n]{0,6}){0,4}"
)
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}"
_DATE = (
    r"(?:\d{1,2}[./-]\d{1,2}[./-](?:19|20)?\d\d|(?:19|20)\d\d[./-]\d{1,2}[./-]\d{1,2}"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH},? (?:19|20)\d\d|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? (?:19|20)\d\d)"
)
_SEPARATED = str.maketrans("", "", " -./()\u00a0")


class _Named(NamedTuple):
    kind: str
    words: tuple[str, ...]
    pattern: re.Pattern[str]
    check: Callable[[str], bool]


def _digits(least: int, most: int) -> str:
    return rf"\d(?:[ ./-]{{0,1}}\d){{{least - 1},{most - 1}}}(?![\w-])"


def _always(_value: str) -> bool:
    return True


def _named(kind: str, words: str, value: str, check: Callable[[str], bool] = _always) -> _Named:
    return _Named(kind, tuple(words.split("|")), re.compile(f"{_GAP}({value})"), check)


def _holds_digits(value: str) -> bool:
    return sum(map(str.isdigit, value)) >= 4


def _sin(digits: str) -> bool:
    return len(digits) == 9 and digits[0] != "8" and checks.luhn(digits)


def _personnummer(digits: str) -> bool:
    return checks.luhn(digits[-10:])


# Matched against lower-cased text, right after the word.
_TABLE = (
    _named("ssn", "ssn|social security|soc sec|social", _digits(9, 9), checks.ssn),
    _named("nino", "nino|national insurance|ni number|ni no", r"[a-z]{2} ?\d\d ?\d\d ?\d\d ?[a-d](?!\w)"),
    _named("aadhaar", "aadhaar|aadhar|uidai|uid", _digits(12, 12), checks.verhoeff),
    _named("pan", "pan|permanent account", r"[a-z]{5}\d{4}[a-z](?!\w)"),
    _named("sin", "sin|social insurance", _digits(9, 9), _sin),
    _named("cpf", "cpf", _digits(11, 11), checks.cpf),
    _named("cnpj", "cnpj", _digits(14, 14), checks.cnpj),
    _named(
        "steuer_id",
        "steuer-id|steuerid|steueridentifikationsnummer|steuer-identifikationsnummer|steuernummer|idnr|tax id|tin",
        _digits(11, 11),
        checks.steuer_id,
    ),
    _named(
        "nir",
        "nir|insee|s\u00e9curit\u00e9 sociale|securite sociale|num\u00e9ro de s\u00e9cu",
        r"[12378](?:[ .-]?[\dab]){14}(?!\w)",
        checks.nir,
    ),
    _named("dni", "dni|nif|nie|documento nacional", r"[xyz\d][ -]?\d{7}[ -]?[a-z](?!\w)", checks.dni),
    _named(
        "codice_fiscale",
        "codice fiscale|cf|fiscal code",
        r"[a-z]{6}\d\d[a-z]\d\d[a-z]\d{3}[a-z](?!\w)",
        checks.codice_fiscale,
    ),
    _named("bsn", "bsn|burgerservicenummer|sofinummer|sofi", _digits(9, 9), checks.bsn),
    _named("pesel", "pesel", _digits(11, 11), checks.pesel),
    _named("tfn", "tfn|tax file", _digits(8, 9), checks.tfn),
    _named("medicare", "medicare", _digits(10, 11), checks.medicare),
    _named("nhs_number", "nhs", _digits(10, 10), checks.nhs),
    _named(
        "personnummer",
        "personnummer|samordningsnummer|personal identity",
        r"(?:19|20)?\d{6}[-+ ]?\d{4}(?!\w)",
        _personnummer,
    ),
    _named("fodselsnummer", "f\u00f8dselsnummer|fodselsnummer|personnr", _digits(11, 11)),
    _named("cpr", "cpr", r"\d{6}[- ]?\d{4}(?!\w)"),
    _named("rijksregister", "rijksregister|registre national|rijksregisternummer", _digits(11, 11)),
    _named("ahv", "ahv|avs|oasi", _digits(13, 13), checks.ahv),
    _named("nif", "nif|contribuinte", _digits(9, 9)),
    _named("pps", "pps|ppsn|ppsno", r"\d{7}[a-w][a-ik]?(?!\w)"),
    _named("tc_kimlik", "tc kimlik|tckn|kimlik", _digits(11, 11)),
    _named("sa_id", "id number|identity number|sa id|rsa id", _digits(13, 13), checks.sa_id),
    _named("my_number", "my number|\u30de\u30a4\u30ca\u30f3\u30d0\u30fc", _digits(12, 12)),
    _named("rut", "rut|run", r"\d{1,2}\.?\d{3}\.?\d{3}-[\dk](?!\w)"),
    _named("cuit", "cuit|cuil", _digits(11, 11)),
    _named(
        "passport",
        "passport|passeport|reisepass|pasaporte|passaporto|paspoort",
        r"(?=[a-z0-9]{0,3}\d{4})[a-z]{0,3}\d{5,9}[a-z]?(?!\w)",
    ),
    _named(
        "driving_licence",
        "driver's license|drivers license|driver license|driver's licence|driving licence|driving license|dl",
        r"[a-z0-9](?:[ -]?[a-z0-9]){5,17}(?!\w)",
        _holds_digits,
    ),
    _named(
        "date_of_birth",
        "dob|d.o.b|d.o.b.|date of birth|birth date|birthdate|birthday|born|geboren|geburtsdatum|n\u00e9 le|n\u00e9e le"
        "|date de naissance"
        "|fecha de nacimiento|data di nascita|date_of_birth|birth_date|dateofbirth",
        _DATE + r"(?!\w)",
    ),
    _named(
        "phone",
        "phone|telephone|tel|tel.|mobile|mob|cell|fax|whatsapp|call|telefon|t\u00e9l|tel\u00e9fono|handy|sms|phone_number|phonenumber"
        "|mobile_number|msisdn",
        r"\+?\(?\d(?:[ ()./-]{0,2}\d){6,14}(?![\w%])",
    ),
    _named(
        "card",
        "card|credit card|cc|visa|mastercard|amex|card_number|cardnumber|pan",
        r"\d(?:[ .-]?\d){12,18}(?!\d)",
        checks.luhn,
    ),
    _named("cvv", "cvv|cvc|cvv2|cvc2|security code", r"\d{3,4}(?![\w.,]\d|\w)"),
)
_NUMBERS = re.compile(r"\d\d+")
_LONGEST_CONTEXT = 80
_BY_WORD: dict[str, tuple[_Named, ...]] = {
    word: tuple(row for row in _TABLE if word in row.words) for row in _TABLE for word in row.words
}


def named_numbers(lowered: str) -> Iterator[Finding]:
    """Every number that the words before it make personal."""
    tried = 0
    # A text is mostly words, and few of them stand before a number.
    before = "\n".join({part[-_LONGEST_CONTEXT:] for part in _NUMBERS.split(lowered)[:-1] if len(part) > 2})
    for word in [each for each in _BY_WORD if each in before]:
        at = lowered.find(word)
        while at >= 0:
            tried += 1
            if tried > MAX_WORDS:
                yield Finding(UNSCANNED, at, len(lowered))
                return
            end = at + len(word)
            if not (lowered[at - 1 : at].isalnum() or lowered[end : end + 1].isalpha()):
                yield from _behind(_BY_WORD[word], lowered, end)
            at = lowered.find(word, end)


def _behind(rows: tuple[_Named, ...], lowered: str, end: int) -> Iterator[Finding]:
    for row in rows:
        match = row.pattern.match(lowered, end)
        if match and row.check(match[1].translate(_SEPARATED)):
            yield Finding(row.kind, *match.span(1))
            return
