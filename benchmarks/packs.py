"""Cost of a domain-pack check: microseconds of CPU with loaded tables, and milliseconds of the first call.

`python -m benchmarks.packs` prints this table alone.
"""

import itertools
import subprocess
import sys
import time
from collections.abc import Callable

from benchmarks.measure import interleaved
from benchmarks.report import Row, Say, absolute, table
from qwed.packs.result import Result
from qwed_finance import FinanceVerifier, ISOGuard
from qwed_legal import CitationGuard, DeadlineGuard, JurisdictionGuard, LiabilityGuard, StatuteOfLimitationsGuard
from qwed_tax import TaxVerifier
from qwed_ucp import UCPVerifier

ROUNDS, TIMES = 7, 50
BEGINNINGS = {
    "the guards of qwed_legal imported": "from qwed_legal import *",
    "the guards of qwed_finance imported": "from qwed_finance import FinanceVerifier, ISOGuard",
    "the guard of qwed_ucp imported": "from qwed_ucp import UCPVerifier",
    "the guard of qwed_tax imported": "from qwed_tax import TaxVerifier",
    "the first deadline": "from qwed_legal import DeadlineGuard as G; G().verify('2026-01-15', '9 days', '2026-01-24')",
    "the first citation": "from qwed_legal import CitationGuard as G; G().verify('347 U.S. 483 (1954)')",
}
"""Each in a fresh process, imports included."""
_numbers = itertools.count(1)

Check = Callable[[int], Result]


def checks() -> dict[str, Check]:
    """Return one everyday claim per guard, with another number each time."""
    legal, liability = DeadlineGuard(), LiabilityGuard()
    citation, places, limits = CitationGuard(), JurisdictionGuard(), StatuteOfLimitationsGuard()
    finance, iso, ucp, tax = FinanceVerifier(), ISOGuard(), UCPVerifier(), TaxVerifier()
    return {
        "deadline, business days": lambda n: legal.verify("2026-01-15", f"{n % 200 + 1} business days", "2026-02-14"),
        "citation of a US case": lambda n: citation.verify(f"Brown v. Board of Education, 347 U.S. {n} (1954)"),
        "liability cap": lambda n: liability.verify_cap(5_000_000 + n, 200, "$10,000,000"),
        "choice of law": lambda n: places.verify_choice_of_law(["US", "DE"][: n % 2 + 1], "New York", "NY"),
        "limitation period": lambda n: limits.verify("fraud", "CA", "2022-03-01", f"2024-03-{n % 28 + 1:02}"),
        "monthly payment of a loan": lambda n: finance.verify_monthly_payment(200_000 + n, 0.065, 360, "$1,264.14"),
        "internal rate of return": lambda n: finance.verify_irr([-1000 - n, 300, 420, 680], "16.34%"),
        "payment message, one transaction": lambda n: iso.verify_payment_message(_payment(n), "pain.001"),
        "checkout of two lines": lambda n: ucp.verify_checkout(_checkout(n)),
        "US payroll with withholding": lambda n: tax.verify_us_payroll(2000 + n, year=2025, claimed_net="1685.40"),
        "GST": lambda n: tax.verify_gst(1000 + n, 18, 180, country="IN"),
    }


def contenders() -> dict[str, Callable[[], float]]:
    """Return functions that measure microseconds of CPU time per check."""
    return {name: _each(check) for name, check in checks().items()}


def began(statement: str) -> Callable[[], float]:
    """Return a function that measures the CPU milliseconds of a statement in a fresh process."""
    program = f"import time; t = time.process_time(); {statement}; print((time.process_time() - t) * 1000)"

    def measured() -> float:
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        return float(done.stdout)

    return measured


def rows(rounds: int, _say: Say) -> list[Row]:
    """Measure a check of each guard and its first call."""
    running = contenders()
    for run in running.values():
        run()  # trigger late imports
    found = [absolute(f"{name}, us of CPU", values) for name, values in interleaved(running, rounds).items()]
    beginning = {name: began(statement) for name, statement in BEGINNINGS.items()}
    return [
        *found,
        *(absolute(f"{name}, ms of CPU", values) for name, values in interleaved(beginning, rounds).items()),
    ]


def _each(check: Check) -> Callable[[], float]:
    def measured() -> float:
        numbers = [next(_numbers) for _ in range(TIMES)]
        started = time.process_time()
        for number in numbers:
            if not check(number).rule:
                raise RuntimeError("nothing was checked")
        return (time.process_time() - started) / TIMES * 1e6

    return measured


def _payment(number: int) -> dict[str, object]:
    paid = {
        "PmtId": {"EndToEndId": f"E-{number}"},
        "Amt": {"InstdAmt": {"Ccy": "EUR", "value": number}},
        "Cdtr": {"Nm": "Bob"},
        "CdtrAcct": {"Id": {"IBAN": "NL91ABNA0417164300"}},
    }
    information = {
        "PmtInfId": "P-1",
        "PmtMtd": "TRF",
        "ReqdExctnDt": {"Dt": "2026-03-03"},
        "Dbtr": {"Nm": "Alice"},
        "DbtrAcct": {"Id": {"IBAN": "DE89370400440532013000"}},
        "DbtrAgt": {"FinInstnId": {"BICFI": "COBADEFF"}},
        "CdtTrfTxInf": [paid],
    }
    header = {"MsgId": "M", "CreDtTm": "2026-03-02T10:00:00", "NbOfTxs": 1, "InitgPty": {"Nm": "Alice"}}
    return {"GrpHdr": header, "PmtInf": information}


def _checkout(number: int) -> dict[str, object]:
    lines = [{"id": "shirt", "quantity": number, "price": "19.99"}, {"id": "mug", "quantity": 1, "price": "5.00"}]
    totals = [{"type": "tax", "amount": "3.60"}, {"type": "total", "amount": "48.58"}]
    return {"currency": "USD", "status": "ready_for_complete", "line_items": lines, "totals": totals}


if __name__ == "__main__":
    print(table(rows(ROUNDS, print)))
