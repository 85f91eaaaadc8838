"""`qwed tools` command group: the tool registry of an organisation."""

from typing import Annotated, Any

import typer

from qwed.cli.backend import Target, Url, server_client
from qwed.cli.options import AsJson, DataDir, group
from qwed.cli.output import echo, print_json, print_table

_HEADS = ("name", "risk_level", "effect", "verification_engine", "requires_approval", "dangerous")
ToolName = Annotated[str, typer.Argument(metavar="TOOL", help="name of the tool, such as refund or mcp__shop__refund")]


def add_to(app: typer.Typer) -> None:
    """Add the group and its commands."""
    tools = group("Register the tools that your agents call.")
    tools.command("list", help="List the tools, built-in ones included.")(_list)
    tools.command("set", help="Register a tool, or change its registration.")(_set)
    tools.command("delete", help="Delete the registration of a tool; a built-in one applies again.")(_delete)
    app.add_typer(tools, name="tools")


def _list(as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> int:
    with server_client(Target(url, data_dir)) as client:
        tools = [dict(tool) for tool in client.list_tools()]
    if as_json:
        print_json(tools)
    else:
        print_table(
            [head.replace("_", " ") for head in _HEADS], [[tool.get(head) for head in _HEADS] for tool in tools]
        )
    return 0


def _set(
    name: ToolName,
    risk_level: Annotated[str, typer.Option("--risk", metavar="LEVEL", help="low, medium, high or critical")],
    effect: Annotated[
        str | None, typer.Option(metavar="EFFECT", help="what it does: READ, WRITE, DELETE, SPEND, ...")
    ] = None,
    verification_engine: Annotated[
        str | None,
        typer.Option("--engine", metavar="NAME", help="what verifies its calls: sql, code, shell, ..."),
    ] = None,
    dialect: Annotated[
        str | None, typer.Option(metavar="NAME", help="database that executes its statements: postgres, ...")
    ] = None,
    requires_approval: Annotated[
        bool | None, typer.Option("--approval/--no-approval", help="whether a person approves each call")
    ] = None,
    dangerous: Annotated[
        bool | None, typer.Option("--dangerous/--not-dangerous", help="whether that holds at every trust level")
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> int:
    fields: dict[str, Any] = {
        "effect": effect,
        "verification_engine": verification_engine,
        "dialect": dialect,
        "requires_approval": requires_approval,
        "dangerous": dangerous,
    }
    stated = {field: value for field, value in fields.items() if value is not None}
    with server_client(Target(url, data_dir)) as client:
        tool = client.put_tool(name, risk_level, **stated)
    if as_json:
        print_json(dict(tool))
    else:
        echo(f"{tool['name']} is registered with {tool['risk_level']} risk")
    return 0


def _delete(name: ToolName, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> int:
    with server_client(Target(url, data_dir)) as client:
        response = client.delete_tool(name)
    if as_json:
        print_json(dict(response))
    else:
        echo(f"{name} is no longer registered")
    return 0
