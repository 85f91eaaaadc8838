"""Effects and violations of a shell command, derived from its syntax tree without running it (DESIGN 3).

Every command of a line counts, including those that are joined, wrapped, substituted or hidden. Unknown programs, words
known only at run time and text that is not valid shell are UNRESOLVED. Constructs that run text as code, hide a name or
open a shell on another machine are violations. Windows commands are recognised by their form.
"""

from qwed.guards._shell.command_model import ShellFindings, ShellReport, Violation
from qwed.guards._shell.parse import MAX_LENGTH
from qwed.guards._shell.visitor import ShellVisitor
from qwed.guards._shell.windows import analyze_windows, is_windows
from qwed.model import EffectKind

__all__ = ["MAX_LENGTH", "ShellFindings", "Violation", "findings"]


def findings(command: str) -> ShellFindings:
    """Return the effects, violations and unresolved parts of one command line; raises only if tree-sitter is not
    installed."""
    refusal = _unreadable(command)
    if refusal:
        report = ShellReport()
        report.add_unresolved(refusal)
        return report.findings()
    visitor = ShellVisitor()
    if is_windows(command):
        return _windows_findings(command, visitor)
    visitor.visit_script(command)
    return visitor.report.findings()


def _windows_findings(command: str, visitor: ShellVisitor) -> ShellFindings:
    """Combine the Windows and the POSIX reading; reads of the POSIX reading are dropped, because it does not know
    Windows names."""
    analyze_windows(command, visitor)
    other = ShellVisitor()
    other.visit_script(command)
    for effect in other.report.effects:
        if effect.kind is not EffectKind.READ:
            visitor.report.add_effect(effect.kind, effect.target)
    visitor.report.programs.update(other.report.programs)
    for violation in other.report.violations:
        visitor.report.add_violation(violation)
    return visitor.report.findings()


def _unreadable(command: str) -> str:
    if len(command) > MAX_LENGTH:
        return f"the command is longer than {MAX_LENGTH} characters"
    if not command.strip():
        return "the command is empty"
    if not command.isprintable() and any(not (character.isprintable() or character in "\n\t") for character in command):
        return "the command contains invisible characters"
    return ""
