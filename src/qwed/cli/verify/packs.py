"""Command-line syntax of pack checks: `qwed verify legal deadline name=value ...`."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from qwed.cli.backend import read_text
from qwed.cli.output import fail
from qwed.cli.verify.run import EngineRequest
from qwed.model.strict_json import rejected, unique_members

_ASSIGNMENT = re.compile(r"([a-z][a-z0-9_]{0,59})=(.*)", re.DOTALL)
_FILE = re.compile(r"[\w./~-]{1,200}\.(?:json|xml)", re.ASCII | re.IGNORECASE)
_OBJECT = re.compile(r"\s*\{\s*[\"}]")
_JSON = re.compile(r"\s*(?!\[\d{4}\] ?\w)(?:[\[{\"]|(?:true|false|null|-?(?:0|[1-9]\d{0,30}))\s*\Z)")
"""Values parsed as JSON, except `[2020] UKSC 5`; a decimal stays text, with every digit as written."""


def pack_request(pack: str, words: Sequence[str], file: str | None) -> EngineRequest:
    """Return the request for the words after the pack: the check, its named values, and a text or `@file` query."""
    operation, rest = (words[0], words[1:]) if words else (None, ())
    assignments = [match for word in rest if (match := _ASSIGNMENT.fullmatch(word))]
    texts = [word for word in rest if not _ASSIGNMENT.fullmatch(word)]
    if len(texts) > 1:
        fail(
            f"unexpected argument `{texts[1][:60]}` after the text `{texts[0][:60]}`; "
            "put a text in quotes, and write values as name=value"
        )
    fields = {
        "type": pack,
        "operation": operation,
        "query": _query_text(texts, file),
        "params": _parse_values(assignments),
    }
    return EngineRequest("verify", {name: value for name, value in fields.items() if value not in (None, {})})


def _query_text(texts: Sequence[str], file: str | None) -> str | None:
    argument = texts[0] if texts else None
    if argument is not None and argument.startswith("@"):
        if file is not None:
            fail("give the text either as @FILE or with --file FILE, not both")
        file, argument = argument[1:], None
    if argument is not None and _FILE.fullmatch(argument):
        fail(f"`{argument}` is the name of a file: write @{argument} to read it")
    text = read_text(argument, file, "the text")
    if text is not None and _OBJECT.match(text):
        _parse_json("the text", text)
    return text


def _parse_values(assignments: Sequence[re.Match[str]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for assignment in assignments:
        if assignment[1] in values:
            fail(f"`{assignment[1]}` is given twice")
        values[assignment[1]] = _parse_value(assignment[1], assignment[2])
    return values


def _parse_value(name: str, text: str) -> Any:
    """Return the value parsed as JSON if it begins like JSON, else as text; `@file` reads a file."""
    if text.startswith("@"):
        text = read_text(None, text[1:], f"`{name}`") or ""
    elif _FILE.fullmatch(text) and Path(text).is_file():
        fail(f"`{text}` is the name of a file: write {name}=@{text} to read it")
    return _parse_json(f"`{name}`", text) if _JSON.match(text) else text


def _parse_json(what: str, text: str) -> Any:
    try:
        return _decode(text)
    except (ValueError, RecursionError) as error:
        fail(f"{what} is not valid JSON: {error}")


_decode = json.JSONDecoder(
    parse_float=str,
    parse_constant=rejected(lambda text: ValueError(f"{text} is not valid JSON")),
    object_pairs_hook=unique_members(lambda _: ValueError("a name occurs twice in an object")),
).decode
