"""FinanceVerifier: a value that a model computed, computed again exactly."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from qwed.packs.question import Question
from qwed.packs.reading import day_of, whole_of
from qwed.packs.result import Unreadable, unknown
from qwed_finance import bonds, interest, loans, sums
from qwed_finance._currency import asking
from qwed_finance._exact import Worked, amount_of, bounded, plain, rate_of, years_of
from qwed_finance._finding import ANSWER, claim_from
from qwed_finance._judging import judge
from qwed_finance._reading import annuity_of, bond_of, chosen, coupon_count_of, loan_of
from qwed_finance.cashflows import days_of, flows_of, irr, npv, npv_of_excel, xnpv
from qwed_finance.day_counts import day_count_of
from qwed_finance.result import FinanceResult

_MOST_PRECISION = 10
_NPV = ("net present value", "npv", "xnpv")
_IRR = ("internal rate of return", "irr")
_PAYMENT = ("monthly payment", "monthly instalment", "monthly installment", "emi", "payment")
_TOTAL = ("total interest", "interest")
_APR = ("annual percentage rate", "apr", "effective annual rate", "effective rate", "ear", "apy")
_AMOUNT = ("future value", "present value", "amount", "value", "interest", "balance")


class FinanceVerifier:
    """Computes again what a model says; `precision` is how many decimals an amount has at least."""

    def __init__(self, precision: Any = 2) -> None:
        self.precision = precision

    @asking
    def verify_npv(self, cashflows: Any, rate: Any, llm_output: Any) -> FinanceResult:
        """Whether this is the net present value; the first cash flow is at t = 0."""
        flows, exact = flows_of(cashflows), rate_of("rate", rate)
        with bounded():
            worked = npv(flows, exact)
            return self._judged(llm_output, [worked], flows, _NPV, [npv_of_excel(worked, exact)])

    @asking
    def verify_irr(self, cashflows: Any, llm_output: Any) -> FinanceResult:
        """Whether this is an internal rate of return, as a fraction or in percent."""
        flows = flows_of(cashflows)
        with bounded():
            return self._judged(llm_output, irr(flows), flows, _IRR)

    @asking
    def verify_xnpv(self, cashflows: Any, dates: Any, rate: Any, llm_output: Any) -> FinanceResult:
        """Whether this is the net present value on the day of the first cash flow."""
        flows, exact = flows_of(cashflows), rate_of("rate", rate)
        with bounded():
            worked = xnpv(flows, days_of(dates, len(flows)), exact)
            return self._judged(llm_output, [worked], flows, _NPV)

    @asking
    def verify_monthly_payment(self, principal: Any, annual_rate: Any, months: Any, llm_output: Any) -> FinanceResult:
        """Whether this is what is paid each month."""
        loan = loan_of(principal, annual_rate, months)
        with bounded():
            worked = loans.payment(loan)
            negative = worked._replace(
                value=worked.value.copy_negate(), called="the payment with a minus, as Excel's PMT has it"
            )
            return self._judged(llm_output, [worked], loan[:2], _PAYMENT, [negative])

    @asking
    def verify_total_interest(
        self, principal: Any, annual_rate: Any, months: Any, llm_output: Any, convention: Any = "payments"
    ) -> FinanceResult:
        """Whether this is the interest of the whole loan: of all payments, or of a `schedule` in cents."""
        loan, decimals = loan_of(principal, annual_rate, months), self._decimals()
        if not isinstance(convention, str) or convention not in loans.CONVENTIONS:
            raise unknown("convention", convention, loans.CONVENTIONS)
        with bounded():
            in_cents = loans.interest_of_schedule(loan, decimals)
            if convention == "schedule":
                return self._judged(llm_output, [in_cents], loan[:2], _TOTAL)
            hint = in_cents._replace(called=f"that {in_cents.called}: ask with convention `schedule`")
            return self._judged(llm_output, loans.total_interest(loan, decimals), loan[:2], _TOTAL, [hint])

    @asking
    def verify_amortization(
        self, principal: Any, annual_rate: Any, months: Any, month: Any, llm_output: Any, part: Any = "balance"
    ) -> FinanceResult:
        """Whether this is the balance after a month, or the interest or the principal in its payment."""
        loan = loan_of(principal, annual_rate, months)
        at = whole_of("month", plain(month), 1, loan.months)
        if not isinstance(part, str) or part not in loans.PARTS:
            raise unknown("part", part, loans.PARTS)
        with bounded():
            return self._judged(llm_output, loans.line(loan, at, part, self._decimals()), loan[:2], (part,))

    @asking
    def verify_apr(self, principal: Any, annual_rate: Any, months: Any, fees: Any, llm_output: Any) -> FinanceResult:
        """Whether this is the annual percentage rate of a loan whose fees are kept back."""
        loan, kept = loan_of(principal, annual_rate, months), amount_of("fees", fees)
        if kept < 0:
            raise Unreadable("`fees` must not be negative")
        with bounded():
            return self._judged(llm_output, loans.apr(loan, kept, self._decimals()), (loan.rate,), _APR)

    @asking
    def verify_compound_interest(
        self, principal: Any, rate: Any, periods: Any, llm_output: Any, compounding: Any = "annual", value: Any = None
    ) -> FinanceResult:
        """Whether this is the amount after `periods` years at an annual `rate`, or the interest alone."""
        exact, yearly, years = amount_of("principal", principal), rate_of("rate", rate), years_of("periods", periods)
        often = interest.compounding_of(compounding)
        with bounded():
            readings = chosen(interest.compound(exact, yearly, years, often), value)
            return self._judged(llm_output, readings, (exact, yearly, years), _AMOUNT)

    @asking
    def verify_simple_interest(
        self, principal: Any, rate: Any, years: Any, llm_output: Any, value: Any = None
    ) -> FinanceResult:
        """Whether this is the simple interest, or the amount with it."""
        exact, yearly, long = amount_of("principal", principal), rate_of("rate", rate), years_of("years", years)
        with bounded():
            readings = chosen(interest.simple(exact, yearly, long), value)
            return self._judged(llm_output, readings, (exact, yearly, long), _AMOUNT)

    @asking
    def verify_interest(
        self, principal: Any, rate: Any, start: Any, end: Any, llm_output: Any, day_count: Any = "30/360"
    ) -> FinanceResult:
        """Whether this is the simple interest between two days by a day count convention."""
        exact, yearly = amount_of("principal", principal), rate_of("rate", rate)
        first, last, name = day_of("start", start), day_of("end", end), day_count_of(day_count)
        with bounded():
            return self._judged(
                llm_output, [sums.day_count_interest(exact, yearly, first, last, name)], (exact, yearly), _AMOUNT
            )

    @asking
    def verify_future_value(
        self, present_value: Any, rate: Any, periods: Any, llm_output: Any, payment: Any = 0, when: Any = "end"
    ) -> FinanceResult:
        """Whether this is what an amount and a payment in each period come to; `rate` is that of a period."""
        values = annuity_of(present_value, rate, periods, payment, when)
        with bounded():
            return self._judged(llm_output, [interest.future_value(*values)], values[:2], _AMOUNT)

    @asking
    def verify_present_value(
        self, future_value: Any, rate: Any, periods: Any, llm_output: Any, payment: Any = 0, when: Any = "end"
    ) -> FinanceResult:
        """Whether this is what a later amount and a payment in each period are worth today."""
        values = annuity_of(future_value, rate, periods, payment, when)
        with bounded():
            return self._judged(llm_output, [interest.present_value(*values)], values[:2], _AMOUNT)

    @asking
    def verify_effective_rate(self, nominal_rate: Any, llm_output: Any, compounding: Any = "monthly") -> FinanceResult:
        """Whether this is the effective annual rate (APY) of a nominal one."""
        rate, often = rate_of("nominal_rate", nominal_rate), interest.compounding_of(compounding)
        with bounded():
            return self._judged(llm_output, [interest.effective(rate, often)], (rate,), _APR)

    @asking
    def verify_bond_price(
        self, face: Any, coupon_rate: Any, yield_rate: Any, years: Any, llm_output: Any, frequency: Any = 2
    ) -> FinanceResult:
        """Whether this is the price of a bond just after a coupon."""
        bond, rate = bond_of(face, coupon_rate, years, frequency), rate_of("yield_rate", yield_rate)
        with bounded():
            return self._judged(llm_output, [bonds.price(bond, rate)], (bond.face, bond.coupon, rate), ("price",))

    @asking
    def verify_bond_yield(
        self, face: Any, coupon_rate: Any, price: Any, years: Any, llm_output: Any, frequency: Any = 2
    ) -> FinanceResult:
        """Whether this is the yield to maturity of a bond just after a coupon."""
        bond, paid = bond_of(face, coupon_rate, years, frequency), amount_of("price", price)
        if paid <= 0:
            raise Unreadable("`price` must be above 0")
        with bounded():
            return self._judged(llm_output, [bonds.bond_yield(bond, paid)], (bond.coupon,), ("yield", "ytm"))

    @asking
    def verify_accrued_interest(
        self,
        face: Any,
        coupon_rate: Any,
        last_coupon: Any,
        settlement: Any,
        next_coupon: Any,
        llm_output: Any,
        day_count: Any = bonds.ICMA,
        frequency: Any = 2,
    ) -> FinanceResult:
        """Whether this is the interest that accrued since the last coupon."""
        bond = bond_of(face, coupon_rate, 1, frequency)
        days = [
            day_of(*each)
            for each in (("last_coupon", last_coupon), ("settlement", settlement), ("next_coupon", next_coupon))
        ]
        name = coupon_count_of(day_count)
        with bounded():
            worked = bonds.accrued(bond, days[0], days[1], days[2], name)
            return self._judged(llm_output, [worked], (bond.face, bond.coupon), _AMOUNT)

    @asking
    def verify_sum(self, values: Any, llm_output: Any) -> FinanceResult:
        """Whether this is the sum of the amounts."""
        exact = flows_of(values)
        with bounded():
            return self._judged(llm_output, [sums.added(exact)], exact, ("sum", "total"))

    @asking
    def verify_percentage_change(self, old: Any, new: Any, llm_output: Any) -> FinanceResult:
        """Whether this is the change from `old` to `new`, as a fraction or in percent."""
        before, after = amount_of("old", old), amount_of("new", new)
        with bounded():
            return self._judged(llm_output, [sums.change(before, after)], (before, after), ("change", "growth"))

    @asking
    def verify_banking_scenario(self, scenario: Any, llm_output: Any) -> FinanceResult:
        """Whether the reasoning in `llm_output` ends in what the scenario comes to."""
        from qwed_finance._banking.scenario import verify_scenario

        with bounded():
            return verify_scenario(scenario, llm_output, self._decimals())

    def _decimals(self) -> int:
        return whole_of("precision", plain(self.precision), 0, _MOST_PRECISION)

    def _judged(
        self,
        llm_output: Any,
        readings: Sequence[Worked],
        inputs: Sequence[Decimal],
        labels: Sequence[str],
        hints: Sequence[Worked] = (),
    ) -> FinanceResult:
        precision = self._decimals()
        names = {"asked": (*labels, *ANSWER)}
        claim = claim_from("llm_output", llm_output, rate=readings[0].rate, labels=names, inputs=inputs)
        return judge(claim, readings, precision, hints)


def _asking(method: str) -> Callable[..., FinanceResult]:
    def ask(precision: Any = 2, **values: Any) -> FinanceResult:
        found: FinanceResult = getattr(FinanceVerifier(precision), method)(**values)
        return found

    return ask


def _question(name: str, says: str, required: str, optional: str = "") -> Question:
    takes = (*required.split(), "llm_output")
    return Question(name, says, _asking(f"verify_{name}"), takes, (*optional.split(), "precision"), "llm_output")


QUESTIONS = (
    _question("npv", "net present value, the first cash flow at t = 0", "cashflows rate"),
    _question("irr", "internal rate of return", "cashflows"),
    _question("xnpv", "net present value of dated cash flows", "cashflows dates rate"),
    _question("monthly_payment", "level monthly payment of a loan", "principal annual_rate months"),
    _question("total_interest", "interest of a whole loan", "principal annual_rate months", "convention"),
    _question("amortization", "one line of an amortisation schedule", "principal annual_rate months month", "part"),
    _question("apr", "annual percentage rate of a loan with fees", "principal annual_rate months fees"),
    _question("compound_interest", "amount or interest after years", "principal rate periods", "compounding value"),
    _question("simple_interest", "simple interest, or the amount with it", "principal rate years", "value"),
    _question("interest", "interest between two days by a day count", "principal rate start end", "day_count"),
    _question("future_value", "future value of an amount and payments", "present_value rate periods", "payment when"),
    _question("present_value", "present value of an amount and payments", "future_value rate periods", "payment when"),
    _question("effective_rate", "effective annual rate of a nominal one", "nominal_rate", "compounding"),
    _question("bond_price", "price of a bond just after a coupon", "face coupon_rate yield_rate years", "frequency"),
    _question("bond_yield", "yield to maturity of a bond", "face coupon_rate price years", "frequency"),
    _question(
        "accrued_interest",
        "interest of a bond since its last coupon",
        "face coupon_rate last_coupon settlement next_coupon",
        "day_count frequency",
    ),
    _question("sum", "sum of amounts", "values"),
    _question("percentage_change", "change in percent", "old new"),
    _question("banking_scenario", "reasoning about a banking scenario", "scenario"),
)
