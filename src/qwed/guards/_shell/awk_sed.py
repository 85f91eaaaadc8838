"""Rules for awk and sed: a stated part of their languages is understood, and everything else is unresolved."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from qwed.guards._shell.command_model import CommandCall, Rule, ShellAnalysis, Violation, Word, names_in
from qwed.guards._shell.grammar.effects import analyze_program
from qwed.guards._shell.grammar.loader import known_program
from qwed.model import EffectKind


@dataclass(slots=True)
class ScriptEffects:
    """Effects of an awk or sed script beyond printing."""

    runs: bool = False
    """The script starts programs."""
    writes: list[str] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    secret: bool = False
    """The script reads the environment."""
    unclear: bool = False


def has_open_bracket(regex: str) -> bool:
    """Return True if a bracket expression is not closed: programs differ on where such a regular expression ends."""
    return _CLOSED_BRACKETS.fullmatch(regex) is None


_CLOSED_BRACKETS = re.compile(r"(?:\\.|\[\^?\]?(?:\[:\w+:\]|[^\]\n])*+\]|[^\[\\])*+", re.DOTALL)

_TOKEN = re.compile(
    r'(?P<string>"(?:[^"\\\n]|\\.)*+")|(?P<blank>[ \t\r]+|\\\n|#[^\n]*)|(?P<name>[A-Za-z_]\w*)'
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|0[xX][0-9a-fA-F]+)"
    r"|(?P<operator>\|\||\|&|&&|\+\+|--|>>|[-+*/%^!<>=]=|\*\*=?|!~|[-+*/%^!<>=~?:$,;{}()\[\]|\n])"
)
_REGEX = re.compile(r"/((?:[^/\\\n]|\\.)*+)/")
_MAYBE_VALUES = frozenset({"getline", "length", "$"})
"""Tokens after which a slash divides in one reading, and begins a regular expression in another."""
_KEYWORDS = names_in(
    "BEGIN END BEGINFILE ENDFILE if else while for do break continue next nextfile exit return delete in print printf"
    " getline function func switch case default"
)
_FUNCTIONS = names_in(
    """
    length substr index split sub gsub match sprintf sin cos atan2 exp log sqrt int rand srand tolower toupper gensub
    asort asorti strftime systime mktime strtonum and or xor lshift rshift compl patsplit typeof isarray fflush close
    """
)
_AWK_ENVIRONMENT = frozenset({"ENVIRON", "PROCINFO"})
_AWK_STEERS = frozenset({"ARGV", "ARGC", "SYMTAB", "FUNCTAB"})
"""Names that change the list of input files or reach variables by name."""
_FILTER = re.compile(r'"(?:sort|uniq|head|tail|wc|tac|rev|nl|cat)(?: +-[a-np-z0-9,]+)*"')
_ENDS = frozenset({";", "{", "}", "\n", ""})
_CONTINUES = frozenset({",", "&&", "||", "do", "else"})
"""Tokens after which a statement goes on in the next line."""
_FILE = re.compile(r'"([^"\\]*)"')


def awk_effects(script: str) -> ScriptEffects:
    """Return the effects of an awk program."""
    effects = ScriptEffects()
    tokens = list(_awk_tokens(script, effects))
    reader = _AwkReader(effects, tokens)
    for index in range(len(tokens)):
        reader.take(index)
    return effects


def _awk_tokens(script: str, effects: ScriptEffects) -> Iterator[str]:
    """Yield the tokens without blanks and comments; a regular expression becomes `/`."""
    before, position = "", 0
    while position < len(script):
        regex = _regex_at(script, position, before, effects)
        match = regex or _TOKEN.match(script, position)
        if match is None:
            effects.unclear = True
            return
        position = match.end()
        if regex is None and match.lastgroup == "blank":
            continue
        before = "/" if regex else match[0]
        yield before


def _regex_at(script: str, position: int, before: str, effects: ScriptEffects) -> re.Match[str] | None:
    """Return the regular expression that begins here; after a value, a slash divides."""
    if script[position] != "/":
        return None
    if before in _MAYBE_VALUES:
        effects.unclear = True
    is_word = before[-1:].isalnum() or before[-1:] in ('"', "_", "]", "$", "/")
    if is_word and before not in _KEYWORDS:
        return None
    match = _REGEX.match(script, position)
    if before in (")", "++", "--"):
        # Only the grammar tells if this divides.
        effects.unclear |= match is not None
        return None
    effects.unclear |= match is None or has_open_bracket(match[1])
    return match


class _AwkReader:
    """Reader of the tokens of a program: calls, files, pipes and names with an effect."""

    def __init__(self, effects: ScriptEffects, tokens: list[str]) -> None:
        self.effects = effects
        self._tokens = tokens
        self._defined = {name for keyword, name in pairwise(tokens) if keyword in ("function", "func")}
        self._printing = self._reading = False
        self._depth = 0

    def take(self, index: int) -> None:
        """Read one token."""
        symbol, following = self._tokens[index], self._next(index)
        self.effects.secret |= symbol in _AWK_ENVIRONMENT
        self.effects.unclear |= symbol in _AWK_STEERS
        if following == "(" and symbol[0].isalpha():
            self._call(symbol)
        if symbol in ("print", "printf"):
            self._printing, self._depth = True, 0
        elif symbol in _ENDS and not self._continues(index):
            self._depth = 0
            self._printing = self._reading = False
        elif symbol == "getline":
            self._reading = True
        elif symbol in ("(", "["):
            self._depth += 1
        elif symbol in (")", "]"):
            self._depth -= 1
        elif symbol in ("|", "|&", ">", ">>", "<"):
            self._redirect(symbol, index)

    def _continues(self, index: int) -> bool:
        """Return True at the end of a line after which the statement goes on."""
        is_inside = self._depth > 0 or self._tokens[index - 1] in _CONTINUES
        return self._tokens[index] == "\n" and index > 0 and is_inside

    def _next(self, index: int) -> str:
        return self._tokens[index + 1] if index + 1 < len(self._tokens) else ""

    def _call(self, name: str) -> None:
        if name == "system":
            self.effects.runs = True
        elif name not in _FUNCTIONS | _KEYWORDS and name not in self._defined:
            # `name (x)` may also join a variable with a value.
            self.effects.unclear = True

    def _redirect(self, symbol: str, index: int) -> None:
        target, after = self._next(index), self._next(index + 1)
        if symbol in ("|", "|&"):
            printed = symbol == "|" and self._printing and self._depth <= 0
            filters = _FILTER.fullmatch(target) is not None and after in _ENDS
            self.effects.runs |= not (printed and filters)
        elif symbol in (">", ">>") and self._printing and self._depth <= 0:
            self._add_file(self.effects.writes, target, after)
        elif symbol == "<" and self._reading:
            self._reading = False
            self._add_file(self.effects.reads, target, after)

    def _add_file(self, files: list[str], target: str, after: str) -> None:
        """Add a file that a literal names; it must not go on with more text."""
        literal = _FILE.fullmatch(target)
        files.append(literal[1] if literal else "$file")
        self.effects.unclear |= literal is None or after not in _ENDS | {")", "&&", ">", "<", "=", "!=", "=="}
        self.effects.runs |= literal is not None and literal[1].startswith("/inet")


_SED_ADDRESS = re.compile(
    r"[\s;]*(?:(?:\d+(?:~\d+)?|\$|/(?P<first>(?:[^/\\\n]|\\.)*+)/[IM]*)"
    r"(?:[ \t]*,[ \t]*(?:[+~]?\d+|\$|/(?P<last>(?:[^/\\\n]|\\.)*+)/[IM]*))?)?[ \t]*!*[ \t]*"
)
_SED_END = re.compile(r"[ \t]*(?:[;\n]|(?=[}#])|\Z)")
_SED_LABEL = re.compile(r"[btT:][ \t]*[A-Za-z_0-9.-]*(?=[ \t]*(?:[;\n}]|\Z))")
_SED_FLAGS = re.compile(r"[gpiImM0-9]*")
_SED_NUMBER = re.compile(r"[qQlL][ \t]*\d*")
_SED_PLAIN = frozenset("=dDgGhHnNpPxzF")


def sed_effects(script: str) -> ScriptEffects:
    """Return the effects of a sed script; a command that is not understood makes it unclear."""
    effects = ScriptEffects()
    position = 0
    while position < len(script) and not effects.unclear:
        position = _skip_address(script, position, effects)
        if position < len(script):
            read = _SED_COMMANDS.get(script[position], _refuse_command)
            position = read(script, position, effects)
    return effects


def _skip_address(script: str, position: int, effects: ScriptEffects) -> int:
    match = _SED_ADDRESS.match(script, position)
    if match is None:
        return position
    effects.unclear |= any(has_open_bracket(regex) for regex in match.group("first", "last") if regex)
    return match.end()


def _refuse_command(script: str, _position: int, effects: ScriptEffects) -> int:
    effects.unclear = True
    return len(script)


def _end_command(script: str, position: int, effects: ScriptEffects) -> int:
    """Return the position after the end of a command; nothing else may follow it."""
    match = _SED_END.match(script, position)
    if match is None:
        return _refuse_command(script, position, effects)
    return match.end()


def _plain_command(script: str, position: int, effects: ScriptEffects) -> int:
    return _end_command(script, position + 1, effects)


def _pattern_command(pattern: re.Pattern[str]) -> Callable[[str, int, ScriptEffects], int]:
    def read(script: str, position: int, effects: ScriptEffects) -> int:
        match = pattern.match(script, position)
        return _end_command(script, match.end(), effects) if match else _refuse_command(script, position, effects)

    return read


def _substitute(script: str, position: int, effects: ScriptEffects) -> int:
    """Read `s/a/b/flags` or `y/a/b/`."""
    mark = script[position + 1 : position + 2]
    if not mark or mark.isalnum() or mark in "\\\n \t;{}[]":
        return _refuse_command(script, position, effects)
    part = rf"((?:[^\\\n{re.escape(mark)}]|\\[\s\S])*+){re.escape(mark)}"
    match = re.compile(part + part).match(script, position + 2)
    if match is None or has_open_bracket(match[1]):
        return _refuse_command(script, position, effects)
    if script[position] == "y":
        return _end_command(script, match.end(), effects)
    return _substitute_flags(script, match.end(), effects)


def _substitute_flags(script: str, position: int, effects: ScriptEffects) -> int:
    flags = _SED_FLAGS.match(script, position)
    end = flags.end() if flags else position
    following = script[end : end + 1]
    if following == "w":
        return _file_command(script, end, effects)
    if following == "e":
        effects.runs = effects.unclear = True
        return len(script)
    return _end_command(script, end, effects)


def _file_command(script: str, position: int, effects: ScriptEffects) -> int:
    """Read `w file` or `r file`, up to the end of the line."""
    end = _line_end(script, position)
    (effects.writes if script[position] in "wW" else effects.reads).append(script[position + 1 : end].strip())
    return end + 1


def _execute(script: str, _position: int, effects: ScriptEffects) -> int:
    effects.runs = True
    return len(script)


def _text_command(script: str, position: int, _effects: ScriptEffects) -> int:
    """Skip the text of `a`, `i` and `c`, with continued lines."""
    position += 1
    while True:
        end = _line_end(script, position)
        backslashes = len(script[position:end]) - len(script[position:end].rstrip("\\"))
        if backslashes % 2 == 0 or end >= len(script):
            return end + 1
        position = end + 1


def _comment(script: str, position: int, _effects: ScriptEffects) -> int:
    return _line_end(script, position) + 1


def _open_block(_script: str, position: int, _effects: ScriptEffects) -> int:
    return position + 1


def _line_end(script: str, position: int) -> int:
    end = script.find("\n", position)
    return len(script) if end < 0 else end


_SED_COMMANDS: dict[str, Callable[[str, int, ScriptEffects], int]] = {
    **dict.fromkeys("sy", _substitute),
    **dict.fromkeys("wWrR", _file_command),
    "e": _execute,
    **dict.fromkeys("aic", _text_command),
    **dict.fromkeys(":btT", _pattern_command(_SED_LABEL)),
    **dict.fromkeys("qQlL", _pattern_command(_SED_NUMBER)),
    **dict.fromkeys(_SED_PLAIN, _plain_command),
    "#": _comment,
    "{": _open_block,
    "}": _plain_command,
}


def _report_script(analysis: ShellAnalysis, words: list[Word], language: str) -> None:
    """Report the effects of a script, whose parts are joined as lines."""
    if not all(word.is_resolved for word in words):
        # Text inserted into a script cannot be distinguished from code.
        analysis.report.add_unresolved(f"a script of `{language}` is known only at run time")
    text = "\n".join(word.text for word in words)
    effects = awk_effects(text) if language == "awk" else sed_effects(text)
    if effects.runs:
        analysis.report.add_violation(Violation.ESCAPE)
        analysis.report.add_effect(EffectKind.EXECUTE, text)
    if effects.secret:
        analysis.report.add_effect(EffectKind.SECRET, "environment")
    if effects.unclear:
        analysis.report.add_unresolved(f"a script of `{language}` is not understood")
    for kind, names in ((EffectKind.WRITE, effects.writes), (EffectKind.READ, effects.reads)):
        for name in names:
            analysis.add_file_effect(kind, Word(name))


_VARIABLE = re.compile(r"[A-Za-z_]\w*=")


def _awk(analysis: ShellAnalysis, call: CommandCall) -> None:
    parsed = analyze_program(analysis, call, known_program(call.name))
    scripts = parsed.values_of("-e", "--source")
    from_file = any(option.effects for option in parsed.options)
    operands = parsed.operands
    if not scripts and not from_file:
        scripts, operands = operands[:1], operands[1:]
    _report_script(analysis, scripts, "awk")
    for word in operands:
        if not _VARIABLE.match(word.text):
            analysis.add_file_effect(EffectKind.READ, word)


def _sed(analysis: ShellAnalysis, call: CommandCall) -> None:
    parsed = analyze_program(analysis, call, known_program(call.name))
    scripts = parsed.values_of("-e", "--expression")
    from_file = any(option.effects for option in parsed.options)
    # BSD sed takes an empty suffix as a word of its own.
    operands = [word for word in parsed.operands if word.text]
    if not scripts and not from_file:
        scripts, operands = operands[:1], operands[1:]
    _report_script(analysis, scripts, "sed")
    if any("/" in suffix.text or not suffix.is_exact for suffix in parsed.values_of("-i", "--in-place")):
        analysis.report.add_unresolved("`sed` keeps the original in another directory")
    kind = EffectKind.WRITE if parsed.has("in-place") else EffectKind.READ
    for word in operands:
        analysis.add_file_effect(kind, word)


RULES: dict[str, Rule] = {
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk", "original-awk", "goawk"), _awk),
    **dict.fromkeys(("sed", "gsed"), _sed),
}
