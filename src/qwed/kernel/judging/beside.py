"""What stands beside a command and decides what is run: its arguments, its directory, its environment, its input.

The names are read as words, so that `Args`, `commandArgs` and `command_args` are the same.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from qwed.kernel.judging.naming import read_name

_SUBCOMMAND = re.compile(r"(?:\w+_)?sub_?commands?|action|verb")
_ARGUMENTS = re.compile(r"(?:\w+_)?(?:args?|arguments?|argv|params?|parameters|flags?|options|opts|switches)")
_DIRECTORY = re.compile(
    r"(?:\w+_)?cwd|work_?dir(?:ectory)?"
    r"|(?:(?:working|current|base|project|repo|root|run|start|exec)_)?(?:dir|directory|path|folder|root)|workspace"
)
_INPUT = re.compile(r"(?:\w+_)?std_?in(?:_\w+)?|(?:\w+_)?standard_input|input(?:_\w+)?")
_VARIABLES = re.compile(r"(?:\w+_)?(?:env|environ|environment|env_?vars?|environment_var(?:iable)?s?)")
_VARIABLE = re.compile(r"[A-Za-z_]\w*")


def line_of(value: Any, *, several: bool) -> str | None:
    """One command as words, or several as lines; both where it could be either."""
    if not isinstance(value, Sequence) or not all(isinstance(each, str | int | float) for each in value):
        return None
    words = [str(each) for each in value]
    as_words = shlex.join(words)
    if not several or len(words) < 2:
        return as_words
    as_lines = "\n".join(words)
    return as_lines if re.search(r"\s", words[0]) else f"{as_lines}\n{as_words}"


def has_arguments(beside: Mapping[str, Any]) -> bool:
    """Whether arguments of a program stand among these members."""
    return next(_called(beside, _ARGUMENTS), None) is not None


def with_surroundings(line: str, beside: Mapping[str, Any]) -> str | None:
    """The command as it would run; None where something beside it decides what is run and nobody can tell how."""
    if next(_called(beside, _INPUT), None) is not None:
        return None
    for value in (*_called(beside, _SUBCOMMAND), *_called(beside, _ARGUMENTS)):
        more = value if isinstance(value, str) else line_of(value, several=False)
        if more is None:
            return None
        line = f"{line} {more}"
    before = _before(beside)
    return None if before is None else "\n".join([*before, line])


def _called(beside: Mapping[str, Any], name: re.Pattern[str]) -> Iterator[Any]:
    """The values under such a name that say something; a switch that is on or off says nothing to run."""
    for key, value in beside.items():
        if value and not isinstance(value, bool) and name.fullmatch(read_name(key).plain):
            yield value


def _before(beside: Mapping[str, Any]) -> list[str] | None:
    lines = []
    for variables in _called(beside, _VARIABLES):
        if not isinstance(variables, Mapping):
            return None
        for variable, value in variables.items():
            if not _VARIABLE.fullmatch(variable):
                return None
            lines.append(f"export {variable}={shlex.quote(str(value))}")
    return lines + [f"cd {shlex.quote(str(where))}" for where in _called(beside, _DIRECTORY)]
