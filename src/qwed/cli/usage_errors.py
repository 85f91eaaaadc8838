"""Error text for a wrong call: one line with a suggestion and the help command."""

import re

import typer

_UNLISTED = "Value error, "
_WORDING = tuple(
    (re.compile(pattern), ours)
    for pattern, ours in (
        (r"'([^'`]*)'", r"`\1`"),
        (r"\. Did you mean (.+)\?$", r": did you mean \1?"),
        (r" \(Possible options: (.+)\)$", r": did you mean \1?"),
        (
            r"^No such option: (-[0-9(.][^ :]*)",
            r"no such option `\1`: put `--` before a value that begins with a minus",
        ),
        (r"^No such option: ([^ :]+)", r"no such option `\1`"),
        (r"^Got unexpected extra argument\(s\) \((.+)\)$", r"too many arguments: `\1`"),
    )
)
"""Patterns in typer's messages and their replacements."""


def usage_message(error: typer.TyperException, path: str) -> str:
    """Return the error as one line; `path` is the command that was called."""
    message = _invalid_value_message(error) or error.format_message().rstrip(".")
    for pattern, replacement in _WORDING:
        message = pattern.sub(replacement, message)
    return f"{message[:1].lower()}{message[1:]} (see `{path} --help`)"


def _invalid_value_message(error: typer.TyperException) -> str | None:
    """Return the text for a value of the wrong type, or None for another error."""
    errors, param = getattr(error.__cause__, "errors", None), getattr(error, "param", None)
    if errors is None or param is None:
        return None
    first = errors()[0]
    message: str = first["msg"].rstrip(".").replace("Input should", "it should")
    reason = message.removeprefix(_UNLISTED) if message.startswith(_UNLISTED) else message.partition(",")[0]
    return f"{param.get_error_hint()} does not take `{first['input']}`: {reason}"
