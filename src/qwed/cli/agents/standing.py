"""`qwed agents suspend`, `reactivate`, `trust` and `budget`: how an agent stands."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qwed.cli.agents.registering import AgentId, show_fields
from qwed.cli.asking import Url, Where, server
from qwed.cli.options import AsJson, DataDir
from qwed.cli.printing import WRONG, print_json, say, sorry, table

if TYPE_CHECKING:
    from qwed_sdk import QWEDClient

_LEVELS = ("untrusted", "supervised", "autonomous", "trusted")
_CHANGES = 20
Reason = Annotated[str, typer.Option("--reason", "-r", metavar="TEXT", help="why; it is kept in the log")]


def add_to(agents: typer.Typer) -> None:
    """Add the commands."""
    agents.command("suspend", help="Stop an agent: everything it asks is denied.")(_suspend)
    agents.command("reactivate", help="Let a stopped agent go on.")(_reactivate)
    agents.command("trust", help="An agent's trust level, or with --to-level a change of it.")(_trust)
    agents.command("budget", help="What an agent may spend, and has spent.")(_budget)


def _suspend(
    agent_id: AgentId, reason: Reason, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None
) -> int:
    with server(Where(url, data_dir)) as client:
        return _stands(client.suspend_agent(agent_id, reason), as_json=as_json)


def _reactivate(
    agent_id: AgentId, reason: Reason, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None
) -> int:
    with server(Where(url, data_dir)) as client:
        return _stands(client.reactivate_agent(agent_id, reason), as_json=as_json)


def _stands(agent: Mapping[str, Any], *, as_json: bool) -> int:
    if as_json:
        print_json(dict(agent))
    else:
        say(f"{agent['agent_id']} is {agent['status']}")
    return 0


def _trust(
    agent_id: AgentId,
    to_level: Annotated[
        int | None, typer.Option(metavar="N", min=0, max=3, help="ask for one level more, or lower it at once")
    ] = None,
    justification: Annotated[str | None, typer.Option(metavar="TEXT", help="why; it is kept in the log")] = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> int:
    if to_level is None and justification is not None:
        sorry("--justification is for a change: name the level with --to-level")
    with server(Where(url, data_dir)) as client:
        agent = client.get_agent(agent_id)
        if to_level is None:
            return _show_trust(agent, client, as_json=as_json)
        if to_level < agent.trust_level:
            return _show_change(client.reduce_trust(agent_id, to_level, justification), as_json=as_json)
        return _ask_for_more(agent_id, to_level, justification, client, as_json=as_json)


def _show_trust(agent: Mapping[str, Any], client: "QWEDClient", *, as_json: bool) -> int:
    """The level, and from the log how it came to be."""
    found = client.get_agent_activity(agent["agent_id"], _CHANGES, kind="change")
    changes = [dict(change) for change in found if (change.event or "").startswith("trust_")]
    if as_json:
        print_json({"agent_id": agent["agent_id"], "trust_level": agent["trust_level"], "changes": changes})
        return 0
    say(f"{agent['agent_id']} has trust level {_level(agent['trust_level'])}")
    if changes:
        table(("time", "event", "by", "reason"), map(_change_row, changes))
    return 0


def _change_row(change: Mapping[str, Any]) -> list[Any]:
    told = change.get("change") or {}
    return [change.get("timestamp"), change.get("event"), change.get("by"), told.get("reason")]


def _ask_for_more(
    agent_id: str, to_level: int, justification: str | None, client: "QWEDClient", *, as_json: bool
) -> int:
    from qwed_sdk import QWEDConflictError

    try:
        asked = client.request_trust_change(agent_id, to_level, justification)
    except QWEDConflictError as error:
        evidence = error.details.get("evidence")
        if not isinstance(evidence, dict):
            raise
        if as_json:
            print_json({"agent_id": agent_id, "error": {"code": error.code, "message": error.message}} | error.details)
        else:
            say(f"refused: {error.message} ({error.code})", "bold red")
            show_fields(evidence)
        return WRONG
    return _show_change(asked, as_json=as_json)


def _show_change(changed: Mapping[str, Any], *, as_json: bool) -> int:
    if as_json:
        print_json(dict(changed))
        return 0
    if changed.get("approval_id"):
        say(f"a person must approve it: qwed approvals approve {changed['approval_id']} --reason ...")
        show_fields(changed.get("evidence") or {})
    else:
        say(f"{changed['agent_id']} has trust level {_level(changed['trust_level'])}")
    return 0


def _level(level: Any) -> str:
    return f"{level} ({_LEVELS[level]})" if isinstance(level, int) and 0 <= level < len(_LEVELS) else str(level)


def _budget(agent_id: AgentId, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> int:
    with server(Where(url, data_dir)) as client:
        budget = dict(client.get_agent_budget(agent_id))
    if as_json:
        print_json(budget)
        return 0
    rows = [(what, _at(budget, spent), _most(budget, most)) for what, spent, most in _BUDGET_ROWS]
    table(("what", "so far", "at most"), rows)
    resets = budget.get("reset_at") or {}
    say(f"the hour ends {resets.get('hour')}, the day {resets.get('day')}")
    return 0


def _at(budget: Mapping[str, Any], path: str) -> Any:
    part, _, name = path.partition(".")
    return None if not name else (budget.get(part) or {}).get(name)


def _most(budget: Mapping[str, Any], path: str) -> Any:
    limit = _at(budget, path)
    return "no limit" if path and limit is None else limit


_BUDGET_ROWS = (
    ("US dollars today", "cost.current_daily_usd", "cost.max_daily_usd"),
    ("US dollars held for approvals", "cost.held_usd", ""),
    ("US dollars a request", "", "cost.max_per_request_usd"),
    ("requests this hour", "requests.current_hour", "requests.max_per_hour"),
    ("requests today", "requests.current_day", "requests.max_per_day"),
    ("tokens today", "tokens.current_daily", "tokens.max_daily"),
    ("tokens a request", "", "tokens.max_per_request"),
    ("tool calls this hour", "tools.current_hour", "tools.max_calls_per_hour"),
    ("calls of high risk left today", "", "tools.high_risk_calls_remaining"),
)
