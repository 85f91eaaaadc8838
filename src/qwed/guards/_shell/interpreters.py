"""Shells and interpreters: code in an argument or on the standard input is judged by the guard of its language."""

import re
from collections.abc import Callable

from qwed.guards import python_code
from qwed.guards._shell.builtins import run_text
from qwed.guards._shell.model import Call, Feed, Look, Source, Violation, Word
from qwed.guards._shell.options import Rule
from qwed.guards.code_words import CodeFindings
from qwed.words import EffectKind

SHELLS = (
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "ksh93",
    "mksh",
    "ash",
    "csh",
    "tcsh",
    "fish",
    "rbash",
    "yash",
    "posh",
    "elvish",
    "nu",
)
_SHELL_VALUED = frozenset({"-o", "+o", "-O", "+O", "--rcfile", "--init-file"})
_SHELL_CODE = re.compile(r"-[A-Za-z]*c[A-Za-z]*\Z|--command\Z|--init-command")
_PYTHON_CODE = re.compile(r"-[A-Za-z]*?c(.*)\Z", re.DOTALL)
_NODE_CODE = re.compile(r"(?:-[ep]+|--eval|--print)(?:=(.*))?\Z", re.DOTALL)
_INLINE = {
    **dict.fromkeys(("perl", "perl5"), re.compile(r"-[A-Za-z0-9]*[eEMm]|-[a-zA-Z]*i", re.DOTALL)),
    **dict.fromkeys(("ruby", "jruby"), re.compile(r"-[A-Za-z0-9]*[er]", re.DOTALL)),
    "php": re.compile(r"-(?:r|B|R|E|F|-run|-process|d|a)"),
    **dict.fromkeys(("lua", "luajit", "lua5.3", "lua5.4"), re.compile(r"-[eil]")),
    **dict.fromkeys(
        ("R", "Rscript", "julia", "ghc", "elixir", "groovy", "scala", "osascript", "erl"),
        re.compile(r"-e|--eval|-eval|-E\Z"),
    ),
    **dict.fromkeys(
        ("octave", "racket", "guile", "sbcl", "clojure", "clj", "emacs"), re.compile(r"--?eval|-e|-c\Z|-f\Z|-l\Z")
    ),
    **dict.fromkeys(
        (
            "tclsh",
            "expect",
            "wish",
            "gnuplot",
            "m4",
            "swift",
            "crystal",
            "nim",
            "raku",
            "jjs",
            "gimp",
            "irb",
            "pry",
            "iex",
        ),
        re.compile(r"-[ceb]\b|-e|-b"),
    ),
}
_MODULE_READERS = {
    "json.tool": 1,
    "tabnanny": 1,
    "tokenize": 1,
    "calendar": 0,
    "this": 0,
    "sysconfig": 0,
    "platform": 0,
}
_MODULE_NETWORK = frozenset(
    {"http.server", "smtplib", "ftplib", "telnetlib", "webbrowser", "SimpleHTTPServer", "smtpd"}
)


def take_code(look: Look, found: CodeFindings) -> None:
    """Make what the guard of another language found our own."""
    for effect in found.effects:
        look.report.effect(effect.kind, effect.target)
    for violation in found.violations:
        look.report.violate(violation)
    for name in found.unresolved:
        look.report.unclear(f"nobody knows what `{name[:64]}` does")
    if found.syntax_error is not None:
        look.report.unclear(found.syntax_error)


def _javascript(code: str) -> CodeFindings:
    from qwed.guards.javascript_code import findings

    return findings(code)


def _code(look: Look, word: Word | None, judge: Callable[[str], CodeFindings]) -> None:
    if word is None:
        look.report.unclear("the code is missing")
    elif word.known:
        if look.inner(word.text):
            take_code(look, judge(word.text))
    else:
        look.report.violate(word.origin or Violation.INLINE_CODE)
        look.report.unclear(f"`{word.text[:64]}` is decided while it runs")


def _fed_code(look: Look, fed: Feed, judge: Callable[[str], CodeFindings]) -> None:
    if fed.source is Source.TEXT:
        if look.inner(fed.text):
            take_code(look, judge(fed.text))
    elif fed.source is not Source.NOTHING:
        look.report.violate(fed.violation)


def _shell(look: Look, call: Call) -> None:
    rest = iter(call.arguments)
    checked = False
    for word in rest:
        text = word.text
        if _SHELL_CODE.match(text):
            _shell_text(look, list(rest), call.fed)
            return
        if text in _SHELL_VALUED:
            _startup_file(look, text, next(rest, None))
        elif text.startswith(("--rcfile=", "--init-file=")):
            _startup_file(look, text, word)
        elif text in ("--version", "--help"):
            return
        elif text == "-n":
            checked = True
        elif text in ("-s", "-") or not text.startswith(("-", "+")):
            break
    else:
        word = Word("-")
    _shell_file(look, call.name, word, call.fed, checked)


def _startup_file(look: Look, option: str, value: Word | None) -> None:
    if "file" in option and value is not None:
        look.report.effect(EffectKind.EXECUTE, value.text)


def _shell_text(look: Look, rest: list[Word], fed: Feed) -> None:
    while rest and rest[0].is_option:
        rest = rest[1:]
    if not rest:
        look.report.unclear("the code is missing")
        return
    run_text(look, rest[:1], fed)


