"""The command that a value belongs to, as the roles of values see it."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from qwed.guards._shell.command_model import CommandCall, ShellAnalysis, Violation, Word
from qwed.guards._shell.grammar.parser import Argument, ParsedCommand
from qwed.model import EffectKind

_ABSOLUTE = re.compile(r"[/~]|\.{1,2}/|[A-Za-z]:[\\/]")
_E = EffectKind
CURRENT_DIRECTORY = Word(".")


__all__ = ["Argument", "Role", "RoleContext"]


@dataclass(slots=True)
class RoleContext:
    """The command that a value belongs to."""

    analysis: ShellAnalysis
    call: CommandCall
    parsed: ParsedCommand
    directory: Word = CURRENT_DIRECTORY
    """Directory that relative paths start from."""

    def add(self, kind: EffectKind, target: str = "") -> None:
        """Add an effect on something that is not a file; the target is the command line unless given."""
        if kind in (_E.WRITE, _E.DELETE):
            self.analysis.report.facts.note_unlisted()
        self.analysis.report.add_effect(kind, target or self.call.line, self.call.line)

    def add_file(self, kind: EffectKind, word: Word) -> None:
        """Add an effect on a file, relative to the directory of the command."""
        start = self.directory
        if start.text != "." and not _ABSOLUTE.match(word.text):
            text = start.text if word.text == "." else f"{start.text.rstrip('/')}/{word.text}"
            word = word._replace(text=text, is_exact=word.is_exact and start.is_exact)
        self.analysis.add_file_effect(kind, word)

    def escape(self, text: str) -> None:
        """Report that a program is run through an option."""
        self.analysis.report.add_violation(Violation.ESCAPE)
        self.add(_E.EXECUTE, text)

    def unresolved(self, reason: str) -> None:
        """Report a reason why the effect is not known."""
        self.analysis.report.add_unresolved(reason)


Role = Callable[[RoleContext, Argument], None]
"""Reports the effect of one value."""
