"""Rules for programs that build another command from their arguments and their input, such as env, xargs and parallel.

Wrappers that only put options before a command, such as timeout, need no rule: `wrappers.grammar` has them.
"""

import re
import shlex

from qwed.guards._shell.command_model import (
    NO_DATA,
    UNKNOWN_DATA,
    CommandCall,
    DataSource,
    PipeData,
    Rule,
    ShellAnalysis,
    Violation,
    Word,
    names_in,
)
from qwed.guards._shell.env_variables import analyze_prefix
from qwed.guards._shell.grammar.effects import analyze_program
from qwed.guards._shell.grammar.loader import known_program, program
from qwed.guards._shell.grammar.parser import Argument, ParsedCommand, parse
from qwed.guards._shell.inline_script import run_text
from qwed.model import EffectKind

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
MAX_WORDS = 256
"""Words of standard input that are passed to a command and analysed one by one."""
MAX_RUNS = 16
"""Values for which the script of `parallel` is analysed one by one."""


def inner_command(words: list[Word]) -> list[Word]:
    """Return the command that wrappers at the start of the words run; nothing if it is not known."""
    for _ in range(MAX_RUNS):
        name = words[0].text.rpartition("/")[2] if words else ""
        grammar = program(name) if name in WRAPPERS else None
        if grammar is None:
            return words
        parsed = parse(grammar, words[1:])
        inner = [word for argument in parsed.arguments for word in _command_words(argument.role, argument)]
        words = _after_assignments(parsed.operands if name in ("env", "genv") else inner)
        if parsed.problems:
            return []
    return []


def _command_words(role: str, argument: Argument) -> list[Word]:
    return [argument.word, *argument.following] if role == "command" else []


def _after_assignments(words: list[Word]) -> list[Word]:
    return words[sum(1 for _ in _assignments(words)) :]


def _assignments(words: list[Word]) -> list[Word]:
    count = next((index for index, word in enumerate(words) if not _ASSIGNMENT.match(word.text)), len(words))
    return words[:count]


def _analyze_assignments(analysis: ShellAnalysis, words: list[Word]) -> list[Word]:
    """Analyse leading assignments and return the words after them."""
    assignments = _assignments(words)
    for word in assignments:
        name, _, value = word.text.partition("=")
        analyze_prefix(analysis.report, name, [word._replace(text=value)])
    return words[len(assignments) :]


def _parse(analysis: ShellAnalysis, call: CommandCall) -> ParsedCommand:
    return analyze_program(analysis, call, known_program(call.name))


def _env(analysis: ShellAnalysis, call: CommandCall) -> None:
    parsed = _parse(analysis, call)
    split = [value.word for value in parsed.values if value.option in ("-S", "--split-string")]
    if split:
        _split_env(analysis, call, split[0], parsed.operands)
        return
    # A lone dash is an old way to write `-i`.
    bare = int(bool(parsed.operands) and parsed.operands[0].text == "-")
    inner = _analyze_assignments(analysis, parsed.operands[bare:])
    if inner:
        analysis.visit_command(inner, call.stdin)
    elif not parsed.is_about:
        analysis.report.add_effect(EffectKind.SECRET, "environment")


_SPLITS_PLAINLY = re.compile(r"[^\\$#]*")


def _split_env(analysis: ShellAnalysis, call: CommandCall, text: Word, operands: list[Word]) -> None:
    """Analyse `env -S`: the words of the text, which no shell reads, are arguments of `env` itself."""
    try:
        words = shlex.split(text.text) if text.is_exact and _SPLITS_PLAINLY.fullmatch(text.text) else None
    except ValueError:
        words = None
    if words is None:
        analysis.report.add_unresolved(f"`{text.text[:64]}` is not split in a way that is understood")
        run_text(analysis, [text, *operands], call.stdin)
    else:
        analysis.visit_command([Word(call.name), *(text._replace(text=word) for word in words), *operands], call.stdin)


def _sudo(analysis: ShellAnalysis, call: CommandCall) -> None:
    """Analyse sudo and doas: assignments may come before the command; without one they may start a shell."""
    parsed = parse(known_program(call.name), call.arguments)
    analysis.report.facts.describe(call.name, parsed)
    for reason in parsed.problems:
        analysis.report.add_unresolved(reason)
    if parsed.is_about:
        return
    analysis.report.add_effect(EffectKind.ADMIN, call.line)
    if any(option.effects or "refuse" in option.roles for option in parsed.options):
        analysis.report.add_unresolved(f"an option of `{call.name}` is not understood")
    inner = _analyze_assignments(analysis, parsed.operands)
    if inner:
        analysis.visit_command(inner, call.stdin)
    elif parsed.has("shell"):
        analysis.report.add_effect(EffectKind.EXECUTE, call.name)


