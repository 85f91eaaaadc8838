"""Rules for shell builtins: changing directory, variables, aliases, and running text as code."""

import re

from qwed.guards._shell.command_model import (
    CommandCall,
    DataSource,
    PipeData,
    ShellAnalysis,
    Violation,
    Word,
    join_words,
)
from qwed.guards._shell.env_variables import analyze_assignment
from qwed.guards._shell.options import Rule
from qwed.model import EffectKind

_NAME = re.compile(r"[A-Za-z_]\w*\Z")


def _cd(analysis: ShellAnalysis, call: CommandCall) -> None:
    directories = [word for word in call.arguments if not word.is_option and word.text != "-"]
    if directories:
        analysis.change_directory(directories[0])
    elif any(word.text == "-" for word in call.arguments):
        analysis.change_directory(Word("$OLDPWD", is_exact=False, pattern=True))
    else:
        analysis.change_directory(Word("~", is_exact=False, pattern=True))


def _eval(analysis: ShellAnalysis, call: CommandCall) -> None:
    analysis.report.add_violation(Violation.INLINE_CODE)
    run_text(analysis, call.arguments, call.stdin)
    analysis.report.add_effect(EffectKind.EXECUTE, call.name)


def run_text(analysis: ShellAnalysis, words: list[Word], stdin: PipeData) -> None:
    """Analyse words that a shell joins and runs; text that is not known exactly is a violation."""
    for word in words:
        if word.origin is not None:
            analysis.report.add_violation(word.origin)
    if all(word.is_exact for word in words):
        analysis.visit_script(" ".join(word.text for word in words), stdin)
    else:
        analysis.report.add_violation(Violation.INLINE_CODE)
        analysis.report.add_unresolved(f"`{join_words(words)[:64]}` is known only at run time")


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


def _trap(analysis: ShellAnalysis, call: CommandCall) -> None:
    words = [word for word in call.arguments if word.text not in ("-p", "-l", "--")]
    if len(words) > 1 and words[0].text not in ("", "-"):
        run_text(analysis, words[:1], PipeData())


def _alias(analysis: ShellAnalysis, call: CommandCall) -> None:
    for word in call.arguments:
        _, has_value, value = word.text.partition("=")
        if has_value:
            run_text(analysis, [word._replace(text=value)], PipeData())


def _read(analysis: ShellAnalysis, call: CommandCall) -> None:
    names = [word.text for word in call.arguments if _NAME.match(word.text)]
    value = (
        Word(call.stdin.text, is_exact=False, pattern=True)
        if call.stdin.source is DataSource.LISTING
        else Word("", is_exact=False)
    )
    for name in names:
        analysis.assign(name, [value])
    for word in call.operands:
        _require_resolved(analysis, word)
    _refuse_substitution(analysis, call.arguments)


def _require_resolved(analysis: ShellAnalysis, word: Word) -> None:
    """Report a variable name that is known only at run time."""
    if not word.is_resolved:
        analysis.report.add_unresolved(f"`{word.text[:64]}` is known only at run time")


def _refuse_substitution(analysis: ShellAnalysis, arguments: list[Word]) -> None:
    if any("$(" in word.text or "`" in word.text for word in arguments):
        analysis.report.add_violation(Violation.INLINE_CODE)


def _declare(analysis: ShellAnalysis, call: CommandCall) -> None:
    options = "".join(word.text for word in call.arguments if word.is_option)
    named = [word for word in call.arguments if not word.is_option]
    if not named and not set(options) & set("fF"):
        analysis.report.add_effect(EffectKind.SECRET, "environment")
    if "n" in options and call.name != "export":
        analysis.report.add_unresolved(f"`{call.name} -n` gives a variable a second name")
    for word in named:
        variable, has_value, value = word.text.partition("=")
        if has_value and variable:
            analyze_assignment(analysis.report, variable, [word._replace(text=value)], for_command=False)
    _refuse_substitution(analysis, call.arguments)


def _set(analysis: ShellAnalysis, call: CommandCall) -> None:
    if not call.arguments:
        analysis.report.add_effect(EffectKind.SECRET, "environment")
    elif "+o" in call.texts and any(word.text == "history" or not word.is_resolved for word in call.arguments):
        analysis.report.add_effect(EffectKind.ADMIN, call.line)


def _printf(analysis: ShellAnalysis, call: CommandCall) -> None:
    if call.arguments and call.arguments[0].text.startswith("-v"):
        _refuse_substitution(analysis, call.arguments)
        first = call.arguments[0]
        named = first._replace(text=first.text[2:]) if first.text != "-v" else next(iter(call.arguments[1:]), Word(""))
        _require_resolved(analysis, named)
        analysis.assign(named.text, [Word("", is_exact=False)])


def _unset(analysis: ShellAnalysis, call: CommandCall) -> None:
    for word in call.operands:
        analyze_assignment(analysis.report, word.text, [], for_command=False)
    _refuse_substitution(analysis, call.arguments)


def _let(analysis: ShellAnalysis, call: CommandCall) -> None:
    _refuse_substitution(analysis, call.arguments)


def _loading_builtin(analysis: ShellAnalysis, call: CommandCall) -> None:
    options = "".join(word.text for word in call.arguments if word.is_option)
    if any(letter in options for letter in _LOADING_OPTIONS[call.name]):
        analysis.report.add_violation(Violation.ESCAPE)
        analysis.report.add_effect(EffectKind.EXECUTE, call.line)
    if call.name in ("mapfile", "readarray") and call.operands:
        _require_resolved(analysis, call.operands[-1])
        analysis.assign(call.operands[-1].text, [Word("", is_exact=False)])


_LOADING_OPTIONS = {
    "enable": "f",
    "bind": "xf",
    "complete": "CF",
    "compgen": "CFW",
    "hash": "p",
    "mapfile": "C",
    "readarray": "C",
}


def _shopt(analysis: ShellAnalysis, call: CommandCall) -> None:
    if any(word.text in ("expand_aliases", "extdebug") for word in call.arguments):
        analysis.report.add_unresolved("`shopt` changes how later commands are read")


def _coproc(analysis: ShellAnalysis, call: CommandCall) -> None:
    analysis.report.add_unresolved("the command that `coproc` runs is not followed")
    analysis.visit_command(call.arguments, call.stdin)


def _history(analysis: ShellAnalysis, call: CommandCall) -> None:
    analysis.report.add_effect(EffectKind.SECRET, "history")
    if any(word.is_option for word in call.arguments):
        analysis.report.add_effect(EffectKind.ADMIN, call.line)


RULES: dict[str, Rule] = {
    **dict.fromkeys(("cd", "pushd", "chdir"), _cd),
    "popd": lambda analysis, _call: analysis.change_directory(Word("$OLDPWD", is_exact=False, pattern=True)),
    "eval": _eval,
    **dict.fromkeys(("source", "."), _source),
    "trap": _trap,
    "alias": _alias,
    "unalias": lambda _analysis, _call: None,
    "read": _read,
    **dict.fromkeys(("export", "declare", "typeset", "local", "readonly"), _declare),
    "set": _set,
    "printf": _printf,
    "let": _let,
    "unset": _unset,
    **dict.fromkeys(_LOADING_OPTIONS, _loading_builtin),
    "shopt": _shopt,
    "coproc": _coproc,
    "history": _history,
    "yes": lambda analysis, _call: analysis.report.add_unresolved("`yes` never ends"),
}
