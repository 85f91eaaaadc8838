"""Rules for shells and interpreters: code in an argument or on standard input goes to the guard of its language."""

import re
from collections.abc import Callable, Iterator

from qwed.guards import python_code
from qwed.guards._shell.builtins import SHELL_OPTIONS
from qwed.guards._shell.command_model import (
    CommandCall,
    DataSource,
    PipeData,
    Rule,
    ShellAnalysis,
    Violation,
    Word,
    names_in,
)
from qwed.guards._shell.inline_script import run_text
from qwed.guards.code_findings import CodeFindings, code_facts, sql_facts
from qwed.model import FILE_EFFECTS, EffectKind
from qwed.model.data_files import read_mapping

SHELLS = names_in("sh bash dash zsh ksh ksh93 mksh ash csh tcsh fish rbash yash posh elvish nu")
_SHELL_VALUED = frozenset({"-o", "+o", "-O", "+O", "--rcfile", "--init-file"})
_SHELL_CODE = re.compile(r"-[A-Za-z]*c[A-Za-z]*\Z|--command\Z|--init-command")
_PYTHON_CODE = re.compile(r"-[bBdEIOPqRsSuv]*c(.*)\Z", re.DOTALL)
_PYTHON_OPTIONS = re.compile(r"-[bBdEIOPqRsSuv]+")
_PYTHON_SETTINGS = re.compile(
    r"(?:default|ignore|error|once|always|module|all)|(?:utf8|dev|importtime|faulthandler|tracemalloc)(?:=\d+)?"
)
_NODE_OPTIONS = re.compile(
    r"--(?:no-warnings|trace-warnings|trace-deprecation|no-deprecation|enable-source-maps|input-type=(?:module|commonjs)"
    r"|max[-_]old[-_]space[-_]size=\d+|experimental-(?:strip-types|json-modules)|unhandled-rejections=\w+)"
)
_NODE_CODE = re.compile(r"(?:-[ep]+|--eval|--print)(?:=(.*))?\Z", re.DOTALL)
_INLINE = {
    name: re.compile(options)
    for names, options in read_mapping(__file__, "inline_options.txt").items()
    for name in names.split()
}
_MODULE_READERS = {
    **dict.fromkeys(("json.tool", "tabnanny", "tokenize"), 1),
    **dict.fromkeys(("calendar", "this", "sysconfig", "platform"), 0),
}
_MODULES_WITH_OPTIONS = frozenset({"json.tool", "calendar", "tokenize", "tabnanny"})
_MODULE_NETWORK = frozenset(
    {"http.server", "smtplib", "ftplib", "telnetlib", "webbrowser", "SimpleHTTPServer", "smtpd"}
)


def add_code_findings(analysis: ShellAnalysis, findings: CodeFindings) -> None:
    """Add the findings of another language's guard to the report."""
    facts = code_facts(findings)
    for effect in findings.effects:
        analysis.report.add_effect(effect.kind, effect.target)
        if effect.kind in FILE_EFFECTS:
            analysis.add_path_facts(effect.kind, effect.target, certain=facts.complete)
    analysis.report.facts.add_code(facts)
    analysis.report.facts.add_sql(sql_facts(findings))
    for violation in findings.violations:
        analysis.report.add_violation(violation)
    for name in findings.unresolved:
        analysis.report.add_unresolved(f"the effect of `{name[:64]}` is not known")
    if findings.syntax_error is not None:
        analysis.report.add_unresolved(findings.syntax_error)


def _javascript(code: str) -> CodeFindings:
    from qwed.guards.javascript_code import findings

    return findings(code)


def _analyze_code(
    analysis: ShellAnalysis, word: Word | None, name: str, analyze: Callable[[str], CodeFindings]
) -> None:
    """Analyse code in an argument; if all of it is understood, its effects are those of the command."""
    if word is None:
        analysis.report.add_unresolved("the code is missing")
    elif word.is_exact:
        if analysis.can_analyze_inner(word.text):
            result = analyze(word.text)
            add_code_findings(analysis, result)
            if result.violations or result.unresolved or result.syntax_error is not None:
                analysis.report.add_effect(EffectKind.EXECUTE, name)
    else:
        analysis.report.add_violation(word.origin or Violation.INLINE_CODE)
        analysis.report.add_unresolved(f"`{word.text[:64]}` is known only at run time")


def _analyze_stdin_code(analysis: ShellAnalysis, stdin: PipeData, analyze: Callable[[str], CodeFindings]) -> None:
    if stdin.source is DataSource.TEXT:
        if analysis.can_analyze_inner(stdin.text):
            add_code_findings(analysis, analyze(stdin.text))
    elif stdin.source is not DataSource.NOTHING:
        analysis.report.add_violation(stdin.violation)