def _xargs(analysis: ShellAnalysis, call: CommandCall) -> None:
    """Analyse xargs: the words of its input become operands of the inner command."""
    parsed = _parse(analysis, call)
    inner = parsed.operands or [Word("echo")]
    values = _xargs_values(parsed, call.stdin)
    if parsed.has("replace") and parsed.has("-L", "--max-lines", "-n", "--max-args", "-l"):
        analysis.report.add_unresolved("the options of `xargs` contradict each other")
    mark = _mark(parsed)
    marked = [expanded for word in inner for expanded in substitute(word, mark, values)] if mark else [*inner, *values]
    analysis.visit_command(marked)


def _xargs_values(parsed: ParsedCommand, stdin: PipeData) -> list[Word]:
    """Return the words of the input: xargs removes quotes and backslashes, and splits at blanks, lines or zeros."""
    if parsed.has("-a", "--arg-file") or (stdin.source is DataSource.TEXT and parsed.has("split")):
        return _stdin_words(UNKNOWN_DATA)
    if stdin.source is not DataSource.TEXT:
        return _stdin_words(stdin)
    if parsed.has("-0", "--null"):
        return [Word(text, is_computed=True) for text in stdin.text.split("\0") if text]
    if any(mark in stdin.text for mark in "'\"\\"):
        return _stdin_words(UNKNOWN_DATA)
    if parsed.has("replace"):
        return [Word(line.lstrip(), is_computed=True) for line in stdin.text.splitlines() if line.strip()][:MAX_WORDS]
    return _stdin_words(stdin)


def _mark(parsed: ParsedCommand) -> str:
    """Return the text that xargs replaces, or an empty text."""
    values = [value.word.text for value in parsed.values if value.option in ("-I", "-i", "--replace")]
    return (values[-1] if values else "{}") if parsed.has("replace") else ""


def substitute(word: Word, mark: str, values: list[Word]) -> list[Word]:
    """Return the word once for every value that may replace the mark."""
    if mark not in word.text:
        return [word]
    # A name after other text is not known to begin with the directory of the listing.
    is_part = not word.text.startswith(mark)
    return [
        word._replace(
            text=word.text.replace(mark, "*" if value.is_computed and value.is_several and is_part else value.text),
            is_exact=word.is_exact and value.is_exact,
            pattern=word.is_resolved and value.is_resolved and not (word.is_exact and value.is_exact),
            is_computed=True,
            origin=word.origin or value.origin,
            any_name=word.any_name or value.any_name,
        )
        for value in values
    ]


def _stdin_words(stdin: PipeData) -> list[Word]:
    if stdin.source is DataSource.TEXT and len(words := stdin.text.split()) <= MAX_WORDS:
        return [Word(word, is_computed=True) for word in words]
    if stdin.source is DataSource.NUMBER:
        return [Word("0", is_exact=False, pattern=True, is_computed=True, is_number=True)]
    if stdin.source is DataSource.LISTING:
        return [Word(stdin.text or ".", False, pattern=True, is_computed=True, any_name=stdin.any_name)]
    origin = stdin.violation if stdin.source in _CODE else None
    return [Word("$input", is_exact=False, is_computed=True, origin=origin, splits=True)]


_CODE = frozenset({DataSource.REMOTE, DataSource.DECODED})


def _code(analysis: ShellAnalysis, call: CommandCall) -> None:
    """Analyse `su -c` and `script -c`: the command is one text."""
    parsed = _parse(analysis, call)
    for option, value in ((value.option, value.word) for value in parsed.values):
        if parsed.command.options[option].kind == "code":
            run_text(analysis, [value], call.stdin)


def _flock(analysis: ShellAnalysis, call: CommandCall) -> None:
    parsed = _parse(analysis, call)
    inner = parsed.operands[1:]
    if inner and inner[0].text in ("-c", "--command"):
        run_text(analysis, inner[1:], call.stdin)
    elif inner:
        analysis.visit_command(inner, call.stdin)


_MACHINES = names_in(
    """
    linux32 linux64 uname26 i386 i486 i586 i686 x86_64 aarch64 arm armv7l armv8l arm64 riscv32 riscv64 ppc ppc32 ppc64
    ppc64le s390 s390x
    """
)


def _setarch(analysis: ShellAnalysis, call: CommandCall) -> None:
    """Analyse setarch: the machine comes before the options."""
    named = bool(call.arguments) and call.arguments[0].text in _MACHINES and call.arguments[0].is_exact
    parsed = _parse(analysis, call._replace(arguments=call.arguments[1:]) if named else call)
    if parsed.operands:
        analysis.visit_command(parsed.operands, call.stdin)
    elif not parsed.is_about:
        analysis.report.add_effect(EffectKind.EXECUTE, call.name)


