"""ISO 13616 bank account numbers, with the registered length and structure of each country."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from qwed.model.data_files import read_table
from qwed.packs.result import CheckStatus, Result, unknown_name_error, unverifiable_on_error
from qwed_finance._iso.mod97 import CodeCheck, remainder

RULE = (
    "ISO 13616-1:2020 and the IBAN registry of SWIFT (release 101): a registered country with its length and its "
    "structure, check digits from 02 to 98, remainder 1 modulo 97 (ISO/IEC 7064)"
)

_REGISTRY = read_table(__file__, "iban_registry.txt")
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
