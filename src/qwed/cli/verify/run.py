"""Runs one engine request and shows the result."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from qwed.cli.backend import Target, connect, is_local, spinner
from qwed.cli.output import EXIT_FAILED, echo, fail, print_json
from qwed.cli.verify.render import details_of, style_of

PACKS = ("legal", "finance", "ucp", "tax")
"""Engines whose checks are called by name; each is an extra of its own."""
_SHORTEST, _LONGEST = 1.0, 60.0
_INDENT = "  "
_NOT_INSTALLED = ("ImportError", "ModuleNotFoundError")
_FILE_FIELDS = {"verify_stats": "file_path", "verify_image": "image_path"}
"""Name of the file parameter in the client; a Gate calls it `file`."""


class EngineRequest(NamedTuple):
    """Client method, its fields and its file."""

    verb: str
    fields: dict[str, Any]
    file: bytes | None = None


class OutputOptions(NamedTuple):
    """Time limit, attestation and output options."""

    seconds: float | None
    attest: bool
    as_json: bool


def verify_and_show(request: EngineRequest, output: OutputOptions, target: Target) -> int:
    """Send the request and show the result; return 0 if it is VERIFIED, else 1."""
    fields = {name: value for name, value in request.fields.items() if value is not None} | _options(output)
    if request.file is not None:
        fields["file" if is_local(target) else _FILE_FIELDS[request.verb]] = request.file
    with connect(target) as backend, spinner("verifying"):
        finding = dict(getattr(backend, request.verb)(**fields))
    if is_local(target) and _is_missing(finding):
        engine = str(finding.get("engine"))
        extra = engine if engine in PACKS else "engines"
        fail(f"the engine `{engine}` is not installed: pip install 'qwed[{extra}]', or use a server with --url")
    show_result(finding, as_json=output.as_json)
    return 0 if is_verified(finding) else EXIT_FAILED


def is_verified(finding: Mapping[str, Any]) -> bool:
    """Return True if the result is VERIFIED."""
    return finding.get("verified") is True and finding.get("status") == "VERIFIED"


def show_result(finding: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the result as JSON or as text."""
    if as_json:
        print_json(finding)
        return
    status = str(finding.get("status"))
    try:
        details = details_of(finding)
    except (AttributeError, KeyError, TypeError, ValueError):
        fail(f"{status}, but the rest of the result has an unknown format: use --json to see it")
    echo(f"{status}  {finding.get('engine')}  {finding.get('message') or ''}".rstrip(), style_of(status))
    width = max((len(detail.label) for detail in details), default=0)
    last = None
    for label, text in details:
        echo(f"{_INDENT}{('' if label == last else label).ljust(width)}{_INDENT}{text}")
        last = label


def _is_missing(finding: Mapping[str, Any]) -> bool:
    return finding.get("status") == "ERROR" and (finding.get("result") or {}).get("error") in _NOT_INSTALLED


def _options(output: OutputOptions) -> dict[str, Any]:
    if output.seconds is not None and not _SHORTEST <= output.seconds <= _LONGEST:
        fail(f"--timeout must be from {_SHORTEST:g} to {_LONGEST:g} seconds")
    options: dict[str, Any] = {"include_attestation": True} if output.attest else {}
    if output.seconds is not None:
        options["timeout_ms"] = round(output.seconds * 1000)
    return {"options": options} if options else {}
