"""Ruling 4.4 for tools that nobody described: who judges a call is read off its names and values."""

from qwed.kernel.answer import Answer, denied
from qwed.kernel.judging.told import Told, ToolName, has_stray_statement, read_tool_name, texts_told
from qwed.kernel.request import Action
from qwed.kernel.tools import SHELL, TOOL, Subject, Tool
from qwed.words import RISK_OF, EffectKind, ErrorCode
from qwed.words.tool_name import bare

_UNTOLD = Told(TOOL, (), "", "")
"""There is something to run, and nobody can tell what."""
_RUN_TEXT = frozenset({"execute_sql", "database_query", "execute_code", "shell_command"})
_SHELL_WORDS = frozenset({"shell", "bash", "zsh", "powershell", "terminal", "command", "commands", "cmd", "script"})


def custom_subject(name: str, row: Tool, action: Action) -> Subject | Answer:
    """Who judges this call of a tool that nobody described."""
    tool = read_tool_name(name)
    found = texts_told(action, tool)
    if len(found) > 1:
        return _refused("the call gives more than one text that would be run: give one")
    told = found[0] if found else None
    if has_stray_statement(action, tool, told):
        if told is not None:
            return _refused("give the one text that is run, and no statement beside it")
        told = _UNTOLD
    if told is None and bare(name) in _RUN_TEXT:
        told = _UNTOLD
    judge = TOOL if told is None else told.judge
    return Subject(name, row, judge, row.risk, _effect(row, tool, told), is_tool=True, custom=True, told=told)


def _effect(row: Tool, tool: ToolName, told: Told | None) -> EffectKind | None:
    """The effect that the name tells, where what is run does not tell it better."""
    effect = row.effect
    if told is None:
        return effect
    if effect is EffectKind.EXECUTE and row.risk < RISK_OF[effect] and _says_what_it_runs(tool, told):
        return None
    if not told.runs or tool.reads:
        return effect
    return effect if effect is not None and RISK_OF[effect] >= RISK_OF[EffectKind.EXECUTE] else EffectKind.EXECUTE


def _says_what_it_runs(tool: ToolName, told: Told) -> bool:
    """`execute_query` and `run_shell` do what the query and the command do; `execute_trade` does more."""
    if told.judge == "sql":
        return tool.database
    return told.judge == SHELL and bool(_SHELL_WORDS & tool.words)


def _refused(message: str) -> Answer:
    return denied(ErrorCode.VERIFICATION_FAILED, message, check="one_reading")
