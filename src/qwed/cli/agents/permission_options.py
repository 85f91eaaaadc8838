"""Permission and budget options of `qwed agents register` and `edit`; single options override a JSON object or file."""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import typer

from qwed.cli.backend import MAX_TEXT, read_bytes
from qwed.cli.output import fail


class PermissionOption(NamedTuple):
    """Command-line option and the request field it sets."""

    option: str
    field: str
    kind: Any
    metavar: str
    text: str


def _list_option(option: str, field: str, metavar: str, text: str) -> PermissionOption:
    return PermissionOption(option, field, list[str] | None, metavar, f"{text}; repeatable")


def _limit_option(field: str, text: str, kind: Any = int | None) -> PermissionOption:
    return PermissionOption(field, field, kind, "N", text)


PERMISSIONS = (
    _list_option("allow_engine", "allowed_engines", "NAME", "engine the agent may use; all others are then denied"),
    _list_option("allow_tool", "allowed_tools", "NAME", "tool the agent may call; all others are then denied"),
    _list_option("block_tool", "blocked_tools", "NAME", "tool the agent may never call"),
    _list_option("allow_table", "allowed_tables", "NAME", "table the agent may use; all others are then denied"),
    _list_option("allow_path", "allowed_paths", "PATH", "path the agent may use; all others are then denied"),
    _list_option("allow_domain", "allowed_domains", "NAME", "domain the agent may call; all others are then denied"),
    _limit_option("max_rows", "maximum rows of one query"),
    PermissionOption("dialect", "dialect", str | None, "NAME", "database that executes its queries: postgres, ..."),
    _list_option("allow_function", "allowed_functions", "NAME", "function of your database that a query may call"),
)
BUDGET = (
    # Money stays text: a float would change the amount.
    _limit_option("max_daily_cost_usd", "maximum US dollars per day", str | None),
    _limit_option("max_per_request_usd", "maximum US dollars per request", str | None),
    _limit_option("max_requests_per_hour", "maximum requests per hour"),
    _limit_option("max_requests_per_day", "maximum requests per day"),
    _limit_option("max_tokens_per_request", "maximum tokens per request"),
    _limit_option("max_tokens_per_day", "maximum tokens per day"),
    _limit_option("max_tool_calls_per_hour", "maximum tool calls per hour"),
    _limit_option("max_high_risk_calls_per_day", "maximum high-risk calls per day"),
)


def with_options(command: Callable[..., int], before: str) -> Callable[..., int]:
    """Return the command with one option per row inserted before the parameter `before`; it receives them as
    `**options`."""
    signature = inspect.signature(command)
    own = [parameter for parameter in signature.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD]
    index = [parameter.name for parameter in own].index(before)
    parameters = [*own[:index], *map(_parameter, (*PERMISSIONS, *BUDGET)), *own[index:]]
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # typer reads it
    return command


def _parameter(row: PermissionOption) -> inspect.Parameter:
    option = typer.Option(metavar=row.metavar, help=row.text)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(row.option, kind, default=None, annotation=Annotated[row.kind, option])


def merge_options(
    name: str, argument: str | None, rows: Sequence[PermissionOption], options: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the object in `argument` (a file or JSON) updated with the options that were set, or None if empty."""
    base = {} if argument is None else read_object(name, argument)
    overrides = {row.field: options[row.option] for row in rows if options[row.option] not in (None, [])}
    return base | overrides or None


def read_object(name: str, argument: str) -> dict[str, Any]:
    """Return the JSON object in the argument, or in the file that it names."""
    text: str | bytes = argument if argument.lstrip().startswith("{") else read_bytes(argument, MAX_TEXT)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        fail(f"{name} must be a JSON object, or a file with one: `{argument[:60]}` is neither")
    if not isinstance(value, dict):
        fail(f"{name} must be a JSON object, or a file with one")
    return value
