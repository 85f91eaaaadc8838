"""Parameters next to a command that change what is executed: arguments, directory, environment, input.

Names are compared as words, so that `Args`, `commandArgs` and `command_args` are the same.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from qwed.kernel.analysis.parameter_kinds import classify_name

_SUBCOMMAND = re.compile(r"(?:\w+_)?sub_?commands?|action|verb")
ARGUMENTS = re.compile(r"(?:\w+_)?(?:args?|arguments?|argv|params?|parameters|flags?|options|opts|switches)")
_DIRECTORY = re.compile(
    r"(?:\w+_)?cwd|work_?dir(?:ectory)?"
    r"|(?:(?:working|current|base|project|repo|root|run|start|exec)_)?(?:dir|directory|path|folder|root)|workspace"
)
_INPUT = re.compile(r"(?:\w+_)?std_?in(?:_\w+)?|(?:\w+_)?standard_input|input(?:_\w+)?")
_VARIABLES = re.compile(r"(?:\w+_)?(?:env|environ|environment|env_?vars?|environment_var(?:iable)?s?)")
_VARIABLE = re.compile(r"[A-Za-z_]\w*")


def command_line_of(value: Any, *, several: bool) -> str | None:
    """Return one command from a list of words, or several from a list of lines; both where it is ambiguous."""
    if not isinstance(value, Sequence) or not all(isinstance(item, str | int | float) for item in value):
        return None
    words = [str(item) for item in value]
    as_words = shlex.join(words)
    if not several or len(words) < 2:
        return as_words
    as_lines = "\n".join(words)
    return as_lines if re.search(r"\s", words[0]) else f"{as_lines}\n{as_words}"


def has_arguments(siblings: Mapping[str, Any]) -> bool:
    """Return True if one of these members holds arguments of a program."""
    return next(_values_named(siblings, ARGUMENTS), None) is not None


def with_context(line: str, siblings: Mapping[str, Any]) -> str | None:
    """Return the command as it would run; None if another member decides what is executed in an unknown way."""
    if next(_values_named(siblings, _INPUT), None) is not None:
        return None
    for value in (*_values_named(siblings, _SUBCOMMAND), *_values_named(siblings, ARGUMENTS)):
        words = value if isinstance(value, str) else command_line_of(value, several=False)
        if words is None:
            return None
        line = f"{line} {words}"
    setup = _setup_lines(siblings)
    return None if setup is None else "\n".join([*setup, line])


def _values_named(siblings: Mapping[str, Any], name: re.Pattern[str]) -> Iterator[Any]:
    """Yield the non-empty values under such a name; a boolean adds nothing to a command."""
    for key, value in siblings.items():
        if value and not isinstance(value, bool) and name.fullmatch(classify_name(key).plain):
            yield value


def _setup_lines(siblings: Mapping[str, Any]) -> list[str] | None:
    lines = []
    for variables in _values_named(siblings, _VARIABLES):
        if not isinstance(variables, Mapping):
            return None
        for variable, value in variables.items():
            if not _VARIABLE.fullmatch(variable):
                return None
            lines.append(f"export {variable}={shlex.quote(str(value))}")
    return lines + [f"cd {shlex.quote(str(directory))}" for directory in _values_named(siblings, _DIRECTORY)]
