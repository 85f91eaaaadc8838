"""Bytes to JSON in the one way that nobody reads differently: no member twice, no number that is none."""

import json
from collections import Counter
from decimal import Decimal
from typing import Any

_LONGEST_NAME = 60


class NotStrict(ValueError):
    """It can be read in two ways, or in none; the message says why."""


def read_json(data: bytes, what: str, *, exact: bool = False) -> Any:
    """The value in `data`, which errors call `what`; with `exact`, fractions are decimals."""
    number = Decimal if exact else float
    try:
        return json.loads(data.decode(), object_pairs_hook=_once, parse_constant=_no_number, parse_float=number)
    except NotStrict:
        raise
    except UnicodeDecodeError:
        raise NotStrict(f"{what} is no UTF-8") from None
    except RecursionError:
        raise NotStrict(f"{what} is nested deeper than can be read") from None
    except (ValueError, ArithmeticError) as error:
        raise NotStrict(f"{what} is no JSON: {error}") from None


def _once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) < len(members):
        twice = Counter(name for name, _ in members).most_common(1)[0][0]
        raise NotStrict(f"the member `{ascii(twice[:_LONGEST_NAME])[1:-1]}` is there twice: which one counts?")
    return found


def _no_number(name: str) -> Any:
    raise NotStrict(f"{name} is no number in JSON")
