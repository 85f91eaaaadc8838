"""Scenarios of a limit: what was used of it, what is asked for, and whether that is still within."""

import re
from decimal import Decimal

from qwed_finance._banking.posed import Posed
from qwed_finance._banking.words import AMOUNT, PERCENT, Amount, amount, one_currency, require_words, unparsed, words
from qwed_finance._exact import FINE, ZERO, Worked

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
_KNOWN = words(
    "a an the of is are was has have had with customer client user account holder he she they his her their i my to "
    "for on at in it this that be today now then another further more additional and wants tries attempts would like "
    "asks make made makes cash atm bank allowed approved can should will does do go through permitted already so far "
    "earlier outstanding new"
)
_MOST = 20
_RULE = "a limit: what was used and what is asked for are together at most the limit"


def limit(text: str, _decimals: int) -> Posed | None:
    """Whether something more is within a limit, and what remains of it."""
    if not _LIMIT.search(text) or PERCENT.search(text) or re.search(r"\bbalance\b|\boverdraft\b", text):
        return None
    clauses = [each.strip() for each in _CLAUSE.split(text) if each.strip(" ,:.?!;")]
    found: dict[str, list[Amount]] = {"limit": [], "used": [], "asked": []}
    for clause in clauses[:_MOST]:
        _read(clause, found)
    if len(clauses) > _MOST or len(found["limit"]) != 1 or len(found["asked"]) != 1 or len(found["used"]) > 1:
        raise unparsed("a limit, what is asked for and at most one amount that was used are said once")
    currency = one_currency([each for one in found.values() for each in one])
    most, asked = found["limit"][0].value, found["asked"][0].value
    return _posed(most, found["used"][0].value if found["used"] else ZERO, asked, currency)


def _read(clause: str, found: dict[str, list[Amount]]) -> None:
    amounts = [amount(each) for each in AMOUNT.finditer(clause)]
    rest = AMOUNT.sub(" ", clause)
    kind = "limit" if _LIMIT.search(rest) else "used" if _USED.search(rest) else "asked"
    require_words(_MOVES.sub(" ", _LIMIT.sub(" ", rest)), _KNOWN)
    if (
        len(amounts) > 1
        or any(each.value < 0 for each in amounts)
        or (amounts and kind == "asked" and not _MOVES.search(rest))
    ):
        raise unparsed(f"a clause must have one amount and say what it is, and `{clause[:60]}` does not")
    found[kind] += amounts


def _posed(most: Decimal, used: Decimal, asked: Decimal, currency: str) -> Posed:
    together = FINE.add(used, asked)
    remains = FINE.subtract(most, together)
    holds = remains >= 0
    reason = f"{used:f} + {asked:f} = {together:f} is {'within' if holds else 'beyond'} the limit of {most:f}"
    left = FINE.subtract(most, used)
    worked = [Worked(remains if holds else left, "limit - used - asked", _RULE, (reason,), most)]
    return Posed(
        quantities={"remaining": worked},
        asked=["remaining"],
        inputs=frozenset({most, used, asked, together, left, remains.copy_abs()}),
        currency=currency,
        holds=holds,
        reason=reason,
        decides=True,
    )
