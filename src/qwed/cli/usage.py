"""What is said to somebody who called a command wrongly: one sentence, what was meant perhaps, and where to read on."""

import re

import typer

_UNLISTED = "Value error, "
_WORDING = tuple(
    (re.compile(pattern), ours)
    for pattern, ours in (
        (r"'([^'`]*)'", r"`\1`"),
        (r"\. Did you mean (.+)\?$", r": did you mean \1?"),
        (r" \(Possible options: (.+)\)$", r": did you mean \1?"),
        (r"^No such option: (-[0-9(.][^ :]*)", r"no such option `\1`: put `--` before what begins with a minus"),
        (r"^No such option: ([^ :]+)", r"no such option `\1`"),
        (r"^Got unexpected extra argument\(s\) \((.+)\)$", r"too many arguments: `\1`"),
    )
)
"""How typer says it, and how we do."""


def explained(error: typer.TyperException, path: str) -> str:
    """One sentence in our manner; `path` is the command that was called."""
    said = _unfit(error) or error.format_message().rstrip(".")
    for pattern, ours in _WORDING:
        said = pattern.sub(ours, said)
    return f"{said[:1].lower()}{said[1:]} (see `{path} --help`)"


def _unfit(error: typer.TyperException) -> str | None:
    """What is wrong with a value of the wrong kind."""
    wrongs, param = getattr(error.__cause__, "errors", None), getattr(error, "param", None)
    if wrongs is None or param is None:
        return None
    wrong = wrongs()[0]
    said: str = wrong["msg"].rstrip(".").replace("Input should", "it should")
    why = said.removeprefix(_UNLISTED) if said.startswith(_UNLISTED) else said.partition(",")[0]
    return f"{param.get_error_hint()} does not take `{wrong['input']}`: {why}"
