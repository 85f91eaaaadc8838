"""Effects of awk and sed scripts beyond printing."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


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


_AWK_PIECE = re.compile(r'"(?:[^"\\\n]|\\.)*"|#[^\n]*|\|\||\|&?|>>?=?|[A-Za-z_]\w*|\d[\w.]*|[ \t\r]+|.', re.DOTALL)
_AWK_REGEX = re.compile(r"/(?:[^/\\\n\[]|\\.|\[\^?\]?(?:[^\]\\\n]|\\.){0,256}+\]){0,1024}+/")
_BEFORE_REGEX = frozenset(["", "~", "(", ",", ";", "{", "}", "&", "|", "||", "!", "\n", "=", "?", ":"])
_AWK_RUNS = frozenset({"system", "popen", "|", "|&"})
_FILTER = re.compile(r'"(?:sort|uniq|head|tail|wc|tac|rev|nl)(?: +-[a-np-z0-9,]+)*"')
_AWK_ENVIRONMENT = frozenset({"ENVIRON", "PROCINFO"})
_AWK_STEERS = frozenset({"@", "ARGV", "ARGC"})
"""Names that load other code or change the list of input files."""
_AWK_ENDS = frozenset({";", "{", "}", "\n"})


def awk_effects(script: str) -> ScriptEffects:
    """Return the effects of an awk program; `system`, pipes and redirections are distinguished from comparisons and
    patterns."""
    effects = ScriptEffects()
    reader = _AwkReader(effects)
    for piece in _awk_pieces(script):
        reader.take(piece)
    return effects


def _awk_pieces(script: str) -> Iterator[str]:
    """Yield the tokens of the program without blanks and comments; a regular expression becomes one `/`."""
    before, position = "", 0
    while position < len(script):
        regex = _AWK_REGEX.match(script, position) if script[position] == "/" and before in _BEFORE_REGEX else None
        match = regex or _AWK_PIECE.match(script, position)
        if match is None:
            return
        position = match.end()
        if not match[0].startswith(("#", " ", "\t", "\r")):
            before = "/" if regex else match[0]
            yield before


class _AwkReader:
    def __init__(self, effects: ScriptEffects) -> None:
        self.effects = effects
        self._printing = False
        self._depth = 0
        self._reading = False
        self._piping = False
        self._target: list[str] | None = None

    def take(self, piece: str) -> None:
        if self._target is not None:
            self._target.append(piece.strip('"') or "$file")
            self.effects.unclear |= not piece.startswith('"')
            self._target = None
        self._track_pipe(piece)
        self.effects.secret |= piece in _AWK_ENVIRONMENT
        self.effects.unclear |= piece in _AWK_STEERS
        self._track_statement(piece)

    def _track_pipe(self, piece: str) -> None:
        """Track pipes; a pipe into a filter that only reads its input counts as printing."""
        if self._piping and not _FILTER.fullmatch(piece):
            self.effects.runs = True
        self._piping = piece == "|" and self._printing
        self.effects.runs |= piece in _AWK_RUNS and not self._piping

    def _track_statement(self, piece: str) -> None:
        """Track statements: `>` outside the parentheses of a `print` names a file, elsewhere it compares."""
        if piece in ("print", "printf"):
            self._printing, self._depth = True, 0
        elif piece in _AWK_ENDS:
            self._printing = self._reading = False
        elif piece == "getline":
            self._reading = True
        elif piece in ("(", "["):
            self._depth += 1
        elif piece in (")", "]"):
            self._depth -= 1
        elif piece in (">", ">>") and self._printing and self._depth <= 0:
            self._target = self.effects.writes
        elif piece == "<" and self._reading:
            self._target, self._reading = self.effects.reads, False


_SED_ADDRESS = re.compile(r"(?:[\s;{},+~!]|\d|\$|#[^\n]*|/(?:[^/\\\n]|\\.)*/[IM]*|\\(.)(?:(?!\1)[^\\\n]|\\.)*\1[IM]*)+")
_SED_SIMPLE = frozenset("pPdDqQnNgGhHxl=zF")


def sed_effects(script: str) -> ScriptEffects:
    """Return the effects of a sed script; all commands but `e`, `w`, `r` and their variants only change the output."""
    effects = ScriptEffects()
    position = _skip_address(script, 0)
    while 0 <= position < len(script):
        read = _SED_COMMANDS.get(script[position])
        position = read(script, position, effects) if read else -1
        position = _skip_address(script, position) if position >= 0 else position
    effects.unclear |= position < 0
    return effects


def _skip_address(script: str, position: int) -> int:
    match = _SED_ADDRESS.match(script, position)
    return match.end() if match else position


def _skip_substitution(script: str, position: int, effects: ScriptEffects) -> int:
    """Read `s/a/b/flags` or `y/a/b/`; return -1 if it is not complete."""
    start, end = position, _second_mark(script, position + 1)
    if end < 0:
        return -1
    stop = re.compile(r"[;}\n]|\Z").search(script, end)
    flags = script[end + 1 : stop.start() if stop else None]
    if script[start] == "s" and "w" in flags:
        return _file_command(script, end + 1 + flags.index("w"), effects)
    effects.runs |= script[start] == "s" and "e" in flags
    return stop.start() if stop else len(script)


def _second_mark(script: str, position: int) -> int:
    """Return the position of the last delimiter of `s/a/b/`; inside brackets the delimiter is literal."""
    if position >= len(script) or script[position] in "\\\n":
        return -1
    mark = re.escape(script[position])
    plain = re.compile(rf"(?:\\.|(?!{mark}).)*+{mark}", re.DOTALL)
    bracketed = re.compile(rf"(?>\\.|\[\^?\]?[^\]\n]{{0,256}}\]|(?!{mark}).)*+{mark}", re.DOTALL)
    first = bracketed.match(script, position + 1)
    second = plain.match(script, first.end()) if first else None
    return second.end() - 1 if second else -1


def _file_command(script: str, position: int, effects: ScriptEffects) -> int:
    """Read `w file` or `r file`, up to the end of the line."""
    end = _line_end(script, position)
    (effects.writes if script[position] in "wW" else effects.reads).append(script[position + 1 : end].strip())
    return end


def _execute(script: str, position: int, effects: ScriptEffects) -> int:
    effects.runs = True
    return _line_end(script, position)


def _skip_text(script: str, position: int, _effects: ScriptEffects) -> int:
    """Skip the text of `a`, `i`, `c` and labels, with continued lines."""
    return _line_end(script, position)


def _line_end(script: str, position: int) -> int:
    end = script.find("\n", position)
    while end > 0 and script[end - 1] == "\\":
        end = script.find("\n", end + 1)
    return len(script) if end < 0 else end


def _skip_jump(script: str, position: int, _effects: ScriptEffects) -> int:
    match = re.compile(r"[^;}\n]*").match(script, position)
    return match.end() if match else len(script)


_SED_COMMANDS: dict[str, Callable[[str, int, ScriptEffects], int]] = {
    **dict.fromkeys("sy", _skip_substitution),
    **dict.fromkeys("wWrR", _file_command),
    "e": _execute,
    **dict.fromkeys("aic:", _skip_text),
    **dict.fromkeys("btTL", _skip_jump),
    **dict.fromkeys(_SED_SIMPLE, lambda _script, position, _effects: position + 1),
}
