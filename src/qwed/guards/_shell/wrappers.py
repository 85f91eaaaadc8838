"""Rules for programs whose arguments are another command, such as env, xargs and timeout."""

import re
from typing import NamedTuple

from qwed.guards._shell.builtins import run_text
from qwed.guards._shell.command_model import (
    NO_DATA,
    UNKNOWN_DATA,
    CommandCall,
    DataSource,
    PipeData,
    ShellAnalysis,
    Word,
)
from qwed.guards._shell.env_variables import analyze_assignment
from qwed.guards._shell.options import Rule, values_of
from qwed.model import EffectKind

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
MAX_WORDS = 256
"""Words of standard input that are passed to a command and analysed one by one."""


class Wrapper(NamedTuple):
    """Syntax of the words before the inner command."""

    valued: str = ""
    """Options whose value is the next word."""
    operands: int = 0
    """Number of words between the options and the command, such as the duration of `timeout`."""
    effect: EffectKind | None = None
    optional: str = ""
    """Target of the effect if it runs without a command."""
    writes: tuple[str, ...] = ()
    """Options whose value is a file it writes."""


_WRAPPERS: dict[str, Wrapper] = {
    **dict.fromkeys(("nohup", "setsid", "command", "builtin", "exec", "catchsegv", "caffeinate"), Wrapper("-f -o -a")),
    **dict.fromkeys(("time", "gtime"), Wrapper("-f -o --format --output", writes=("-o", "--output"))),
    **dict.fromkeys(
        ("nice", "ionice", "chrt", "stdbuf", "unbuffer", "eatmydata", "fakeroot", "chronic", "ifne"),
        Wrapper("-n -c -p -i -o -e"),
    ),
    "timeout": Wrapper("-s --signal -k --kill-after", operands=1),
    "gtimeout": Wrapper("-s --signal -k --kill-after", operands=1),
    "taskset": Wrapper("", operands=1, effect=EffectKind.ADMIN),
    "sudo": Wrapper("-u --user -g --group -p -h -C -r -t -U -D -R -T", effect=EffectKind.ADMIN, optional="sudo"),
    "doas": Wrapper("-u -C -a", effect=EffectKind.ADMIN, optional="doas"),
    "pkexec": Wrapper("--user", effect=EffectKind.ADMIN, optional="pkexec"),
    "gosu": Wrapper("", operands=1, effect=EffectKind.ADMIN),
    "su-exec": Wrapper("", operands=1, effect=EffectKind.ADMIN),
    "chroot": Wrapper("", operands=1, effect=EffectKind.ADMIN, optional="chroot"),
    "unshare": Wrapper("-S -G -R -w", effect=EffectKind.ADMIN, optional="unshare"),
    "nsenter": Wrapper("-t --target -S -G", effect=EffectKind.ADMIN, optional="nsenter"),
    "systemd-run": Wrapper("-u --unit -p --property -E", effect=EffectKind.ADMIN, optional="systemd-run"),
    **dict.fromkeys(
        ("strace", "ltrace"),
        Wrapper("-e -o -p -s -u --output", effect=EffectKind.SECRET, writes=("-o", "--output")),
    ),
    "proxychains": Wrapper("-f", effect=EffectKind.NETWORK),
    "proxychains4": Wrapper("-f", effect=EffectKind.NETWORK),
    "torsocks": Wrapper("-u -p", effect=EffectKind.NETWORK),
    "dbus-run-session": Wrapper(),
    "xvfb-run": Wrapper("-n -s -e -f -w"),
    "rlwrap": Wrapper("-a -f -H"),
    "choom": Wrapper("-n", effect=EffectKind.ADMIN),
    "prlimit": Wrapper("", effect=EffectKind.ADMIN),
    "setarch": Wrapper("", operands=1),
    "numactl": Wrapper("-N -m -C"),
    "aws-vault": Wrapper("", operands=2, effect=EffectKind.SECRET),
    "direnv": Wrapper("", operands=2, effect=EffectKind.EXECUTE),
    "dotenv": Wrapper("-f -e", effect=EffectKind.SECRET),
    "entr": Wrapper("", effect=EffectKind.EXECUTE),
    "mise": Wrapper("", operands=2, effect=EffectKind.EXECUTE),
    "noglob": Wrapper(),
    "nocorrect": Wrapper(),
    "then": Wrapper(),
    "do": Wrapper(),
    "else": Wrapper(),
}


