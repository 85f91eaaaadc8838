"""Text in the arguments of a command that a shell runs as a script."""

from qwed.guards._shell.command_model import PipeData, ShellAnalysis, Violation, Word, join_words


def run_text(analysis: ShellAnalysis, words: list[Word], stdin: PipeData, *, same_shell: bool = False) -> None:
    """Analyse words that a shell joins and runs; text that is not known exactly is a violation."""
    for word in words:
        if word.origin is not None:
            analysis.report.add_violation(word.origin)
    if all(word.is_exact for word in words):
        analysis.visit_script(" ".join(word.text for word in words), stdin, same_shell=same_shell)
    else:
        analysis.report.add_violation(Violation.INLINE_CODE)
        analysis.report.add_unresolved(f"`{join_words(words)[:64]}` is known only at run time")
