"""Errors of the CEL checker in the words of a policy: the names of rules in place of the runtime's own."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from qwed.model.suggestions import did_you_mean
from qwed.policy.argument_types import ArgumentTypes
from qwed.policy.facts_schema import MESSAGES, PREFIX, TIME_FUNCTIONS, VARIABLES
from qwed.policy.problem import shown

_ERROR = re.compile(r"ERROR: <input>:(-?\d+):(-?\d+): ([^\n]*)")
_NO_FIELD = re.compile(r"undefined field '([^']*)' not found in struct '([^']*)'")
_NO_NAME = re.compile(r"undeclared reference to '([^']*)'")
_NO_OVERLOAD = re.compile(r"found no matching overload for '([^']*)' applied to '\((.*)\)'")
_UNEXPECTED = re.compile(r"Syntax error: (?:mismatched|extraneous) input '(.*?)' expecting .*")
_UNRECOGNISED = re.compile(r"Syntax error: token recognition error at: '(.*)'")
_OPERATOR = re.compile(r"@?_?([^_]+)_?\Z")
_TYPE_NAMES = (("double", "number"), ("int", "integer"), ("null_type", "null"), (PREFIX, ""))
_METHODS = (
    "startsWith",
    "endsWith",
    "contains",
    "matches",
    "size",
    "exists",
    "all",
    "exists_one",
    "filter",
    "map",
    *TIME_FUNCTIONS,
)
FUNCTIONS = (
    "risk_at_least",
    "duration",
    "timestamp",
    "size",
    "has",
    "string",
    "int",
    "double",
    "usage.count",
    "usage.sum",
    "usage.org.count",
    "usage.org.sum",
)
TOO_DEEP = "the condition is nested more than 32 levels deep: split it into several rules"


class Finding(NamedTuple):
    """A problem of a condition: the offset of its line and column, and what is wrong."""

    line: int
    column: int
    message: str


def read_checker_errors(text: str, arguments: ArgumentTypes, variables: Iterable[str]) -> list[Finding]:
    """Return the errors of the runtime as findings; line and column count from 1."""
    if "recursion" in text:
        return [Finding(1, 1, TOO_DEEP)]
    found = [
        Finding(max(1, int(line)), max(1, int(column)), _plain(message, arguments, tuple(variables)))
        for line, column, message in _ERROR.findall(text)
    ]
    # What follows the first error mostly follows from it.
    return found[:1] or [Finding(1, 1, f"the condition cannot be read: {shown(text)}")]


def _plain(message: str, arguments: ArgumentTypes, variables: tuple[str, ...]) -> str:
    message = message.removesuffix(" [INVALID_ARGUMENT]")
    if match := _NO_FIELD.search(message):
        return _unknown_field(match[1], match[2].removeprefix(PREFIX), arguments)
    if match := _NO_NAME.search(message):
        return _unknown_name(match[1], variables)
    if match := _NO_OVERLOAD.search(message):
        return _wrong_types(match[1], match[2])
    if match := _UNEXPECTED.search(message):
        word = match[1].strip()
        what = "end of the condition" if word == "<EOF>" else shown(word)
        return f"syntax error: unexpected {what}{_WORD_ADVICE.get(word, '')}"
    if match := _UNRECOGNISED.search(message):
        word = match[1].strip()
        return f"syntax error: unexpected {shown(word)}{_WORD_ADVICE.get(word, '')}"
    if message.startswith("invalid int literal"):
        return "an integer has at most 64 bits"
    return message[:1].lower() + message[1:]


_WORD_ADVICE = {"and": ": write `&&`", "or": ": write `||`", "not": ": write `!`", "=": ": write `==`"}


def _unknown_field(name: str, message: str, arguments: ArgumentTypes) -> str:
    if message.startswith("Args"):
        advice = did_you_mean(name, arguments) if message == "Args" else ""
        statement = f"`args: {{{name[:60]}: string}}`"
        return f"the type of the argument {shown(name)} is not known: {advice}state it, such as {statement}"
    known = [field.name for field in MESSAGES.get(message, ())]
    owner = next((variable for variable, kind in VARIABLES.items() if kind == message), message)
    listed = ", ".join(f"`{field}`" for field in known)
    return f"`{owner}` has no field {shown(name)}: {did_you_mean(name, known)}use one of {listed}"


def _unknown_name(name: str, variables: tuple[str, ...]) -> str:
    root = name.split(".", 1)[0]
    known = (*variables, *FUNCTIONS, *_METHODS)
    if root == "usage":
        return (
            'usage is read as `usage.count("TOOL", duration("1h"))` or `usage.sum("TOOL", "ARGUMENT", duration("24h"))`'
        )
    listed = ", ".join(f"`{variable}`" for variable in variables)
    return f"unknown name {shown(root)}: {did_you_mean(root, known)}a rule sees {listed}"


def _wrong_types(function: str, types: str) -> str:
    match = _OPERATOR.match(function)
    name = match[1] if match else function
    for old, new in _TYPE_NAMES:
        types = types.replace(old, new)
    advice = ""
    if function in ("_+_", "_-_", "_*_", "_/_") and "number" in types and "integer" in types:
        advice = ": write the integer as a fraction, such as `1.0`"
    if function in ("_==_", "_!=_") and "null" in types:
        advice = ": ask `has(...)` instead"
    return f"{shown(name)} does not accept ({types}){advice}"
