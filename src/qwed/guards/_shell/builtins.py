"""Rules for shell builtins: changing directory, variables, aliases, and running text as code."""

import re

from qwed.guards._shell.arithmetic import may_be_operator
from qwed.guards._shell.command_model import (
    CommandCall,
    DataSource,
    PipeData,
    Rule,
    ShellAnalysis,
    Violation,
    Word,
    names_in,
    refuse_code,
)
from qwed.guards._shell.env_variables import analyze_assignment, analyze_removal
from qwed.guards._shell.expansion import is_secret_variable
from qwed.guards._shell.grammar.effects import analyze_program
from qwed.guards._shell.grammar.loader import known_program
from qwed.guards._shell.grammar.parser import ParsedCommand
from qwed.guards._shell.inline_script import run_text
from qwed.model import EffectKind

_NAME = re.compile(r"[A-Za-z_]\w*")
_VALUE = re.compile(r"([A-Za-z_]\w*)(\+?=)(.*)", re.DOTALL)


def _parse(analysis: ShellAnalysis, call: CommandCall) -> ParsedCommand:
    """Parse the arguments of a builtin; options that run code are violations."""
    return analyze_program(analysis, call, known_program(call.name))


def _cd(analysis: ShellAnalysis, call: CommandCall) -> None:
    directories = _parse(analysis, call).operands
    if directories and directories[0].text != "-":
        analysis.change_directory(directories[0])
    else:
        home = "$OLDPWD" if directories or call.name in ("pushd", "popd") else "~"
        analysis.change_directory(Word(home, is_exact=False, pattern=True))


def _eval(analysis: ShellAnalysis, call: CommandCall) -> None:
    analysis.report.add_violation(Violation.INLINE_CODE)
    run_text(analysis, call.arguments, call.stdin, same_shell=True)
    analysis.report.add_effect(EffectKind.EXECUTE, call.name)


def _source(analysis: ShellAnalysis, call: CommandCall) -> None:
    if not call.arguments:
        analysis.report.add_unresolved("no file is given to `source`")
        return
    word = call.arguments[0]
    analysis.report.add_effect(EffectKind.EXECUTE, word.text)
    if word.origin is not None:
        analysis.report.add_violation(word.origin)
    elif word.text in ("/dev/stdin", "/proc/self/fd/0", "/dev/fd/0"):
        analysis.report.add_violation(call.stdin.violation)
    elif not word.is_resolved:
        analysis.report.add_unresolved(f"`{word.text[:64]}` is known only at run time")


_SIGNALS = names_in("EXIT 0 HUP INT QUIT TERM PIPE USR1 USR2 SIGHUP SIGINT SIGQUIT SIGTERM SIGPIPE 1 2 3 13 15")


def _trap(analysis: ShellAnalysis, call: CommandCall) -> None:
    words = _parse(analysis, call).operands
    if len(words) < 2 or words[0].text in ("", "-"):
        return
    analysis.report.facts.note_unlisted()  # it runs later, perhaps in another directory
    run_text(analysis, words[:1], PipeData(), same_shell=True)
    if any(word.text not in _SIGNALS for word in words[1:]):
        analysis.report.add_unresolved("`trap` runs code between other commands")


def _alias(analysis: ShellAnalysis, call: CommandCall) -> None:
    for word in _parse(analysis, call).operands:
        _, has_value, value = word.text.partition("=")
        if has_value:
            analysis.report.facts.note_unlisted()
            # An alias is used with arguments: it is what it does to one more file.
            run_text(analysis, [word._replace(text=f"{value} .")], PipeData(), same_shell=True)


def _set_variable(analysis: ShellAnalysis, word: Word, value: Word | None = None) -> None:
    """Assign a variable that a word names; a name that is not plain can run code."""
    if not (word.is_exact and _NAME.fullmatch(word.text)):
        analysis.report.add_unresolved(f"`{word.text[:64]}` is not the name of a variable")
        refuse_code(analysis.report, word.text)
    elif value is None:
        analysis.forget(word.text)
    else:
        analysis.assign(word.text, [value])


def _read(analysis: ShellAnalysis, call: CommandCall) -> None:
    parsed = _parse(analysis, call)
    listing = call.stdin.source is DataSource.LISTING
    value = Word(call.stdin.text, False, pattern=True, any_name=call.stdin.any_name) if listing else None
    for word in parsed.values_of("-a"):
        _set_variable(analysis, word)
    for word in parsed.operands or [Word("REPLY")]:
        _set_variable(analysis, word, value)


