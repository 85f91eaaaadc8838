"""`qwed-mcp skill`: whether a skill may be loaded, by its manifest and its bytes."""

import json
from pathlib import Path
from typing import Annotated

import typer

from qwed_mcp.command import REFUSED, sorry

_HELP = """Check the manifest of a skill: where it comes from and, with --content, whether its bytes are the ones that
its digest was made of.

Exit code: 0 it is trusted, 1 it is blocked, 2 the content could not be read."""


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("skill", short_help="Check where a skill comes from.", help=_HELP)(_skill)


def _skill(
    manifest: Annotated[Path, typer.Argument(metavar="MANIFEST", help="the manifest, a JSON file")],
    content: Annotated[
        Path | None, typer.Option(metavar="FILE|DIR", help="the skill itself, to compare with its digest")
    ] = None,
    registry: Annotated[
        list[str] | None, typer.Option(metavar="DOMAIN", help="the only registry to trust; may be given again")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON value")] = False,
) -> int:
    from qwed_mcp.security.content import Unreadable, content_of
    from qwed_mcp.security.provenance import SkillProvenanceGuard, check_manifest_file

    try:
        data = None if content is None else content_of(content)
    except Unreadable as error:
        sorry(error)
    except (OSError, ValueError) as error:
        sorry(f"the content cannot be read: {getattr(error, 'strerror', None) or error}")
    verdict = check_manifest_file(manifest, SkillProvenanceGuard(trusted_registries=registry), content=data)
    if as_json:
        typer.echo(json.dumps(dict(verdict)))
    else:
        typer.echo(f"{verdict.status} (risk {verdict.risk_level}): {_plain(verdict.message)}")
        for finding in verdict.findings:
            typer.echo(f"  - {_plain(finding)}")
    return 0 if verdict.verified is True else REFUSED


def _plain(text: str) -> str:
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
