"""`qwed verify legal deadline name=value ...`: a check of a pack as words of the command line."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from qwed.cli.asking import read_text
from qwed.cli.printing import sorry
from qwed.cli.verifying.answering import Question

_NAMED = re.compile(r"([a-z][a-z0-9_]{0,59})=(.*)", re.DOTALL)
_FILE = re.compile(r"[\w./~-]{1,200}\.(?:json|xml)", re.ASCII | re.IGNORECASE)
_OBJECT = re.compile(r"\s*\{\s*[\"}]")
_JSON = re.compile(r"\s*(?!\[\d{4}\] ?\w)(?:[\[{\"]|(?:true|false|null|-?(?:0|[1-9]\d{0,30}))\s*\Z)")
"""What is read as JSON, `[2020] UKSC 5` is not; a decimal stays the text it is, with every digit that was written."""


def question_of(pack: str, words: Sequence[str], file: str | None) -> Question:
    """The question in the words after the pack: the check, its values by name, and a text or `@file` for its query."""
    operation, rest = (words[0], words[1:]) if words else (None, ())
    named = [found for word in rest if (found := _NAMED.fullmatch(word))]
    texts = [word for word in rest if not _NAMED.fullmatch(word)]
    if len(texts) > 1:
        sorry(
            f"`{texts[1][:60]}` is no name=value, and the text was given already: `{texts[0][:60]}`; "
            "put a text in quotes, and name the values"
        )
    fields = {"type": pack, "operation": operation, "query": _query(texts, file), "params": _values(named)}
    return Question("verify", {name: value for name, value in fields.items() if value not in (None, {})})


def _query(texts: Sequence[str], file: str | None) -> str | None:
    given = texts[0] if texts else None
    if given is not None and given.startswith("@"):
        if file is not None:
            sorry("give the text once: as @FILE, or with --file FILE")
        file, given = given[1:], None
    if given is not None and _FILE.fullmatch(given):
        sorry(f"`{given}` is the name of a file: write @{given} to have it read")
    text = read_text(given, file, "the text")
    if text is not None and _OBJECT.match(text):
        _read("the text", text)
    return text


def _values(named: Sequence[re.Match[str]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for found in named:
        if found[1] in values:
            sorry(f"`{found[1]}` is given twice")
        values[found[1]] = _value(found[1], found[2])
    return values


def _value(name: str, text: str) -> Any:
    """JSON where it begins like that, else the text as it is; of `@file` what stands in the file."""
    if text.startswith("@"):
        text = read_text(None, text[1:], f"`{name}`") or ""
    elif _FILE.fullmatch(text) and Path(text).is_file():
        sorry(f"`{text}` is the name of a file: write {name}=@{text} to have it read")
    return _read(f"`{name}`", text) if _JSON.match(text) else text


def _read(what: str, text: str) -> Any:
    try:
        return json.loads(text, parse_float=str, parse_constant=_refuse, object_pairs_hook=_members)
    except (ValueError, RecursionError) as error:
        sorry(f"{what} begins like JSON and is none: {error}")


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a name stands twice in an object")
    return members
