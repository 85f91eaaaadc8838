"""Prompt-injection scan of a tool definition: hidden text, and instructions to the model.

Every string is scanned, including names and values of the schemas, in every reading that a model could make of it. The
reasons name the location and never repeat the text, because a model may read them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from qwed.guards.prompt_injection import InjectionFinding, find_instructions
from qwed.guards.safe_display import plain_name
from qwed.guards.text_scan import strings_in
from qwed_mcp.tool_pinning.digest import DefinitionTooLargeError
from qwed_mcp.tool_pinning.shadowing import ForeignTools, commands_about_others

MAX_FINDINGS = 10
_SPACE = re.compile(r"\s+")


def scan_definition(definition: Mapping[str, Any], foreign: ForeignTools | None = None) -> tuple[InjectionFinding, ...]:
    """Return the findings in a definition, each reason once; raise DefinitionTooLargeError for too many strings."""
    strings = strings_in(definition)
    if not strings.complete:
        raise DefinitionTooLargeError("it contains too many strings")
    by_reason: dict[str, InjectionFinding] = {}
    distinct = tuple(dict.fromkeys(strings.pairs))
    for finding in chain(_scan_text(distinct, definition), _scan_shadowing(distinct, foreign or {})):
        by_reason.setdefault(finding.reason, finding)
        if len(by_reason) == MAX_FINDINGS:
            break
    return tuple(by_reason.values())


def _scan_text(pairs: tuple[tuple[str, str], ...], definition: Mapping[str, Any]) -> Iterator[InjectionFinding]:
    yield from find_instructions(pairs, describe_location, lambda path: "." in path)
    yield from _scan_references(pairs, definition)


def _scan_shadowing(pairs: tuple[tuple[str, str], ...], foreign: ForeignTools) -> Iterator[InjectionFinding]:
    for path, text in pairs if foreign else ():
        for tool in commands_about_others(text, foreign):
            yield InjectionFinding(
                f"{describe_location(path)} gives commands about `{plain_name(tool.name)}`, {tool.owner}", text
            )


_REFERENCE = re.compile(r"(?:\A|\.)\$(?:dynamic)?ref\Z", re.IGNORECASE)
_CONTEXT_ARGUMENTS = frozenset(
    {"conversationhistory", "chathistory", "systemprompt", "chainofthought", "toolslist", "availabletools"}
    | {"previoustoolcalls", "toolcallhistory", "reasoningtrace", "usermessages", "conversation", "modelname"}
)
_ICON = re.compile(r"https://|data:image/(?:png|jpe?g|gif|webp|svg\+xml)[;,]", re.IGNORECASE)


def _scan_references(pairs: Iterable[tuple[str, str]], definition: Mapping[str, Any]) -> Iterator[InjectionFinding]:
    for path, text in pairs:
        if _REFERENCE.search(path) and not text.startswith("#") and text != path.rpartition(".")[2]:
            yield InjectionFinding(f"{describe_location(path)} refers to an external schema", text)
    for icon in definition.get("icons") or ():
        if not _ICON.match(str(icon.get("src", ""))):
            yield InjectionFinding("an icon is neither an image nor an https address", str(icon.get("src", "")))
    names = {_SPACE.sub("", key).replace("_", "").replace("-", "").lower() for key in _argument_names(definition)}
    if len(names & _CONTEXT_ARGUMENTS) > 1:
        yield InjectionFinding(
            "its arguments ask for the model's conversation context", ", ".join(sorted(names & _CONTEXT_ARGUMENTS))
        )


def _argument_names(definition: Mapping[str, Any]) -> list[str]:
    properties = definition.get("inputSchema", {}).get("properties")
    return list(properties) if isinstance(properties, Mapping) else []


def describe_location(path: str) -> str:
    """Describe a path in a definition in words."""
    first, _, rest = path.partition(".")
    if first in _SCHEMAS:
        return (
            f"{_SCHEMAS[first]} at `{'.'.join(map(plain_name, rest.split('.')[-_MAX_PATH_PARTS:]))}`"
            if rest
            else _SCHEMAS[first]
        )
    return f"its {'.'.join(map(plain_name, path.split('.')[:_MAX_PATH_PARTS]))}"


_SCHEMAS = {"inputSchema": "the input schema", "outputSchema": "the output schema"}
_MAX_PATH_PARTS = 5
