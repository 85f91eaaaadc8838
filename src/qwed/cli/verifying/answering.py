"""One question to an engine: asked, answered, shown."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from qwed.cli.asking import Where, connect, is_local, working
from qwed.cli.printing import WRONG, print_json, say, sorry
from qwed.cli.verifying.findings import details_of, style_of

PACKS = ("legal", "finance", "ucp", "tax")
"""Engines whose checks are asked by name; each is an extra of its own."""
_SHORTEST, _LONGEST = 1.0, 60.0
_INDENT = "  "
_NOT_INSTALLED = ("ImportError", "ModuleNotFoundError")
_FILE_FIELDS = {"verify_stats": "file_path", "verify_image": "image_path"}
"""What the client calls the file; to a Gate it is `file`."""


class Question(NamedTuple):
    """What is asked: the verb, its fields, and the file it is about."""

    verb: str
    fields: dict[str, Any]
    file: bytes | None = None


class How(NamedTuple):
    """How it is asked, and how the answer is shown."""

    seconds: float | None
    attest: bool
    as_json: bool


def answer(question: Question, how: How, where: Where) -> int:
    """Ask, and show the answer; 0 where it is VERIFIED, else 1."""
    fields = {name: value for name, value in question.fields.items() if value is not None} | _options(how)
    if question.file is not None:
        fields["file" if is_local(where) else _FILE_FIELDS[question.verb]] = question.file
    with connect(where) as asked, working("verifying"):
        finding = dict(getattr(asked, question.verb)(**fields))
    if is_local(where) and _is_missing(finding):
        engine = str(finding.get("engine"))
        extra = engine if engine in PACKS else "engines"
        sorry(f"the engine `{engine}` needs more: pip install 'qwed[{extra}]', or name a server with --url")
    show(finding, as_json=how.as_json)
    return 0 if is_verified(finding) else WRONG


def is_verified(finding: Mapping[str, Any]) -> bool:
    """Whether it was proven, and nothing less."""
    return finding.get("verified") is True and finding.get("status") == "VERIFIED"


def show(finding: Mapping[str, Any], *, as_json: bool) -> None:
    """The answer as JSON, or for a person."""
    if as_json:
        print_json(finding)
        return
    status = str(finding.get("status"))
    try:
        details = details_of(finding)
    except (AttributeError, KeyError, TypeError, ValueError):
        sorry(f"{status}, but the rest of the answer is of no known shape: --json shows it")
    say(f"{status}  {finding.get('engine')}  {finding.get('message') or ''}".rstrip(), style_of(status))
    width = max((len(detail.label) for detail in details), default=0)
    last = None
    for label, text in details:
        say(f"{_INDENT}{('' if label == last else label).ljust(width)}{_INDENT}{text}")
        last = label


def _is_missing(finding: Mapping[str, Any]) -> bool:
    return finding.get("status") == "ERROR" and (finding.get("result") or {}).get("error") in _NOT_INSTALLED


def _options(how: How) -> dict[str, Any]:
    if how.seconds is not None and not _SHORTEST <= how.seconds <= _LONGEST:
        sorry(f"--timeout must be from {_SHORTEST:g} to {_LONGEST:g} seconds")
    options: dict[str, Any] = {"include_attestation": True} if how.attest else {}
    if how.seconds is not None:
        options["timeout_ms"] = round(how.seconds * 1000)
    return {"options": options} if options else {}
