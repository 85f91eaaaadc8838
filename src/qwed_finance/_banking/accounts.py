"""Scenarios of one account: it is opened with a balance, and then money goes in and out, a sentence for each."""

import re
from decimal import Decimal
from typing import NamedTuple

from qwed.packs.result import Unreadable
from qwed_finance._banking.posed import Posed
from qwed_finance._banking.words import (
    AMOUNT,
    PERCENT,
    Amount,
    amount,
    one_currency,
    percent,
    require_words,
    taken,
    unparsed,
    words,
)
from qwed_finance._exact import FINE, ZERO, Worked, rounded

_MOST = 200
_MOVES = r"(?:with|deposit|transfer|pay|spend|receiv)[a-z]{0,6} "
_INTENDS = r"(?:wants to |tries to |attempts to |would like to |requests (?:a )?|makes (?:a )?)?"
_SENTENCE = re.compile(
    rf"(?<=[a-z0-9)%])[.;?!](?=\s|\Z)|,? (?:and )?then |, (?:and )?(?={_MOVES})"
    rf"| and (?=(?:he |she |they |i )?{_INTENDS}{_MOVES})"
)
_OPENS = re.compile(
    r"\bbalance\b|\b(?:account|customer|i|he|she) (?:has|have|holds|starts with)\b|\b(?:starts?|opens?|opened) with\b"
)
_VERBS = (
    ("fee", -1, re.compile(r"\bfees?\b|\bcharges?\b|\bcommission\b")),
    ("interest", 1, re.compile(r"\binterest\b")),
    ("withdrawal", -1, re.compile(r"\bwithdr[ae]w(?:s|n|al|als|ing)?\b|\bwithdrew\b|\bdebit(?:s|ed)?\b")),
    ("transfer", -1, re.compile(r"\btransfer(?:s|red)?\b(?!.*\b(?:in|into (?:the|this|my) account|received)\b)")),
    ("payment", -1, re.compile(r"\b(?:pay|pays|paid|spend|spends|spent|purchase|purchases|buys|bought)\b")),
    ("deposit", 1, re.compile(r"\bdeposit(?:s|ed)?\b|\bcredit(?:s|ed)?\b|\breceiv(?:e|es|ed)\b|\bsalary\b")),
)
_RULES = re.compile(
    r"\b(?:no overdrafts?(?: is| are)?(?: allowed| permitted)?|overdrafts? (?:is|are) not (?:allowed|permitted))\b"
)
_OVERDRAFT = re.compile(r"\boverdraft (?:limit|facility|allowance)\b|\boverdraft of\b")
_MINIMUM = re.compile(r"\bminimum balance\b|\bmust (?:keep|maintain) at least\b")
_ASKS = re.compile(
    r"\bwhat(?: is|'s) (?:the |my )?(?:new |final |remaining |closing |ending |resulting |account )?balance\b"
    r"(?: now| after that)?"
    r"|\bhow much (?:is left|remains|money is left)\b"
    r"|\b(?:final|new|remaining|closing|ending) balance\b"
    r"|\b(?:are there|is there) (?:sufficient|enough) (?:funds|money)\b"
    r"|\b(?:is|will|can|should) (?:it|this|the (?:transaction|withdrawal|transfer|payment)) "
    r"(?:be )?(?:approved|allowed|go through)\b"
)
_KNOWN = words(
    "a an the of is are was with has have had holds starts start opens opened account my i he she they "
    "customer client bank user balance opening initial starting current checking savings to from into in "
    "out and for on it this that his her another friend's friend atm cash by at money amount them their "
    "made makes make worth check new opening's account's customer's beneficiary landlord rent groceries "
    "merchant store bill wants tries attempts would like there after be requests allowed approved "
    "permitted possible"
)
_FEES_ON = words("withdrawal transfer payment deposit transaction applies apply applied each per every")


class Step(NamedTuple):
    """Money in or out."""

    called: str
    sign: int
    amount: Decimal


def account(text: str, decimals: int) -> Posed | None:
    """A balance after everything that happens to it."""
    if not _OPENS.search(text) or "income" in text:
        return None
    asked = list(_ASKS.finditer(text))
    sentences = [
        each.strip(" ,") for each in _SENTENCE.split(_RULES.sub(" ", _ASKS.sub(" ", text))) if each.strip(" ,:.?!;")
    ]
    if not 1 <= len(sentences) <= _MOST:
        raise unparsed(f"the scenario must have 1 to {_MOST} sentences")
    found = _Account(decimals)
    # A limit holds from the start, wherever it is said.
    for each in sorted(sentences, key=lambda said: not (_OVERDRAFT.search(said) or _MINIMUM.search(said))):
        found.read(each)
    return found.posed(any(re.search("sufficient|enough|approved|allowed|through", each[0]) for each in asked))


