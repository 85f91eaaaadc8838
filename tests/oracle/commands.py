"""Words of a command line as text, for mutations and shrinking; only the shell knows what they mean."""

import re
from collections.abc import Iterator

from tests.oracle.tables import names

_TOKEN = re.compile(r"""\s+|(?:[^\s'"\\;|&()<>]|\\.|'[^']*'|"(?:[^"\\]|\\.)*"|\$\([^()]*\))+|[;|&()<>]+|.""", re.DOTALL)
_PREFIXES = frozenset(
    names("sudo env nice nohup time timeout xargs command exec stdbuf setsid busybox ! then do if while")
)
_NAME = re.compile(r"[A-Za-z_][\w.+-]*")


def tokens(command: str) -> list[str]:
    """Return the tokens of a command line, blanks included; joined they are the command."""
    return _TOKEN.findall(command)


def words(command: str) -> set[str]:
    """Return everything in a command that may be the name of a program."""
    return set(_NAME.findall(command))


def leading_program(command: str) -> str:
    """Return the first word that is neither an assignment nor a wrapper."""
    for word in command.split():
        name = word.strip("'\"\\()$`{;|&").rpartition("/")[2]
        if name and "=" not in name and not name.startswith("-") and name not in _PREFIXES:
            return name
    return ""


def shorter(command: str) -> Iterator[str]:
    """Yield the command without each run of tokens, longest first, then without each quote."""
    parts = tokens(command)
    for size in sorted({1, 2, 3, 4, len(parts) // 4, len(parts) // 2} - {0}, reverse=True):
        for start in range(len(parts) - size + 1):
            text = "".join(parts[:start] + parts[start + size :]).strip()
            if text:
                yield text
