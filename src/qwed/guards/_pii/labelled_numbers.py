"""Numbers that are personal because of their label: identities, passports, phone numbers, dates of birth."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from qwed.guards._pii import check_digits
from qwed.guards.text_scan import UNSCANNED, TextFinding

MAX_CANDIDATES = 2_000
"""Candidates of one kind that are checked in one text; after that the rest is reported as unscanned."""
MAX_WORDS = 20_000
"""Labels in one text after which a number is searched for."""

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


class _LabelledNumber(NamedTuple):
    kind: str
    words: tuple[str, ...]
    pattern: re.Pattern[str]
    check: Callable[[str], bool]


def _digits(least: int, most: int) -> str:
    return rf"\d(?:[ ./-]{{0,1}}\d){{{least - 1},{most - 1}}}(?![\w-])"


def _always(_value: str) -> bool:
    return True


def _labelled(kind: str, words: str, value: str, check: Callable[[str], bool] = _always) -> _LabelledNumber:
    return _LabelledNumber(kind, tuple(words.split("|")), re.compile(f"{_GAP}({value})"), check)


def _has_digits(value: str) -> bool:
    return sum(map(str.isdigit, value)) >= 4


def _sin(digits: str) -> bool:
    return len(digits) == 9 and digits[0] != "8" and check_digits.luhn(digits)


def _personnummer(digits: str) -> bool:
    return check_digits.luhn(digits[-10:])


# Matched against lower-cased text, right after the label.
_TABLE = (
    _labelled("ssn", "ssn|social security|soc sec|social", _digits(9, 9), check_digits.ssn),
    _labelled("nino", "nino|national insurance|ni number|ni no", r"[a-z]{2} ?\d\d ?\d\d ?\d\d ?[a-d](?!\w)"),
    _labelled("aadhaar", "aadhaar|aadhar|uidai|uid", _digits(12, 12), check_digits.verhoeff),
    _labelled("pan", "pan|permanent account", r"[a-z]{5}\d{4}[a-z](?!\w)"),
    _labelled("sin", "sin|social insurance", _digits(9, 9), _sin),
    _labelled("cpf", "cpf", _digits(11, 11), check_digits.cpf),
    _labelled("cnpj", "cnpj", _digits(14, 14), check_digits.cnpj),
    _labelled(
        "steuer_id",
        "steuer-id|steuerid|steueridentifikationsnummer|steuer-identifikationsnummer|steuernummer|idnr|tax id|tin",
        _digits(11, 11),
        check_digits.steuer_id,
    ),
    _labelled(
        "nir",
        "nir|insee|s\u00e9curit\u00e9 sociale|securite sociale|num\u00e9ro de s\u00e9cu",
        r"[12378](?:[ .-]?[\dab]){14}(?!\w)",
        check_digits.nir,
    ),
    _labelled("dni", "dni|nif|nie|documento nacional", r"[xyz\d][ -]?\d{7}[ -]?[a-z](?!\w)", check_digits.dni),
    _labelled(
        "codice_fiscale",
        "codice fiscale|cf|fiscal code",
        r"[a-z]{6}\d\d[a-z]\d\d[a-z]\d{3}[a-z](?!\w)",
        check_digits.codice_fiscale,
    ),
    _labelled("bsn", "bsn|burgerservicenummer|sofinummer|sofi", _digits(9, 9), check_digits.bsn),
    _labelled("pesel", "pesel", _digits(11, 11), check_digits.pesel),
    _labelled("tfn", "tfn|tax file", _digits(8, 9), check_digits.tfn),
    _labelled("medicare", "medicare", _digits(10, 11), check_digits.medicare),
    _labelled("nhs_number", "nhs", _digits(10, 10), check_digits.nhs),
    _labelled(
        "personnummer",
        "personnummer|samordningsnummer|personal identity",
        r"(?:19|20)?\d{6}[-+ ]?\d{4}(?!\w)",
        _personnummer,
    ),
    _labelled("fodselsnummer", "f\u00f8dselsnummer|fodselsnummer|personnr", _digits(11, 11)),
    _labelled("cpr", "cpr", r"\d{6}[- ]?\d{4}(?!\w)"),
    _labelled("rijksregister", "rijksregister|registre national|rijksregisternummer", _digits(11, 11)),
    _labelled("ahv", "ahv|avs|oasi", _digits(13, 13), check_digits.ahv),
    _labelled("nif", "nif|contribuinte", _digits(9, 9)),
    _labelled("pps", "pps|ppsn|ppsno", r"\d{7}[a-w][a-ik]?(?!\w)"),
    _labelled("tc_kimlik", "tc kimlik|tckn|kimlik", _digits(11, 11)),
    _labelled("sa_id", "id number|identity number|sa id|rsa id", _digits(13, 13), check_digits.sa_id),
    _labelled("my_number", "my number|\u30de\u30a4\u30ca\u30f3\u30d0\u30fc", _digits(12, 12)),
    _labelled("rut", "rut|run", r"\d{1,2}\.?\d{3}\.?\d{3}-[\dk](?!\w)"),
    _labelled("cuit", "cuit|cuil", _digits(11, 11)),
    _labelled(
        "passport",
        "passport|passeport|reisepass|pasaporte|passaporto|paspoort",
        r"(?=[a-z0-9]{0,3}\d{4})[a-z]{0,3}\d{5,9}[a-z]?(?!\w)",
    ),
    _labelled(
        "driving_licence",
        "driver's license|drivers license|driver license|driver's licence|driving licence|driving license|dl",
        r"[a-z0-9](?:[ -]?[a-z0-9]){5,17}(?!\w)",
        _has_digits,
    ),
    _labelled(
        "date_of_birth",
        "dob|d.o.b|d.o.b.|date of birth|birth date|birthdate|birthday|born|geboren|geburtsdatum|n\u00e9 le|n\u00e9e le"
        "|date de naissance"
        "|fecha de nacimiento|data di nascita|date_of_birth|birth_date|dateofbirth",
        _DATE + r"(?!\w)",
    ),
    _labelled(
        "phone",
        "phone|telephone|tel|tel.|mobile|mob|cell|fax|whatsapp|call|telefon|t\u00e9l|tel\u00e9fono|handy|sms|phone_number|phonenumber"
        "|mobile_number|msisdn",
        r"\+?\(?\d(?:[ ()./-]{0,2}\d){6,14}(?![\w%])",
    ),
    _labelled(
        "card",
        "card|credit card|cc|visa|mastercard|amex|card_number|cardnumber|pan",
        r"\d(?:[ .-]?\d){12,18}(?!\d)",
        check_digits.luhn,
    ),
    _labelled("cvv", "cvv|cvc|cvv2|cvc2|security code", r"\d{3,4}(?![\w.,]\d|\w)"),
)
_NUMBERS = re.compile(r"\d\d+")
_LONGEST_CONTEXT = 80
_BY_WORD: dict[str, tuple[_LabelledNumber, ...]] = {
    word: tuple(row for row in _TABLE if word in row.words) for row in _TABLE for word in row.words
}


def find_labelled_numbers(lowered: str) -> Iterator[TextFinding]:
    """Yield every number that the label before it makes personal."""
    tried = 0
    # Only the text before each number is searched for labels: it is a small part of the whole.
    before = "\n".join({part[-_LONGEST_CONTEXT:] for part in _NUMBERS.split(lowered)[:-1] if len(part) > 2})
    for label_text in [label for label in _BY_WORD if label in before]:
        position = lowered.find(label_text)
        while position >= 0:
            tried += 1
            if tried > MAX_WORDS:
                yield TextFinding(UNSCANNED, position, len(lowered))
                return
            end = position + len(label_text)
            if not (lowered[position - 1 : position].isalnum() or lowered[end : end + 1].isalpha()):
                yield from _numbers_after(_BY_WORD[label_text], lowered, end)
            position = lowered.find(label_text, end)


def _numbers_after(rows: tuple[_LabelledNumber, ...], lowered: str, end: int) -> Iterator[TextFinding]:
    for row in rows:
        match = row.pattern.match(lowered, end)
        if match and row.check(match[1].translate(_SEPARATED)):
            yield TextFinding(row.kind, *match.span(1))
            return
