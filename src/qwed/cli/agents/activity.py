"""`qwed agents activity`: what an agent asked, and what was decided; with --follow as it happens."""

import sys
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qwed.cli.actions import STYLES, about
from qwed.cli.agents.registering import AgentId
from qwed.cli.asking import Url, Where, server
from qwed.cli.options import DataDir
from qwed.cli.printing import print_json, say, sorry, table

if TYPE_CHECKING:
    from qwed_sdk import QWEDClient

_MOST = 10_000
"""Entries between two looks."""
_ROW = "{}  {:<15}  {:<8}  {}  {}"
From = Annotated[str | None, typer.Option("--from", metavar="TIME", help="from this day or moment on")]
To = Annotated[str | None, typer.Option("--to", metavar="TIME", help="until before this day or moment")]


def add_to(agents: typer.Typer) -> None:
    """Add the command."""
    agents.command("activity", help="What an agent asked, newest first; with --follow as it happens.")(_activity)


def _activity(
    agent_id: AgentId,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", help="how many at most", min=1)] = 20,
    since: From = None,
    until: To = None,
    decision: Annotated[
        str | None, typer.Option(metavar="NAME", help="only these: APPROVED, DENIED, PENDING, CORRECTED, ...")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="go on with what comes, until stopped")] = False,
    interval: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.2, max=3600, help="how often to look with --follow")
    ] = 2.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="print one JSON value, with --follow a line of JSON for each")
    ] = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> int:
    if follow and until is not None:
        sorry("--follow has no end: leave --to out")
    decision = None if decision is None else decision.upper()
    with server(Where(url, data_dir)) as client:
        found = client.get_agent_activity(agent_id, limit, since=since, until=until, decision=decision)
        if not follow:
            _show(found, as_json=as_json)
            return 0
        for entry in _following(found[::-1], agent_id, decision, interval, client):
            _show_one(entry, as_json=as_json)
    return 0


def _following(
    begun: list[Any], agent_id: str, decision: str | None, interval: float, client: "QWEDClient"
) -> Iterator[Mapping[str, Any]]:
    """What there is, oldest first, and then without end what comes."""
    newest: Mapping[str, Any] | None = None
    found = begun
    while True:
        for entry in found:
            newest = entry
            yield entry
        time.sleep(interval)
        since = None if newest is None else newest["timestamp"]
        page = client.get_agent_activity(agent_id, _MOST, since=since, decision=decision)
        found = [entry for entry in page[::-1] if newest is None or entry["log_index"] > newest["log_index"]]


def _show(found: list[Any], *, as_json: bool) -> None:
    if as_json:
        print_json([dict(entry) for entry in found])
        return
    table(("time", "decision", "risk", "what", "why"), map(_row, found))


def _show_one(entry: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(dict(entry))
    else:
        say(_ROW.format(*_row(entry)).rstrip(), STYLES.get(str(entry.get("decision"))))
    sys.stdout.flush()


def _row(entry: Mapping[str, Any]) -> list[str]:
    risk = (entry.get("verification") or {}).get("risk_level")
    what = about(entry.get("action")) or entry.get("action_type") or entry.get("event")
    why = (entry.get("error") or entry.get("change") or {}).get("message")
    return [str(part or "") for part in (entry.get("timestamp"), _decided(entry), risk, what, why)]


def _decided(entry: Mapping[str, Any]) -> str | None:
    """The decision, and what a person made of it."""
    settled = (entry.get("resolution") or {}).get("decision")
    return f"{entry.get('decision')} > {settled}" if settled else entry.get("decision")
