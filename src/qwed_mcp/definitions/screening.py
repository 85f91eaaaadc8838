"""What a definition holds that no honest tool has: text nobody sees, and instructions to the model.

Every string is read, names and values of the schemas too, in every way a model could read it; the reasons name the
place and never repeat the text, since they may end up before the model that was not to read it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from qwed.guards.instructions import Finding, instructions_in
from qwed.guards.text import strings_in
from qwed.guards.visible import plain_name
from qwed_mcp.definitions.shadowing import Foreign, commands_about_others
from qwed_mcp.definitions.wire import TooLarge

MAX_FINDINGS = 10
_SPACE = re.compile(r"\s+")


def findings(definition: Mapping[str, Any], foreign: Foreign | None = None) -> tuple[Finding, ...]:
    """Everything found in one definition, each reason once; nothing for an honest one, TooLarge for an endless one."""
    strings = strings_in(definition)
    if not strings.complete:
        raise TooLarge("it holds more strings than are read")
    found: dict[str, Finding] = {}
    distinct = tuple(dict.fromkeys(strings.pairs))
    for each in chain(_found(distinct, definition), _about_others(distinct, foreign or {})):
        found.setdefault(each.reason, each)
        if len(found) == MAX_FINDINGS:
            break
    return tuple(found.values())


def _found(pairs: tuple[tuple[str, str], ...], definition: Mapping[str, Any]) -> Iterator[Finding]:
    yield from instructions_in(pairs, place, lambda path: "." in path)
    yield from _outside(pairs, definition)


def _about_others(pairs: tuple[tuple[str, str], ...], foreign: Foreign) -> Iterator[Finding]:
    for path, text in pairs if foreign else ():
        for known in commands_about_others(text, foreign):
            yield Finding(f"{place(path)} gives commands about `{plain_name(known.name)}`, {known.owner}", text)


_REFERENCE = re.compile(r"(?:\A|\.)\$(?:dynamic)?ref\Z", re.IGNORECASE)
_CONTEXT = frozenset(
    {"conversationhistory", "chathistory", "systemprompt", "chainofthought", "toolslist", "availabletools"}
    | {"previoustoolcalls", "toolcallhistory", "reasoningtrace", "usermessages", "conversation", "modelname"}
)
_ICON = re.compile(r"https://|data:image/(?:png|jpe?g|gif|webp|svg\+xml)[;,]", re.IGNORECASE)


def _outside(pairs: Iterable[tuple[str, str]], definition: Mapping[str, Any]) -> Iterator[Finding]:
    for path, text in pairs:
        if _REFERENCE.search(path) and not text.startswith("#") and text != path.rpartition(".")[2]:
            yield Finding(f"{place(path)} refers to a schema that is elsewhere", text)
    for icon in definition.get("icons") or ():
        if not _ICON.match(str(icon.get("src", ""))):
            yield Finding("an icon is no image and no https address", str(icon.get("src", "")))
    asked = {_SPACE.sub("", key).replace("_", "").replace("-", "").lower() for key in _arguments(definition)}
    if len(asked & _CONTEXT) > 1:
        yield Finding(
            "its arguments ask for what the model knows of the conversation", ", ".join(sorted(asked & _CONTEXT))
        )


def _arguments(definition: Mapping[str, Any]) -> list[str]:
    properties = definition.get("inputSchema", {}).get("properties")
    return list(properties) if isinstance(properties, Mapping) else []


def place(path: str) -> str:
    """Where in a definition, in words."""
    first, _, rest = path.partition(".")
    if first in _SCHEMAS:
        return (
            f"{_SCHEMAS[first]} at `{'.'.join(map(plain_name, rest.split('.')[-_DEEPEST:]))}`"
            if rest
            else _SCHEMAS[first]
        )
    return f"its {'.'.join(map(plain_name, path.split('.')[:_DEEPEST]))}"


_SCHEMAS = {"inputSchema": "the input schema", "outputSchema": "the output schema"}
_DEEPEST = 5
