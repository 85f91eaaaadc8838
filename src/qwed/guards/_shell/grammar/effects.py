"""Effects of a command line by the grammar of its program."""

import re

from qwed.guards._shell.command_model import CommandCall, DataSource, ShellAnalysis, Violation, Word
from qwed.guards._shell.grammar.context import RoleContext
from qwed.guards._shell.grammar.loader import program
from qwed.guards._shell.grammar.model import REST_ROLES, Command
from qwed.guards._shell.grammar.parser import Argument, ParsedCommand, parse
from qwed.guards._shell.grammar.roles import ROLES
from qwed.model import EffectKind

_LINE_EFFECTS = {
    **{kind: EffectKind[kind.upper()] for kind in ("network", "communicate", "spend", "execute", "admin", "secret")},
    "change": EffectKind.WRITE,
    "remove": EffectKind.DELETE,
}
_STDIN_EFFECTS = {"stdin-escape": Violation.ESCAPE, "stdin-schedule": Violation.PERSISTENCE, "stdin-script": None}
"""Violations if the standard input holds commands for the program; None for that of the origin of the text."""
_OPTION = re.compile(r"--?[A-Za-z].*", re.DOTALL)
_DASHED_ROLES = REST_ROLES | {"display-arguments"}
"""Roles of values that are commands or arguments of another program."""
_FILE_EFFECTS = {"write": EffectKind.WRITE, "delete": EffectKind.DELETE}


def analyze_by_grammar(analysis: ShellAnalysis, call: CommandCall) -> bool:
    """Report the effects of a command if its program has a grammar; return False if it has none."""
    grammar = program(call.name)
    if grammar is None:
        return False
    analyze_program(analysis, call, grammar)
    return True


def analyze_program(analysis: ShellAnalysis, call: CommandCall, grammar: Command) -> ParsedCommand:
    """Report the effects of a command and return the parsed arguments."""
    parsed = parse(grammar, call.arguments)
    analysis.report.facts.describe(call.name, parsed)
    for reason in parsed.problems:
        analysis.report.add_unresolved(reason)
    if parsed.is_about:
        return parsed
    report_parsed(RoleContext(analysis, call, parsed))
    return parsed


def report_parsed(context: RoleContext) -> None:
    """Report the effects of the values, the options and the operands, and then those of the command."""
    parsed = context.parsed
    for value in parsed.values:
        _require_value(context, value)
        ROLES[value.role](context, value)
        if value.role in ("directory", "target"):
            context.directory = value.word
    for argument in parsed.arguments:
        ROLES[argument.role](context, argument)
    effects = [effect for option in parsed.options for effect in option.effects]
    for effect in dict.fromkeys([*parsed.outcome.effects, *effects]):
        _report_effect(context, effect)


def _require_value(context: RoleContext, value: Argument) -> None:
    """Report a value that looks like an option: a version of the program that takes no value there obeys it."""
    is_pattern = any(option.kind == "give" for option in context.parsed.options if option.name == value.option)
    is_word = value.role not in _DASHED_ROLES and value.word in context.call.arguments
    if is_word and not is_pattern and _OPTION.fullmatch(value.word.text):
        context.unresolved(f"`{value.word.text[:64]}` after `{value.option}` may be an option")


def _report_effect(context: RoleContext, effect: str) -> None:
    if effect in _FILE_EFFECTS:
        context.add_file(_FILE_EFFECTS[effect], Word("."))
    elif effect in _LINE_EFFECTS:
        address = context.parsed.command.address if effect == "network" else ""
        context.add(_LINE_EFFECTS[effect], address)
    elif effect == "stdin-bang":
        _report_bang(context)
    elif effect in _STDIN_EFFECTS:
        stdin = context.call.stdin
        if stdin.source is not DataSource.NOTHING:
            context.analysis.report.add_violation(_STDIN_EFFECTS[effect] or stdin.violation)
    elif effect == "escape":
        context.escape(context.call.line)
    elif effect == "unresolved":
        context.unresolved(f"the effect of `{context.parsed.name}` is not known")


def _report_bang(context: RoleContext) -> None:
    """Report input in which `!` would run a program."""
    stdin = context.call.stdin
    harmless = stdin.source in (DataSource.NOTHING, DataSource.NUMBER)
    if "!" in stdin.text or not (harmless or stdin.source is DataSource.TEXT):
        context.analysis.report.add_violation(Violation.ESCAPE)
