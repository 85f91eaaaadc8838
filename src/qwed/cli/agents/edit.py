"""`qwed agents edit`, `retire` and `restore-trust`."""

from typing import Annotated, Any

import typer

from qwed.cli.agents.permission_options import BUDGET, PERMISSIONS, merge_options, read_object, with_options
from qwed.cli.agents.register import AgentId, Labels, labels_in, show_agent
from qwed.cli.backend import Target, Url, server_client
from qwed.cli.options import AsJson, DataDir
from qwed.cli.output import echo, fail, print_json

Reason = Annotated[str, typer.Option("--reason", "-r", metavar="TEXT", help="reason, recorded in the log")]


def add_to(agents: typer.Typer) -> None:
    """Add the commands."""
    edit = agents.command("edit", help="Change an agent; it is refused if somebody else changes it meanwhile.")
    edit(with_options(_edit, before="as_json"))
    agents.command("retire", help="Retire an agent for good: its token is dead, its record stays.")(_retire)
    agents.command("restore-trust", help="Give back trust that an agent lost automatically.")(_restore_trust)


def _edit(
    agent_id: AgentId,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="new name")] = None,
    description: Annotated[str | None, typer.Option(metavar="TEXT", help="purpose of the agent")] = None,
    label: Labels = None,
    max_conversation_steps: Annotated[
        int | None, typer.Option(metavar="N", help="steps of one conversation", min=1)
    ] = None,
    patch: Annotated[
        str | None, typer.Option(metavar="FILE|JSON", help="JSON merge patch; the other options override it")
    ] = None,
    remove: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD", help="field to remove, such as labels.team or budget.max_daily_cost_usd"),
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
    **options: Any,
) -> int:
    changes: dict[str, Any] = {} if patch is None else read_object("--patch", patch)
    stated = {"name": name, "description": description, "max_conversation_steps": max_conversation_steps}
    changes |= {field: value for field, value in stated.items() if value is not None}
    _add_members(changes, "permissions", merge_options("--permissions", None, PERMISSIONS, options) or {})
    _add_members(changes, "budget", merge_options("--budget", None, BUDGET, options) or {})
    _add_members(changes, "labels", labels_in(label))
    for path in remove or ():
        field, _, member = path.partition(".")
        _add_members(changes, field, {member: None}) if member else changes.update({field: None})
    if not changes:
        fail("there is nothing to change: name a field, see `qwed agents edit --help`")
    with server_client(Target(url, data_dir)) as client:
        current = client.get_agent(agent_id)
        agent = dict(client.edit_agent(current.agent_id, changes, if_match=current.etag))
    if as_json:
        print_json(agent)
    else:
        show_agent(agent)
    return 0


def _add_members(changes: dict[str, Any], field: str, members: dict[str, Any]) -> None:
    if members:
        stated = changes.get(field)
        changes[field] = {**(stated if isinstance(stated, dict) else {}), **members}


def _retire(agent_id: AgentId, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> int:
    with server_client(Target(url, data_dir)) as client:
        agent = client.retire_agent(agent_id)
    if as_json:
        print_json(dict(agent))
    else:
        echo(f"{agent['agent_id']} ({agent['name']}) is retired")
    return 0


def _restore_trust(
    agent_id: AgentId,
    to_level: Annotated[int, typer.Option(metavar="N", min=0, max=3, help="new level, at most the registered one")],
    reason: Reason,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> int:
    with server_client(Target(url, data_dir)) as client:
        response = client.restore_trust(agent_id, to_level, reason)
    if as_json:
        print_json(dict(response))
    else:
        echo(f"{response['agent_id']} has trust level {response['trust_level']}")
    return 0
