"""Engine adapter of a pack: checks by name, small JSON results, and messages that list the known checks."""

import math
import re
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from importlib import import_module
from typing import Any

import msgspec
import pytest

from qwed.engines._packs.limits import MAX_BITS, MAX_DEPTH, MAX_TEXT, MAX_VALUES
from qwed.engines._packs.to_json import to_json
from qwed.engines.pack_adapter import pack_engine
from qwed.engines.protocol import EngineRequest
from qwed.model import Status, Verdict, canonical
from qwed.packs.check import PackCheck, by_name
from qwed.packs.result import CheckStatus, Result, status_of, unknown_name_error, unverifiable_on_error
from qwed.packs.value_parsing import number_of


@dataclass(frozen=True, kw_only=True)
class Sum(Result):
    computed: Decimal | None = None
    on: date | None = None
    more: Any = None


@unverifiable_on_error(Sum)
def add(left: Any, right: Any, claimed: Any, unit: Any = "EUR", more: Any = None) -> Sum:
    """Check the sum of two numbers."""
    if unit != "EUR":
        raise unknown_name_error("unit", unit, ("EUR",))
    total = number_of("left", left) + number_of("right", right)
    return Sum(
        status=status_of(total == number_of("claimed", claimed)),
        message=f"it is {total}",
        rule="the sum",
        by_hand=(f"{left} + {right} = {total}",),
        computed=total,
        on=date(2026, 1, 15),
        more=more,
    )


def read(text: Any) -> Sum:
    """Check that a text is short."""
    return Sum(status=status_of(len(text) < 10), message="as long as it is", rule="count", by_hand=("count",))


def broken(text: Any) -> Sum:
    """Fail because of a missing library."""
    raise ImportError("holidays are not here, install `qwed[legal]`", name="holidays")


CHECKS = by_name(
    (
        PackCheck("add", "what two numbers come to", add, ("left", "right", "claimed"), ("unit", "more")),
        PackCheck("read", "whether a text is short", read, ("text",), text="text"),
        PackCheck("lame", "needs a library", broken, ("text",), text="text"),
    )
)
verify = pack_engine("legal", CHECKS)


def ask(query: str = "", **values: Any) -> Verdict:
    return verify(EngineRequest(query=query, parameters=values))


def test_what_holds_is_verified_with_its_rule_its_value_and_its_steps() -> None:
    verdict = ask(operation="add", left=1, right="2.50", claimed=3.5)
    assert (verdict.status, verdict.engine, verdict.message) == (Status.VERIFIED, "legal", "it is 3.50")
    assert (verdict.checks_passed, verdict.checks_failed) == (("add",), ())
    assert verdict.result == {
        "operation": "add",
        "status": "VERIFIED",
        "rule": "the sum",
        "by_hand": ["1 + 2.50 = 3.50"],
        "known": [],
        "computed": "3.50",
        "on": "2026-01-15",
        "more": None,
    }


def test_what_does_not_hold_fails_and_what_cannot_be_known_is_inconclusive() -> None:
    wrong = ask(operation="add", left=1, right=2, claimed=4)
    assert (wrong.status, wrong.checks_failed, wrong.result["computed"]) == (Status.FAILED, ("add",), "3")
    unread = ask(operation="add", left="one", right=2, claimed=3)
    assert (unread.status, unread.result["status"]) == (Status.INCONCLUSIVE, "UNVERIFIABLE")
    strange = ask(operation="add", left=1, right=2, claimed=3, unit="XXX")
    assert (strange.status, strange.result["known"]) == (Status.INCONCLUSIVE, ["EUR"])


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("", {}, "`operation` is required: known are add, read, lame"),
    ("", {"operation": None}, "`operation` is required: known are add, read, lame"),
    ("", {"operation": "sum"}, "unknown operation `sum`: known are add, read, lame"),
    ("", {"operation": "ADD"}, "unknown operation `ADD`: did you mean `add`? known are add, read, lame"),
    ("", {"operation": ["add"]}, "unknown operation `['add']`: known are add, read, lame"),
    ("", {"operation": "add", "left": 1, "right": 2}, "`claimed` is required for `add`"),
    ("", {"operation": "add", "left": 1, "right": 2, "claimed": None}, "`claimed` is required for `add`"),
    ("", {"operation": "add", "right": 2}, "`left` and `claimed` are required for `add`"),
    ("", {"operation": "add"}, "`left`, `right` and `claimed` are required for `add`"),
    ("", {"operation": "add", "left": 1, "rigth": 2}, "`add` takes no `rigth`: did you mean `right`? it takes left, "),
    ("", {"operation": "read", "a": 1, "b": 2}, "`read` takes no `a`: if it is of the `text`, put all of that under "),
    ("", {"operation": "read", "a": 1}, "`read` takes no `a`: it takes text"),
    ("3", {"operation": "add", "left": 1, "right": 2, "claimed": 3}, "`add` reads no `query`: it takes left, right"),
    ("one", {"operation": "read", "text": "two"}, "`query` stands for `text` here, and both are given"),
    ("", {"operation": "read"}, "`text` is required for `read`"),
    ("", {"operation": "read", "self": 1, "text": "x"}, "`read` takes no `self`"),
]


