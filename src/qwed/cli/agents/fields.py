"""What an agent is registered with: permissions and a budget, from a file, from JSON, from options; options win."""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import typer

from qwed.cli.asking import MOST_TEXT, read_bytes
from qwed.cli.printing import sorry


class Row(NamedTuple):
    """One option, and the field of the object that it sets."""

    option: str
    field: str
    kind: Any
    metavar: str
    text: str


def _names(option: str, field: str, metavar: str, text: str) -> Row:
    return Row(option, field, list[str] | None, metavar, f"{text}; repeatable")


def _limit(field: str, text: str, kind: Any = int | None) -> Row:
    return Row(field, field, kind, "N", text)


PERMISSIONS = (
    _names("allow_engine", "allowed_engines", "NAME", "an engine it may ask, then no other"),
    _names("allow_tool", "allowed_tools", "NAME", "a tool it may call, then no other"),
    _names("block_tool", "blocked_tools", "NAME", "a tool it may never call"),
    _names("allow_table", "allowed_tables", "NAME", "a table it may touch, then no other"),
    _names("allow_path", "allowed_paths", "PATH", "where it may work with files, then nowhere else"),
    _names("allow_domain", "allowed_domains", "NAME", "a domain it may call, then no other"),
    _limit("max_rows", "rows that one query may give"),
)
BUDGET = (
    # Money stays as it was typed: a float would not be what somebody meant.
    _limit("max_daily_cost_usd", "US dollars a day", str | None),
    _limit("max_per_request_usd", "US dollars for one request", str | None),
    _limit("max_requests_per_hour", "requests an hour"),
    _limit("max_requests_per_day", "requests a day"),
    _limit("max_tokens_per_request", "tokens of one request"),
    _limit("max_tokens_per_day", "tokens a day"),
    _limit("max_tool_calls_per_hour", "tool calls an hour"),
    _limit("max_high_risk_calls_per_day", "calls of high risk a day"),
)


def with_options(command: Callable[..., int], before: str) -> Callable[..., int]:
    """The command with an option for each row, which it takes as `**options`; they stand before the one named."""
    told = inspect.signature(command)
    own = [each for each in told.parameters.values() if each.kind is not each.VAR_KEYWORD]
    place = [each.name for each in own].index(before)
    shown = [*own[:place], *map(_parameter, (*PERMISSIONS, *BUDGET)), *own[place:]]
    command.__signature__ = told.replace(parameters=shown)  # type: ignore[attr-defined]  # what typer reads
    return command


def _parameter(row: Row) -> inspect.Parameter:
    option = typer.Option(metavar=row.metavar, help=row.text)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(row.option, kind, default=None, annotation=Annotated[row.kind, option])


def merged(name: str, given: str | None, rows: Sequence[Row], options: Mapping[str, Any]) -> dict[str, Any] | None:
    """The object in `given`, a file or JSON, with the options that were given put over it; None where nothing was."""
    base = {} if given is None else _object(name, given)
    said = {row.field: options[row.option] for row in rows if options[row.option] not in (None, [])}
    return base | said or None


def _object(name: str, given: str) -> dict[str, Any]:
    text: str | bytes = given if given.lstrip().startswith("{") else read_bytes(given, MOST_TEXT)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        sorry(f"{name} must be a JSON object, or a file with one: `{given[:60]}` is neither")
    if not isinstance(found, dict):
        sorry(f"{name} must be a JSON object, or a file with one")
    return found
