"""CPU time of one verdict per engine, in process, compared with bare parsers and bandit."""

import ast
import io
import itertools
import time
from collections.abc import Callable

import sqlglot
from bandit.core.config import BanditConfig
from bandit.core.manager import BanditManager

from benchmarks.measure import interleaved, ratio
from benchmarks.report import Row, Say, absolute, at_most
from qwed.engines import logic, math, sql
from qwed.engines.protocol import EngineRequest
from qwed.guards import python_code, shell
from qwed.model import Status
from qwed_mcp.security import RiskBasedExecutionGateway
from qwed_mcp.settings import McpSettings

_numbers = itertools.count(1)
PEERS = (
    ("sql engine, new text", "bare sqlglot parse of the same"),
    ("python guard, 5 lines", "bandit, 5 lines"),
    ("python guard, 1,000 lines", "bandit, 1,000 lines"),
    ("python guard, 1,000 lines", "bare ast.parse, 1,000 lines"),
    ("python guard, 4,000 lines", "python guard, 1,000 lines"),
    ("mcp gateway, 50 lines", "bare ast.parse, 50 lines"),
)
_AIMS = {"mcp gateway, 50 lines": at_most(1000)}

QUERY = """
SELECT c.name, sum(o.total) AS spent FROM customers c JOIN orders o ON o.customer_id = c.id
WHERE o.placed_at >= DATE '2026-01-01' AND c.region = 'r{0}' GROUP BY c.name HAVING sum(o.total) > {0}
ORDER BY spent DESC LIMIT 10
"""
FIVE_LINES = """\
import math
values = [math.sqrt(n) for n in range({0})]
total = sum(values)
mean = total / len(values)
print(f"{{mean:.2f}}")
"""
FUNCTION = """\
def worker_{0}(rows, limit={0}):
    kept = []
    for row in rows:
        if row["total"] > limit and row.get("state") != "closed":
            kept.append({{"id": row["id"], "total": round(row["total"] * 1.2, 2)}})
    kept.sort(key=lambda each: each["total"])
    names = ", ".join(str(each["id"]) for each in kept)
    return f"{{len(kept)}} rows: {{names}}"

"""
FIFTY_LINES = """\
from decimal import Decimal, ROUND_HALF_UP
from sympy import diff, simplify, symbols
from qwed_new.guards.sql_guard import SQLGuard

x = symbols("x")
claimed = 3 * x**2 + {0}
derived = diff(x**3 + {0} * x, x)
print(f"derivative: {{derived}}")
assert simplify(derived - claimed) == 0, "the derivative is another one"

principal = Decimal("{0}00")
rate = Decimal("0.075")
periods = Decimal("4")
years = Decimal("5")
value = principal * (1 + rate / periods) ** (periods * years)
value = value.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)
print(f"future value: {{value}}")
assert value > principal


def schedule(amount, monthly, months):
    # What is still owed after each month.
    rows = []
    for month in range(1, months + 1):
        interest = (amount * monthly).quantize(Decimal("0.01"))
        amount = amount + interest - Decimal("100")
        rows.append((month, interest, amount))
        if amount <= 0:
            break
    return rows


owed = schedule(Decimal("1200"), Decimal("0.01"), {0})
total = sum(interest for _, interest, _ in owed)
for month, interest, left in owed[:3]:
    print(f"{{month:>3}} {{interest:>10}} {{left:>10}}")
print(f"interest: {{total}}")
assert total >= 0

guard = SQLGuard()
queries = {{
    "read": "SELECT name FROM users WHERE id = {0}",
    "injected": "SELECT * FROM users WHERE id = '1' OR '1'='1'",
}}
for name, query in queries.items():
    result = guard.verify_query(query)
    print(name, result["verified"], result.get("message", ""))
    if name == "injected":
        assert not result["verified"]
print("VERIFIED")
"""
COMMAND = "find ./data{0} -name '*.csv' | xargs grep -l total | sort | head -20"
SMT = "(AND (GT x {0}) (LT x (PLUS {0} 10)) (IMPLIES p (EQ y (TIMES 2 x))) p)"


