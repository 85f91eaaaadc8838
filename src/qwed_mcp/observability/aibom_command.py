"""`qwed-mcp aibom`: print the bill of materials of a run."""

import json
from enum import StrEnum
from typing import Annotated

import typer

from qwed_mcp.terminal import fail

_HELP = """Print the manifest of a run: its model, its verification engines and its MCP tools.

Exit code: 0 printed, 2 a name is not valid."""


class BomFormat(StrEnum):
    """Output formats of a bill of materials."""

    QWED = "qwed"
    CYCLONEDX = "cyclonedx"


def add_to(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("aibom", short_help="Print the bill of materials of a run.", help=_HELP)(_aibom)


def _aibom(
    model: Annotated[str, typer.Option(metavar="NAME", help="the model that was used, such as gpt-4o")],
    engine: Annotated[list[str] | None, typer.Option(metavar="NAME", help="an engine; may be given again")] = None,
    tool: Annotated[list[str] | None, typer.Option(metavar="NAME", help="an MCP tool; may be given again")] = None,
    form: Annotated[BomFormat, typer.Option("--format", help="the manifest, or a CycloneDX ML-BOM")] = BomFormat.QWED,
    spec_version: Annotated[str, typer.Option(metavar="VERSION", help="of CycloneDX: 1.6 or 1.7")] = "1.6",
    reproducible: Annotated[
        bool,
        typer.Option("--reproducible", help="CycloneDX without a timestamp: the same components give the same bytes"),
    ] = False,
) -> int:
    from qwed_mcp.observability.aibom import AIBOMGenerator

    generator = AIBOMGenerator()
    try:
        if form is BomFormat.QWED:
            typer.echo(str(generator.generate_manifest(model, engine, tool)))
            return 0
        bom = generator.generate_cyclonedx(model, engine, tool, spec_version=spec_version, reproducible=reproducible)
    except ValueError as error:
        fail(error)
    typer.echo(json.dumps(bom, indent=2))
    return 0
