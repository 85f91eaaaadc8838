"""The small languages other programs take as an argument: whether an awk or sed script only prints."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class Deeds:
    """What a small script does beyond printing."""

    runs: bool = False
    """Starts programs."""
    writes: list[str] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    secret: bool = False
    """Looks at the environment."""
    unclear: bool = False


_AWK_PIECE = re.compile(r'"(?:[^"\\\n]|\\.)*"|#[^\n]*|\|\||\|&?|>>?=?|[A-Za-z_]\w*|\d[\w.]*|[ \t\r]+|.', re.DOTALL)
_AWK_REGEX = re.compile(r"/(?:[^/\\\n\[]|\\.|\[\^?\]?(?:[^\]\\\n]|\\.){0,256}+\]){0,1024}+/")
_BEFORE_REGEX = frozenset(["", "~", "(", ",", ";", "{", "}", "&", "|", "||", "!", "\n", "=", "?", ":"])
_AWK_RUNS = frozenset({"system", "popen", "|", "|&"})
_FILTER = re.compile(r'"(?:sort|uniq|head|tail|wc|tac|rev|nl)(?: +-[a-np-z0-9,]+)*"')
_AWK_ENVIRONMENT = frozenset({"ENVIRON", "PROCINFO"})
_AWK_STEERS = frozenset({"@", "ARGV", "ARGC"})
"""Load something else, or name the files that are read next."""
_AWK_ENDS = frozenset({";", "{", "}", "\n"})


def awk(script: str) -> Deeds:
    """What an awk program does: `system`, pipes and redirections are told from comparisons and patterns."""
    deeds = Deeds()
    reader = _AwkReader(deeds)
    for piece in _awk_pieces(script):
        reader.take(piece)
    return deeds


def _awk_pieces(script: str) -> Iterator[str]:
    """The pieces of the program without blanks and comments; a regular expression is one `/`."""
    before, at = "", 0
    while at < len(script):
        regex = _AWK_REGEX.match(script, at) if script[at] == "/" and before in _BEFORE_REGEX else None
        match = regex or _AWK_PIECE.match(script, at)
        if match is None:
            return
        at = match.end()
        if not match[0].startswith(("#", " ", "\t", "\r")):
            before = "/" if regex else match[0]
            yield before


class _AwkReader:
    def __init__(self, deeds: Deeds) -> None:
        self.deeds = deeds
        self._printing = False
        self._depth = 0
        self._reading = False
        self._piping = False
        self._target: list[str] | None = None

    def take(self, piece: str) -> None:
        if self._target is not None:
            self._target.append(piece.strip('"') or "$file")
            self.deeds.unclear |= not piece.startswith('"')
            self._target = None
        self._started(piece)
        self.deeds.secret |= piece in _AWK_ENVIRONMENT
        self.deeds.unclear |= piece in _AWK_STEERS
        self._follow(piece)

    def _started(self, piece: str) -> None:
        """A pipe into a filter that only reads its input is part of printing."""
        if self._piping and not _FILTER.fullmatch(piece):
            self.deeds.runs = True
        self._piping = piece == "|" and self._printing
        self.deeds.runs |= piece in _AWK_RUNS and not self._piping

    def _follow(self, piece: str) -> None:
        """Outside parentheses of a `print`, `>` names a file; anywhere else it compares."""
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
            self._target = self.deeds.writes
        elif piece == "<" and self._reading:
            self._target, self._reading = self.deeds.reads, False


_SED_ADDRESS = re.compile(r"(?:[\s;{},+~!]|\d|\$|#[^\n]*|/(?:[^/\\\n]|\\.)*/[IM]*|\\(.)(?:(?!\1)[^\\\n]|\\.)*\1[IM]*)+")
_SED_SIMPLE = frozenset("pPdDqQnNgGhHxl=zF")


def sed(script: str) -> Deeds:
    """What a sed script does: everything but `e`, `w`, `r` and their kin only changes what is printed."""
    deeds = Deeds()
    at = _past_address(script, 0)
    while 0 <= at < len(script):
        read = _SED_COMMANDS.get(script[at])
        at = read(script, at, deeds) if read else -1
        at = _past_address(script, at) if at >= 0 else at
    deeds.unclear |= at < 0
    return deeds


def _past_address(script: str, at: int) -> int:
    match = _SED_ADDRESS.match(script, at)
    return match.end() if match else at


def _replacing(script: str, at: int, deeds: Deeds) -> int:
    """`s/a/b/flags` and `y/a/b/`; -1 where it is not complete."""
    start, end = at, _second_mark(script, at + 1)
    if end < 0:
        return -1
    stop = re.compile(r"[;}\n]|\Z").search(script, end)
    flags = script[end + 1 : stop.start() if stop else None]
    if script[start] == "s" and "w" in flags:
        return _file(script, end + 1 + flags.index("w"), deeds)
    deeds.runs |= script[start] == "s" and "e" in flags
    return stop.start() if stop else len(script)


def _second_mark(script: str, at: int) -> int:
    """Where the second half of `s/a/b/` ends; in brackets the mark stands for itself."""
    if at >= len(script) or script[at] in "\\\n":
        return -1
    mark = re.escape(script[at])
    plain = re.compile(rf"(?:\\.|(?!{mark}).)*+{mark}", re.DOTALL)
    bracketed = re.compile(rf"(?>\\.|\[\^?\]?[^\]\n]{{0,256}}\]|(?!{mark}).)*+{mark}", re.DOTALL)
    first = bracketed.match(script, at + 1)
    second = plain.match(script, first.end()) if first else None
    return second.end() - 1 if second else -1


def _file(script: str, at: int, deeds: Deeds) -> int:
    """`w file` and `r file`, to the end of the line."""
    end = _line_end(script, at)
    (deeds.writes if script[at] in "wW" else deeds.reads).append(script[at + 1 : end].strip())
    return end


def _running(script: str, at: int, deeds: Deeds) -> int:
    deeds.runs = True
    return _line_end(script, at)


def _text(script: str, at: int, _deeds: Deeds) -> int:
    """`a`, `i`, `c` and labels: text to the end of the line, and on where that ends in a backslash."""
    return _line_end(script, at)


def _line_end(script: str, at: int) -> int:
    end = script.find("\n", at)
    while end > 0 and script[end - 1] == "\\":
        end = script.find("\n", end + 1)
    return len(script) if end < 0 else end


def _jump(script: str, at: int, _deeds: Deeds) -> int:
    match = re.compile(r"[^;}\n]*").match(script, at)
    return match.end() if match else len(script)


_SED_COMMANDS: dict[str, Callable[[str, int, Deeds], int]] = {
    **dict.fromkeys("sy", _replacing),
    **dict.fromkeys("wWrR", _file),
    "e": _running,
    **dict.fromkeys("aic:", _text),
    **dict.fromkeys("btTL", _jump),
    **dict.fromkeys(_SED_SIMPLE, lambda _script, at, _deeds: at + 1),
}
