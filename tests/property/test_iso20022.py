"""Payment messages against an independent oracle: integer minor units, texts made by hand."""

from random import Random
from typing import Any, NamedTuple

import pytest
import stdnum.iso7064.mod_97_10 as check_digits

from qwed_finance import ISOGuard
from tests.support.campaign_table import Figure, campaign

DECIMALS = {"EUR": 2, "USD": 2, "GBP": 2, "JPY": 0, "KRW": 0, "KWD": 3, "TND": 3}
"""Decimals of each currency, by hand from ISO 4217."""
FEW, ALL = 150, 10_000
FINEST = 3
"""Decimals of the smallest unit; every amount is an integer number of thousandths."""


class Payment(NamedTuple):
    thousandths: int
    currency: str
    decimals: int
    """Number of decimals that are written."""
    iban: str

    @property
    def text(self) -> str:
        return shown(self.thousandths, self.decimals)


class Claims(NamedTuple):
    """Totals that a message states about its payments."""

    many: int
    total: int
    """Total in thousandths."""


class Case(NamedTuple):
    batches: tuple[tuple[tuple[Payment, ...], Claims], ...]
    claims: Claims
    honest: bool


def shown(thousandths: int, decimals: int) -> str:
    digits = str(thousandths).rjust(FINEST + 1, "0")
    rest = digits[-FINEST:]
    if decimals < FINEST:
        assert set(rest[decimals:]) <= {"0"}, "nothing is rounded here"
    return digits[:-FINEST] + ("." + (rest + "00000")[:decimals] if decimals else "")


def account(random: Random) -> str:
    """Return a German account with check digits of python-stdnum."""
    body = "".join(random.choices("0123456789", k=18))
    return "DE" + check_digits.calc_check_digits(body + "DE") + body


def payment(random: Random) -> Payment:
    currency = random.choice(list(DECIMALS))
    decimals = DECIMALS[currency]
    units = random.randint(1, 10 ** random.choice([1, 3, 6, 11]))
    return Payment(units * 10 ** (FINEST - decimals), currency, decimals, account(random))


def right(payments: list[Payment]) -> Claims:
    return Claims(len(payments), sum(each.thousandths for each in payments))


def off(claims: Claims, random: Random) -> Claims:
    """Return claims with a small error."""
    if random.random() < 0.4:
        return claims._replace(many=max(0, claims.many + random.choice([-1, 1, 10])))
    return claims._replace(total=claims.total + random.choice([1, -1, 10, 1000, 9, 90]))


def damaged_payment(one: Payment, random: Random) -> Payment:
    """Return an invalid payment: a wrong digit in its account, or decimals that its currency does not have."""
    if random.random() < 0.5:
        at = random.randrange(2, 22)
        return one._replace(
            iban=one.iban[:at] + str((int(one.iban[at]) + random.randint(1, 9)) % 10) + one.iban[at + 1 :]
        )
    return one._replace(decimals=one.decimals + random.randint(1, 2))


def random_case(random: Random) -> Case:
    groups = [
        [payment(random) for _ in range(random.choice([1, 1, 2, 3, 7]))] for _ in range(random.choice([1, 1, 2, 4]))
    ]
    batches = [(group, right(group)) for group in groups]
    claims = right([each for group in groups for each in group])
    wrong = random.choice(["", "", "", "claims", "batch", "payment"])
    at = random.randrange(len(groups))
    if wrong == "claims":
        claims = off(claims, random)
    elif wrong == "batch":
        batches[at] = (groups[at], off(batches[at][1], random))
    elif wrong:
        groups[at][0] = damaged_payment(groups[at][0], random)
    return Case(tuple((tuple(group), own) for group, own in batches), claims, not wrong)


def xml(case: Case) -> str:
    """Return the pain.001.001.09 message as text."""
    top = '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.001.001.09"><CstmrCdtTrfInitn><GrpHdr><MsgId>M</MsgId>'
    lines = [top, "<CreDtTm>2026-01-15T10:00:00</CreDtTm>", _claims(case.claims)]
    lines.append("<InitgPty><Nm>A</Nm></InitgPty></GrpHdr>")
    for number, (group, own) in enumerate(case.batches):
        lines.append(f"<PmtInf><PmtInfId>P{number}</PmtInfId><PmtMtd>TRF</PmtMtd>{_claims(own)}")
        lines.append("<ReqdExctnDt><Dt>2026-01-16</Dt></ReqdExctnDt><Dbtr><Nm>A</Nm></Dbtr>")
        lines.append("<DbtrAcct><Id><IBAN>DE89370400440532013000</IBAN></Id></DbtrAcct>")
        lines.append("<DbtrAgt><FinInstnId><BICFI>COBADEFF</BICFI></FinInstnId></DbtrAgt>")
        lines.extend(_transaction(each) for each in group)
        lines.append("</PmtInf>")
    return "".join(lines) + "</CstmrCdtTrfInitn></Document>"


