"""Resolves calls of unregistered tools: the analyzer is chosen by names and values (ruling 4.4)."""

from qwed.kernel.analysis.executable_text import (
    ExecutableText,
    ToolName,
    executable_texts_of,
    has_unanalyzed_statement,
    read_tool_name,
)
from qwed.kernel.analysis.parameter_verbs import parameter_verbs
from qwed.kernel.answer import Answer, denied
from qwed.kernel.request import Action
from qwed.kernel.tool_verbs import DISPATCH, UNKNOWN, effect_of, meaning_of, meaning_with, worst_of
from qwed.kernel.tools import SHELL, TOOL, ResolvedAction, Tool
from qwed.model import RISK_OF, EffectKind, ErrorCode, Risk
from qwed.model.tool_name import base_tool_name

_UNKNOWN_TEXT = ExecutableText(TOOL, (), "", "")
"""Stands for executable text that cannot be determined."""
_EXECUTING_TOOLS = frozenset({"execute_sql", "database_query", "execute_code", "shell_command"})
_SHELL_WORDS = frozenset({"shell", "bash", "zsh", "powershell", "terminal", "command", "commands", "cmd", "script"})


def resolve_unregistered_tool(name: str, entry: Tool, action: Action) -> ResolvedAction | Answer:
    """Return the action with the analyzer for a call of an unregistered tool, or a refusal."""
    tool = read_tool_name(name)
    texts = executable_texts_of(action, tool)
    if len(texts) > 1:
        return _refused("the call has more than one text that would be executed: send one")
    executable_text = texts[0] if texts else None
    if has_unanalyzed_statement(action, tool, executable_text):
        if executable_text is not None:
            return _refused("send only the text to execute, without another statement")
        executable_text = _UNKNOWN_TEXT
    if executable_text is None and base_tool_name(name) in _EXECUTING_TOOLS:
        executable_text = _UNKNOWN_TEXT
    analyzer = TOOL if executable_text is None else executable_text.analyzer
    meaning = meaning_of(name)
    effect = _effect(entry, tool, executable_text)
    if meaning == DISPATCH:
        meaning = _stated_meaning(name, action)
        effect = effect if executable_text is not None else effect_of(meaning)
    return ResolvedAction(
        name,
        entry,
        analyzer,
        _base_risk(entry, meaning, tool, executable_text),
        effect,
        is_tool=True,
        custom=True,
        executable_text=executable_text,
    )


def _stated_meaning(name: str, action: Action) -> str:
    """Return what a tool such as `manage_user` does, by the verb that its parameters state."""
    verbs = parameter_verbs(name, action)
    return worst_of(meaning_with(name, verb) for verb in verbs) if verbs else UNKNOWN


def _base_risk(entry: Tool, meaning: str, tool: ToolName, executable_text: ExecutableText | None) -> Risk:
    """Return the risk by the name: high if it says nothing, unless the text says what the tool does."""
    if meaning != UNKNOWN or (executable_text is not None and _effect_is_of_text(tool, executable_text)):
        return min(entry.risk, Risk.MEDIUM)
    return max(entry.risk, Risk.HIGH)


def _effect(entry: Tool, tool: ToolName, executable_text: ExecutableText | None) -> EffectKind | None:
    """Return the effect that the name implies, unless the executed text says it more precisely."""
    effect = entry.effect
    if executable_text is None:
        return effect
    if effect is EffectKind.EXECUTE and entry.risk < RISK_OF[effect] and _effect_is_of_text(tool, executable_text):
        return None
    if not executable_text.is_code or tool.reads:
        return effect
    return effect if effect is not None and RISK_OF[effect] >= RISK_OF[EffectKind.EXECUTE] else EffectKind.EXECUTE


def _effect_is_of_text(tool: ToolName, executable_text: ExecutableText) -> bool:
    """Return True if the tool only does what its text does, as `execute_query` and `run_shell`; `execute_trade` does
    more."""
    if executable_text.analyzer == "sql":
        return tool.database
    return executable_text.analyzer == SHELL and bool(_SHELL_WORDS & tool.words)


def _refused(message: str) -> Answer:
    return denied(ErrorCode.VERIFICATION_FAILED, message, check="one_reading")
