"""Cost of one A2A message in process, without its signature, compared with bare parsing.

Texts are new each time, and each payload has about 1 KB.
"""

import ast
import itertools
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

from benchmarks.measure import interleaved, ratio
from benchmarks.report import Row, Say, absolute, at_most
from qwed.futures import run_in_thread
from qwed_a2a import A2AVerificationInterceptor, AgentMessage, InterceptorConfig, PayloadType

MESSAGES = 100
SECONDS = 20.0
FINANCIAL, CODE, READING_CODE = "financial message, 1 KB", "code message, 1 KB", "code message, 1 KB, that reads a file"
JSON_OF, PARSE_OF = "json.loads of the financial one", "ast.parse of the code"

_PROGRAM = '''\
"""What a loan of {0} costs, month by month."""
import json
import math
from datetime import date, timedelta


def monthly_rate(yearly):
    """The rate of a month, compounded."""
    return (1 + yearly) ** (1 / 12) - 1


def schedule(amount, yearly, months, start):
    """Every payment with the interest in it."""
    # The payment is the same each month; the last one may be a cent off.
    rate = monthly_rate(yearly)
    payment = amount * rate / (1 - (1 + rate) ** -months)
    rows = []
    due = start
    for number in range(1, months + 1):
        interest = amount * rate
        amount = amount + interest - payment
        due = due + timedelta(days=30)
        rows.append({{"number": number, "due": due.isoformat(), "interest": round(interest, 2)}})
        if math.isclose(amount, 0, abs_tol=0.005):
            break
    return rows


rows = schedule({0}, 0.049, 24, date(2026, 1, 31))
total = sum(row["interest"] for row in rows)
print(json.dumps({{"interest": round(total, 2), "months": len(rows)}}))
'''
_READING = '''\
"""The largest accounts of {0}."""
import csv
from collections import defaultdict
from decimal import Decimal


class Ledger:
    """Totals of a file of bookings, by account."""

    def __init__(self, name):
        self.name = name
        self.totals = defaultdict(Decimal)
        self.count = 0

    def add(self, row):
        self.totals[row["account"]] += Decimal(row["amount"])
        self.count += 1

    def largest(self, most=5):
        ordered = sorted(self.totals.items(), key=lambda pair: -pair[1])
        return ordered[:most]


def bookings(path):
    """The rows that are booked."""
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["state"] == "booked":
                yield row


ledger = Ledger("{0}")
for row in bookings("bookings.csv"):
    ledger.add(row)
for account, total in ledger.largest():
    print(f"{{account:<12}} {{total:>14.2f}}")
'''
_numbers = itertools.count(1_000)


def rows(rounds: int, _say: Say) -> list[Row]:
    """Compare each kind of message with bare parsing."""
    running = contenders()
    for run in running.values():
        run()  # trigger late imports
    seen = interleaved(running, rounds)
    aims = dict.fromkeys((FINANCIAL, CODE), at_most(0.3))
    pairs = ((FINANCIAL, JSON_OF), (CODE, PARSE_OF))
    return [
        *(Row(f"{ours} / {theirs}", ratio(seen[ours], seen[theirs])) for ours, theirs in pairs),
        *(absolute(f"{name}, ms", values, aims.get(name)) for name, values in seen.items()),
    ]


def contenders() -> dict[str, Callable[[], float]]:
    """Return functions that measure the median milliseconds of each kind of message and of parsing the same bytes."""
    interceptor = A2AVerificationInterceptor(InterceptorConfig())

    def judged(message: AgentMessage) -> None:
        verdict = run_in_thread(interceptor.judge(message), SECONDS)
        if not verdict.forwarded:
            raise RuntimeError(f"not forwarded: {verdict}")

    return {
        FINANCIAL: _median(lambda n: _message(PayloadType.FINANCIAL_TRANSACTION, _invoice(n)), judged),
        JSON_OF: _median(lambda n: json.dumps(_invoice(n)), json.loads),
        CODE: _median(lambda n: _message(PayloadType.CODE_EXECUTION, {"code": _PROGRAM.format(n)}), judged),
        READING_CODE: _median(lambda n: _message(PayloadType.CODE_EXECUTION, {"code": _READING.format(n)}), judged),
        PARSE_OF: _median(_PROGRAM.format, ast.parse),
    }


def _invoice(number: int) -> dict[str, Any]:
    lines = [{"description": f"item {number + n}", "amount": f"{number + n}.25", "quantity": 2} for n in range(14)]
    total = sum(2 * (number + n) for n in range(14)) + 7
    return {"data": {"claimed_total": f"{total}.00", "line_items": lines, "currency": "EUR"}}


def _message(kind: PayloadType, payload: dict[str, Any]) -> AgentMessage:
    return AgentMessage(sender_agent_id="bench", receiver_agent_id="peer", payload_type=kind, payload=payload)


def _median(make: Callable[[int], Any], work: Callable[[Any], object]) -> Callable[[], float]:
    def measured() -> float:
        took = []
        for given in [make(next(_numbers)) for _ in range(MESSAGES)]:
            began = time.perf_counter()
            work(given)
            took.append(time.perf_counter() - began)
        return statistics.median(took) * 1e3

    return measured
