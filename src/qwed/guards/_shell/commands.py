"""Dispatch of one command to the rules of its program, and checks of the program name."""

from qwed.guards._shell import (
    admin_tools,
    archive_tools,
    builtins,
    databases,
    find,
    git,
    interpreters,
    network,
    programs,
    remote,
    text_tools,
    wrappers,
)
from qwed.guards._shell.command_model import CommandCall, PipeData, ShellAnalysis, Violation, Word, join_words, names_in
from qwed.guards._shell.option_abbreviation import expand_abbreviations
from qwed.guards._shell.options import Rule, analyze_operands
from qwed.guards._shell.windows import analyze_windows, is_windows_name
from qwed.model import EffectKind
from qwed.model.unicode_normal import normalize

_SYSTEM_DIRECTORIES = frozenset(
    {"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin"}
)
_VERSION_OPTIONS = frozenset({"--version", "--help", "-version", "-V"})
_VERSION_BY_LETTER = names_in(
    "mvn gradle gcc g++ cc clang clang++ make tsc dotnet jest mocha hugo ansible sbt scala ghc cmake"
)
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-[:!")

RULES: dict[str, Rule] = {
    **admin_tools.RULES,
    **archive_tools.RULES,
    **text_tools.RULES,
    **network.RULES,
    **remote.RULES,
    **databases.RULES,
    **git.RULES,
    **interpreters.RULES,
    **builtins.RULES,
    **wrappers.RULES,
    **find.RULES,
}
"""Rules by program name; later tables win."""


def analyze_command(analysis: ShellAnalysis, words: list[Word], stdin: PipeData) -> None:
    """Report the effects of one command."""
    name = _program_name(analysis, words)
    if not name:
        return
    call = CommandCall(name, expand_abbreviations(name, words[1:]), stdin)
    analysis.report.programs[name] = None
    if len(call.arguments) == 1 and _is_version_query(name, call.texts[0]):
        return
    if not _is_only_text(name):
        _require_resolved(analysis, call.arguments)
    rule = RULES.get(name, _analyze_by_table)
    rule(analysis, call)


def _analyze_by_table(analysis: ShellAnalysis, call: CommandCall) -> None:
    """Analyse a program that has no rule of its own."""
    name = call.name
    if name in programs.PROGRAMS:
        analyze_operands(analysis, name, programs.PROGRAMS[name], call.arguments)
    elif name in programs.ADMINISTRATION or name.startswith("mkfs."):
        analysis.report.add_effect(EffectKind.ADMIN, call.line)
    elif name in programs.RUNNERS:
        analysis.report.add_effect(EffectKind.EXECUTE, call.line)
    elif is_windows_name(name):
        analyze_windows(call.line, analysis)
    else:
        analysis.report.add_unresolved(f"`{name[:64]}` is not a known program")


def _is_only_text(name: str) -> bool:
    """Return True if no argument can change what the program does."""
    program = programs.PROGRAMS.get(name)
    prints_only = (
        program is not None and program.effect is None and not (program.reads or program.writes or program.runs)
    )
    return name in builtins.RULES or prints_only


def _require_resolved(analysis: ShellAnalysis, arguments: list[Word]) -> None:
    """Report options and partially quoted words that are known only at run time, because they can become anything."""
    for word in arguments:
        if not word.is_resolved and (word.is_option or word.has_inner_quotes):
            analysis.report.add_unresolved(f"`{word.text[:64]}` is known only at run time")


def _is_version_query(name: str, option: str) -> bool:
    if option in ("-v", "--info", "version"):
        return name in _VERSION_BY_LETTER
    return option in _VERSION_OPTIONS and _is_known(name)


def _is_known(name: str) -> bool:
    in_tables = name in programs.PROGRAMS or name in programs.RUNNERS or name in programs.ADMINISTRATION
    return in_tables or (name in RULES and name not in builtins.RULES)


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
