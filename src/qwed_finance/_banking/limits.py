"""Limit scenarios: the used amount, the requested amount, and whether both are within the limit."""

import re
from decimal import Decimal

from qwed_finance._banking.grammar import (
    AMOUNT,
    PERCENT,
    Amount,
    amount_from,
    require_one_currency,
    require_words,
    unparsed_error,
    word_set,
)
from qwed_finance._banking.solution import Solution
from qwed_finance._decimal import FINE, ZERO, Computation

_LIMIT = re.compile(
    r"\b(?:daily|weekly|monthly|single|credit|spending|transfer|transaction|withdrawal|atm|card|payment|purchase)"
    r"(?: (?:withdrawal|transfer|transaction|spending|card|purchase|payment|cash|atm))* limit\b"
)
_USED = re.compile(r"\balready\b|\bso far\b|\bused\b|\boutstanding\b|\bearlier\b")
_MOVES = re.compile(
    r"\b(?:withdr[ae]w(?:s|n|al|ing)?|withdrew|transfer(?:s|red|ring)?|spen[dt]s?|spending|pays?|paid|payment|purchases?|"
    r"buys?|transaction|charges?|requests?|sends?|sent|used)\b"
)
_CLAUSE = re.compile(
    r"(?<=[a-z0-9)])[.;?!:](?=\s|\Z)|,(?=\s)"
    r"| and (?=(?:now |then |he |she |they )?(?:requests|wants|tries|attempts|asks))"
)
_KNOWN_WORDS = word_set(
    "a an the of is are was has have had with customer client user account holder he she they his her their i my to "
    "for on at in it this that be today now then another further more additional and wants tries attempts would like "
    "asks make made makes cash atm bank allowed approved can should will does do go through permitted already so far "
    "earlier outstanding new"
)
_MAX_CLAUSES = 20
_RULE = "a limit: what was used and what is asked for are together at most the limit"


def solve_limit(text: str, _decimals: int) -> Solution | None:
    """Return whether a further amount is within a limit, and what remains of it."""
    if not _LIMIT.search(text) or PERCENT.search(text) or re.search(r"\bbalance\b|\boverdraft\b", text):
        return None
    clauses = [item.strip() for item in _CLAUSE.split(text) if item.strip(" ,:.?!;")]
    amounts: dict[str, list[Amount]] = {"limit": [], "used": [], "asked": []}
    for clause in clauses[:_MAX_CLAUSES]:
        _read_clause(clause, amounts)
    if (
        len(clauses) > _MAX_CLAUSES
        or len(amounts["limit"]) != 1
        or len(amounts["asked"]) != 1
        or len(amounts["used"]) > 1
    ):
        raise unparsed_error("name one limit, one requested amount and at most one used amount")
    currency = require_one_currency([item for group in amounts.values() for item in group])
    limit, requested = amounts["limit"][0].value, amounts["asked"][0].value
    return _build_solution(limit, amounts["used"][0].value if amounts["used"] else ZERO, requested, currency)


def _read_clause(clause: str, by_kind: dict[str, list[Amount]]) -> None:
    amounts = [amount_from(amount) for amount in AMOUNT.finditer(clause)]
    rest = AMOUNT.sub(" ", clause)
    kind = "limit" if _LIMIT.search(rest) else "used" if _USED.search(rest) else "asked"
    require_words(_MOVES.sub(" ", _LIMIT.sub(" ", rest)), _KNOWN_WORDS)
    if (
        len(amounts) > 1
        or any(amount.value < 0 for amount in amounts)
        or (amounts and kind == "asked" and not _MOVES.search(rest))
    ):
        raise unparsed_error(f"a clause must have one amount and say what it is, and `{clause[:60]}` does not")
    by_kind[kind] += amounts


def _build_solution(limit: Decimal, used: Decimal, requested: Decimal, currency: str) -> Solution:
    total = FINE.add(used, requested)
    remains = FINE.subtract(limit, total)
    holds = remains >= 0
    reason = f"{used:f} + {requested:f} = {total:f} is {'within' if holds else 'beyond'} the limit of {limit:f}"
    unused = FINE.subtract(limit, used)
    computations = [Computation(remains if holds else unused, "limit - used - asked", _RULE, (reason,), limit)]
    return Solution(
        quantities={"remaining": computations},
        asked=["remaining"],
        inputs=frozenset({limit, used, requested, total, unused, remains.copy_abs()}),
        currency=currency,
        holds=holds,
        reason=reason,
        decides=True,
    )