class _Account:
    """What is known of the account so far."""

    def __init__(self, decimals: int) -> None:
        self.decimals = decimals
        self.balance: Decimal | None = None
        self.lowest = ZERO
        self.last: Step | None = None
        self.refused = ""
        self.amounts: list[Amount] = []
        self.seen: set[Decimal] = set()
        self.steps: list[str] = []

    def read(self, sentence: str) -> None:
        rates, rest = taken(PERCENT, sentence)
        found, rest = taken(AMOUNT, rest)
        if len(rates) + len(found) != 1:
            raise unparsed(f"a sentence must have one amount, and `{sentence[:60]}` has {len(rates) + len(found)}")
        amounts = [amount(each) for each in found]
        self.amounts += amounts
        one_currency(self.amounts)
        value = amounts[0].value if amounts else percent(rates[0])
        if value < 0:
            raise unparsed("amounts of an account are written without a minus")
        self._take(sentence, rest, value, is_percent=bool(rates))

    def _take(self, sentence: str, rest: str, value: Decimal, *, is_percent: bool) -> None:
        for pattern, factor in ((_OVERDRAFT, -1), (_MINIMUM, 1)):
            if pattern.search(sentence) and not is_percent:
                require_words(pattern.sub(" ", rest), _KNOWN)
                self.lowest = FINE.multiply(value, Decimal(factor))
                return
        if self.balance is None:
            self._open(rest, value)
        else:
            self._move(rest, value, is_percent=is_percent)

    def _open(self, rest: str, value: Decimal) -> None:
        if not _OPENS.search(rest):
            raise unparsed("the scenario must begin with the balance, as in `Balance is $500.`")
        require_words(_OPENS.sub(" ", rest), _KNOWN)
        self.balance = value
        self.seen.add(value)
        self.steps.append(f"balance: {value:f}")

    def _move(self, rest: str, value: Decimal, *, is_percent: bool) -> None:
        named = next(((called, sign, pattern) for called, sign, pattern in _VERBS if pattern.search(rest)), None)
        if named is None:
            raise unparsed(f"`{rest.strip()[:60]}` says neither that money goes in nor that it goes out")
        called, sign, pattern = named
        if is_percent and (called != "fee" or self.last is None):
            raise unparsed("a percentage is understood as a fee on what was moved before it")
        require_words(pattern.sub(" ", rest), _KNOWN | _FEES_ON if called == "fee" else _KNOWN)
        if is_percent and self.last is not None:
            value = rounded(FINE.multiply(self.last.amount, value), self.decimals)
        self._apply(Step(called, sign, value))

    def _apply(self, step: Step) -> None:
        if self.refused:
            raise Unreadable(f"{self.refused}, so what happens after it cannot be known: end the scenario there")
        before = self.balance or ZERO
        after = FINE.add(before, FINE.multiply(step.amount, Decimal(step.sign)))
        self.last = step
        self.seen |= {step.amount, before}
        if step.sign < 0 and after < self.lowest:
            self.refused = f"the {step.called} of {step.amount:f} would leave {after:f}, below {self.lowest:f}"
            self.steps.append(f"{before:f} - {step.amount:f} = {after:f}, below {self.lowest:f}: it is declined")
            # `it would leave -$100` and `$100 short` say why.
            self.seen |= {after, FINE.abs(FINE.subtract(after, self.lowest))}
            return
        self.steps.append(f"{step.called}: {before:f} {'+' if step.sign > 0 else '-'} {step.amount:f} = {after:f}")
        self.balance = after

    def posed(self, decides: bool) -> Posed:
        """What it all comes to."""
        if self.balance is None or self.last is None:
            raise unparsed("the scenario must say the balance and what happens to it")
        rule = "account: what goes in is added, what goes out and fees are taken off; no overdraft unless allowed"
        worked = Worked(self.balance, "balance + in - out", rule, tuple(self.steps), self.balance)
        return Posed(
            quantities={"balance": [worked]},
            asked=["balance"],
            inputs=frozenset(self.seen),
            currency=one_currency(self.amounts),
            holds=not self.refused,
            reason=self.refused or f"the balance never falls below {self.lowest:f}",
            decides=decides or bool(self.refused),
        )
