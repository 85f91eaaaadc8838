"""Account scenarios: an opening balance and movements, one per sentence."""

import re
from decimal import Decimal
from typing import NamedTuple

from qwed.packs.result import UnreadableInputError
from qwed_finance._banking.grammar import (
    AMOUNT,
    PERCENT,
    Amount,
    amount_from,
    extract_matches,
    percent_from,
    require_one_currency,
    require_words,
    unparsed_error,
    word_set,
)
from qwed_finance._banking.solution import Solution
from qwed_finance._decimal import FINE, ZERO, Computation, round_half_up

_MAX_SENTENCES = 200
_MOVE_VERBS = r"(?:with|deposit|transfer|pay|spend|receiv)[a-z]{0,6} "
_INTENDS = r"(?:wants to |tries to |attempts to |would like to |requests (?:a )?|makes (?:a )?)?"
_SENTENCE = re.compile(
    rf"(?<=[a-z0-9)%])[.;?!](?=\s|\Z)|,? (?:and )?then |, (?:and )?(?={_MOVE_VERBS})"
    rf"| and (?=(?:he |she |they |i )?{_INTENDS}{_MOVE_VERBS})"
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
_QUESTIONS = re.compile(
    r"\bwhat(?: is|'s) (?:the |my )?(?:new |final |remaining |closing |ending |resulting |account )?balance\b"
    r"(?: now| after that)?"
    r"|\bhow much (?:is left|remains|money is left)\b"
    r"|\b(?:final|new|remaining|closing|ending) balance\b"
    r"|\b(?:are there|is there) (?:sufficient|enough) (?:funds|money)\b"
    r"|\b(?:is|will|can|should) (?:it|this|the (?:transaction|withdrawal|transfer|payment)) "
    r"(?:be )?(?:approved|allowed|go through)\b"
)
_KNOWN_WORDS = word_set(
    "a an the of is are was with has have had holds starts start opens opened account my i he she they "
    "customer client bank user balance opening initial starting current checking savings to from into in "
    "out and for on it this that his her another friend's friend atm cash by at money amount them their "
    "made makes make worth check new opening's account's customer's beneficiary landlord rent groceries "
    "merchant store bill wants tries attempts would like there after be requests allowed approved "
    "permitted possible"
)
_FEE_WORDS = word_set("withdrawal transfer payment deposit transaction applies apply applied each per every")


class AccountMovement(NamedTuple):
    """Money in or out of an account."""

    name: str
    sign: int
    amount: Decimal


def solve_account(text: str, decimals: int) -> Solution | None:
    """Return the balance after all movements, or None if the text is not about an account."""
    if not _OPENS.search(text) or "income" in text:
        return None
    questions = list(_QUESTIONS.finditer(text))
    sentences = [
        sentence.strip(" ,")
        for sentence in _SENTENCE.split(_RULES.sub(" ", _QUESTIONS.sub(" ", text)))
        if sentence.strip(" ,:.?!;")
    ]
    if not 1 <= len(sentences) <= _MAX_SENTENCES:
        raise unparsed_error(f"the scenario must have 1 to {_MAX_SENTENCES} sentences")
    state = _Account(decimals)
    # A limit applies from the start, wherever it is mentioned.
    for sentence in sorted(sentences, key=lambda row: not (_OVERDRAFT.search(row) or _MINIMUM.search(row))):
        state.read(sentence)
    return state.solution(
        any(re.search("sufficient|enough|approved|allowed|through", sentence[0]) for sentence in questions)
    )


class _Account:
    """State of the account while the scenario is read."""

    def __init__(self, decimals: int) -> None:
        self.decimals = decimals
        self.balance: Decimal | None = None
        self.lowest = ZERO
        self.last: AccountMovement | None = None
        self.refused = ""
        self.amounts: list[Amount] = []
        self.seen: set[Decimal] = set()
        self.steps: list[str] = []

    def read(self, sentence: str) -> None:
        rates, rest = extract_matches(PERCENT, sentence)
        matches, rest = extract_matches(AMOUNT, rest)
        if len(rates) + len(matches) != 1:
            raise unparsed_error(
                f"a sentence must have one amount, and `{sentence[:60]}` has {len(rates) + len(matches)}"
            )
        amounts = [amount_from(match) for match in matches]
        self.amounts += amounts
        require_one_currency(self.amounts)
        value = amounts[0].value if amounts else percent_from(rates[0])
        if value < 0:
            raise unparsed_error("amounts of an account are written without a minus")
        self._take(sentence, rest, value, is_percent=bool(rates))

    def _take(self, sentence: str, rest: str, value: Decimal, *, is_percent: bool) -> None:
        for pattern, factor in ((_OVERDRAFT, -1), (_MINIMUM, 1)):
            if pattern.search(sentence) and not is_percent:
                require_words(pattern.sub(" ", rest), _KNOWN_WORDS)
                self.lowest = FINE.multiply(value, Decimal(factor))
                return
        if self.balance is None:
            self._open(rest, value)
        else:
            self._move(rest, value, is_percent=is_percent)

    def _open(self, rest: str, value: Decimal) -> None:
        if not _OPENS.search(rest):
            raise unparsed_error("the scenario must begin with the balance, as in `Balance is $500.`")
        require_words(_OPENS.sub(" ", rest), _KNOWN_WORDS)
        self.balance = value
        self.seen.add(value)
        self.steps.append(f"balance: {value:f}")

    def _move(self, rest: str, value: Decimal, *, is_percent: bool) -> None:
        verb = next(((name, sign, pattern) for name, sign, pattern in _VERBS if pattern.search(rest)), None)
        if verb is None:
            raise unparsed_error(f"`{rest.strip()[:60]}` says neither that money goes in nor that it goes out")
        name, sign, pattern = verb
        if is_percent and (name != "fee" or self.last is None):
            raise unparsed_error("a percentage is understood as a fee on what was moved before it")
        require_words(pattern.sub(" ", rest), _KNOWN_WORDS | _FEE_WORDS if name == "fee" else _KNOWN_WORDS)
        if is_percent and self.last is not None:
            value = round_half_up(FINE.multiply(self.last.amount, value), self.decimals)
        self._apply(AccountMovement(name, sign, value))

    def _apply(self, step: AccountMovement) -> None:
        if self.refused:
            raise UnreadableInputError(
                f"{self.refused}, so what happens after it cannot be known: end the scenario there"
            )
        before = self.balance or ZERO
        after = FINE.add(before, FINE.multiply(step.amount, Decimal(step.sign)))
        self.last = step
        self.seen |= {step.amount, before}
        if step.sign < 0 and after < self.lowest:
            self.refused = f"the {step.name} of {step.amount:f} would leave {after:f}, below {self.lowest:f}"
            self.steps.append(f"{before:f} - {step.amount:f} = {after:f}, below {self.lowest:f}: it is declined")
            # An explanation may mention these: `it would leave -$100`, `$100 short`.
            self.seen |= {after, FINE.abs(FINE.subtract(after, self.lowest))}
            return
        self.steps.append(f"{step.name}: {before:f} {'+' if step.sign > 0 else '-'} {step.amount:f} = {after:f}")
        self.balance = after

    def solution(self, decides: bool) -> Solution:
        """Return the solution."""
        if self.balance is None or self.last is None:
            raise unparsed_error("the scenario must say the balance and what happens to it")
        rule = "account: what goes in is added, what goes out and fees are taken off; no overdraft unless allowed"
        computation = Computation(self.balance, "balance + in - out", rule, tuple(self.steps), self.balance)
        return Solution(
            quantities={"balance": [computation]},
            asked=["balance"],
            inputs=frozenset(self.seen),
            currency=require_one_currency(self.amounts),
            holds=not self.refused,
            reason=self.refused or f"the balance never falls below {self.lowest:f}",
            decides=decides or bool(self.refused),
        )
