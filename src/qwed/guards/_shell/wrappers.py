"""Programs whose arguments are another command: what they start is judged like any command."""

import re
from typing import NamedTuple

from qwed.guards._shell.builtins import run_text
from qwed.guards._shell.model import NOTHING, UNKNOWN, Call, Feed, Look, Source, Word
from qwed.guards._shell.options import Rule, values_of
from qwed.guards._shell.variables import judge_assignment
from qwed.words import EffectKind

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
MAX_WORDS = 256
"""Words that are fed to a command and looked at one by one."""


class Wrapper(NamedTuple):
    """How the words before the inner command read."""

    valued: str = ""
    """Short options, and long ones after a blank, whose value is the next word."""
    operands: int = 0
    """Words between the options and the command: the time of `timeout`."""
    effect: EffectKind | None = None
    optional: str = ""
    """What running it without a command does: the name of an effect's target."""
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


def _wrapper(look: Look, call: Call) -> None:
    wrapper = _WRAPPERS[call.name]
    if call.name == "command" and call.arguments and call.arguments[0].text in ("-v", "-V"):
        return
    if wrapper.effect is not None:
        look.report.effect(wrapper.effect, call.line)
    inner = inner_command(call.arguments, wrapper.valued.split(), wrapper.operands)
    _written(look, call.arguments[: len(call.arguments) - len(inner)], wrapper.writes)
    inner = _assigned(look, inner)
    if inner:
        look.command(inner, call.fed)
    elif wrapper.optional and any(word.text in ("-i", "-s", "--login", "-l") for word in call.arguments):
        look.report.effect(EffectKind.EXECUTE, call.name)


def _written(look: Look, options: list[Word], writes: tuple[str, ...]) -> None:
    """Files that options of the outer program name."""
    for value in values_of(options, writes):
        look.file(EffectKind.WRITE, value)


def inner_command(arguments: list[Word], valued: list[str], operands: int = 0) -> list[Word]:
    """The words of the inner command, after the options of the outer one."""
    rest = iter(range(len(arguments)))
    for at in rest:
        text = arguments[at].text
        if text == "--":
            return arguments[at + 1 + operands :]
        if not arguments[at].is_option:
            return arguments[at + operands :]
        if text in valued:
            next(rest, None)
    return []


def _assigned(look: Look, words: list[Word]) -> list[Word]:
    """The words behind leading assignments, which are judged."""
    at = 0
    while at < len(words) and _ASSIGNMENT.match(words[at].text):
        name, _, value = words[at].text.partition("=")
        judge_assignment(look.report, name, [words[at]._replace(text=value)], for_command=True)
        at += 1
    return words[at:]


def _env(look: Look, call: Call) -> None:
    split = [word for word in call.arguments if word.text.startswith(("-S", "--split-string"))]
    if split:
        text = split[0].text.removeprefix("-S").removeprefix("--split-string").lstrip("=")
        after = call.arguments[call.arguments.index(split[0]) + 1 :]
        run_text(look, [split[0]._replace(text=text), *after], call.fed)
        return
    if values_of(call.arguments, ("-C", "--chdir")):
        look.report.unclear("`env` goes to another directory first, write `cd` instead")
    inner = _assigned(look, inner_command(call.arguments, ["-u", "--unset", "-C", "--chdir"]))
    if inner:
        look.command(inner, call.fed)
    else:
        look.report.effect(EffectKind.SECRET, "environment")


def _xargs(look: Look, call: Call) -> None:
    """The words it is fed become operands of the inner command."""
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
        look.file(EffectKind.READ, word)
    # It takes quotes and backslashes away, and cuts where it is told to.
    changed = any(mark in call.fed.text for mark in "'\"\\") or bool(values_of(call.arguments, ("-d", "--delimiter")))
    fed_words = _fed_words(UNKNOWN if files or (changed and call.fed.source is Source.TEXT) else call.fed)
    mark = next((word.text[2:] for word in call.arguments if word.text.startswith("-I") and len(word.text) > 2), "{}")
    if any(mark in word.text for word in inner):
        inner = [each for word in inner for each in replaced(word, mark, fed_words)]
    else:
        inner = [*inner, *fed_words]
    look.command(inner)


def replaced(word: Word, mark: str, values: list[Word]) -> list[Word]:
    """The word once for every value that may stand in place of the mark."""
    if mark not in word.text:
        return [word]
    return [
        word._replace(
            text=word.text.replace(mark, value.text),
            known=word.known and value.known,
            pattern=word.settled and value.settled and not (word.known and value.known),
            built=True,
        )
        for value in values
    ]