def _wrapper(analysis: ShellAnalysis, call: CommandCall) -> None:
    wrapper = _WRAPPERS[call.name]
    if call.name == "command" and call.arguments and call.arguments[0].text in ("-v", "-V"):
        return
    if wrapper.effect is not None:
        analysis.report.add_effect(wrapper.effect, call.line)
    inner = inner_command(call.arguments, wrapper.valued.split(), wrapper.operands)
    _report_written(analysis, call.arguments[: len(call.arguments) - len(inner)], wrapper.writes)
    inner = _skip_assignments(analysis, inner)
    if inner:
        analysis.visit_command(inner, call.stdin)
    elif wrapper.optional and any(word.text in ("-i", "-s", "--login", "-l") for word in call.arguments):
        analysis.report.add_effect(EffectKind.EXECUTE, call.name)


def _report_written(analysis: ShellAnalysis, options: list[Word], writes: tuple[str, ...]) -> None:
    """Report files that options of the outer program write."""
    for value in values_of(options, writes):
        analysis.add_file_effect(EffectKind.WRITE, value)


def inner_command(arguments: list[Word], valued: list[str], operands: int = 0) -> list[Word]:
    """Return the words of the inner command, after the options of the outer one."""
    rest = iter(range(len(arguments)))
    for index in rest:
        text = arguments[index].text
        if text == "--":
            return arguments[index + 1 + operands :]
        if not arguments[index].is_option:
            return arguments[index + operands :]
        if text in valued:
            next(rest, None)
    return []


def _skip_assignments(analysis: ShellAnalysis, words: list[Word]) -> list[Word]:
    """Analyse leading assignments and return the words after them."""
    index = 0
    while index < len(words) and _ASSIGNMENT.match(words[index].text):
        name, _, value = words[index].text.partition("=")
        analyze_assignment(analysis.report, name, [words[index]._replace(text=value)], for_command=True)
        index += 1
    return words[index:]


def _env(analysis: ShellAnalysis, call: CommandCall) -> None:
    split = [word for word in call.arguments if word.text.startswith(("-S", "--split-string"))]
    if split:
        text = split[0].text.removeprefix("-S").removeprefix("--split-string").lstrip("=")
        after = call.arguments[call.arguments.index(split[0]) + 1 :]
        run_text(analysis, [split[0]._replace(text=text), *after], call.stdin)
        return
    if values_of(call.arguments, ("-C", "--chdir")):
        analysis.report.add_unresolved("`env -C` changes the directory first, use `cd` instead")
    inner = _skip_assignments(analysis, inner_command(call.arguments, ["-u", "--unset", "-C", "--chdir"]))
    if inner:
        analysis.visit_command(inner, call.stdin)
    else:
        analysis.report.add_effect(EffectKind.SECRET, "environment")


def _xargs(analysis: ShellAnalysis, call: CommandCall) -> None:
    """Analyse xargs: the words of its input become operands of the inner command."""
    valued = [
        "-n",
        "-L",
        "-P",
        "-I",
        "-d",
        "-E",
        "-s",
        "-a",
        "--max-args",
        "--max-procs",
        "--replace",
        "--delimiter",
        "--arg-file",
        "-J",
        "-R",
        "-S",
    ]
    inner = inner_command(call.arguments, valued) or [Word("echo")]
    files = values_of(call.arguments[: len(call.arguments) - len(inner)], ("-a", "--arg-file"))
    for word in files:
        analysis.add_file_effect(EffectKind.READ, word)
    # xargs removes quotes and backslashes, and splits at the given delimiter.
    changed = any(mark in call.stdin.text for mark in "'\"\\") or bool(values_of(call.arguments, ("-d", "--delimiter")))
    stdin_words = _stdin_words(
        UNKNOWN_DATA if files or (changed and call.stdin.source is DataSource.TEXT) else call.stdin
    )
    mark = next((word.text[2:] for word in call.arguments if word.text.startswith("-I") and len(word.text) > 2), "{}")
    if any(mark in word.text for word in inner):
        inner = [expanded for word in inner for expanded in substitute(word, mark, stdin_words)]
    else:
        inner = [*inner, *stdin_words]
    analysis.visit_command(inner)


def substitute(word: Word, mark: str, values: list[Word]) -> list[Word]:
    """Return the word once for every value that may replace the mark."""
    if mark not in word.text:
        return [word]
    return [
        word._replace(
            text=word.text.replace(mark, value.text),
            is_exact=word.is_exact and value.is_exact,
            pattern=word.is_resolved and value.is_resolved and not (word.is_exact and value.is_exact),
            is_computed=True,
        )
        for value in values
    ]


def _stdin_words(stdin: PipeData) -> list[Word]:
    if stdin.source is DataSource.TEXT and len(words := stdin.text.split()) <= MAX_WORDS:
        return [Word(word, is_computed=True) for word in words]
    if stdin.source is DataSource.LISTING:
        return [Word(stdin.text or ".", is_exact=False, pattern=True, is_computed=True)]
    return [Word("$input", is_exact=False, is_computed=True, origin=stdin.violation if stdin.source in _CODE else None)]