def rows(rounds: int, _say: Say) -> list[Row]:
    """Compare each engine with its peer; four times the lines should take four times as long."""
    seen = interleaved(contenders(), rounds)
    return [
        *(Row(f"{ours} / {theirs}", ratio(seen[ours], seen[theirs])) for ours, theirs in PEERS),
        *(absolute(f"{name}, us of CPU", values, _AIMS.get(name)) for name, values in seen.items()),
    ]


def thousand_lines(number: int, thousands: int = 1) -> str:
    """Return thousands of lines of ordinary functions."""
    return "".join(FUNCTION.format(number + n) for n in range(112 * thousands))


def contenders() -> dict[str, Callable[[], float]]:
    """Return functions that measure microseconds of CPU time per verdict on a new text each time."""
    bandit = BanditManager(BanditConfig(), "file")
    gateway = RiskBasedExecutionGateway(McpSettings(trusted_code_execution=True))
    return {
        "sql engine, new text": _each(lambda n: _verified(sql.verify(EngineRequest(query=QUERY.format(n)))), 20),
        "bare sqlglot parse of the same": _each(lambda n: sqlglot.parse_one(QUERY.format(n), "postgres"), 20),
        "python guard, 5 lines": _each(lambda n: python_code.findings(FIVE_LINES.format(n)), 50),
        "python guard, 1,000 lines": _each(lambda n: python_code.findings(thousand_lines(n)), 1),
        "python guard, 4,000 lines": _each(lambda n: python_code.findings(thousand_lines(n, 4)), 1),
        "bandit, 5 lines": _each(lambda n: _bandit(bandit, FIVE_LINES.format(n)), 20),
        "bandit, 1,000 lines": _each(lambda n: _bandit(bandit, thousand_lines(n)), 1),
        "bare ast.parse, 1,000 lines": _each(lambda n: ast.parse(thousand_lines(n)), 1),
        "mcp gateway, 50 lines": _each(lambda n: _allowed(gateway, FIFTY_LINES.format(n)), 20),
        "bare ast.parse, 50 lines": _each(lambda n: ast.parse(FIFTY_LINES.format(n)), 20),
        "logic engine, a satisfiable formula": _each(
            lambda n: _verified(logic.verify(EngineRequest(query=SMT.format(n)))), 10
        ),
        "math engine, a value": _each(lambda n: _verified(math.verify(EngineRequest(query=f"{n}*7 = {7 * n}"))), 200),
        "math engine, an identity": _each(
            lambda n: _verified(math.verify(EngineRequest(query=f"(x+{n})^2 = x^2 + {2 * n}*x + {n * n}"))), 5
        ),
        "shell guard, a pipeline": _each(lambda n: shell.findings(COMMAND.format(n)), 50),
    }


def _verified(verdict: object) -> None:
    status = getattr(verdict, "status", None)
    if status is not Status.VERIFIED:
        raise RuntimeError(f"not verified: {verdict}")


def _allowed(gateway: RiskBasedExecutionGateway, code: str) -> None:
    decision = gateway.evaluate_and_route("execute_python_code", {"code": code})
    if not decision.verified:
        raise RuntimeError(decision.message)


def _bandit(manager: BanditManager, code: str) -> None:
    """Run one bandit scan without reports, through private functions because there is no public API."""
    # With a directory: of a bare name it complains at every scan that it belongs to no module.
    manager._parse_file("./bench.py", io.BytesIO(code.encode()), ["./bench.py"])


def _each(run: Callable[[int], object], times: int) -> Callable[[], float]:
    def measured() -> float:
        numbers = [next(_numbers) for _ in range(times)]
        started = time.process_time()
        for number in numbers:
            run(number)
        return (time.process_time() - started) / times * 1e6

    return measured
