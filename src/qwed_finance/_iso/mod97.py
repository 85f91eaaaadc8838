"""ISO/IEC 7064, MOD 97-10: check digits of IBAN, LEI, creditor references and creditor identifiers."""

import re
from typing import NamedTuple, Self

_LEI = re.compile(r"[A-Z0-9]{18}[0-9]{2}", re.ASCII)
_REFERENCE = re.compile(r"RF[0-9]{2}[A-Za-z0-9]{1,21}", re.ASCII)
_CREDITOR = re.compile(r"[A-Z]{2}[0-9]{2}[A-Za-z0-9]{3}[A-Za-z0-9]{1,28}", re.ASCII)


class CodeCheck(NamedTuple):
    """Result of a code check, with a message and the steps to reproduce it."""

    holds: bool
    message: str
    by_hand: tuple[str, ...]

    @classmethod
    def yes(cls, message: str, by_hand: tuple[str, ...]) -> Self:
        """Return a result that holds."""
        return cls(True, message, by_hand)

    @classmethod
    def no(cls, message: str, by_hand: tuple[str, ...]) -> Self:
        """Return a result that does not hold."""
        return cls(False, message, by_hand)


def remainder(text: str) -> int:
    """Return the remainder of letters and digits modulo 97, with 10 for A to 35 for Z."""
    return int("".join(str(int(character, 36)) for character in text)) % 97


def _check_remainder(name: str, text: str, rearranged: str) -> CodeCheck:
    result = remainder(rearranged)
    steps = (f"divide {rearranged}, with 10 for A to 35 for Z, by 97: remainder {result}, and it must be 1",)
    if result == 1:
        return CodeCheck.yes(f"`{text}` is {name}", steps)
    return CodeCheck.no(f"the check digits of `{text}` are wrong for {name}", steps)


def examine_lei(text: str) -> CodeCheck:
    """Check an LEI (ISO 17442): eighteen letters and digits, two check digits at the end."""
    if not _LEI.fullmatch(text):
        return CodeCheck.no(
            f"`{text[:40]}` does not have the form of an LEI", ("count 18 capitals or digits and 2 digits",)
        )
    return _check_remainder("an LEI", text, text)


def examine_reference(text: str) -> CodeCheck:
    """Check a creditor reference (ISO 11649): `RF`, two check digits, up to 21 letters and digits."""
    if not _REFERENCE.fullmatch(text):
        return CodeCheck.no(
            f"`{text[:40]}` does not have the form of a creditor reference",
            ("`RF`, two digits, then one to 21 letters and digits, without blanks",),
        )
    return _check_remainder("a creditor reference", text, text[4:] + text[:4])


def examine_creditor(text: str) -> CodeCheck:
    """Check a SEPA creditor identifier (EPC262-08); the three characters of the business are left out of the sum."""
    if not _CREDITOR.fullmatch(text):
        return CodeCheck.no(
            f"`{text[:40]}` does not have the form of a creditor identifier",
            ("country, two check digits, three characters of the business, up to 28 of the country's own",),
        )
    return _check_remainder("a creditor identifier", text, text[7:] + text[:4])
