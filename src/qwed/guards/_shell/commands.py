"""Dispatch of one command to the rules of its program, and checks of the program name."""

import re

from qwed.guards._shell import awk_sed, builtins, databases, find, interpreters, wrappers
from qwed.guards._shell.command_model import CommandCall, PipeData, Rule, ShellAnalysis, Violation, Word, join_words
from qwed.guards._shell.grammar.effects import analyze_by_grammar
from qwed.guards._shell.windows import analyze_windows, is_windows_name
from qwed.model import EffectKind
from qwed.model.unicode_normal import normalize

_SYSTEM_DIRECTORIES = frozenset(
    {"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin"}
)
_VERSION_OPTIONS = frozenset({"--version", "--help", "-version", "-V"})
_COMPUTED = re.compile(r"[$`*?\[]")
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-[:!")

RULES: dict[str, Rule] = {
    **awk_sed.RULES,
    **databases.RULES,
    **interpreters.RULES,
    **builtins.RULES,
    **wrappers.RULES,
    **find.RULES,
}
"""Rules of programs whose arguments hold a language or another command; all others have a grammar."""


def analyze_command(analysis: ShellAnalysis, words: list[Word], stdin: PipeData) -> None:
    """Report the effects of one command."""
    with analysis.report.analysing(words):
        _analyze_words(analysis, words, stdin)


def _analyze_words(analysis: ShellAnalysis, words: list[Word], stdin: PipeData) -> None:
    name = _program_name(analysis, words)
    analysis.report.facts.add_command(name or analysis.program_path(words[0].text), words[1:])
    if not name:
        return
    analysis.report.programs[name] = None
    call = CommandCall(name, words[1:], stdin)
    rule = RULES.get(name)
    if rule is None:
        _analyze_without_rule(analysis, call)
        return
    if len(call.arguments) == 1 and call.texts[0] in _VERSION_OPTIONS and name not in builtins.RULES:
        return
    if name not in builtins.RULES:
        _require_resolved(analysis, call.arguments)
    rule(analysis, call)


def _analyze_without_rule(analysis: ShellAnalysis, call: CommandCall) -> None:
    """Analyse a program by its grammar, or by its name if it is a Windows program."""
    if analyze_by_grammar(analysis, call):
        return
    if is_windows_name(call.name):
        analyze_windows(call.line, analysis)
    else:
        analysis.report.add_unresolved(f"`{call.name[:64]}` is not a known program")


def _require_resolved(analysis: ShellAnalysis, arguments: list[Word]) -> None:
    """Report options and partially quoted words that are known only at run time, because they can become anything."""
    for word in arguments:
        computed = not word.is_resolved and _COMPUTED.search(word.text.partition("=")[0])
        if (computed and word.is_option) or (not word.is_resolved and word.has_inner_quotes):
            analysis.report.add_unresolved(f"`{word.text[:64]}` is known only at run time")


def _program_name(analysis: ShellAnalysis, words: list[Word]) -> str:
    """Return the plain name of the program, or "" if the command has been reported completely."""
    word = words[0]
    if word.has_inner_quotes:
        analysis.report.add_violation(Violation.OBFUSCATED)
    if word.origin is not None:
        analysis.report.add_violation(word.origin)
    if not word.is_exact:
        return _unknown_name(analysis, word, words)
    folder, _, name = word.text.rpartition("/")
    if folder and folder not in _SYSTEM_DIRECTORIES:
        analysis.report.programs[name] = None
        analysis.report.add_effect(EffectKind.EXECUTE, join_words(words))
        return ""
    name = name.removesuffix(".exe")
    if not _LETTERS.issuperset(name) and normalize("NFKD", name).isascii() and not name.isascii():
        analysis.report.add_violation(Violation.OBFUSCATED)
    if not name:
        analysis.report.add_unresolved("the name of the program is empty")
    return name


def _unknown_name(analysis: ShellAnalysis, word: Word, words: list[Word]) -> str:
    if word.text.startswith("~") and not any(character in word.text for character in "*?[$"):
        analysis.report.add_effect(EffectKind.EXECUTE, join_words(words))
    elif word.pattern and not word.is_computed:
        analysis.report.add_violation(Violation.OBFUSCATED)
    elif "/" in word.text and not word.has_inner_quotes and word.origin is None:
        analysis.report.add_effect(EffectKind.EXECUTE, join_words(words))
        analysis.report.add_unresolved(f"`{word.text[:64]}` is known only at run time")
    else:
        analysis.report.add_unresolved(f"`{word.text[:64]}` is known only at run time")
    return ""
