"""RFC 8785: one byte string for one value."""

import hashlib
import json
import math
import struct
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from enum import IntEnum, StrEnum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.model import CanonicalJsonError, canonical, sha256_of
from qwed.model.canonical import MAX_DEPTH

steady = settings(derandomize=True, database=None, deadline=None, max_examples=200)

# RFC 8785, appendix B: IEEE 754 bits and the text they are written as.
NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}


@pytest.mark.parametrize(("bits", "text"), NUMBERS.items())
def test_a_double_is_written_as_the_appendix_writes_it(bits: str, text: str) -> None:
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical(value) == text.encode()


@pytest.mark.parametrize("bits", ["7fffffffffffffff", "7ff0000000000000", "fff0000000000000"])
def test_what_is_no_number_has_no_form(bits: str) -> None:
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    with pytest.raises(CanonicalJsonError, match="NaN and Infinity"):
        canonical({"deep": [value]})


def test_the_example_of_section_3_2_2() -> None:
    value = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"\u002f",
        "literals": [None, True, False],
    }
    expected = (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )
    assert canonical(value) == expected.encode()


def test_keys_stand_in_the_order_of_section_3_2_3() -> None:
    value = {
        "\u20ac": "Euro Sign",
        "\r": "Carriage Return",
        "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One",
        "\U0001f600": "Emoji: Grinning Face",
        "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis",
    }
    written = json.loads(canonical(value), object_pairs_hook=lambda pairs: [name for _key, name in pairs])
    assert written == [
        "Carriage Return",
        "One",
        "Control",
        "Latin Small Letter O With Diaeresis",
        "Euro Sign",
        "Emoji: Grinning Face",
        "Hebrew Letter Dalet With Dagesh",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({}, "{}"),
        ([], "[]"),
        ((), "[]"),
        ("", '""'),
        (None, "null"),
        (True, "true"),
        (1, "1"),
        (1.0, "1"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (1e21, "1e+21"),
        (1e-7, "1e-7"),
        (123456789012345678901234567890, "123456789012345678901234567890"),
        (-(2**63), "-9223372036854775808"),
        ({"b": 1, "a": [1, {"d": None, "c": "x"}]}, '{"a":[1,{"c":"x","d":null}],"b":1}'),
        ("\x00\x1f\x7f\x80\u2028", '"\\u0000\\u001f\x7f\x80\u2028"'),
        ('\b\t\n\f\r"\\/', '"\\b\\t\\n\\f\\r\\"\\\\/"'),
        ({"": 0}, '{"":0}'),
    ],
)
def test_plain_values_are_written_plainly(value: Any, text: str) -> None:
    assert canonical(value) == text.encode()


class Colour(StrEnum):
    RED = "red"


class Size(IntEnum):
    LARGE = 3


class Seen(Mapping[str, int]):
    def __getitem__(self, key: str) -> int:
        return {"b": 2, "a": 1}[key]

    def __iter__(self) -> Iterator[str]:
        return iter(("b", "a"))

    def __len__(self) -> int:
        return 2


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Colour.RED, '"red"'),
        (Size.LARGE, "3"),
        (Seen(), '{"a":1,"b":2}'),
        (OrderedDict(b=1, a=2), '{"a":2,"b":1}'),
    ],
)
def test_what_behaves_like_a_json_value_is_written_like_one(value: Any, text: str) -> None:
    assert canonical(value) == text.encode()


@pytest.mark.parametrize(
    "value", [b"x", {1}, object(), 1j, {1: 2}, {None: 1}, {True: 1}, {("a",): 1}, [b"x"], range(3)]
)
def test_what_is_no_json_value_has_no_form(value: Any) -> None:
    with pytest.raises(CanonicalJsonError):
        canonical(value)


def test_an_integer_too_long_to_write_has_no_form() -> None:
    assert canonical(10**4000) == str(10**4000).encode()
    with pytest.raises(CanonicalJsonError, match="too many digits"):
        canonical([10**5000])


@pytest.mark.parametrize("value", ["\ud800", {"\udfff": 1}, ["a", {"b": "\udc00"}]])
def test_half_a_surrogate_pair_has_no_form(value: Any) -> None:
    with pytest.raises(CanonicalJsonError, match="surrogate"):
        canonical(value)


def test_a_value_may_be_as_deep_as_a_request_and_no_deeper() -> None:
    assert canonical(_nested(MAX_DEPTH)).count(b"[") == MAX_DEPTH + 1
    for depth in (MAX_DEPTH + 1, 100_000):
        with pytest.raises(CanonicalJsonError, match="nested deeper"):
            canonical(_nested(depth))


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def test_a_value_that_holds_itself_has_no_form() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(CanonicalJsonError):
        canonical(value)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=12,
)


@steady
@given(json_values)
def test_what_is_written_reads_back_as_the_same_value(value: Any) -> None:
    assert _same(json.loads(canonical(value)), value)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(other, float):
        return math.isclose(float(one), other, rel_tol=0, abs_tol=0)
    return bool(one == other)


@steady
@given(json_values)
def test_writing_what_was_read_back_changes_nothing(value: Any) -> None:
    assert canonical(json.loads(canonical(value))) == canonical(value)


@steady
@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.integers(), max_size=8), st.randoms())
def test_the_order_of_members_does_not_matter(value: dict[str, int], chance: Any) -> None:
    members = list(value.items())
    chance.shuffle(members)
    assert canonical(dict(members)) == canonical(value)


@steady
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_reads_back_to_the_last_bit(value: float) -> None:
    assert float(canonical(value)) == value


def test_large_integers_keep_their_digits_so_two_actions_never_share_a_fingerprint() -> None:
    assert canonical(2**53 + 1) != canonical(2**53)
    assert sha256_of([2**53 + 1]) != sha256_of([2**53])


def test_the_hash_is_sha256_of_the_bytes() -> None:
    assert sha256_of({"b": 1, "a": 2}) == hashlib.sha256(b'{"a":2,"b":1}').hexdigest()
