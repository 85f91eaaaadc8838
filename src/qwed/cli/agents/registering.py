"""`qwed agents register`, `list`, `show` and `rotate-token`."""

import shlex
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from qwed.cli.actions import fields
from qwed.cli.agents.fields import BUDGET, PERMISSIONS, merged, with_options
from qwed.cli.asking import Url, Where, server
from qwed.cli.options import AsJson, DataDir
from qwed.cli.printing import json_of, print_json, say, show_once, sorry, table

AgentId = Annotated[str, typer.Argument(metavar="AGENT", help="its id, agent_...")]


def add_to(agents: typer.Typer) -> None:
    """Add the commands."""
    register = agents.command("register", help="Register an agent; its id and its token, shown this once.")
    register(with_options(_register, before="as_json"))
    agents.command("list", help="The agents of the organisation.")(_list)
    agents.command("show", help="One agent: its permissions, its budget, how it stands.")(_show)
    agents.command("rotate-token", help="Give an agent a new token; the old one opens nothing any more.")(_rotate)


def _register(
    name: Annotated[str, typer.Argument(metavar="NAME", help="what people call it")],
    principal: Annotated[
        str, typer.Option("--principal", "-p", metavar="ID", help="the person or service it acts for")
    ],
    kind: Annotated[
        str | None, typer.Option("--type", metavar="NAME", help="supervised (the default), autonomous or trusted")
    ] = None,
    trust_level: Annotated[
        str | None, typer.Option(metavar="LEVEL", help="0 to 3, or untrusted, supervised, autonomous, trusted")
    ] = None,
    description: Annotated[str | None, typer.Option(metavar="TEXT", help="what it is for")] = None,
    framework: Annotated[str | None, typer.Option(metavar="NAME", help="what it is built with")] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="the model it asks")] = None,
    permissions: Annotated[
        str | None, typer.Option(metavar="FILE|JSON", help="what it may use, as one object; the options below win")
    ] = None,
    budget: Annotated[
        str | None, typer.Option(metavar="FILE|JSON", help="what it may spend, as one object; the options below win")
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
    **options: Any,
) -> int:
    may_use = merged("--permissions", permissions, PERMISSIONS, options)
    may_spend = merged("--budget", budget, BUDGET, options)
    level = int(trust_level) if trust_level is not None and trust_level.isdecimal() else trust_level
    with server(Where(url, data_dir)) as client:
        agent = client.register_agent(name, kind, principal, may_use, may_spend, level, description, framework, model)
    _show_token(agent, as_json=as_json)
    return 0


def _show_token(agent: Mapping[str, Any], *, as_json: bool) -> None:
    """The one place where a token is shown: on standard output, as lines that a shell or a `.env` file takes."""
    own = [f"QWED_{name.upper()}={shlex.quote(agent[name])}" for name in ("agent_id", "agent_token")]
    if not show_once(*([json_of(dict(agent))] if as_json else own)):
        again = f"`qwed agents rotate-token {agent['agent_id']}`"
        sorry(f"the agent is there, but its token could not be shown: see where the output goes, then {again}")
    if as_json:
        return
    say(f"{agent['name']}: {agent['type']}, trust level {agent['trust_level']}, for {agent['principal_id']}", err=True)
    say("the token is shown this once: keep it where only the agent can read it", err=True)


def _list(
    limit: Annotated[int, typer.Option(metavar="N", help="how many at most", min=1)] = 100,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> int:
    with server(Where(url, data_dir)) as client:
        agents = client.list_agents(limit)
    if as_json:
        print_json([dict(agent) for agent in agents])
        return 0
    heads = ("agent_id", "name", "type", "trust_level", "status", "principal_id", "created_at")
    table(
        [head.removesuffix("_id").replace("_", " ") for head in heads],
        ([agent.get(head) for head in heads] for agent in agents),
    )
    return 0


def _show(agent_id: AgentId, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> int:
    with server(Where(url, data_dir)) as client:
        agent = dict(client.get_agent(agent_id))
    if as_json:
        print_json(agent)
        return 0
    permissions, budget = agent.pop("permissions", None) or {}, agent.pop("budget", None) or {}
    show_fields(agent | permissions | budget)
    return 0


def _rotate(agent_id: AgentId, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> int:
    with server(Where(url, data_dir)) as client:
        agent = client.rotate_token(agent_id)
    _show_token(agent, as_json=as_json)
    return 0


def show_fields(pairs: Mapping[str, Any]) -> None:
    """One line each, what is not set left out."""
    shown = fields(pairs)
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        say(f"{name.ljust(width)}  {value}")
