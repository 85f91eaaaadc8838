"""Problems of a policy document, with their position in its file."""

from collections.abc import Sequence
from dataclasses import dataclass

from qwed.model.suggestions import did_you_mean

MAX_PROBLEMS = 50
"""Problems reported of one document; the rest waits until these are solved."""
_LONGEST_LINE = 160
_LONGEST_SHOWN = 80
_WORDS = {True: "true", False: "false", None: "null"}


@dataclass(frozen=True, slots=True)
class Position:
    """Place in a file; line and column count from 1."""

    line: int = 1
    column: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyProblem:
    """Why a policy document is refused."""

    file: str
    message: str
    line: int = 1
    column: int = 1
    source_line: str = ""
    policy: str = ""
    rule: str = ""

    def render(self) -> str:
        """Return file, position and message, then the line with a caret below the column."""
        head = f"{self.file}:{self.line}:{self.column}: {self.message}"
        start = max(0, self.column - _LONGEST_LINE // 2) if len(self.source_line) > _LONGEST_LINE else 0
        shown = "".join(char if char.isprintable() else " " for char in self.source_line[start : start + _LONGEST_LINE])
        if not shown.strip():
            return head
        return f"{head}\n  {shown}\n  {' ' * (self.column - 1 - start)}^"


class SourceText:
    """Text of a document, which gives problems their line."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self._lines: list[str] | None = None

    def line(self, number: int) -> str:
        """Return a line by its number, or an empty string after the last one."""
        if self._lines is None:
            self._lines = self.text.split("\n")
        return self._lines[number - 1].rstrip("\r") if number <= len(self._lines) else ""

    def problem(self, at: Position, message: str, *, policy: str = "", rule: str = "") -> PolicyProblem:
        """Return a problem at a position of this document."""
        return PolicyProblem(
            file=self.file,
            message=message,
            line=at.line,
            column=at.column,
            source_line=self.line(at.line),
            policy=policy,
            rule=rule,
        )


def shown(value: object) -> str:
    """Return a value of a document in backticks, without control characters and not longer than a line."""
    text = _WORDS.get(value, str(value)) if value is None or isinstance(value, bool) else str(value)
    return f"`{ascii(text[:_LONGEST_SHOWN])[1:-1]}`"


def one_of(value: object, names: Sequence[str], what: str) -> str:
    """Return the message for an unknown name: which it is, the closest known one, and all of them."""
    listed = ", ".join(f"`{name}`" for name in names)
    return f"unknown {what} {shown(value)}: {did_you_mean(value, names)}use one of {listed}"
