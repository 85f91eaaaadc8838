"""Conversion of arguments to JSON: one form for each value, or an error."""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from qwed.model import canonical
from qwed_sdk.to_json import MAX_DEPTH, MAX_SIZE, NotJsonSerializableError, to_plain_json


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 2


class Text(str):
    def __str__(self) -> str:
        return "another text"


@dataclass
class Order:
    id: int
    total: Decimal


class Model(BaseModel):
    when: date
    to: list[str]


FORMS: list[tuple[Any, Any]] = [
    (None, None),
    (True, True),
    (7, 7),
    (1.5, 1.5),
    ("x", "x"),
    ((1, "a"), [1, "a"]),
    ({"a": (1,)}, {"a": [1]}),
    (Decimal("1.10"), "1.10"),
    (Path("a/b"), "a/b"),
    (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (date(2026, 1, 2), "2026-01-02"),
    (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
    (Colour.RED, "red"),
    (Level.HIGH, 2),
    (Text("DROP TABLE"), "DROP TABLE"),
    (Order(1, Decimal("2.5")), {"id": 1, "total": "2.5"}),
    (Model(when=date(2026, 1, 2), to=["a"]), {"when": "2026-01-02", "to": ["a"]}),
]


@pytest.mark.parametrize(("value", "form"), FORMS, ids=lambda value: type(value).__name__)
def test_the_form_of_a_value(value: Any, form: Any) -> None:
    result = to_plain_json(value, "x")
    assert result == form
    assert type(result) is type(form)


@pytest.mark.parametrize(
    "value",
    [object(), {1}, b"x", {1: 2}, float("nan"), float("-inf"), print, int, Order, Model, [[object()]], iter([])],
)
def test_what_has_no_form_is_named(value: Any) -> None:
    with pytest.raises(NotJsonSerializableError, match="`argument"):
        to_plain_json(value, "argument")


def test_nesting_ends() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(NotJsonSerializableError, match="deeply"):
        to_plain_json(loop, "x")
    deep: Any = 1
    for _ in range(MAX_DEPTH):
        deep = [deep]
    assert to_plain_json(deep, "x") == deep


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(json_values)
def test_json_stays_what_it_is(value: Any) -> None:
    assert to_plain_json(value, "x") == value


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), st.integers(-(2**53), 2**53)))
def test_what_is_plain_can_be_hashed(value: Any) -> None:
    assert canonical(to_plain_json(value, "x"))


class Name(str, enum.Enum):  # noqa: UP042 - unlike a StrEnum, its str is `Name.FIRST`
    FIRST = "first"


class Broken(Mapping[str, Any]):
    def __getitem__(self, key: str) -> Any:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("dictionary changed size during iteration")

    def __len__(self) -> int:
        return 1


def test_the_key_of_a_mapping_is_what_it_holds() -> None:
    assert to_plain_json({Name.FIRST: 1}) == {"first": 1}
    assert to_plain_json({Text("a"): 1}) == {"a": 1}


def test_what_cannot_be_read_is_not_plain() -> None:
    with pytest.raises(NotJsonSerializableError, match="cannot be read"):
        to_plain_json(Broken(), "x")


def test_what_refers_to_itself_often_is_counted_as_often() -> None:
    value: Any = "x"
    for _ in range(50):
        value = [value, value]
    for large in (value, ["x" * 1000] * 2000, {"x" * (MAX_SIZE + 1): 1}):
        with pytest.raises(NotJsonSerializableError, match="exceeds the limit"):
            to_plain_json(large)
    assert to_plain_json("x" * (MAX_SIZE - 1)) == "x" * (MAX_SIZE - 1)


def test_a_long_name_costs_no_more_than_a_short_one() -> None:
    # Formatted for each of its values, the name alone would take gigabytes.
    value: Any = {"k" * 400_000: [[]] * 100_000}
    assert to_plain_json(value) == value


def test_a_refusal_says_where_and_stays_short() -> None:
    with pytest.raises(NotJsonSerializableError, match=r"`to\[1\]\.name` is a object"):
        to_plain_json({"to": [1, {"name": object()}]})
    with pytest.raises(NotJsonSerializableError) as caught:
        to_plain_json({"k" * 100_000: object()})
    assert len(str(caught.value)) < 400