def _mapfile(analysis: ShellAnalysis, call: CommandCall) -> None:
    for word in _parse(analysis, call).operands or [Word("MAPFILE")]:
        _set_variable(analysis, word)


def _declare(analysis: ShellAnalysis, call: CommandCall) -> None:
    """Analyse a declaration; what it assigns has been assigned if it was plain."""
    parsed = _parse(analysis, call)
    exports = call.name == "export" or any(option.name == "-x" for option in parsed.options)
    if not parsed.operands and not parsed.has("functions"):
        analysis.report.add_effect(EffectKind.SECRET, "environment")
    if parsed.has("-p") and any(is_secret_variable(word.text) for word in parsed.operands):
        analysis.report.add_effect(EffectKind.SECRET, "environment")
    for word in parsed.operands if parsed.has("integer") else ():
        if not analysis.is_integer(word.text):
            analysis.report.add_unresolved(f"`{word.text[:64]}` is evaluated when it is assigned")
    for word in () if parsed.has("functions") else parsed.operands:
        _declare_name(analysis, call, word, exports=exports and not parsed.has("removes"))


def _declare_name(analysis: ShellAnalysis, call: CommandCall, word: Word, *, exports: bool) -> None:
    if word.is_number:
        # An assignment that the visitor has seen.
        return
    value = _VALUE.fullmatch(word.text)
    refuse_code(analysis.report, word.text)
    if value:
        analyze_assignment(analysis.report, value[1], [word._replace(text=value[3])], exported=exports)
        _set_variable(analysis, word._replace(text=value[1], is_exact=True))
    elif exports:
        _require_name(analysis, word)
        analysis.export(word.text)
    elif call.name in ("declare", "typeset", "local"):
        _set_variable(analysis, word)


def _require_name(analysis: ShellAnalysis, word: Word) -> None:
    if not (word.is_exact and _NAME.fullmatch(word.text)):
        analysis.report.add_unresolved(f"`{word.text[:64]}` is not the name of a variable")


_SET_OPTIONS = re.compile(r"[-+][euxvfChbBETm]*o?")
_SET_NAMES = names_in(
    "errexit nounset xtrace verbose noglob noclobber pipefail errtrace functrace nolog ignoreeof emacs vi"
)


def _set(analysis: ShellAnalysis, call: CommandCall) -> None:
    if not call.arguments:
        analysis.report.add_effect(EffectKind.SECRET, "environment")
    rest = iter(call.arguments)
    for word in rest:
        if not word.is_resolved and word.text.startswith(("$", "`")):
            analysis.report.add_unresolved(f"`{word.text[:64]}` may be an option of `set`: put `--` before it")
        if word.text in ("--", "-") or not word.text.startswith(("-", "+")):
            return
        names = [next(rest, Word("errexit"))] if word.text.endswith("o") else []
        if "x" in word.text or any(name.text == "xtrace" for name in names):
            analysis.trace_commands()
        if any(name.text == "history" for name in names):
            analysis.report.add_effect(EffectKind.ADMIN, call.line)
        elif not _SET_OPTIONS.fullmatch(word.text) or any(name.text not in _SET_NAMES for name in names):
            analysis.report.add_unresolved(f"`set {word.text[:64]}` changes how later commands are read")


def _printf(analysis: ShellAnalysis, call: CommandCall) -> None:
    first = call.arguments[0] if call.arguments else Word("")
    if not first.is_resolved and first.text.startswith(("$", "`")) and len(call.arguments) > 1:
        analysis.report.add_unresolved(f"`{first.text[:64]}` may be an option of `printf`: put `--` before it")
    if not first.text.startswith("-v"):
        if first.is_option and first.text != "--":
            analysis.report.add_unresolved(f"`{first.text[:64]}` is not a known option of `printf`")
        return
    target = first._replace(text=first.text[2:]) if first.text != "-v" else next(iter(call.arguments[1:]), Word(""))
    _set_variable(analysis, target)


def _unset(analysis: ShellAnalysis, call: CommandCall) -> None:
    for word in _parse(analysis, call).operands:
        _set_variable(analysis, word)
        analyze_removal(analysis.report, word.text)
        analysis.forget_function(word.text)


