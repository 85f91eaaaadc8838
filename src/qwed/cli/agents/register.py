"""`qwed agents register`, `list`, `show` and `rotate-token`."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from qwed.cli.action_format import display_fields
from qwed.cli.agents.permission_options import BUDGET, PERMISSIONS, merge_options, with_options
from qwed.cli.backend import Target, Url, server_client
from qwed.cli.options import AsJson, DataDir
from qwed.cli.output import echo, fail, print_json, print_table, show_once, to_json

AgentId = Annotated[str, typer.Argument(metavar="AGENT", help="agent id (agent_...) or name")]


Labels = Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="label, such as team=support; repeatable")]


def add_to(agents: typer.Typer) -> None:
    """Add the commands."""
    register = agents.command("register", help="Register an agent and print its id and token; the token is shown once.")
    register(with_options(_register, before="as_json"))
    agents.command("list", help="List agents.")(_list)
    agents.command("show", help="Show an agent's status, permissions and budget.")(_show)
    agents.command("rotate-token", help="Replace an agent's token; the old one stops working.")(_rotate)


def _register(
    name: Annotated[str, typer.Argument(metavar="NAME", help="name of the agent")],
    principal: Annotated[
        str, typer.Option("--principal", "-p", metavar="ID", help="person or service the agent acts for")
    ],
    kind: Annotated[
        str | None,
        typer.Option("--type", metavar="NAME", help="agent type: supervised (the default), autonomous or trusted"),
    ] = None,
    trust_level: Annotated[
        str | None,
        typer.Option(metavar="LEVEL", help="trust level: 0 to 3, or untrusted, supervised, autonomous, trusted"),
    ] = None,
    description: Annotated[str | None, typer.Option(metavar="TEXT", help="purpose of the agent")] = None,
    framework: Annotated[str | None, typer.Option(metavar="NAME", help="agent framework")] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="model the agent uses")] = None,
    permissions: Annotated[
        str | None, typer.Option(metavar="FILE|JSON", help="permissions as one object; the options below override it")
    ] = None,
    budget: Annotated[
        str | None, typer.Option(metavar="FILE|JSON", help="budget as one object; the options below override it")
    ] = None,
    label: Labels = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
    **options: Any,
) -> int:
    may_use = merge_options("--permissions", permissions, PERMISSIONS, options)
    may_spend = merge_options("--budget", budget, BUDGET, options)
    level = int(trust_level) if trust_level is not None and trust_level.isdecimal() else trust_level
    with server_client(Target(url, data_dir)) as client:
        agent = client.register_agent(
            name, kind, principal, may_use, may_spend, level, description, framework, model, labels_in(label) or None
        )
    _show_token(agent, as_json=as_json)
    return 0


def labels_in(texts: Sequence[str] | None) -> dict[str, str]:
    """Return the labels of `--label NAME=VALUE`."""
    labels = {}
    for text in texts or ():
        name, separator, value = text.partition("=")
        if not separator:
            fail(f"--label must be NAME=VALUE, such as team=support: `{text[:60]}` has no `=`")
        labels[name] = value
    return labels


def _show_token(agent: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the agent's id and token on standard output, as lines for a shell or a `.env` file."""
    lines = [f"QWED_{name.upper()}={shlex.quote(agent[name])}" for name in ("agent_id", "agent_token")]
    if not show_once(*([to_json(dict(agent))] if as_json else lines)):
        command = f"`qwed agents rotate-token {agent['agent_id']}`"
        fail(f"the agent is registered, but its token could not be printed: check the output, then run {command}")
    if as_json:
        return
    echo(f"{agent['name']}: {agent['type']}, trust level {agent['trust_level']}, for {agent['principal_id']}", err=True)
    echo("the token is shown only once: store it where only the agent can read it", err=True)


def _list(
    limit: Annotated[int, typer.Option(metavar="N", help="maximum number of agents", min=1)] = 100,
    status: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="active, suspended, retired or all (default: not retired)"),
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> int:
    with server_client(Target(url, data_dir)) as client:
        agents = client.list_agents(limit, status)
    if as_json:
        print_json([dict(agent) for agent in agents])
        return 0
    heads = ("agent_id", "name", "type", "trust_level", "status", "principal_id", "created_at")
    print_table(
        [head.removesuffix("_id").replace("_", " ") for head in heads],
        ([agent.get(head) for head in heads] for agent in agents),
    )
    return 0


def _show(agent_id: AgentId, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> int:
    with server_client(Target(url, data_dir)) as client:
        agent = dict(client.get_agent(agent_id))
    if as_json:
        print_json(agent)
        return 0
    show_agent(agent)
    return 0


def _rotate(agent_id: AgentId, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> int:
    with server_client(Target(url, data_dir)) as client:
        agent = client.rotate_token(agent_id)
    _show_token(agent, as_json=as_json)
    return 0


def show_agent(agent: dict[str, Any]) -> None:
    """Print an agent, one line for each field that has a value."""
    permissions, budget, labels = (agent.pop(field, None) or {} for field in ("permissions", "budget", "labels"))
    agent.pop("etag", None)
    show_fields(agent | permissions | budget | {f"labels.{name}": value for name, value in labels.items()})


def show_fields(pairs: Mapping[str, Any]) -> None:
    """Print one line per field; unset fields are left out."""
    rows = display_fields(pairs)
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        echo(f"{name.ljust(width)}  {value}")
