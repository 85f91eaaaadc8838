"""Tables of cases: one test runs many rows and reports every row that fails, so thousands of rows stay fast."""

import functools
import inspect
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest

DATA = Path(__file__).parents[1] / "data"
AT_ONCE = 40
LONGEST_ROW = 600

Test = Callable[..., None]
_Row = TypeVar("_Row")


class CaseRow(NamedTuple):
    """One case: its line in the file, its id and the arguments of the test."""

    number: int
    name: str
    values: tuple[Any, ...]


def rows(name: str) -> list[dict[str, Any]]:
    """Return the rows of a table under tests/data."""
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]


def split_for_drill(
    table: Iterable[_Row], every: int, kinds: Callable[[_Row], Iterable[str]]
) -> tuple[list[_Row], list[_Row]]:
    """Return the first row of each kind plus one row in `every`, and the remaining rows for drills."""
    seen: set[str] = set()
    some: list[_Row] = []
    others: list[_Row] = []
    for number, row in enumerate(table):
        new = set(kinds(row)) - seen
        seen |= new
        (some if new or number % every == 0 else others).append(row)
    return some, others


def each(
    names: str | Sequence[str],
    table: Iterable[Any],
    *,
    ids: Callable[[Any], object] | None = None,
    at_once: int = AT_ONCE,
) -> Callable[[Test], Test]:
    """Run a test for every row, as `pytest.mark.parametrize` does, in groups; `--row-by-row` makes each row a test."""
    arguments = (names,) if isinstance(names, str) else tuple(names)
    numbered = tuple(_row(number, row, len(arguments), ids or _shown) for number, row in enumerate(table, 1))
    assert numbered, "a table without rows tests nothing"

    def decorate(test: Test) -> Test:
        parameters = tuple(inspect.signature(test).parameters)
        # A fixture is created once per group, so one row could see the changes of another.
        assert sorted(parameters) == sorted(arguments), f"{test.__name__} takes its row and nothing else"

        @functools.wraps(test)
        def asked(group: Sequence[CaseRow]) -> None:
            __tracebackhide__ = True
            calls = [functools.partial(test, **dict(zip(arguments, row.values, strict=True))) for row in group]
            if len(calls) == 1:
                calls[0]()
            else:
                _require_all(test, group, calls)

        asked.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [inspect.Parameter("group", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
        )
        marked: Test = pytest.mark.each(numbered, at_once)(asked)
        return marked

    return decorate


def groups(metafunc: pytest.Metafunc, row_by_row: bool) -> None:
    """Parametrize a test decorated with `each`, one group or one row at a time."""
    for mark in metafunc.definition.iter_markers("each"):
        numbered, at_once = mark.args
        size = 1 if row_by_row else at_once
        cut = [numbered[first : first + size] for first in range(0, len(numbered), size)]
        metafunc.parametrize("group", cut, ids=[_called(group) for group in cut])


def _row(number: int, row: Any, width: int, ids: Callable[[Any], object]) -> CaseRow:
    values = (row,) if width == 1 else tuple(row)
    assert len(values) == width, f"row {number} has {len(values)} values, the test takes {width}"
    return CaseRow(number, "-".join(str(ids(value)) for value in values), values)


def _shown(value: Any) -> str:
    return ascii(value)[:60]


def _called(group: Sequence[CaseRow]) -> str:
    first, last = group[0], group[-1]
    return f"{first.number} {first.name}" if first is last else f"{first.number}-{last.number}"


def _require_all(test: Test, group: Sequence[CaseRow], calls: Sequence[Callable[[], None]]) -> None:
    stops = (KeyboardInterrupt, pytest.exit.Exception)
    found = [pytest.CallInfo.from_call(call, "call", reraise=stops).excinfo for call in calls]
    failed = [_failure_text(test, row, error) for row, error in zip(group, found, strict=True) if error is not None]
    if failed:
        pytest.fail(f"{len(failed)} of {len(group)} rows failed\n\n" + "\n\n".join(failed), pytrace=False)


def _failure_text(test: Test, row: CaseRow, error: pytest.ExceptionInfo[BaseException]) -> str:
    source = inspect.getsourcefile(test)
    trace = error.getrepr(style="short", tbfilter=lambda info: info.traceback.cut(path=source))
    shown = ascii(row.values if len(row.values) > 1 else row.values[0])
    return f"row {row.number}: {row.name}\n{shown[:LONGEST_ROW]}\n{trace}"
