"""Digest of a payload, and payloads that are refused before they are read."""

import hashlib
import json
from collections import OrderedDict
from datetime import date
from decimal import Decimal
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any

import pytest

from qwed.kernel.a2a.message import MessageVerdict
from qwed.model import canonical
from qwed_a2a.digest import digest_of

MOST = 1_048_576


def refusal(payload: Any, most: int = MOST) -> MessageVerdict:
    result = digest_of(payload, most)
    assert isinstance(result, MessageVerdict)
    assert (result.forwarded, str(result.engine)) == (False, "trust_boundary")
    return result


def nested(depth: int, inner: Any = 1) -> Any:
    for _ in range(depth):
        inner = [inner]
    return inner


def test_it_is_the_hash_of_the_canonical_payload() -> None:
    written = '{"a":[1,2.5,null,true],"b":"\u00e9"}'
    expected = hashlib.sha256(written.encode()).hexdigest()
    assert digest_of({"b": "\u00e9", "a": [1, 2.5, None, True]}, MOST) == expected
    assert digest_of(json.loads(' { "b" : "\\u00e9", "a": [1.0, 2.50, null, true] } '), MOST) == expected
    assert digest_of(OrderedDict(b="\u00e9", a=(1, 2.5, None, True)), MOST) == expected
    assert digest_of({"a": 1}, MOST) == digest_of(MappingProxyType({"a": 1}), MOST)


NOT_JSON = {
    "not a number": {"a": float("nan")},
    "infinity": {"a": [float("-inf")]},
    "a set": {"a": {1, 2}},
    "bytes": {"a": b"1"},
    "a decimal": {"a": Decimal("1.00")},
    "a date": {"a": date(2026, 1, 1)},
    "an object": {"a": object()},
    "a class": {"a": int},
    "a name that is a number": {"a": {1: 2}},
    "a name that is nothing": {"a": {None: 2}},
    "half a pair": {"a": "\ud800"},
    "half a pair in a name": {"a": {"\udfff": 1}},
    "too many digits": {"a": 10**5000},
    "too deep": {"a": nested(64)},
    "far too deep": {"a": nested(100_000)},
}


@pytest.mark.parametrize("name", NOT_JSON)
def test_a_payload_that_is_no_json_is_refused(name: str) -> None:
    result = refusal(NOT_JSON[name])
    assert result.reason.startswith("the payload is not JSON: ")
    assert result.details == {"check": "payload_is_json"}


def test_one_that_is_as_deep_as_may_be_is_not() -> None:
    assert isinstance(digest_of({"a": nested(62, {"b": 1})}, MOST), str)


def test_one_that_holds_itself_is_refused() -> None:
    payload: dict[str, Any] = {}
    payload["again"] = [payload]
    assert "nested deeper" in refusal(payload).reason


def test_one_that_would_be_without_end_is_refused_as_too_large() -> None:
    inner: Any = ["x" * 50] * 100
    for _ in range(60):
        inner = [inner] * 100
    assert refusal({"a": inner}).details == {"check": "payload_size", "max_payload_size_bytes": MOST}


@pytest.mark.parametrize("letter", ["a", "\u00e9", "\u4e00", "\U0001f600", '"', "\x00"])
def test_the_limit_is_in_bytes_of_canonical_json_to_the_byte(letter: str) -> None:
    width = len(json.dumps(letter, ensure_ascii=False).encode()) - 2
    # {"a":"..."} has eight bytes without the letters.
    fitting = {"a": letter * ((2000 - 8) // width)}
    size = 8 + width * len(fitting["a"])
    assert isinstance(digest_of(fitting, size), str)
    assert refusal(fitting, size - 1).reason == f"the payload is larger than {size - 1} bytes"


SHAPES: list[dict[str, Any]] = [
    {},
    {"a": {}},
    {"a": [], "b": [[], {}]},
    {"a": [0] * 50},
    {str(number): number for number in range(50)},
    {"a": [{"b": [True, None, "c"]}] * 5},
    {"a": [1.5, -0.0, 1e300]},
]


@pytest.mark.parametrize("payload", SHAPES)
def test_a_payload_that_fits_exactly_is_never_called_too_large(payload: dict[str, Any]) -> None:
    size = len(canonical(payload))
    assert isinstance(digest_of(payload, size), str)
    assert refusal(payload, size - 1).details["check"] == "payload_size"


NUMBERS = [0, -1, 10**15, 2**63, -(2**70), 0.0, -0.0, 1.0, 1.5, 1e21, 1e22, 5e-324, 1.7976931348623157e308, True, None]
TEXTS = ["", "a", '"', "\\", "\x00\x1f\x7f", "/", "\u2028", "\u00e9", "\ue000", "\U0001f600", "<b>"]


@pytest.mark.parametrize("value", [*NUMBERS, *TEXTS, [], {}, [[]], [{}], (), (1, "a")])
def test_however_quickly_it_is_written_it_is_written_canonically(value: Any) -> None:
    for payload in ({"a": value}, {"a": [value, 1], "b": {"c": value}}, {f"{value}": 1, "z": [{"y": value}]}):
        assert digest_of(payload, MOST) == hashlib.sha256(canonical(payload)).hexdigest()


def test_names_are_sorted_as_the_standard_says() -> None:
    payload = {"\U0001f600": 1, "\ue000": 2, "z": 3, "\u00e9": 4, "": 5}
    assert digest_of(payload, MOST) == hashlib.sha256(canonical(payload)).hexdigest()


class Kind(StrEnum):
    ONE = "one"


class Level(IntEnum):
    TWO = 2


@pytest.mark.parametrize("value", [Kind.ONE, Level.TWO, OrderedDict(b=1, a=2), MappingProxyType({"b": 1, "a": (2,)})])
def test_what_only_behaves_like_json_is_written_as_it_is_elsewhere(value: Any) -> None:
    payloads: tuple[dict[str, Any], ...] = ({"a": value}, {Kind.ONE: [value]})
    for payload in payloads:
        assert digest_of(payload, MOST) == hashlib.sha256(canonical(payload)).hexdigest()


def test_whatever_is_in_a_refused_payload_is_not_in_the_refusal() -> None:
    for payload in ({"secret": {"hunter2"}}, {"secret": "hunter2" * 1000}, {"hunter2": {"hunter2": float("nan")}}):
        assert "hunter2" not in str(refusal(payload, 1024))
