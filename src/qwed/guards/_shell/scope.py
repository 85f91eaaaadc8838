"""What is known while a script is read: its variables, the directory it stands in, and what it did to files so far."""

import re

from qwed.guards._shell.model import ShellReport, Violation, Word
from qwed.guards._shell.tree import MAX_LENGTH
from qwed.guards._shell.variables import judge_assignment
from qwed.guards.files import holds_secrets
from qwed.words import EffectKind

MAX_VALUE = 1_024
MAX_INNER = 64
MAX_LEFT = 8
SOCKET = re.compile(r"/dev/(?:tcp|udp)/")
"""A path that bash itself turns into a connection."""
_SILENT = frozenset({"", "-", "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty"})
_DESCRIPTOR = re.compile(r"/dev/fd/\d+|/proc/self/fd/[012]")
_ABSOLUTE = re.compile(r"[/~]|[A-Za-z][\w+.-]*:")
_ADDRESS = re.compile(r"(?!file:)[A-Za-z][\w+.-]*://")


class Scope:
    """Variables and directory of one script."""

    def __init__(self) -> None:
        self.report = ShellReport()
        self.directory = ""
        self.single: frozenset[str] = frozenset()
        """The variables that get a value at one place only."""
        self._variables: dict[str, list[Word]] = {}

        self._inner = 0
        self._adrift = False
        self.left: tuple[str, ...] = ()
        """Directories that were entered before the last one."""
        self.testing = False
        """Whether what is read stands in a test."""

    def inner(self, text: str) -> bool:
        """Whether one more text inside the command may be judged, so that the whole stays bounded."""
        self._inner += 1
        if self._inner <= MAX_INNER and len(text) <= MAX_LENGTH:
            return True
        self.report.unclear("too many commands are hidden in strings")
        return False

    def file(self, kind: EffectKind, word: Word) -> None:
        """Something done to the file a word names."""
        text = word.text
        if SOCKET.match(text):
            self.report.violate(Violation.REVERSE_SHELL)
            self.report.effect(EffectKind.NETWORK, text)
        elif kind is EffectKind.READ and _ADDRESS.match(text):
            self.report.effect(EffectKind.NETWORK, text)
        elif text not in _SILENT and not _DESCRIPTOR.fullmatch(text):
            for place in self._places(text):
                self.report.effect(kind, place)
            if word.built and word.pattern and kind is EffectKind.READ:
                self.tree(word)
            if not word.settled or (self._adrift and not _ABSOLUTE.match(text)):
                self.report.unclear(f"`{text[:64]}` is decided while it runs")

    def tree(self, word: Word) -> None:
        """Every file below the directory a word names is read."""
        for place in self._places(word.text):
            if holds_secrets(place):
                self.report.effect(EffectKind.SECRET, place)

    def enter(self, word: Word) -> None:
        """Change the directory that relative paths start from."""
        self._adrift = not word.settled or (self._adrift and not _ABSOLUTE.match(word.text))
        self.left = tuple(dict.fromkeys((*self.left, *filter(None, [self.directory]))))
        self._adrift |= len(self.left) > MAX_LEFT
        self.directory = _placed(self.directory, word.text)

    def _places(self, text: str) -> list[str]:
        """Where a path leads from the directory that was entered last, and from earlier ones: `cd` may have failed."""
        if _ABSOLUTE.match(text):
            return [text]
        return list(dict.fromkeys(_placed(start, text) for start in (self.directory, *self.left[:MAX_LEFT])))

    def assign(self, name: str, values: list[Word]) -> None:
        """Give a variable one of several values, if it never gets another."""
        judge_assignment(self.report, name, values, for_command=False)
        if name in self.single and values and sum(len(value.text) for value in values) <= MAX_VALUE:
            self._variables[name] = values
        else:
            self._variables.pop(name, None)

    def lookup(self, name: str) -> list[Word] | None:
        """The values a variable may have, if they are known."""
        values = self._variables.get(name)
        return values if values and all(value.settled or value.origin for value in values) else None


def _placed(start: str, text: str) -> str:
    if not start or _ABSOLUTE.match(text):
        return text
    return start if text == "." else f"{start.rstrip('/')}/{text.removeprefix('./')}"