@pytest.mark.parametrize(("query", "values", "message"), WRONG, ids=lambda value: str(value)[:40])
def test_what_cannot_be_asked_is_blocked_with_what_can(query: str, values: dict[str, Any], message: str) -> None:
    verdict = ask(query, **values)
    assert (verdict.status, verdict.checks_failed) == (Status.BLOCKED, ("input_valid",))
    assert verdict.message.startswith(message)
    operations = [row["operation"] for row in verdict.result["operations"]]
    assert operations in ([*CHECKS], [values.get("operation")])


def test_an_operation_is_listed_with_what_it_says_and_takes() -> None:
    (listed,) = ask(operation="add").result["operations"]
    assert listed == {
        "operation": "add",
        "says": "what two numbers come to",
        "required": ["left", "right", "claimed"],
        "optional": ["unit", "more"],
        "query": None,
    }


def test_the_query_stands_for_the_text_of_a_check() -> None:
    assert ask("short", operation="read") == ask(operation="read", text="short")
    assert ask("short", operation="read", text="short").status is Status.VERIFIED


def test_a_library_that_is_missing_is_an_error_that_names_what_to_install() -> None:
    verdict = ask("x", operation="lame")
    assert (verdict.status, verdict.verified) == (Status.ERROR, False)
    assert "install `qwed[legal]`" in verdict.message
    assert verdict.result == {"error": "ImportError", "missing": "holidays"}


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