def _fed_words(fed: Feed) -> list[Word]:
    if fed.source is Source.TEXT and len(words := fed.text.split()) <= MAX_WORDS:
        return [Word(each, built=True) for each in words]
    if fed.source is Source.LISTING:
        return [Word(fed.text or ".", known=False, pattern=True, built=True)]
    return [Word("$input", known=False, built=True, origin=fed.violation if fed.source in _CODE else None)]


_CODE = frozenset({Source.REMOTE, Source.DECODED})


def _shell_option(look: Look, call: Call) -> None:
    """`su -c`, `script -c`, `flock -c`, `watch`: the command is one text, or the rest of the words."""
    look.report.effect(_WITH_TEXT[call.name], call.line)
    for at, word in enumerate(call.arguments):
        if word.text in ("-c", "--command") and at + 1 < len(call.arguments):
            run_text(look, [call.arguments[at + 1]], call.fed)
            return
        if word.text.startswith("--command="):
            run_text(look, [word._replace(text=word.text.partition("=")[2])], call.fed)
            return
    if call.name == "flock":
        look.command(inner_command(call.arguments, ["-w", "-E", "--timeout"], 1), call.fed)


_WITH_TEXT = {
    "su": EffectKind.ADMIN,
    "runuser": EffectKind.ADMIN,
    "sg": EffectKind.ADMIN,
    "script": EffectKind.EXECUTE,
    "flock": EffectKind.WRITE,
}


def _watch(look: Look, call: Call) -> None:
    inner = inner_command(call.arguments, ["-n", "--interval", "-d"])
    run_text(look, inner, call.fed)


def _parallel(look: Look, call: Call) -> None:
    cut = next(
        (at for at, word in enumerate(call.arguments) if word.text in (":::", "::::", ":::+")), len(call.arguments)
    )
    inner = inner_command(
        call.arguments[:cut],
        ["-j", "--jobs", "-n", "-N", "-a", "--arg-file", "--colsep", "--delay", "--timeout", "--results", "-S"],
    )
    values = _parallel_values(look, call, cut)
    if not inner:
        look.report.violate(call.fed.violation)
        run_text(
            look, [Word(call.fed.text, known=call.fed.source is Source.TEXT)] if call.fed.text else values, NOTHING
        )
        return
    marked = any("{}" in word.text for word in inner)
    words = [each for word in inner for each in replaced(word, "{}", values)] if marked else [*inner, *values]
    if len(inner) == 1 and " " in inner[0].text:
        run_text(look, words, NOTHING)
    else:
        look.command(words)


def _parallel_values(look: Look, call: Call, cut: int) -> list[Word]:
    """What stands behind `:::`; behind `::::` and in options stand files that hold it."""
    named = values_of(call.arguments[:cut], ("-a", "--arg-file"))
    listed = call.arguments[cut:][:1] and call.arguments[cut].text == "::::"
    given = [word for word in call.arguments[cut + 1 :] if not word.text.startswith(":::")]
    for word in [*named, *(given if listed else [])]:
        look.file(EffectKind.READ, word)
    for word in values_of(call.arguments[:cut], ("--results", "--joblog")):
        look.file(EffectKind.WRITE, word)
    if named or listed:
        return _fed_words(UNKNOWN)
    return given or _fed_words(call.fed)


def _busybox(look: Look, call: Call) -> None:
    if call.arguments and not call.arguments[0].is_option:
        look.command(call.arguments, call.fed)


def _at(look: Look, call: Call) -> None:
    if call.name == "atq" or any(word.text == "-l" for word in call.arguments):
        return
    look.report.effect(EffectKind.ADMIN, call.line)
    look.report.effect(EffectKind.EXECUTE, call.name)
    if call.fed.source is Source.TEXT:
        look.script(call.fed.text)
    elif call.fed.source is not Source.NOTHING:
        look.report.violate(call.fed.violation)


RULES: dict[str, Rule] = {
    **dict.fromkeys(_WRAPPERS, _wrapper),
    "env": _env,
    "xargs": _xargs,
    "gxargs": _xargs,
    **dict.fromkeys(_WITH_TEXT, _shell_option),
    "watch": _watch,
    "parallel": _parallel,
    "busybox": _busybox,
    "toybox": _busybox,
    **dict.fromkeys(("at", "batch", "atq", "atrm"), _at),
}
