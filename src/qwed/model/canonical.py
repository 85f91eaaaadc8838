"""RFC 8785 canonical JSON: exactly one byte string for a value, so that its hash identifies it.

One deliberate extension: integers beyond 2**53 keep their digits. Rounding them to a double, as the RFC does, would
give two different actions the same fingerprint.
"""

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

MAX_DEPTH = 64


class CanonicalJsonError(ValueError):
    """The value has no deterministic JSON form."""


_write_string = json.encoder.encode_basestring


def canonical(value: Any) -> bytes:
    """Return the canonical JSON of `value`; raise CanonicalJsonError if it has none."""
    try:
        return _write(value, 0).encode()
    except UnicodeEncodeError:
        raise CanonicalJsonError("text contains an unpaired surrogate") from None


def sha256_of(value: Any) -> str:
    """Return the lowercase hex SHA-256 of the canonical JSON of `value`."""
    return hashlib.sha256(canonical(value)).hexdigest()


def _write(value: Any, depth: int) -> str:
    if depth > MAX_DEPTH:
        raise CanonicalJsonError(f"nested deeper than {MAX_DEPTH}")
    writer = _WRITERS.get(type(value))
    if writer is not None:
        return writer(value, depth)
    for kind, general in _WRITERS.items():
        if kind is not type(None) and isinstance(value, kind):
            return general(value, depth)
    if isinstance(value, Mapping):
        return _write_mapping(value, depth)
    raise CanonicalJsonError(f"a {type(value).__name__} is not a JSON value")


def _write_mapping(value: Mapping[Any, Any], depth: int) -> str:
    for key in value:
        if not isinstance(key, str):
            raise CanonicalJsonError("an object key is not a string")
    members = (f"{_write_string(key)}:{_write(value[key], depth + 1)}" for key in sorted(value, key=_utf16))
    return "{" + ",".join(members) + "}"


def _utf16(key: str) -> bytes | str:
    # RFC 8785 sorts keys by UTF-16 code units, which differs from code point order above the surrogates.
    return key.encode("utf-16-be", "surrogatepass")


def _write_list(value: list[Any] | tuple[Any, ...], depth: int) -> str:
    return "[" + ",".join([_write(item, depth + 1) for item in value]) + "]"


def _write_int(value: int, _depth: int) -> str:
    try:
        return int.__repr__(value)
    except ValueError:
        raise CanonicalJsonError("an integer has too many digits") from None


def _write_float(value: float, _depth: int) -> str:
    """Format a float as ECMAScript Number::toString does (required by RFC 8785)."""
    if not math.isfinite(value):
        raise CanonicalJsonError("NaN and Infinity are not JSON values")
    if value == 0:
        return "0"
    sign, digits, point = _shortest(value)
    if 0 < point <= 21:
        text = digits.ljust(point, "0") if len(digits) <= point else f"{digits[:point]}.{digits[point:]}"
    elif -6 < point <= 0:
        text = "0." + "0" * -point + digits
    else:
        fraction = f".{digits[1:]}" if len(digits) > 1 else ""
        text = f"{digits[0]}{fraction}e{point - 1:+d}"
    return sign + text


def _shortest(value: float) -> tuple[str, str, int]:
    """Return the sign, the shortest round-trip digits, and the position of the decimal point in them."""
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    return ("-" if value < 0 else ""), digits.rstrip("0"), len(whole) - leading + int(exponent or 0)


_WRITERS: dict[type, Callable[[Any, int], str]] = {
    str: lambda value, _depth: _write_string(value),
    bool: lambda value, _depth: "true" if value else "false",
    int: _write_int,
    type(None): lambda _value, _depth: "null",
    float: _write_float,
    dict: _write_mapping,
    list: _write_list,
    tuple: _write_list,
}
