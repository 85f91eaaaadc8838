"""ISO 13616 bank account numbers, with the registered length and structure of each country."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from qwed.packs.result import CheckStatus, Result, unknown_name_error, unverifiable_on_error
from qwed_finance._iso.mod97 import CodeCheck, remainder

RULE = (
    "ISO 13616-1:2020 and the IBAN registry of SWIFT (release 101): a registered country with its length and its "
    "structure, check digits from 02 to 98, remainder 1 modulo 97 (ISO/IEC 7064)"
)

_REGISTRY = """
AD 24 4n 4n 12c
AE 23 3n 16n
AL 28 8n 16c
AT 20 5n 11n
AZ 28 4a 20c
BA 20 3n 3n 8n 2n
BE 16 3n 7n 2n
BG 22 4a 4n 2n 8c
BH 22 4a 14c
BI 27 5n 5n 11n 2n
BR 29 8c 5n 10n 1c 1c
BY 28 4c 4n 16c
CH 21 5n 12c
CR 22 4n 14n
CY 28 3n 5n 16c
CZ 24 4n 16n
DE 22 8n 10n
DJ 27 5n 5n 11n 2n
DK 18 4n 9n 1n
DO 28 4c 20n
EE 20 2n 14n
EG 29 4n 4n 17n
ES 24 4n 4n 1n 1n 10n
FI 18 3n 11n
FK 18 2a 12n
FO 18 4n 9n 1n
FR 27 5n 5n 11c 2n
GB 22 4a 6n 8n
GE 22 2a 16n
GI 23 4a 15c
GL 18 4n 9n 1n
GR 27 3n 4n 16c
GT 28 4c 20c
HN 28 4a 20n
HR 21 7n 10n
HU 28 3n 4n 1n 15n 1n
IE 22 4a 6n 8n
IL 23 3n 3n 13n
IQ 23 4a 3n 12n
IS 26 4n 2n 6n 10n
IT 27 1a 5n 5n 12c
JO 30 4a 4n 18c
KW 30 4a 22c
KZ 20 3n 13c
LB 28 4n 20c
LC 32 4a 24c
LI 21 5n 12c
LT 20 5n 11n
LU 20 3n 13c
LV 21 4a 13c
LY 25 3n 3n 15n
MC 27 5n 5n 11c 2n
MD 24 2c 18c
ME 22 3n 13n 2n
MK 19 3n 10c 2n
MN 20 4n 12n
MR 27 5n 5n 11n 2n
MT 31 4a 5n 18c
MU 30 4a 2n 2n 12n 3n 3a
NI 28 4a 20n
NL 18 4a 10n
NO 15 4n 6n 1n
OM 23 3n 16c
PK 24 4a 16c
PL 28 8n 16n
PS 29 4a 21c
PT 25 4n 4n 11n 2n
QA 29 4a 21c
RO 24 4a 16c
RS 22 3n 13n 2n
RU 33 9n 5n 15c
SA 24 2n 18c
SC 31 4a 2n 2n 16n 3a
SD 18 2n 12n
SE 24 3n 16n 1n
SI 19 5n 8n 2n
SK 24 4n 6n 10n
SM 27 1a 5n 5n 12c
SO 23 4n 3n 12n
ST 25 4n 4n 11n 2n
SV 28 4a 20n
TL 23 3n 14n 2n
TN 24 2n 3n 13n 2n
TR 26 5n 1n 16c
UA 29 6n 19c
VA 22 3n 15n
VG 24 4a 16n
XK 20 4n 10n 2n
YE 30 4a 4n 18c
"""
"""Country, total length, and the parts after the check digits: n digits, a capital letters, c letters and digits."""

_CLASSES = {"n": "[0-9]", "a": "[A-Z]", "c": "[A-Za-z0-9]"}
_FORM = re.compile(r"[A-Z]{2}[0-9]{2}[A-Za-z0-9]{1,30}", re.ASCII)
_GROUPED_FORM = re.compile(r"[A-Z]{2}[0-9]{2}(?: [A-Za-z0-9]{4}){1,7}(?: [A-Za-z0-9]{1,4})?", re.ASCII)
_MAX_LENGTH = 60


class IbanStructure(NamedTuple):
    """Row of the registry."""

    country: str
    length: int
    parts: str
    form: re.Pattern[str]


def _parse_structure(line: str) -> IbanStructure:
    country, length, parts = line.split(" ", 2)
    form = "".join(f"{_CLASSES[part[-1]]}{{{part[:-1]}}}" for part in parts.split())
    return IbanStructure(country, int(length), parts, re.compile(form, re.ASCII))


IBANS: Mapping[str, IbanStructure] = MappingProxyType(
    {line[:2]: _parse_structure(line) for line in _REGISTRY.strip().splitlines()}
)
"""Structures by country code."""


@dataclass(frozen=True, kw_only=True)
class IBANResult(Result):
    """Result of an IBAN check, with the parts if the form matches."""

    iban: str | None = None
    """IBAN without blanks."""
    country: str | None = None
    check_digits: str | None = None
    computed_check_digits: str | None = None
    bban: str | None = None


@unverifiable_on_error(IBANResult)
def check_iban(iban: Any) -> IBANResult:
    """Verify that this is an IBAN, written in one piece or in groups of four."""
    if not isinstance(iban, str) or not iban:
        return IBANResult.unverifiable("`iban` must be a text such as `DE89 3704 0044 0532 0130 00`")
    compact = (
        iban.replace(" ", "") if _GROUPED_FORM.fullmatch(iban[:_MAX_LENGTH]) and len(iban) <= _MAX_LENGTH else iban
    )
    check = examine_iban(compact)
    country = compact[:2]
    if not check.holds and country not in IBANS and _FORM.fullmatch(compact):
        raise unknown_name_error("country of an IBAN", country, IBANS)
    return IBANResult(
        status=CheckStatus.VERIFIED if check.holds else CheckStatus.FAILED,
        message=check.message,
        rule=RULE,
        by_hand=check.by_hand,
        **_iban_parts(compact),
    )


def examine_iban(text: str) -> CodeCheck:
    """Check an IBAN without blanks, with the steps to reproduce it."""
    if not _FORM.fullmatch(text):
        return CodeCheck.no(
            f"`{text[:40]}` does not have the form of an IBAN: two capitals, two digits, up to 30 letters and digits",
            (f"read `{text[:40]}` from the left: a country, check digits, then the account, without other signs",),
        )
    spec = IBANS.get(text[:2])
    if spec is None:
        return CodeCheck.no(f"`{text[:2]}` has registered no IBAN", (f"`{text[:2]}` is not in the IBAN registry",))
    if len(text) != spec.length:
        return CodeCheck.no(
            f"an IBAN of `{spec.country}` has {spec.length} characters, this one has {len(text)}",
            (f"count the characters of `{text}`: {len(text)}, and the registry says {spec.length}",),
        )
    if not spec.form.fullmatch(text[4:]):
        return CodeCheck.no(
            f"`{text[4:]}` does not have the structure of `{spec.country}`: {spec.parts}",
            (f"compare `{text[4:]}` with {spec.parts} (n digit, a capital, c letter or digit)",),
        )
    return _check_digits(text)


def _check_digits(text: str) -> CodeCheck:
    rearranged, expected = text[4:] + text[:4], compute_check_digits(text)
    actual = remainder(rearranged)
    steps = (
        f"move the first four characters to the end: {rearranged}",
        "put 10 for A, 11 for B ... 35 for Z",
        f"divide by 97: remainder {actual}, and it must be 1",
        f"with 00 as check digits the remainder is {98 - expected}, and 98 - {98 - expected} = {expected:02d}",
    )
    if not 2 <= int(text[2:4]) <= 98:
        return CodeCheck.no(f"check digits are never `{text[2:4]}`, they go from 02 to 98", steps)
    if actual != 1:
        return CodeCheck.no(f"the check digits of `{text}` must be `{expected:02d}`", steps)
    return CodeCheck.yes(f"`{text}` is an IBAN of `{text[:2]}`", steps)


def compute_check_digits(text: str) -> int:
    """Return the check digits for this country and account."""
    return 98 - remainder(text[4:] + text[:2] + "00")


def _iban_parts(compact: str) -> dict[str, Any]:
    if not _FORM.fullmatch(compact):
        return {"iban": compact[:_MAX_LENGTH]}
    return {
        "iban": compact,
        "country": compact[:2],
        "check_digits": compact[2:4],
        "computed_check_digits": f"{compute_check_digits(compact):02d}",
        "bban": compact[4:],
    }
