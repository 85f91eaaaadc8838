"""Effects and violations of a shell command, derived from its syntax tree without running it (DESIGN 3).

Every command of a line counts, including those that are joined, wrapped, substituted or hidden. Unknown programs, words
known only at run time and text that is not valid shell are UNRESOLVED. Constructs that run text as code, hide a name or
open a shell on another machine are violations. Windows commands are recognised by their form.
"""

from qwed.guards._shell.command_model import (
    ShellFindings,
    ShellReport,
    StatementFindings,
    StatementJudge,
    Violation,
)
from qwed.guards._shell.heredoc import HeredocError, extract_heredocs
from qwed.guards._shell.parse import MAX_LENGTH
from qwed.guards._shell.visitor import NO_HISTORY, ShellVisitor
from qwed.guards._shell.windows import analyze_windows, is_windows, may_be_posix
from qwed.model import EffectKind

MAX_VISITS = 4
__all__ = ["MAX_LENGTH", "ShellFindings", "StatementFindings", "StatementJudge", "Violation", "findings"]


def findings(command: str, judge: StatementJudge | None = None) -> ShellFindings:
    """Return the effects, violations and unresolved parts of one command line; without a judge, SQL in it is
    unresolved. Raises only if tree-sitter is not installed."""
    refusal = _unreadable(command)
    if refusal:
        report = ShellReport()
        report.add_unresolved(refusal)
        return report.findings()
    report = _visit(command, judge)
    return _windows_findings(command, report) if is_windows(_without_heredocs(command)) else report.findings()


def _without_heredocs(command: str) -> str:
    """Return the command without the text of its here-documents, which no shell of Windows has."""
    if "<<" not in command:
        return command
    try:
        return extract_heredocs(command)[0]
    except HeredocError:
        return command


def _visit(command: str, judge: StatementJudge | None) -> ShellReport:
    """Visit a script, again if a later part of it changes what an earlier part reads."""
    history = NO_HISTORY
    for _ in range(MAX_VISITS):
        visitor = ShellVisitor(history, judge)
        visitor.visit_script(command)
        revised = visitor.variables.revised_history()
        if revised is None:
            return visitor.report
        history = revised
    visitor.report.add_unresolved("the variables of the command depend on each other")
    return visitor.report


def _windows_findings(command: str, posix: ShellReport) -> ShellFindings:
    """Combine the Windows and the POSIX reading; reads of the POSIX reading are dropped, because it does not know
    Windows names."""
    visitor = ShellVisitor(NO_HISTORY)
    analyze_windows(command, visitor)
    for effect in posix.effects:
        if effect.kind is not EffectKind.READ:
            visitor.report.add_effect(effect.kind, effect.target)
    visitor.report.programs.update(posix.programs)
    visitor.report.facts.merge(posix.facts)
    for violation in posix.violations:
        visitor.report.add_violation(violation)
    for reason in posix.unresolved if may_be_posix(command) else ():
        visitor.report.add_unresolved(reason)
    return visitor.report.findings()


def _unreadable(command: str) -> str:
    if len(command) > MAX_LENGTH:
        return f"the command is longer than {MAX_LENGTH} characters"
    if not command.strip():
        return "the command is empty"
    if not command.isprintable() and any(not (character.isprintable() or character in "\n\t") for character in command):
        return "the command contains invisible characters"
    return ""