_CODE = frozenset({DataSource.REMOTE, DataSource.DECODED})


def _command_option(analysis: ShellAnalysis, call: CommandCall) -> None:
    """Analyse `su -c`, `script -c`, `flock -c`: the command is one text, or the rest of the words."""
    analysis.report.add_effect(_COMMAND_OPTION_TOOLS[call.name], call.line)
    for index, word in enumerate(call.arguments):
        if word.text in ("-c", "--command") and index + 1 < len(call.arguments):
            run_text(analysis, [call.arguments[index + 1]], call.stdin)
            return
        if word.text.startswith("--command="):
            run_text(analysis, [word._replace(text=word.text.partition("=")[2])], call.stdin)
            return
    if call.name == "flock":
        analysis.visit_command(inner_command(call.arguments, ["-w", "-E", "--timeout"], 1), call.stdin)


_COMMAND_OPTION_TOOLS = {
    "su": EffectKind.ADMIN,
    "runuser": EffectKind.ADMIN,
    "sg": EffectKind.ADMIN,
    "script": EffectKind.EXECUTE,
    "flock": EffectKind.WRITE,
}


def _watch(analysis: ShellAnalysis, call: CommandCall) -> None:
    inner = inner_command(call.arguments, ["-n", "--interval", "-d"])
    run_text(analysis, inner, call.stdin)


def _parallel(analysis: ShellAnalysis, call: CommandCall) -> None:
    cut = next(
        (index for index, word in enumerate(call.arguments) if word.text in (":::", "::::", ":::+")),
        len(call.arguments),
    )
    inner = inner_command(
        call.arguments[:cut],
        ["-j", "--jobs", "-n", "-N", "-a", "--arg-file", "--colsep", "--delay", "--timeout", "--results", "-S"],
    )
    values = _parallel_values(analysis, call, cut)
    if not inner:
        analysis.report.add_violation(call.stdin.violation)
        run_text(
            analysis,
            [Word(call.stdin.text, is_exact=call.stdin.source is DataSource.TEXT)] if call.stdin.text else values,
            NO_DATA,
        )
        return
    marked = any("{}" in word.text for word in inner)
    words = [expanded for word in inner for expanded in substitute(word, "{}", values)] if marked else [*inner, *values]
    if len(inner) == 1 and " " in inner[0].text:
        run_text(analysis, words, NO_DATA)
    else:
        analysis.visit_command(words)


def _parallel_values(analysis: ShellAnalysis, call: CommandCall, cut: int) -> list[Word]:
    """Return the values after `:::`; after `::::` and in options they are files that contain the values."""
    files = values_of(call.arguments[:cut], ("-a", "--arg-file"))
    from_files = call.arguments[cut:][:1] and call.arguments[cut].text == "::::"
    values = [word for word in call.arguments[cut + 1 :] if not word.text.startswith(":::")]
    for word in [*files, *(values if from_files else [])]:
        analysis.add_file_effect(EffectKind.READ, word)
    for word in values_of(call.arguments[:cut], ("--results", "--joblog")):
        analysis.add_file_effect(EffectKind.WRITE, word)
    if files or from_files:
        return _stdin_words(UNKNOWN_DATA)
    return values or _stdin_words(call.stdin)


def _busybox(analysis: ShellAnalysis, call: CommandCall) -> None:
    if call.arguments and not call.arguments[0].is_option:
        analysis.visit_command(call.arguments, call.stdin)


def _at(analysis: ShellAnalysis, call: CommandCall) -> None:
    if call.name == "atq" or any(word.text == "-l" for word in call.arguments):
        return
    analysis.report.add_effect(EffectKind.ADMIN, call.line)
    analysis.report.add_effect(EffectKind.EXECUTE, call.name)
    if call.stdin.source is DataSource.TEXT:
        analysis.visit_script(call.stdin.text)
    elif call.stdin.source is not DataSource.NOTHING:
        analysis.report.add_violation(call.stdin.violation)


RULES: dict[str, Rule] = {
    **dict.fromkeys(_WRAPPERS, _wrapper),
    "env": _env,
    "xargs": _xargs,
    "gxargs": _xargs,
    **dict.fromkeys(_COMMAND_OPTION_TOOLS, _command_option),
    "watch": _watch,
    "parallel": _parallel,
    "busybox": _busybox,
    "toybox": _busybox,
    **dict.fromkeys(("at", "batch", "atq", "atrm"), _at),
}