def _shell_file(look: Look, name: str, word: Word, fed: Feed, checked: bool) -> None:
    if word.origin is not None:
        look.report.violate(word.origin)
    if word.text in ("-", "-s", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
        look.report.effect(EffectKind.EXECUTE, name)
        if fed.source is Source.TEXT:
            look.script(fed.text)
        if fed.source is not Source.NOTHING:
            look.report.violate(fed.violation)
    elif checked:
        look.file(EffectKind.READ, word)
    else:
        look.report.effect(EffectKind.EXECUTE, word.text)
        if not word.settled:
            look.report.unclear(f"`{word.text[:64]}` is decided while it runs")


def _python(look: Look, call: Call) -> None:
    rest = iter(call.arguments)
    for word in rest:
        text = word.text
        if text in ("-V", "--version", "-VV", "-h", "--help"):
            return
        if text in ("-W", "-X", "--check-hash-based-pycs"):
            next(rest, None)
        elif text == "-m" or (text.startswith("-m") and len(text) > 2):
            module = word._replace(text=text[2:]) if len(text) > 2 else next(rest, None)
            _module(look, call.name, module, list(rest), call.fed)
            return
        elif text == "-" or not word.is_option:
            _program_file(look, call.name, word, call.fed, python_code.findings)
            return
        elif (code := _PYTHON_CODE.match(text)) and not text.startswith("--"):
            look.report.effect(EffectKind.EXECUTE, f"{call.name} -c")
            _code(look, word._replace(text=code[1]) if code[1] else next(rest, None), python_code.findings)
            return
    look.report.effect(EffectKind.EXECUTE, call.name)
    _fed_code(look, call.fed, python_code.findings)


def _program_file(look: Look, name: str, word: Word, fed: Feed, judge: Callable[[str], CodeFindings]) -> None:
    look.report.effect(EffectKind.EXECUTE, f"{name} {word.text}")
    if word.origin is not None:
        look.report.violate(word.origin)
    elif word.text in ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
        _fed_code(look, fed, judge)
    elif not word.settled:
        look.report.unclear(f"`{word.text[:64]}` is decided while it runs")


def _module(look: Look, name: str, module: Word | None, rest: list[Word], fed: Feed) -> None:
    called = module.text if module is not None else ""
    if called in ("pip", "pip3", "pytest", "uv", "pipx", "poetry"):
        look.command([Word(called), *rest], fed)
    elif called in _MODULE_READERS:
        files = [word for word in rest if not word.is_option]
        for at, word in enumerate(files[: _MODULE_READERS[called] + 1]):
            look.file(EffectKind.READ if at == 0 else EffectKind.WRITE, word)
    else:
        look.report.effect(EffectKind.EXECUTE, f"{name} -m {called}")
        if called in _MODULE_NETWORK:
            look.report.effect(EffectKind.NETWORK, called)
        if called in ("timeit", "cProfile", "code", "pdb", "trace"):
            look.report.unclear(f"`{called}` runs what it is given")


def _node(look: Look, call: Call) -> None:
    rest = iter(call.arguments)
    for word in rest:
        text = word.text
        if text in ("-v", "--version", "-h", "--help", "--v8-options"):
            return
        code = _NODE_CODE.match(text)
        if code:
            look.report.effect(EffectKind.EXECUTE, f"{call.name} -e")
            _code(look, word._replace(text=code[1]) if code[1] else next(rest, None), _javascript)
            return
        if text in ("-c", "--check", "--syntax-check"):
            for file in rest:
                look.file(EffectKind.READ, file)
            return
        if text == "eval" and call.name in ("deno", "bun"):
            look.report.effect(EffectKind.EXECUTE, f"{call.name} eval")
            _code(look, next(rest, None), _javascript)
            return
        if text == "-" or not word.is_option:
            _program_file(look, call.name, word, call.fed, _javascript)
            return
    look.report.effect(EffectKind.EXECUTE, call.name)
    _fed_code(look, call.fed, _javascript)


_ONLY_CHECKS = {"php": ("-l", "-i", "-m"), "ruby": ("-c", "-wc")}


def _other(look: Look, call: Call) -> None:
    first = call.texts[0] if call.texts else ""
    if len(call.arguments) == 1 and first in ("-v", "--version", "-V", "--help", "-h"):
        return
    if first in _ONLY_CHECKS.get(call.name, ()):
        for word in call.arguments[1:]:
            look.file(EffectKind.READ, word)
        return
    look.report.effect(EffectKind.EXECUTE, call.line)
    program = next((word for word in call.arguments if not word.is_option), None)
    options = call.arguments[: call.arguments.index(program)] if program else call.arguments
    if any(_INLINE[call.name].match(word.text) for word in options):
        look.report.violate(Violation.INLINE_CODE)
    elif program is None and call.fed.source is not Source.NOTHING:
        look.report.violate(call.fed.violation)
    elif program is not None and (program.origin is not None or not program.settled):
        look.report.violate(program.origin or Violation.INLINE_CODE)


RULES: dict[str, Rule] = {
    **dict.fromkeys(SHELLS, _shell),
    **dict.fromkeys(
        (
            "python",
            "python2",
            "python3",
            "pypy",
            "pypy3",
            "py",
            *(f"python3.{minor}" for minor in range(16)),
            "python2.7",
        ),
        _python,
    ),
    **dict.fromkeys(("node", "nodejs", "deno", "bun"), _node),
    **dict.fromkeys(_INLINE, _other),
}
