"""`qwed agents activity`: list an agent's requests and decisions."""

import sys
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qwed.cli.action_format import DECISION_STYLES, summarize_action
from qwed.cli.agents.register import AgentId
from qwed.cli.backend import Target, Url, server_client
from qwed.cli.options import DataDir
from qwed.cli.output import echo, fail, print_json, print_table

if TYPE_CHECKING:
    from qwed_sdk import QWEDClient

_MAX_ENTRIES = 10_000
"""Maximum number of entries read in one poll of --follow."""
_ROW = "{}  {:<15}  {:<8}  {}  {}"
From = Annotated[str | None, typer.Option("--from", metavar="TIME", help="start of the period: a date or time")]
To = Annotated[str | None, typer.Option("--to", metavar="TIME", help="end of the period (exclusive): a date or time")]


def add_to(agents: typer.Typer) -> None:
    """Add the command."""
    agents.command("activity", help="List an agent's requests and decisions, newest first.")(_activity)


def _activity(
    agent_id: AgentId,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", help="maximum number of entries", min=1)] = 20,
    since: From = None,
    until: To = None,
    decision: Annotated[
        str | None, typer.Option(metavar="NAME", help="only this decision: APPROVED, DENIED, PENDING, CORRECTED, ...")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="print new entries as they arrive, until stopped")] = False,
    interval: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.2, max=3600, help="poll interval of --follow")
    ] = 2.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="print one JSON value; with --follow one line of JSON per entry")
    ] = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> int:
    if follow and until is not None:
        fail("--follow does not end: leave out --to")
    decision = None if decision is None else decision.upper()
    with server_client(Target(url, data_dir)) as client:
        entries = client.get_agent_activity(agent_id, limit, since=since, until=until, decision=decision)
        if not follow:
            _show(entries, as_json=as_json)
            return 0
        for entry in _follow(entries[::-1], agent_id, decision, interval, client):
            _show_entry(entry, as_json=as_json)
    return 0


def _follow(
    initial: list[Any], agent_id: str, decision: str | None, interval: float, client: "QWEDClient"
) -> Iterator[Mapping[str, Any]]:
    """Yield the entries so far, oldest first, then new ones without end."""
    newest: Mapping[str, Any] | None = None
    entries = initial
    while True:
        for entry in entries:
            newest = entry
            yield entry
        time.sleep(interval)
        since = None if newest is None else newest["timestamp"]
        page = client.get_agent_activity(agent_id, _MAX_ENTRIES, since=since, decision=decision)
        entries = [entry for entry in page[::-1] if newest is None or entry["log_index"] > newest["log_index"]]


def _show(entries: list[Any], *, as_json: bool) -> None:
    if as_json:
        print_json([dict(entry) for entry in entries])
        return
    print_table(("time", "decision", "risk", "action", "reason"), map(_row, entries))


def _show_entry(entry: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(dict(entry))
    else:
        echo(_ROW.format(*_row(entry)).rstrip(), DECISION_STYLES.get(str(entry.get("decision"))))
    sys.stdout.flush()


def _row(entry: Mapping[str, Any]) -> list[str]:
    risk = (entry.get("verification") or {}).get("risk_level")
    what = summarize_action(entry.get("action")) or entry.get("action_type") or entry.get("event")
    why = (entry.get("error") or entry.get("change") or {}).get("message")
    return [str(part or "") for part in (entry.get("timestamp"), _decision_text(entry), risk, what, why)]


def _decision_text(entry: Mapping[str, Any]) -> str | None:
    """Return the decision and, if a person resolved it, the resolution."""
    resolution = (entry.get("resolution") or {}).get("decision")
    return f"{entry.get('decision')} > {resolution}" if resolution else entry.get("decision")
