"""`qwed-mcp skill`: check a skill by its manifest and its content."""

import json
from pathlib import Path
from typing import Annotated

import typer

from qwed_mcp.terminal import EXIT_REFUSED, fail

_HELP = """Check the manifest of a skill: its origin and, with --content, that its bytes match the digest.

Exit code: 0 trusted, 1 blocked, 2 the content could not be read."""


def add_to(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("skill", short_help="Check the origin and content of a skill.", help=_HELP)(_skill)


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
    from qwed_mcp.security.provenance import SkillProvenanceGuard, check_manifest_file
    from qwed_mcp.security.skill_content import SkillContentError, read_skill_content

    try:
        data = None if content is None else read_skill_content(content)
    except SkillContentError as error:
        fail(error)
    except (OSError, ValueError) as error:
        fail(f"the content cannot be read: {getattr(error, 'strerror', None) or error}")
    verdict = check_manifest_file(manifest, SkillProvenanceGuard(trusted_registries=registry), content=data)
    if as_json:
        typer.echo(json.dumps(dict(verdict)))
    else:
        typer.echo(f"{verdict.status} (risk {verdict.risk_level}): {_escape_unprintable(verdict.message)}")
        for finding in verdict.findings:
            typer.echo(f"  - {_escape_unprintable(finding)}")
    return 0 if verdict.verified is True else EXIT_REFUSED


def _escape_unprintable(text: str) -> str:
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