_SUM = re.compile(
    r"([A-Za-z_]\w*)(?:=|\+=|-=|\*=)?(-?\d{1,18}|[A-Za-z_]\w*)?(?:[-+*/%]-?(\d{1,18}|[A-Za-z_]\w*))*(?:\+\+|--)?"
)


def _let(analysis: ShellAnalysis, call: CommandCall) -> None:
    """Analyse arithmetic in words: only sums of integers."""
    for word in call.arguments:
        match = _SUM.fullmatch(word.text) if word.is_exact else None
        names = _NAME.findall(word.text.partition("=")[2] or word.text)
        if match is None or not all(map(analysis.is_integer, names)):
            analysis.report.add_unresolved(f"`{word.text[:64]}` is not arithmetic over known integers")
        refuse_code(analysis.report, word.text)
        if match is not None:
            analysis.forget(match[1])


SHELL_OPTIONS = names_in(
    """
    nullglob globstar nocaseglob nocasematch failglob checkwinsize histappend cmdhist lithist autocd cdspell
    dirspell checkjobs checkhash globasciiranges hostcomplete login_shell no_empty_cmd_completion xpg_echo
    """
)


def _shopt(analysis: ShellAnalysis, call: CommandCall) -> None:
    parsed = _parse(analysis, call)
    changes = parsed.has("-s", "-u") or not all(word.is_exact for word in parsed.operands)
    if changes and any(word.text not in SHELL_OPTIONS for word in parsed.operands):
        analysis.report.add_unresolved("`shopt` changes how later commands are read")


def _test(analysis: ShellAnalysis, call: CommandCall) -> None:
    """Analyse a test in words: an operator or an index that is computed can run code."""
    if any(word.text in ("-v", "-R") for word in call.arguments):
        for word in call.arguments:
            refuse_code(analysis.report, word.text)
    for word in call.arguments:
        if may_be_operator(word) or "$(" in word.text[1:] or word.text in ("-v", "-R"):
            analysis.report.add_unresolved(f"`{word.text[:64]}` may become another test: put it into quotes")


def _coproc(analysis: ShellAnalysis, call: CommandCall) -> None:
    analysis.report.add_unresolved("the command that `coproc` runs is not followed")
    analysis.visit_command(call.arguments, call.stdin)


def _getopts(analysis: ShellAnalysis, call: CommandCall) -> None:
    for word in _parse(analysis, call).operands[1:2]:
        _set_variable(analysis, word)
    for name in ("OPTARG", "OPTIND"):
        analysis.forget(name)


def _wait(analysis: ShellAnalysis, call: CommandCall) -> None:
    for word in _parse(analysis, call).values_of("-p"):
        _set_variable(analysis, word)


_COMPLETIONS = names_in("function file directory command alias builtin keyword job user group hostname")


def _compgen(analysis: ShellAnalysis, call: CommandCall) -> None:
    if any(word.text not in _COMPLETIONS for word in _parse(analysis, call).values_of("-A")):
        analysis.report.add_effect(EffectKind.SECRET, "environment")


def _grammar(analysis: ShellAnalysis, call: CommandCall) -> None:
    _parse(analysis, call)


_ONLY_OPTIONS = names_in(
    """
    hash enable bind complete history fc jobs umask ulimit shift return exit
    break continue logout caller times suspend dirs disown fg bg help type
    """
)
RULES: dict[str, Rule] = {
    **dict.fromkeys(("cd", "pushd", "chdir", "popd"), _cd),
    "eval": _eval,
    **dict.fromkeys(("source", "."), _source),
    "trap": _trap,
    **dict.fromkeys(("alias", "unalias"), _alias),
    "read": _read,
    **dict.fromkeys(("mapfile", "readarray"), _mapfile),
    **dict.fromkeys(("export", "declare", "typeset", "local", "readonly"), _declare),
    "set": _set,
    "printf": _printf,
    "let": _let,
    "unset": _unset,
    "shopt": _shopt,
    **dict.fromkeys(("test", "["), _test),
    "coproc": _coproc,
    "getopts": _getopts,
    "wait": _wait,
    "compgen": _compgen,
    **dict.fromkeys(_ONLY_OPTIONS, _grammar),
    **dict.fromkeys(("echo", ":", "true", "false"), lambda _analysis, _call: None),
    "yes": lambda analysis, _call: analysis.report.add_unresolved("`yes` never ends"),
}
