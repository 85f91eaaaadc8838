"""What the shell itself does: changing directory, naming things, and running text as code."""

import re

from qwed.guards._shell.model import Call, Feed, Look, Source, Violation, Word, joined
from qwed.guards._shell.options import Rule
from qwed.guards._shell.variables import judge_assignment
from qwed.words import EffectKind

_NAME = re.compile(r"[A-Za-z_]\w*\Z")


def _cd(look: Look, call: Call) -> None:
    places = [word for word in call.arguments if not word.is_option and word.text != "-"]
    if places:
        look.enter(places[0])
    elif any(word.text == "-" for word in call.arguments):
        look.enter(Word("$OLDPWD", known=False, pattern=True))
    else:
        look.enter(Word("~", known=False, pattern=True))


def _eval(look: Look, call: Call) -> None:
    look.report.violate(Violation.INLINE_CODE)
    run_text(look, call.arguments, call.fed)
    look.report.effect(EffectKind.EXECUTE, call.name)


def run_text(look: Look, words: list[Word], fed: Feed) -> None:
    """Judge words a shell joins and runs; text it does not know yet is a violation."""
    for word in words:
        if word.origin is not None:
            look.report.violate(word.origin)
    if all(word.known for word in words):
        look.script(" ".join(word.text for word in words), fed)
    else:
        look.report.violate(Violation.INLINE_CODE)
        look.report.unclear(f"`{joined(words)[:64]}` is decided while it runs")


def _source(look: Look, call: Call) -> None:
    if not call.arguments:
        look.report.unclear("no file is given to `source`")
        return
    word = call.arguments[0]
    look.report.effect(EffectKind.EXECUTE, word.text)
    if word.origin is not None:
        look.report.violate(word.origin)
    elif word.text in ("/dev/stdin", "/proc/self/fd/0", "/dev/fd/0"):
        look.report.violate(call.fed.violation)
    elif not word.settled:
        look.report.unclear(f"`{word.text[:64]}` is decided while it runs")


def _trap(look: Look, call: Call) -> None:
    words = [word for word in call.arguments if word.text not in ("-p", "-l", "--")]
    if len(words) > 1 and words[0].text not in ("", "-"):
        run_text(look, words[:1], Feed())


def _alias(look: Look, call: Call) -> None:
    for word in call.arguments:
        _, given, value = word.text.partition("=")
        if given:
            run_text(look, [word._replace(text=value)], Feed())


def _read(look: Look, call: Call) -> None:
    names = [word.text for word in call.arguments if _NAME.match(word.text)]
    listed = (
        Word(call.fed.text, known=False, pattern=True) if call.fed.source is Source.LISTING else Word("", known=False)
    )
    for name in names:
        look.assign(name, [listed])
    for word in call.operands:
        _require_settled(look, word)
    _harmless_names(look, call.arguments)


def _require_settled(look: Look, word: Word) -> None:
    """The name of a variable that gets a value must be plain to see."""
    if not word.settled:
        look.report.unclear(f"`{word.text[:64]}` is decided while it runs")


def _harmless_names(look: Look, arguments: list[Word]) -> None:
    if any("$(" in word.text or "`" in word.text for word in arguments):
        look.report.violate(Violation.INLINE_CODE)


def _declare(look: Look, call: Call) -> None:
    options = "".join(word.text for word in call.arguments if word.is_option)
    named = [word for word in call.arguments if not word.is_option]
    if not named and not set(options) & set("fF"):
        look.report.effect(EffectKind.SECRET, "environment")
    if "n" in options and call.name != "export":
        look.report.unclear(f"`{call.name} -n` gives a variable a second call.name")
    for word in named:
        variable, given, value = word.text.partition("=")
        if given and variable:
            judge_assignment(look.report, variable, [word._replace(text=value)], for_command=False)
    _harmless_names(look, call.arguments)


def _set(look: Look, call: Call) -> None:
    if not call.arguments:
        look.report.effect(EffectKind.SECRET, "environment")
    elif "+o" in call.texts and any(word.text == "history" or not word.settled for word in call.arguments):
        look.report.effect(EffectKind.ADMIN, call.line)


def _printf(look: Look, call: Call) -> None:
    if call.arguments and call.arguments[0].text.startswith("-v"):
        _harmless_names(look, call.arguments)
        first = call.arguments[0]
        named = first._replace(text=first.text[2:]) if first.text != "-v" else next(iter(call.arguments[1:]), Word(""))
        _require_settled(look, named)
        look.assign(named.text, [Word("", known=False)])


def _unset(look: Look, call: Call) -> None:
    for word in call.operands:
        judge_assignment(look.report, word.text, [], for_command=False)
    _harmless_names(look, call.arguments)


def _let(look: Look, call: Call) -> None:
    _harmless_names(look, call.arguments)


def _loads(look: Look, call: Call) -> None:
    options = "".join(word.text for word in call.arguments if word.is_option)
    if any(letter in options for letter in _LOADING[call.name]):
        look.report.violate(Violation.ESCAPE)
        look.report.effect(EffectKind.EXECUTE, call.line)
    if call.name in ("mapfile", "readarray") and call.operands:
        _require_settled(look, call.operands[-1])
        look.assign(call.operands[-1].text, [Word("", known=False)])


_LOADING = {
    "enable": "f",
    "bind": "xf",
    "complete": "CF",
    "compgen": "CFW",
    "hash": "p",
    "mapfile": "C",
    "readarray": "C",
}


def _shopt(look: Look, call: Call) -> None:
    if any(word.text in ("expand_aliases", "extdebug") for word in call.arguments):
        look.report.unclear("`shopt` changes how later commands are read")


def _coproc(look: Look, call: Call) -> None:
    look.report.unclear("what `coproc` runs beside is not followed")
    look.command(call.arguments, call.fed)


def _history(look: Look, call: Call) -> None:
    look.report.effect(EffectKind.SECRET, "history")
    if any(word.is_option for word in call.arguments):
        look.report.effect(EffectKind.ADMIN, call.line)


RULES: dict[str, Rule] = {
    **dict.fromkeys(("cd", "pushd", "chdir"), _cd),
    "popd": lambda look, _call: look.enter(Word("$OLDPWD", known=False, pattern=True)),
    "eval": _eval,
    **dict.fromkeys(("source", "."), _source),
    "trap": _trap,
    "alias": _alias,
    "unalias": lambda _look, _call: None,
    "read": _read,
    **dict.fromkeys(("export", "declare", "typeset", "local", "readonly"), _declare),
    "set": _set,
    "printf": _printf,
    "let": _let,
    "unset": _unset,
    **dict.fromkeys(_LOADING, _loads),
    "shopt": _shopt,
    "coproc": _coproc,
    "history": _history,
    "yes": lambda look, _call: look.report.unclear("`yes` never ends"),
}
