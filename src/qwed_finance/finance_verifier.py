"""FinanceVerifier: exact recomputation of a value that a model computed."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from qwed.packs.check import PackCheck
from qwed.packs.result import UnreadableInputError, unknown_name_error
from qwed.packs.value_parsing import day_of, whole_of
from qwed_finance import bonds, interest, loans, sums
from qwed_finance._arguments import parse_annuity, parse_bond, parse_coupon_day_count, parse_loan, select_readings
from qwed_finance._compare import judge_claim
from qwed_finance._currency import single_currency
from qwed_finance._decimal import (
    FINE,
    TWELVE,
    Computation,
    parse_amount,
    parse_rate,
    parse_years,
    reject_overflow,
    to_builtin_number,
)
from qwed_finance._number_extraction import ANSWER_LABELS, extract_claim
from qwed_finance._stated_period import ClaimScope
from qwed_finance.cashflows import excel_npv, irr, npv, parse_days, parse_flows, xnpv
from qwed_finance.day_counts import parse_day_count
from qwed_finance.loans import Loan
from qwed_finance.result import FinanceResult

_MAX_PRECISION = 10
_NPV_LABELS = ("net present value", "npv", "xnpv")
_IRR_LABELS = ("internal rate of return", "irr")
_PAYMENT_LABELS = ("monthly payment", "monthly instalment", "monthly installment", "emi", "payment")
_INTEREST_LABELS = ("total interest", "interest")
_APR_LABELS = ("annual percentage rate", "apr", "effective annual rate", "effective rate", "ear", "apy")
_TOTAL_LABELS = (
    *("future value", "present value", "amount with interest", "amount including interest", "total with interest"),
    *("amount", "value", "balance", "total"),
)
_INTEREST_ALONE_LABELS = (
    "total interest",
    "compound interest",
    "simple interest",
    "interest earned",
    "interest alone",
    "interest",
)
_AMOUNT_LABELS = (*_TOTAL_LABELS, *_INTEREST_ALONE_LABELS)
_OTHER_PAYMENTS = tuple(
    f"{kind} payment"
    for kind in ("down", "total", "final", "last", "first", "balloon", "interest-only", "max", "maximum")
)
_OTHER_LABELS: tuple[str, ...] = (
    "interest",
    "total interest",
    "total paid",
    "total cost",
    "principal",
    "loan amount",
    "balance",
)
_OTHER_LABELS += (*_OTHER_PAYMENTS, "total of all payments", "sum of all payments", "total of payments")
_RATE_LABELS = ("interest rate", "monthly rate", "annual rate", "discount rate", "rate")
"""Labels of quantities that no check but their own asks for."""
_NO_SCOPE = ClaimScope()


class FinanceVerifier:
    """Verifier of computed values; `precision` is the minimum number of decimals of an amount."""

    def __init__(self, precision: Any = 2) -> None:
        self.precision = precision

    @single_currency
    def verify_npv(self, cashflows: Any, rate: Any, llm_output: Any) -> FinanceResult:
        """Verify a net present value; the first cash flow is at t = 0."""
        flows, exact = parse_flows(cashflows), parse_rate("rate", rate)
        with reject_overflow():
            computation = npv(flows, exact)
            return self._judge(llm_output, [computation], flows, _NPV_LABELS, [excel_npv(computation, exact)])

    @single_currency
    def verify_irr(self, cashflows: Any, llm_output: Any) -> FinanceResult:
        """Verify an internal rate of return, as a fraction or in percent."""
        flows = parse_flows(cashflows)
        with reject_overflow():
            return self._judge(llm_output, irr(flows), flows, _IRR_LABELS)

    @single_currency
    def verify_xnpv(self, cashflows: Any, dates: Any, rate: Any, llm_output: Any) -> FinanceResult:
        """Verify a net present value on the day of the first cash flow."""
        flows, exact = parse_flows(cashflows), parse_rate("rate", rate)
        with reject_overflow():
            computation = xnpv(flows, parse_days(dates, len(flows)), exact)
            return self._judge(llm_output, [computation], flows, _NPV_LABELS)

    @single_currency
    def verify_monthly_payment(self, principal: Any, annual_rate: Any, months: Any, llm_output: Any) -> FinanceResult:
        """Verify the monthly payment of a loan."""
        loan = parse_loan(principal, annual_rate, months)
        with reject_overflow():
            computation = loans.monthly_payment(loan)
            negative = computation._replace(
                value=computation.value.copy_negate(), label="the payment with a minus, as Excel's PMT has it"
            )
            return self._judge(llm_output, [computation], loan[:2], _PAYMENT_LABELS, [negative], _scope_of(loan))

    @single_currency
    def verify_total_interest(
        self, principal: Any, annual_rate: Any, months: Any, llm_output: Any, convention: Any = "payments"
    ) -> FinanceResult:
        """Verify the interest of a whole loan: of all payments, or of a `schedule` in cents."""
        loan, decimals = parse_loan(principal, annual_rate, months), self._decimals()
        if not isinstance(convention, str) or convention not in loans.CONVENTIONS:
            raise unknown_name_error("convention", convention, loans.CONVENTIONS)
        with reject_overflow():
            in_cents = loans.interest_of_schedule(loan, decimals)
            if convention == "schedule":
                return self._judge(llm_output, [in_cents], loan[:2], _INTEREST_LABELS, scope=_scope_of(loan))
            hint = in_cents._replace(label=f"that {in_cents.label}: ask with convention `schedule`")
            readings = loans.total_interest(loan, decimals)
            return self._judge(llm_output, readings, loan[:2], _INTEREST_LABELS, [hint], _scope_of(loan))

    @single_currency
    def verify_amortization(
        self, principal: Any, annual_rate: Any, months: Any, month: Any, llm_output: Any, part: Any = "balance"
    ) -> FinanceResult:
        """Verify the balance after a month, or the interest or principal part of its payment."""
        loan = parse_loan(principal, annual_rate, months)
        number = whole_of("month", to_builtin_number(month), 1, loan.months)
        if not isinstance(part, str) or part not in loans.LINE_PARTS:
            raise unknown_name_error("part", part, loans.LINE_PARTS)
        with reject_overflow():
            return self._judge(llm_output, loans.schedule_line(loan, number, part, self._decimals()), loan[:2], (part,))

    @single_currency
    def verify_apr(self, principal: Any, annual_rate: Any, months: Any, fees: Any, llm_output: Any) -> FinanceResult:
        """Verify the annual percentage rate of a loan whose fees are deducted from the payout."""
        loan, deducted = parse_loan(principal, annual_rate, months), parse_amount("fees", fees)
        if deducted < 0:
            raise UnreadableInputError("`fees` must not be negative")
        with reject_overflow():
            return self._judge(llm_output, loans.apr(loan, deducted, self._decimals()), (loan.rate,), _APR_LABELS)

    @single_currency
    def verify_compound_interest(
        self, principal: Any, rate: Any, periods: Any, llm_output: Any, compounding: Any = "annual", value: Any = None
    ) -> FinanceResult:
        """Verify the amount after `periods` years at an annual `rate`, or the interest alone."""
        exact, yearly, years = (
            parse_amount("principal", principal),
            parse_rate("rate", rate),
            parse_years("periods", periods),
        )
        frequency = interest.parse_compounding(compounding)
        with reject_overflow():
            readings = select_readings(interest.compound_interest(exact, yearly, years, frequency), value)
            scope = ClaimScope(months=FINE.multiply(years, TWELVE), rate=yearly)
            return self._judge_labelled(llm_output, readings, (exact, yearly, years), scope)

    @single_currency
    def verify_simple_interest(
        self, principal: Any, rate: Any, years: Any, llm_output: Any, value: Any = None
    ) -> FinanceResult:
        """Verify the simple interest, or the amount with it."""
        exact, yearly, duration = (
            parse_amount("principal", principal),
            parse_rate("rate", rate),
            parse_years("years", years),
        )
        with reject_overflow():
            readings = select_readings(interest.simple_interest(exact, yearly, duration), value)
            scope = ClaimScope(months=FINE.multiply(duration, TWELVE), rate=yearly)
            return self._judge_labelled(llm_output, readings, (exact, yearly, duration), scope)

    @single_currency
    def verify_interest(
        self, principal: Any, rate: Any, start: Any, end: Any, llm_output: Any, day_count: Any = "30/360"
    ) -> FinanceResult:
        """Verify the simple interest between two days by a day count convention."""
        exact, yearly = parse_amount("principal", principal), parse_rate("rate", rate)
        first, last, name = day_of("start", start), day_of("end", end), parse_day_count(day_count)
        with reject_overflow():
            return self._judge(
                llm_output, [sums.day_count_interest(exact, yearly, first, last, name)], (exact, yearly), _AMOUNT_LABELS
            )

    @single_currency
    def verify_future_value(
        self, present_value: Any, rate: Any, periods: Any, llm_output: Any, payment: Any = 0, when: Any = "end"
    ) -> FinanceResult:
        """Verify the future value of an amount and a payment in each period; `rate` is that of a period."""
        values = parse_annuity(present_value, rate, periods, payment, when)
        with reject_overflow():
            return self._judge(llm_output, [interest.future_value(*values)], values[:2], _AMOUNT_LABELS)

    @single_currency
    def verify_present_value(
        self, future_value: Any, rate: Any, periods: Any, llm_output: Any, payment: Any = 0, when: Any = "end"
    ) -> FinanceResult:
        """Verify the present value of a later amount and a payment in each period."""
        values = parse_annuity(future_value, rate, periods, payment, when)
        with reject_overflow():
            return self._judge(llm_output, [interest.present_value(*values)], values[:2], _AMOUNT_LABELS)

    @single_currency
    def verify_effective_rate(self, nominal_rate: Any, llm_output: Any, compounding: Any = "monthly") -> FinanceResult:
        """Verify the effective annual rate (APY) of a nominal one."""
        rate, frequency = parse_rate("nominal_rate", nominal_rate), interest.parse_compounding(compounding)
        with reject_overflow():
            return self._judge(llm_output, [interest.effective_rate(rate, frequency)], (rate,), _APR_LABELS)

    @single_currency
    def verify_bond_price(
        self, face: Any, coupon_rate: Any, yield_rate: Any, years: Any, llm_output: Any, frequency: Any = 2
    ) -> FinanceResult:
        """Verify the price of a bond just after a coupon."""
        bond, rate = parse_bond(face, coupon_rate, years, frequency), parse_rate("yield_rate", yield_rate)
        with reject_overflow():
            return self._judge(llm_output, [bonds.bond_price(bond, rate)], (bond.face, bond.coupon, rate), ("price",))

    @single_currency
    def verify_bond_yield(
        self, face: Any, coupon_rate: Any, price: Any, years: Any, llm_output: Any, frequency: Any = 2
    ) -> FinanceResult:
        """Verify the yield to maturity of a bond just after a coupon."""
        bond, amount = parse_bond(face, coupon_rate, years, frequency), parse_amount("price", price)
        if amount <= 0:
            raise UnreadableInputError("`price` must be above 0")
        with reject_overflow():
            return self._judge(llm_output, [bonds.bond_yield(bond, amount)], (bond.coupon,), ("yield", "ytm"))

    @single_currency
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
        """Verify the interest accrued since the last coupon."""
        bond = parse_bond(face, coupon_rate, 1, frequency)
        days = [
            day_of(*argument)
            for argument in (("last_coupon", last_coupon), ("settlement", settlement), ("next_coupon", next_coupon))
        ]
        name = parse_coupon_day_count(day_count)
        with reject_overflow():
            computation = bonds.accrued_interest(bond, days[0], days[1], days[2], name)
            return self._judge(llm_output, [computation], (bond.face, bond.coupon), _AMOUNT_LABELS)

    @single_currency
    def verify_sum(self, values: Any, llm_output: Any) -> FinanceResult:
        """Verify the sum of the amounts."""
        exact = parse_flows(values)
        with reject_overflow():
            return self._judge(llm_output, [sums.sum_amounts(exact)], exact, ("sum", "total"))

    @single_currency
    def verify_percentage_change(self, old: Any, new: Any, llm_output: Any) -> FinanceResult:
        """Verify the change from `old` to `new`, as a fraction or in percent."""
        before, after = parse_amount("old", old), parse_amount("new", new)
        with reject_overflow():
            return self._judge(
                llm_output, [sums.percentage_change(before, after)], (before, after), ("change", "growth")
            )

    @single_currency
    def verify_banking_scenario(self, scenario: Any, llm_output: Any) -> FinanceResult:
        """Verify that the reasoning in `llm_output` reaches the result of the scenario."""
        from qwed_finance._banking.scenario import verify_scenario

        with reject_overflow():
            return verify_scenario(scenario, llm_output, self._decimals())

    def _decimals(self) -> int:
        return whole_of("precision", to_builtin_number(self.precision), 0, _MAX_PRECISION)

    def _judge(
        self,
        llm_output: Any,
        readings: Sequence[Computation],
        inputs: Sequence[Decimal],
        labels: Sequence[str],
        hints: Sequence[Computation] = (),
        scope: ClaimScope = _NO_SCOPE,
        others: Sequence[str] = (),
    ) -> FinanceResult:
        asked = (*labels, *ANSWER_LABELS)
        others = (*others, *_OTHER_LABELS, *(() if readings[0].rate else _RATE_LABELS))
        names = {"asked": asked, "other": [word for word in others if word not in asked]}
        scope = scope._replace(period=readings[0].stated_period, labels=labels)
        claim = extract_claim("llm_output", llm_output, rate=readings[0].rate, labels=names, inputs=inputs, scope=scope)
        return judge_claim(claim, readings, self._decimals(), hints)

    def _judge_labelled(
        self, llm_output: Any, readings: Sequence[Computation], inputs: Sequence[Decimal], scope: ClaimScope
    ) -> FinanceResult:
        """Judge an amount with interest, or the interest alone: the text says which, or it may be either."""
        if len(readings) == 1 or not isinstance(llm_output, str):
            labels = _AMOUNT_LABELS if len(readings) > 1 else _labels_of(readings[0])
            return self._judge(llm_output, readings, inputs, labels, scope=scope)
        results: list[FinanceResult] = []
        for reading in readings:
            try:
                results.append(
                    self._judge(llm_output, [reading], inputs, _labels_of(reading), (), scope, _AMOUNT_LABELS)
                )
            except UnreadableInputError:
                continue
        if not results:
            return self._judge(llm_output, readings, inputs, _AMOUNT_LABELS, scope=scope)
        return next((result for result in results if result.verified), results[0])


def _scope_of(loan: Loan) -> ClaimScope:
    return ClaimScope(months=Decimal(loan.months), rate=loan.rate)


def _labels_of(reading: Computation) -> Sequence[str]:
    return _INTEREST_ALONE_LABELS if reading.label == "the interest alone" else _TOTAL_LABELS


def _check_function(method: str) -> Callable[..., FinanceResult]:
    def run(precision: Any = 2, **values: Any) -> FinanceResult:
        result: FinanceResult = getattr(FinanceVerifier(precision), method)(**values)
        return result

    return run


def _pack_check(name: str, says: str, required: str, optional: str = "") -> PackCheck:
    takes = (*required.split(), "llm_output")
    return PackCheck(
        name, says, _check_function(f"verify_{name}"), takes, (*optional.split(), "precision"), "llm_output"
    )


CHECKS = (
    _pack_check("npv", "net present value, the first cash flow at t = 0", "cashflows rate"),
    _pack_check("irr", "internal rate of return", "cashflows"),
    _pack_check("xnpv", "net present value of dated cash flows", "cashflows dates rate"),
    _pack_check("monthly_payment", "level monthly payment of a loan", "principal annual_rate months"),
    _pack_check("total_interest", "interest of a whole loan", "principal annual_rate months", "convention"),
    _pack_check("amortization", "one line of an amortisation schedule", "principal annual_rate months month", "part"),
    _pack_check("apr", "annual percentage rate of a loan with fees", "principal annual_rate months fees"),
    _pack_check("compound_interest", "amount or interest after years", "principal rate periods", "compounding value"),
    _pack_check("simple_interest", "simple interest, or the amount with it", "principal rate years", "value"),
    _pack_check("interest", "interest between two days by a day count", "principal rate start end", "day_count"),
    _pack_check("future_value", "future value of an amount and payments", "present_value rate periods", "payment when"),
    _pack_check(
        "present_value", "present value of an amount and payments", "future_value rate periods", "payment when"
    ),
    _pack_check("effective_rate", "effective annual rate of a nominal one", "nominal_rate", "compounding"),
    _pack_check("bond_price", "price of a bond just after a coupon", "face coupon_rate yield_rate years", "frequency"),
    _pack_check("bond_yield", "yield to maturity of a bond", "face coupon_rate price years", "frequency"),
    _pack_check(
        "accrued_interest",
        "interest of a bond since its last coupon",
        "face coupon_rate last_coupon settlement next_coupon",
        "day_count frequency",
    ),
    _pack_check("sum", "sum of amounts", "values"),
    _pack_check("percentage_change", "change in percent", "old new"),
    _pack_check("banking_scenario", "reasoning about a banking scenario", "scenario"),
)