def _shell(analysis: ShellAnalysis, call: CommandCall) -> None:
    rest = iter(call.arguments)
    check_only = False
    for word in rest:
        text = word.text
        if _TRACES.match(text):
            analysis.trace_commands()
        if _SHELL_CODE.match(text):
            _shell_text(analysis, list(rest), call.stdin)
            return
        if text in ("--version", "--help"):
            return
        if text in ("-s", "-") or not text.startswith(("-", "+")):
            break
        check_only = (check_only or text == "-n") and not text.startswith("+")
        _shell_option(analysis, word, rest)
    else:
        word = Word("-")
    _shell_file(analysis, call.name, word, call.stdin, check_only)


_TRACES = re.compile(r"-[a-z]*x|-o\Z")
"""Options with which a shell may print its commands."""


def _shell_option(analysis: ShellAnalysis, word: Word, rest: Iterator[Word]) -> None:
    """Report an option of a shell that names a file or changes how commands are read."""
    if word.text in _SHELL_VALUED:
        _startup_file(analysis, word.text, next(rest, None))
    elif word.text.startswith(("--rcfile=", "--init-file=")):
        _startup_file(analysis, word.text, word)


def _startup_file(analysis: ShellAnalysis, option: str, value: Word | None) -> None:
    if "file" in option and value is not None:
        analysis.report.add_effect(EffectKind.EXECUTE, value.text)
    elif option in ("-O", "+O") and (value is None or value.text not in SHELL_OPTIONS):
        analysis.report.add_unresolved("an option of the shell changes how commands are read")


def _shell_text(analysis: ShellAnalysis, rest: list[Word], stdin: PipeData) -> None:
    while rest and rest[0].is_option:
        rest = rest[1:]
    if not rest:
        analysis.report.add_unresolved("the code is missing")
        return
    run_text(analysis, rest[:1], stdin)