def _claims(claims: Claims) -> str:
    return f"<NbOfTxs>{claims.many}</NbOfTxs><CtrlSum>{_signed(claims.total)}</CtrlSum>"


def _signed(thousandths: int) -> str:
    return ("-" if thousandths < 0 else "") + shown(abs(thousandths), FINEST)


def _transaction(each: Payment) -> str:
    amount = f'<Amt><InstdAmt Ccy="{each.currency}">{each.text}</InstdAmt></Amt>'
    account = f"<CdtrAcct><Id><IBAN>{each.iban}</IBAN></Id></CdtrAcct>"
    return (
        f"<CdtTrfTxInf><PmtId><EndToEndId>E</EndToEndId></PmtId>{amount}<Cdtr><Nm>B</Nm></Cdtr>{account}</CdtTrfTxInf>"
    )


def tree(case: Case) -> dict[str, Any]:
    """Return the same message as an object."""
    own = {"PmtMtd": "TRF", "ReqdExctnDt": {"Dt": "2026-01-16"}, "Dbtr": {"Nm": "A"}}
    own |= {"DbtrAcct": {"Id": {"IBAN": "DE89370400440532013000"}}, "DbtrAgt": {"FinInstnId": {"BICFI": "COBADEFF"}}}
    batches = [
        own
        | {"PmtInfId": f"P{number}", "NbOfTxs": claims.many, "CtrlSum": _signed(claims.total)}
        | {"CdtTrfTxInf": [_transfer(each) for each in group]}
        for number, (group, claims) in enumerate(case.batches)
    ]
    header = {"MsgId": "M", "CreDtTm": "2026-01-15T10:00:00", "NbOfTxs": str(case.claims.many)}
    header |= {"CtrlSum": _signed(case.claims.total), "InitgPty": {"Nm": "A"}}  # type: ignore[dict-item]
    return {"GrpHdr": header, "PmtInf": batches if len(batches) > 1 else batches[0]}


def _transfer(each: Payment) -> dict[str, Any]:
    return {
        "PmtId": {"EndToEndId": "E"},
        "Amt": {"InstdAmt": {"@Ccy": each.currency, "#text": each.text}},
        "Cdtr": {"Nm": "B"},
        "CdtrAcct": {"Id": {"IBAN": each.iban}},
    }


@campaign("packs", "payment messages and statements against an oracle in minor units")
@pytest.mark.parametrize("many", [FEW, pytest.param(ALL, marks=pytest.mark.drill)])
def test_random_payments_are_judged_as_the_oracle_judges_them(many: int, figure: Figure) -> None:
    random, guard, honest = Random(many), ISOGuard(), 0
    for number in range(many):
        case = random_case(random)
        honest += case.honest
        given: Any = xml(case) if number % 2 else tree(case)
        result = guard.verify_payment_message(given, "pain.001.001.09")
        assert result.verified == case.honest, (number, case, result.issues)
    assert many // 4 < honest < many, "both kinds were asked"
    figure("payment messages", many)


@campaign("packs", "payment messages and statements against an oracle in minor units")
@pytest.mark.parametrize("many", [FEW, pytest.param(ALL, marks=pytest.mark.drill)])
def test_random_statements_close_as_the_oracle_says(many: int, figure: Figure) -> None:
    random, guard = Random(many + 1), ISOGuard()
    for number in range(many):
        opening, entries = (
            random.randint(-(10**7), 10**7),
            [random.randint(-(10**6), 10**6) for _ in range(random.randint(0, 6))],
        )
        wrong = random.choice([0, 0, 1, -1, 100, 2 * opening])
        given = statement(opening, entries, opening + sum(entries) + wrong)
        assert guard.verify_payment_message(given, "camt.053").verified == (not wrong), (number, given)
    figure("statements", many)


def statement(opening: int, entries: list[int], closing: int) -> dict[str, Any]:
    """Return a camt.053 statement in cents; negative entries are debits."""

    def amount(cents: int) -> dict[str, Any]:
        return {"Amt": {"Ccy": "EUR", "value": shown(abs(cents) * 10, 2)}, "CdtDbtInd": "DBIT" if cents < 0 else "CRDT"}

    balances = [
        {"Tp": {"CdOrPrtry": {"Cd": kind}}, **amount(cents), "Dt": {"Dt": "2026-01-15"}}
        for kind, cents in (("OPBD", opening), ("CLBD", closing))
    ]
    booked = [{**amount(cents), "Sts": {"Cd": "BOOK"}, "BkTxCd": {}} for cents in entries]
    body = {"Id": "S", "Acct": {"Id": {"IBAN": "DE89370400440532013000"}}, "Bal": balances}
    return {
        "GrpHdr": {"MsgId": "M", "CreDtTm": "2026-01-15T10:00:00"},
        "Stmt": body | ({"Ntry": booked} if booked else {}),
    }
