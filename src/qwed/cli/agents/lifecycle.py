"""`qwed agents suspend`, `reactivate`, `trust` and `budget`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qwed.cli.agents.register import AgentId, show_fields
from qwed.cli.backend import Target, Url, server_client
from qwed.cli.options import AsJson, DataDir
from qwed.cli.output import EXIT_FAILED, echo, fail, print_json, print_table

if TYPE_CHECKING:
    from qwed_sdk import QWEDClient

_TRUST_LEVEL_NAMES = ("untrusted", "supervised", "autonomous", "trusted")
_MAX_CHANGES = 20
Reason = Annotated[str, typer.Option("--reason", "-r", metavar="TEXT", help="reason, recorded in the log")]


def add_to(agents: typer.Typer) -> None:
    """Add the commands."""
    agents.command("suspend", help="Suspend an agent: all its requests are denied.")(_suspend)
    agents.command("reactivate", help="Reactivate a suspended agent.")(_reactivate)
    agents.command("trust", help="Show or change an agent's trust level.")(_trust)
    agents.command("budget", help="Show an agent's limits and usage.")(_budget)


def _suspend(
    agent_id: AgentId, reason: Reason, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None
) -> int:
    with server_client(Target(url, data_dir)) as client:
        return _show_status(client.suspend_agent(agent_id, reason), as_json=as_json)


def _reactivate(
    agent_id: AgentId, reason: Reason, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None
) -> int:
    with server_client(Target(url, data_dir)) as client:
        return _show_status(client.reactivate_agent(agent_id, reason), as_json=as_json)


def _show_status(agent: Mapping[str, Any], *, as_json: bool) -> int:
    if as_json:
        print_json(dict(agent))
    else:
        echo(f"{agent['agent_id']} is {agent['status']}")
    return 0


def _trust(
    agent_id: AgentId,
    to_level: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, max=3, help="new level: request one level more, or lower it at once"),
    ] = None,
    justification: Annotated[str | None, typer.Option(metavar="TEXT", help="reason, recorded in the log")] = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> int:
    if to_level is None and justification is not None:
        fail("--justification needs --to-level: name the new level")
    with server_client(Target(url, data_dir)) as client:
        agent = client.get_agent(agent_id)
        if to_level is None:
            return _show_trust(agent, client, as_json=as_json)
        if to_level < agent.trust_level:
            return _show_change(client.reduce_trust(agent_id, to_level, justification), as_json=as_json)
        return _request_trust(agent_id, to_level, justification, client, as_json=as_json)


def _show_trust(agent: Mapping[str, Any], client: "QWEDClient", *, as_json: bool) -> int:
    """Print the trust level and its most recent changes."""
    entries = client.get_agent_activity(agent["agent_id"], _MAX_CHANGES, kind="change")
    changes = [dict(change) for change in entries if (change.event or "").startswith("trust_")]
    if as_json:
        print_json({"agent_id": agent["agent_id"], "trust_level": agent["trust_level"], "changes": changes})
        return 0
    echo(f"{agent['agent_id']} has trust level {_level_text(agent['trust_level'])}")
    if changes:
        print_table(("time", "event", "by", "reason"), map(_change_row, changes))
    return 0


def _change_row(change: Mapping[str, Any]) -> list[Any]:
    details = change.get("change") or {}
    return [change.get("timestamp"), change.get("event"), change.get("by"), details.get("reason")]


def _request_trust(
    agent_id: str, to_level: int, justification: str | None, client: "QWEDClient", *, as_json: bool
) -> int:
    from qwed_sdk import QWEDConflictError

    try:
        response = client.request_trust_change(agent_id, to_level, justification)
    except QWEDConflictError as error:
        evidence = error.details.get("evidence")
        if not isinstance(evidence, dict):
            raise
        if as_json:
            print_json({"agent_id": agent_id, "error": {"code": error.code, "message": error.message}} | error.details)
        else:
            echo(f"refused: {error.message} ({error.code})", "bold red")
            show_fields(evidence)
        return EXIT_FAILED
    return _show_change(response, as_json=as_json)


def _show_change(response: Mapping[str, Any], *, as_json: bool) -> int:
    if as_json:
        print_json(dict(response))
        return 0
    if response.get("approval_id"):
        echo(f"a person must approve this change: qwed approvals approve {response['approval_id']} --reason ...")
        show_fields(response.get("evidence") or {})
    else:
        echo(f"{response['agent_id']} has trust level {_level_text(response['trust_level'])}")
    return 0


def _level_text(level: Any) -> str:
    return (
        f"{level} ({_TRUST_LEVEL_NAMES[level]})"
        if isinstance(level, int) and 0 <= level < len(_TRUST_LEVEL_NAMES)
        else str(level)
    )


def _budget(agent_id: AgentId, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> int:
    with server_client(Target(url, data_dir)) as client:
        budget = dict(client.get_agent_budget(agent_id))
    if as_json:
        print_json(budget)
        return 0
    rows = [(what, _budget_value(budget, spent), _budget_limit(budget, most)) for what, spent, most in _BUDGET_ROWS]
    print_table(("limit", "used", "maximum"), rows)
    resets = budget.get("reset_at") or {}
    echo(f"hourly counters reset at {resets.get('hour')}, daily counters at {resets.get('day')}")
    return 0


def _budget_value(budget: Mapping[str, Any], path: str) -> Any:
    part, _, name = path.partition(".")
    return None if not name else (budget.get(part) or {}).get(name)


def _budget_limit(budget: Mapping[str, Any], path: str) -> Any:
    limit = _budget_value(budget, path)
    return "no limit" if path and limit is None else limit


_BUDGET_ROWS = (
    ("US dollars today", "cost.current_daily_usd", "cost.max_daily_usd"),
    ("US dollars held for approvals", "cost.held_usd", ""),
    ("US dollars per request", "", "cost.max_per_request_usd"),
    ("requests this hour", "requests.current_hour", "requests.max_per_hour"),
    ("requests today", "requests.current_day", "requests.max_per_day"),
    ("tokens today", "tokens.current_daily", "tokens.max_daily"),
    ("tokens per request", "", "tokens.max_per_request"),
    ("tool calls this hour", "tools.current_hour", "tools.max_calls_per_hour"),
    ("high-risk calls left today", "", "tools.high_risk_calls_remaining"),
)
