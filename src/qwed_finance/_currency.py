"""Decorator that requires one currency for all amounts of a check."""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, ParamSpec

from qwed.packs.amount_parsing import parse_claimed_amount
from qwed.packs.result import UnreadableInputError, unverifiable_on_error
from qwed_finance.result import FinanceResult

_CLAIM = "llm_output"
P = ParamSpec("P")


def single_currency(method: Callable[P, FinanceResult]) -> Callable[P, FinanceResult]:
    """Wrap a check so that it never raises, and requires the amounts and the claim to be in one currency."""
    names = tuple(inspect.signature(method).parameters)

    @wraps(method)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> FinanceResult:
        arguments: dict[str, Any] = dict(zip(names, args, strict=False)) | kwargs
        currency = _only_currency(value for name, value in arguments.items() if name != _CLAIM)
        result = method(*args, **kwargs)
        if currency and result.currency not in (None, currency):
            raise UnreadableInputError(
                f"the amounts are in {currency} and the claim in {result.currency}, "
                "which is not converted: use one currency"
            )
        return result

    return unverifiable_on_error(FinanceResult)(wrapper)


def _only_currency(values: Iterable[Any]) -> str:
    currencies = sorted(_currencies_in(values))
    if len(currencies) > 1:
        raise UnreadableInputError(
            f"the amounts are in {' and '.join(currencies[:3])}, which are not converted: use one currency"
        )
    return currencies[0] if currencies else ""


def _currencies_in(values: Iterable[Any]) -> set[str]:
    texts = (item for value in values for item in (value if isinstance(value, list | tuple) else (value,)))
    return {_currency_of(item) for item in texts if isinstance(item, str)} - {""}


def _currency_of(text: str) -> str:
    try:
        return parse_claimed_amount("value", text).currency
    except UnreadableInputError:
        return ""