_INPUTS = frozenset({":::", "::::", ":::+", "::::+"})
_REPLACEMENT = re.compile(r"\{[^{}\s]*\}|\{=")


def _parallel(analysis: ShellAnalysis, call: CommandCall) -> None:
    """Analyse parallel: it joins the words of the command and runs them in a shell, once for each value."""
    cut = next((index for index, word in enumerate(call.arguments) if word.text in _INPUTS), len(call.arguments))
    parsed = _parse(analysis, call._replace(arguments=call.arguments[:cut]))
    values = _parallel_values(analysis, call, cut, parsed)
    if not parsed.operands:
        if parsed.is_about:
            return
        analysis.report.add_violation(call.stdin.violation if cut == len(call.arguments) else Violation.INLINE_CODE)
        if cut == len(call.arguments) and call.stdin.source is DataSource.TEXT:
            values = [Word(call.stdin.text)]
        for word in values[:MAX_RUNS]:
            run_text(analysis, [word], NO_DATA)
    elif all(word.is_exact for word in parsed.operands):
        _visit_runs(analysis, " ".join(word.text for word in parsed.operands), values)
    else:
        run_text(analysis, parsed.operands, NO_DATA)
    if len(values) > MAX_RUNS:
        analysis.report.add_unresolved(f"`parallel` has more than {MAX_RUNS} values")


def _visit_runs(analysis: ShellAnalysis, template: str, values: list[Word]) -> None:
    marks = set(_REPLACEMENT.findall(template))
    if marks - {"{}"}:
        analysis.report.add_unresolved(f"`{min(marks)}` is not a replacement that is understood")
    template = template if "{}" in template else f"{template} {{}}"
    for value in values[:MAX_RUNS]:
        analysis.visit_script(template.replace("{}", _quoted(value)))


_PLAIN_PATH = re.compile(r"[\w./~-]+")


def _quoted(value: Word) -> str:
    """Return a value as one word of a script; what is not known becomes a variable."""
    if value.is_exact:
        return shlex.quote(value.text)
    return value.text if value.pattern and _PLAIN_PATH.fullmatch(value.text) else '"$input"'


def _parallel_values(analysis: ShellAnalysis, call: CommandCall, cut: int, parsed: ParsedCommand) -> list[Word]:
    """Return the values after `:::`; after `::::` and in options they are files that contain the values."""
    marks = [word.text for word in call.arguments[cut:] if word.text in _INPUTS]
    values = [word for word in call.arguments[cut:] if word.text not in _INPUTS]
    if len(marks) > 1:
        analysis.report.add_unresolved("`parallel` with several lists of values is not understood")
    from_files = any(mark.startswith("::::") for mark in marks)
    for word in values if from_files else ():
        analysis.add_file_effect(EffectKind.READ, word)
    if from_files or parsed.has("-a", "--arg-file"):
        return _stdin_words(UNKNOWN_DATA)
    return values or _stdin_words(call.stdin)


def _busybox(analysis: ShellAnalysis, call: CommandCall) -> None:
    parsed = _parse(analysis, call)
    if parsed.operands:
        analysis.visit_command(parsed.operands, call.stdin)


def _at(analysis: ShellAnalysis, call: CommandCall) -> None:
    parsed = _parse(analysis, call)
    if call.name == "atq" or (parsed.has("-l") and not parsed.operands):
        return
    analysis.report.add_effect(EffectKind.ADMIN, call.line)
    analysis.report.add_effect(EffectKind.EXECUTE, call.name)
    if call.stdin.source is DataSource.TEXT:
        analysis.visit_script(call.stdin.text)
    elif call.stdin.source is not DataSource.NOTHING:
        analysis.report.add_violation(call.stdin.violation)


RULES: dict[str, Rule] = {
    **dict.fromkeys(("env", "genv"), _env),
    **dict.fromkeys(("sudo", "doas"), _sudo),
    **dict.fromkeys(("xargs", "gxargs"), _xargs),
    **dict.fromkeys(("su", "runuser", "sg", "script"), _code),
    "flock": _flock,
    "setarch": _setarch,
    "parallel": _parallel,
    **dict.fromkeys(("busybox", "toybox"), _busybox),
    **dict.fromkeys(("at", "batch", "atq"), _at),
}
WRAPPERS = names_in("sudo env genv nohup time nice command builtin exec timeout gtimeout stdbuf doas ionice setsid")
"""Wrappers whose output is that of the inner command."""