LARGE: list[tuple[Any, str]] = [
    ("x" * (MAX_TEXT + 1), "too many"),
    (["x" * 1000] * (MAX_TEXT // 1000 + 1), "too many"),
    ({"x" * (MAX_TEXT + 1): 1}, "too many"),
    ([0] * (MAX_VALUES + 1), "too many"),
    ([[0] * 1000] * 201, "too many"),
    (nested(MAX_DEPTH), "nested deeper"),
    (nested(100_000), "nested deeper"),
    (1 << MAX_BITS, "too large"),
    ([-(1 << MAX_BITS)], "too large"),
    (10**4000, "too large"),
]


@pytest.mark.parametrize(("value", "message"), LARGE, ids=[str(number) for number in range(len(LARGE))])
def test_what_is_too_large_is_refused_before_it_is_read(value: Any, message: str) -> None:
    verdict = ask(operation="add", left=1, right=2, claimed=3, more=value)
    assert (verdict.status, verdict.checks_failed) == (Status.BLOCKED, ("input_valid",))
    assert message in verdict.message


def test_a_query_that_is_too_long_is_refused_too() -> None:
    assert ask("x" * (MAX_TEXT + 1), operation="read").status is Status.BLOCKED
    assert ask("x" * (MAX_TEXT - 100), operation="read").status is Status.FAILED


@pytest.mark.parametrize(
    "value",
    ["x" * 900_000, [0] * 190_000, ["x" * 5] * 180_000, {str(number): number for number in range(99_000)}],
    ids=["a text", "numbers", "texts", "members"],
)
def test_a_result_is_small_however_much_it_repeats(value: Any) -> None:
    verdict = ask(operation="add", left=1, right=2, claimed=3, more=value)
    assert verdict.status is Status.VERIFIED
    assert len(msgspec.json.encode(verdict)) < 400_000
    assert "..." in str(verdict.result["more"])


PLAIN: list[tuple[Any, Any]] = [
    (Decimal("1.50"), "1.50"),
    (Decimal("-0"), "0"),
    (Decimal("1E+5"), "100000"),
    (Decimal("1E+5000"), "1E+5000"),
    (Decimal("NaN"), "NaN"),
    (date(2026, 3, 2), "2026-03-02"),
    (CheckStatus.FAILED, "FAILED"),
    ((1, (2, 3)), [1, [2, 3]]),
    (frozenset({"a"}), ["a"]),
    # Sets are unordered, and test ids must be the same in every process.
    pytest.param({"b", "a"}, ["a", "b"], id="a set of two"),
    ({1: Decimal(1)}, {"1": "1"}),
    (math.inf, "inf"),
    (1 << 53, 1 << 53),
    ((1 << 53) + 1, "9007199254740993"),
    (1 << 5000, "..."),
    (True, True),
    ("half \ud800 a pair", "half ? a pair"),
    (b"bytes", "b'bytes'"),
]


@pytest.mark.parametrize(("value", "expected"), PLAIN, ids=ascii)
def test_a_result_is_told_as_json(value: Any, expected: Any) -> None:
    assert to_json(value) == expected
    assert canonical({"value": to_json(value)})


def test_what_is_nested_deeper_than_anybody_reads_is_cut() -> None:
    assert str(to_json(nested(20))) == str(nested(16)).replace("1", "'...'")


PACKS = ("legal", "finance", "ucp", "tax")
REAL = [(pack, row) for pack in PACKS for row in import_module(f"qwed_{pack}.{pack}_checks").CHECKS.values()]
NASTY: list[Any] = [
    "",
    " ",
    "x",
    "\ud800",
    "\u0661\u0662",
    "1" * 5_000,
    "<" * 5_000,
    "(" * 5_000,
    "9999-99-99",
    "0001-01-01",
    "9999-12-31",
    "NaN",
    "1e999999",
    "-0",
    True,
    0,
    -1,
    10**30,
    1 << 511,
    1.5e308,
    5e-324,
    math.nan,
    -math.inf,
    [],
    [[]],
    [None] * 50,
    ["1", 2, None, {}],
    {},
    {"": ""},
    {"a": {"b": [1, {"c": None}]}},
    nested(40),
]


@pytest.mark.parametrize(("pack", "row"), REAL, ids=lambda value: value if isinstance(value, str) else value.name)
def test_no_value_makes_a_check_of_a_pack_raise_or_answer_beyond_json(pack: str, row: PackCheck) -> None:
    ask_pack = import_module(f"qwed.engines.{pack}").verify
    for value in NASTY:
        for names in (row.required, row.takes):
            verdict = ask_pack(EngineRequest(parameters={"operation": row.name, **dict.fromkeys(names, value)}))
            assert verdict.engine == pack
            assert verdict.status in (Status.FAILED, Status.INCONCLUSIVE, Status.BLOCKED, Status.VERIFIED)
            assert canonical({"message": verdict.message, "result": dict(verdict.result)})
            assert verdict.status not in (Status.VERIFIED, Status.FAILED) or (
                verdict.result["rule"] and verdict.result["by_hand"]
            )


TAKEN = {"operation", "query", "options", "type", "params"}
SPELLINGS = {"sql", "statement", "sql_query", "expression", "command", "code"}
"""Keys under which an action gives its query or its code."""


@pytest.mark.parametrize(("pack", "row"), REAL, ids=lambda value: value if isinstance(value, str) else value.name)
def test_a_check_says_what_it_finds_out_and_no_value_is_called_like_a_field_of_the_wire(
    pack: str, row: PackCheck
) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_]*", row.name)
    assert row.says
    assert "\n" not in row.says
    assert row.says[-1] != "."
    assert len({*row.takes}) == len(row.takes)
    assert not {*row.takes} & (TAKEN | SPELLINGS)
    assert row.text is None or row.text in row.required


def test_every_pack_can_be_asked_something() -> None:
    assert {pack for pack, _ in REAL} == {*PACKS}
