"""`qwed policy packs` and `qwed policy use`: the policies that come with qwed."""

import json
from pathlib import Path
from typing import Annotated

import typer

from qwed.cli.options import AsJson
from qwed.cli.output import echo, fail, print_json, print_table
from qwed.cli.policy.files import required_packages

PackName = Annotated[str, typer.Argument(metavar="NAME", help="name of the pack")]
To = Annotated[str | None, typer.Option("--to", metavar="FILE", help="file to write (default NAME.yaml)")]
Force = Annotated[bool, typer.Option("--force", help="replace the file if it exists")]

SchemaAsJson = Annotated[
    bool, typer.Option("--json", help="accepted for consistency: the schema is always printed as JSON")
]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("packs", help="List the policies that come with qwed.")(_packs)
    app.command("schema", help="Print the JSON Schema of policy files, for editors.")(_schema)
    app.command("use", help="Copy one of the policies that come with qwed, to edit it.")(_use)


def _packs(as_json: AsJson = False) -> int:
    from qwed.policy import CompiledPolicies, compile_policies
    from qwed.policy.pack_files import pack_names, read_pack

    with required_packages():
        compiled = compile_policies(map(read_pack, pack_names()))
    if not isinstance(compiled, CompiledPolicies):
        raise RuntimeError(compiled[0].render())
    rows = [(one.policy.policy_id, len(one.policy.rules), one.policy.description) for one in compiled.policies]
    if as_json:
        print_json([{"name": name, "rules": rules, "description": text} for name, rules, text in rows])
    else:
        print_table(("name", "rules", "description"), rows)
    return 0


def _schema(_as_json: SchemaAsJson = False) -> int:
    from qwed.policy.json_schema import policy_schema

    echo(json.dumps(policy_schema()))
    return 0


def _use(name: PackName, to: To = None, force: Force = False, as_json: AsJson = False) -> int:
    from qwed.model.suggestions import did_you_mean
    from qwed.policy.pack_files import pack_names, read_pack

    if name not in pack_names():
        fail(f"there is no pack `{name[:60]}`: {did_you_mean(name, pack_names())}`qwed policy packs` lists them")
    path = Path(to or f"{name}.yaml")
    try:
        with open(path, "w" if force else "x", encoding="utf-8") as file:
            file.write(read_pack(name).text)
    except FileExistsError:
        fail(f"`{path}` exists: give another name with --to, or replace it with --force")
    except OSError as error:
        fail(f"`{path}` cannot be written: {error.strerror or error}")
    if as_json:
        print_json({"name": name, "file": str(path)})
    else:
        echo(f"wrote {path}: edit it, then `qwed policy check {path}`")
    return 0