def _shell_file(analysis: ShellAnalysis, name: str, word: Word, stdin: PipeData, check_only: bool) -> None:
    if word.origin is not None:
        analysis.report.add_violation(word.origin)
    if word.text in ("-", "-s", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
        analysis.report.add_effect(EffectKind.EXECUTE, name)
        if stdin.source is DataSource.TEXT:
            analysis.visit_script(stdin.text)
        if stdin.source is not DataSource.NOTHING:
            analysis.report.add_violation(stdin.violation)
    elif check_only:
        analysis.add_file_effect(EffectKind.READ, word)
    else:
        analysis.report.add_effect(EffectKind.EXECUTE, word.text)
        if not word.is_resolved:
            analysis.report.add_unresolved(f"`{word.text[:64]}` is known only at run time")


def _python(analysis: ShellAnalysis, call: CommandCall) -> None:
    rest = iter(call.arguments)
    for word in rest:
        text = word.text
        if text in ("-V", "--version", "-VV", "-h", "--help"):
            return
        if text.startswith("-m"):
            module = word._replace(text=text[2:]) if len(text) > 2 else next(rest, None)
            _module(analysis, call.name, module, list(rest), call.stdin)
            return
        if text == "-" or not word.is_option:
            _program_file(analysis, call.name, word, call.stdin, python_code.findings)
            return
        code = _PYTHON_CODE.match(text)
        if code:
            value = word._replace(text=code[1]) if code[1] else next(rest, None)
            _analyze_code(analysis, value, f"{call.name} -c", python_code.findings)
            return
        _python_option(analysis, call.name, text, rest)
    analysis.report.add_effect(EffectKind.EXECUTE, call.name)
    _analyze_stdin_code(analysis, call.stdin, python_code.findings)


def _python_option(analysis: ShellAnalysis, name: str, text: str, rest: Iterator[Word]) -> None:
    """Report an option of Python unless it changes nothing about what runs."""
    value = next(rest, Word("")) if text in ("-W", "-X") else Word("default")
    known = text in ("-W", "-X") or _PYTHON_OPTIONS.fullmatch(text)
    if not known or not value.is_exact or not _PYTHON_SETTINGS.fullmatch(value.text):
        analysis.report.add_unresolved(f"`{text[:64]}` of `{name}` is not understood")


def _program_file(
    analysis: ShellAnalysis, name: str, word: Word, stdin: PipeData, analyze: Callable[[str], CodeFindings]
) -> None:
    analysis.report.add_effect(EffectKind.EXECUTE, f"{name} {word.text}")
    if word.origin is not None:
        analysis.report.add_violation(word.origin)
    elif word.text in ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
        _analyze_stdin_code(analysis, stdin, analyze)
    elif not word.is_resolved:
        analysis.report.add_unresolved(f"`{word.text[:64]}` is known only at run time")


def _module(analysis: ShellAnalysis, name: str, module: Word | None, rest: list[Word], stdin: PipeData) -> None:
    module_name = module.text if module is not None else ""
    if module_name in ("pip", "pip3", "pytest", "uv", "pipx", "poetry"):
        analysis.visit_command([Word(module_name), *rest], stdin)
    elif module_name == "venv":
        analysis.visit_command([Word("pyvenv"), *rest])
    elif module_name in _MODULE_READERS:
        if module_name not in _MODULES_WITH_OPTIONS and any(word.is_option for word in rest):
            analysis.report.add_unresolved(f"an option of the module `{module_name}` is not understood")
        files = [word for word in rest if not word.is_option]
        for index, word in enumerate(files[: _MODULE_READERS[module_name] + 1]):
            analysis.add_file_effect(EffectKind.READ if index == 0 else EffectKind.WRITE, word)
    else:
        analysis.report.add_effect(EffectKind.EXECUTE, f"{name} -m {module_name}")
        if module_name in _MODULE_NETWORK:
            analysis.report.add_effect(EffectKind.NETWORK, module_name)
        if module_name in ("timeit", "cProfile", "code", "pdb", "trace"):
            analysis.report.add_unresolved(f"`{module_name}` runs other code")


def _node(analysis: ShellAnalysis, call: CommandCall) -> None:
    rest = iter(call.arguments)
    for word in rest:
        text = word.text
        if text in ("-v", "--version", "-h", "--help", "--v8-options"):
            return
        if text in ("-c", "--check", "--syntax-check"):
            _checked_files(analysis, call.name, list(rest))
            return
        code = _NODE_CODE.match(text)
        if code:
            value = word._replace(text=code[1]) if code[1] else next(rest, None)
            prints = "p" in text.partition("=")[0].removeprefix("--eval")
            _analyze_code(analysis, value, f"{call.name} -e", _javascript_printed if prints else _javascript)
            return
        if text == "-" or not word.is_option:
            _javascript_file(analysis, call, word, rest)
            return
        if not _NODE_OPTIONS.fullmatch(text):
            analysis.report.add_unresolved(f"`{text[:64]}` of `{call.name}` is not understood")
    analysis.report.add_effect(EffectKind.EXECUTE, call.name)
    _analyze_stdin_code(analysis, call.stdin, _javascript)


def _checked_files(analysis: ShellAnalysis, name: str, words: list[Word]) -> None:
    """Report files whose syntax is checked; a further option may load code."""
    for word in words:
        analysis.add_file_effect(EffectKind.READ, word)
        if word.is_option:
            analysis.report.add_unresolved(f"`{word.text[:64]}` of `{name}` is not understood")


def _javascript_file(analysis: ShellAnalysis, call: CommandCall, word: Word, rest: Iterator[Word]) -> None:
    if word.text == "eval" and call.name in ("deno", "bun"):
        _analyze_code(analysis, next(rest, None), f"{call.name} eval", _javascript)
    else:
        _program_file(analysis, call.name, word, call.stdin, _javascript)


def _javascript_printed(code: str) -> CodeFindings:
    """Analyse an expression whose value is printed; other code as it is."""
    printed = _javascript(f"console.log({code.strip().rstrip(';')}\n)")
    return _javascript(code) if printed.syntax_error is not None else printed


_ONLY_CHECKS = {"php": ("-l", "-i", "-m"), "ruby": ("-c", "-wc")}


def _other_interpreter(analysis: ShellAnalysis, call: CommandCall) -> None:
    first = call.texts[0] if call.texts else ""
    if len(call.arguments) == 1 and first in ("-v", "--version", "-V", "--help", "-h"):
        return
    if first in _ONLY_CHECKS.get(call.name, ()):
        if first == "-i":
            analysis.report.add_effect(EffectKind.SECRET, "environment")
        _checked_files(analysis, call.name, call.arguments[1:])
        return
    analysis.report.add_effect(EffectKind.EXECUTE, call.line)
    program = next((word for word in call.arguments if not word.is_option), None)
    options = call.arguments[: call.arguments.index(program)] if program else call.arguments
    if any(_INLINE[call.name].match(word.text) for word in options):
        analysis.report.add_violation(Violation.INLINE_CODE)
    elif program is None and call.stdin.source is not DataSource.NOTHING:
        analysis.report.add_violation(call.stdin.violation)
    elif program is not None and (program.origin is not None or not program.is_resolved):
        analysis.report.add_violation(program.origin or Violation.INLINE_CODE)


_PYTHONS = (
    *names_in("python python2 python2.7 python3 pypy pypy3 py"),
    *(f"python3.{minor}" for minor in range(16)),
)
RULES: dict[str, Rule] = {
    **dict.fromkeys(SHELLS, _shell),
    **dict.fromkeys(_PYTHONS, _python),
    **dict.fromkeys(("node", "nodejs", "deno", "bun"), _node),
    **dict.fromkeys(_INLINE, _other_interpreter),
}
