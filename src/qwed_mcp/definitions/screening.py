"""What a definition holds that no honest tool has: text nobody sees, and instructions to the model.

Every string is read, names and values of the schemas too, in every way a model could read it; the reasons name the
place and never repeat the text, since they may end up before the model that was not to read it.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from qwed.guards.spellings import plainer
from qwed.guards.text import strings_in
from qwed_mcp.definitions.blobs import decoded, spelt_apart, squeezed, turned
from qwed_mcp.definitions.folding import mixed_words, plain_letters, without_digits_for_letters
from qwed_mcp.definitions.instructions import IN_OTHER_SCRIPTS, PATTERNS
from qwed_mcp.definitions.keeping import commands_about_files
from qwed_mcp.definitions.shadowing import Foreign, commands_about_others
from qwed_mcp.definitions.shown import plain_name
from qwed_mcp.definitions.unseen import smuggled, unseen_in, without_unseen
from qwed_mcp.definitions.wire import TooLarge

MAX_FINDINGS = 10
_AROUND = 60
_SPACE = re.compile(r"\s+")
_JOINED = re.compile(r"(?<=[a-z])[_-](?=[a-z])")
"""A name is read as words too."""
_ADDRESS_KEYS = (".$schema", ".$id", ".id")


class Finding(NamedTuple):
    """Why a definition is held, and the words it is held for."""

    reason: str
    words: str = ""


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
    for path, text in pairs:
        yield from _seen_nowhere(path, text)
    yield from _said(pairs)
    yield from _outside(pairs, definition)


def _about_others(pairs: tuple[tuple[str, str], ...], foreign: Foreign) -> Iterator[Finding]:
    for path, text in pairs if foreign else ():
        for known in commands_about_others(text, foreign):
            yield Finding(f"{place(path)} gives commands about `{plain_name(known.name)}`, {known.owner}", text)


def _seen_nowhere(path: str, text: str) -> Iterator[Finding]:
    for what in unseen_in(text):
        yield Finding(f"{place(path)} holds {what}", text)
    for word in mixed_words(text)[:1]:
        yield Finding(f"{place(path)} holds a word in letters of several alphabets", word)


def _said(pairs: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    for path, text in pairs:
        for reading in dict.fromkeys(_readings(text)):
            yield from _instructions(path, reading)
        if squeezed(_one_line(plain_letters(text))):
            yield Finding(f"{place(path)} spells an instruction to the model apart", text)
        for hidden in (*smuggled(text), *_decoded(text), *turned(text.lower())):
            for reading in dict.fromkeys(_readings(hidden)):
                yield from (
                    each._replace(reason=f"{each.reason}, in encoded text") for each in _instructions(path, reading)
                )
        for hidden in spelt_apart(text):
            yield Finding(f"{place(path)} spells words apart", hidden)


def _decoded(text: str) -> Iterator[str]:
    for once in decoded(text):
        yield once
        yield from decoded(once)


def _readings(text: str) -> Iterator[str]:
    """The text as one line of lower-case letters a turn: as it stands, spelt plainly, with digits read as letters."""
    plain = plainer(text)
    bare = without_unseen(text if plain is None else plain.text)
    folded = _one_line(plain_letters(bare))
    yield folded
    if not text.isascii():
        yield _one_line(unicodedata.normalize("NFKC", bare))
    yield without_digits_for_letters(folded)
    if _JOINED.search(folded):
        yield _JOINED.sub(" ", folded)


def _one_line(text: str) -> str:
    return _SPACE.sub(" ", text).lower().replace("\u2019", "'")


def _instructions(path: str, reading: str) -> Iterator[Finding]:
    table = PATTERNS if reading.isascii() else (*PATTERNS, *IN_OTHER_SCRIPTS)
    for pattern, what in table:
        if match := pattern.search(reading):
            yield Finding(f"{place(path)} {what}", reading[max(0, match.start() - _AROUND) : match.end() + _AROUND])
    for what in commands_about_files(reading, is_parameter="." in path):
        yield Finding(f"{place(path)} {what}", reading)


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
