"""DESIGN 3, effects and violations of a shell command: what it would do, read off its syntax tree and never run.

Every command of a line counts, whatever joins, wraps, substitutes or hides it. A program nobody knows, a word that is
decided only while it runs and text that is no shell are UNRESOLVED; shapes that exist to run text as code, to hide a
name or to reach another machine's shell are violations. Commands of Windows are told by their shape.
"""

from qwed.guards._shell.model import ShellFindings, ShellReport, Violation
from qwed.guards._shell.tree import MAX_LENGTH
from qwed.guards._shell.walk import Walk
from qwed.guards._shell.windows import is_windows, judge_windows
from qwed.words import EffectKind

__all__ = ["MAX_LENGTH", "ShellFindings", "Violation", "findings"]


def findings(command: str) -> ShellFindings:
    """Effects, violations and what is left unresolved of one command line; raises only where tree-sitter is missing."""
    refusal = _unreadable(command)
    if refusal:
        report = ShellReport()
        report.unclear(refusal)
        return report.findings()
    walk = Walk()
    if is_windows(command):
        return _windows_findings(command, walk)
    walk.script(command)
    return walk.report.findings()


def _windows_findings(command: str, walk: Walk) -> ShellFindings:
    """Both readings count, save that a POSIX shell would not know the names of Windows."""
    judge_windows(command, walk)
    other = Walk()
    other.script(command)
    for effect in other.report.effects:
        if effect.kind is not EffectKind.READ:
            walk.report.effect(effect.kind, effect.target)
    walk.report.programs.update(other.report.programs)
    for violation in other.report.violations:
        walk.report.violate(violation)
    return walk.report.findings()


def _unreadable(command: str) -> str:
    if len(command) > MAX_LENGTH:
        return f"the command is longer than {MAX_LENGTH} characters"
    if not command.strip():
        return "the command is empty"
    if not command.isprintable() and any(not (each.isprintable() or each in "\n\t") for each in command):
        return "the command holds invisible characters"
    return ""
