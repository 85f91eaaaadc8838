"""ISO/IEC 7064, MOD 97-10: the check digits of IBAN, LEI, creditor references and creditor identifiers."""

import re
from typing import NamedTuple, Self

_LEI = re.compile(r"[A-Z0-9]{18}[0-9]{2}", re.ASCII)
_REFERENCE = re.compile(r"RF[0-9]{2}[A-Za-z0-9]{1,21}", re.ASCII)
_CREDITOR = re.compile(r"[A-Z]{2}[0-9]{2}[A-Za-z0-9]{3}[A-Za-z0-9]{1,28}", re.ASCII)


class Check(NamedTuple):
    """Whether a code holds, in one line, and how to see that by hand."""

    holds: bool
    says: str
    by_hand: tuple[str, ...]

    @classmethod
    def yes(cls, says: str, by_hand: tuple[str, ...]) -> Self:
        """The code holds."""
        return cls(True, says, by_hand)

    @classmethod
    def no(cls, says: str, by_hand: tuple[str, ...]) -> Self:
        """The code does not hold."""
        return cls(False, says, by_hand)


def remainder(text: str) -> int:
    """What is left of letters and digits modulo 97, with 10 for A to 35 for Z."""
    return int("".join(str(int(each, 36)) for each in text)) % 97


def _checked(what: str, text: str, turned: str) -> Check:
    rest = remainder(turned)
    steps = (f"divide {turned}, with 10 for A to 35 for Z, by 97: remainder {rest}, and it must be 1",)
    if rest == 1:
        return Check.yes(f"`{text}` is {what}", steps)
    return Check.no(f"the check digits of `{text}` are wrong for {what}", steps)


def examine_lei(text: str) -> Check:
    """ISO 17442: eighteen letters and digits, two check digits at the end."""
    if not _LEI.fullmatch(text):
        return Check.no(
            f"`{text[:40]}` does not have the form of an LEI", ("count 18 capitals or digits and 2 digits",)
        )
    return _checked("an LEI", text, text)


def examine_reference(text: str) -> Check:
    """ISO 11649: `RF`, two check digits, up to 21 letters and digits."""
    if not _REFERENCE.fullmatch(text):
        return Check.no(
            f"`{text[:40]}` does not have the form of a creditor reference",
            ("`RF`, two digits, then one to 21 letters and digits, without blanks",),
        )
    return _checked("a creditor reference", text, text[4:] + text[:4])


def examine_creditor(text: str) -> Check:
    """EPC262-08: a SEPA creditor identifier; the three characters of the business are left out of the sum."""
    if not _CREDITOR.fullmatch(text):
        return Check.no(
            f"`{text[:40]}` does not have the form of a creditor identifier",
            ("country, two check digits, three characters of the business, up to 28 of the country's own",),
        )
    return _checked("a creditor identifier", text, text[7:] + text[:4])
