"""One currency in a question: what is in another is neither added to it nor held against it."""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, ParamSpec

from qwed.packs.claimed import claimed_of
from qwed.packs.result import Unreadable, answering
from qwed_finance.result import FinanceResult

_CLAIM = "llm_output"
P = ParamSpec("P")


def asking(method: Callable[P, FinanceResult]) -> Callable[P, FinanceResult]:
    """Makes a method answer whatever it is given, and only where the amounts and the claim are in one currency."""
    names = tuple(inspect.signature(method).parameters)

    @wraps(method)
    def asked(*args: P.args, **kwargs: P.kwargs) -> FinanceResult:
        given: dict[str, Any] = dict(zip(names, args, strict=False)) | kwargs
        currency = _one_of(value for name, value in given.items() if name != _CLAIM)
        result = method(*args, **kwargs)
        if currency and result.currency not in (None, currency):
            raise Unreadable(
                f"the amounts are in {currency} and the claim in {result.currency}, which is not exchanged here"
            )
        return result

    return answering(FinanceResult)(asked)


def _one_of(values: Iterable[Any]) -> str:
    named = sorted(_named(values))
    if len(named) > 1:
        raise Unreadable(
            f"the amounts are in {' and '.join(named[:3])}, which are not exchanged here: use one currency"
        )
    return named[0] if named else ""


def _named(values: Iterable[Any]) -> set[str]:
    texts = (each for value in values for each in (value if isinstance(value, list | tuple) else (value,)))
    return {_currency(each) for each in texts if isinstance(each, str)} - {""}


def _currency(text: str) -> str:
    try:
        return claimed_of("value", text).currency
    except Unreadable:
        return ""
