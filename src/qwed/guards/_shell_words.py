"""A command line cut into simple commands and words, as far as that can be done without running it."""

import re
from dataclasses import dataclass, field
from typing import NamedTuple


class Word(NamedTuple):
    """One word: as the program would see it where `clear`, as written in `raw`."""

    text: str
    raw: str
    clear: bool


@dataclass(slots=True)
class Segment:
    """A simple command, what joins it to the one before, and what feeds it."""

    joint: str = ""
    words: list[Word] = field(default_factory=list)
    redirections: list[str] = field(default_factory=list)


class Line(NamedTuple):
    """The simple commands of a line, and whether it runs a command to build part of itself."""

    segments: list[Segment]
    substitutes: bool


# The last two alternatives swallow a quote that never closes and any single odd character, so a cut is linear.
_PIECE = re.compile(
    r"(?P<blank>[ \t]+|\\\n)"
    r"|(?P<comment>(?<![^\s;|&()])#[^\n]*)"
    r"|(?P<plain>[\w./:@%+,=^-]+|(?<![^\s;|&()<>])~(?=[/\w\s]|$))"
    r"|'(?P<single>[^']*)'"
    r"|\"(?P<double>[^\"\\$`]*)\""
    r"|(?P<odd>\$\(\([\d\s+*/%-]*\)\))"
    r"|(?P<substitution>\$\(|`)"
    r"|(?P<active>\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<operator>[|&;\n()<>]+)"
    r"|(?P<unclosed>[\"'].*)"
    r"|(?P<other>\\.|.)",
    re.DOTALL,
)
_CLEAR = frozenset({"plain", "single", "double"})
_ONLY_PLAIN = re.compile(r"[\w./:@%+,=^ -]+")


def cut(command: str) -> Line:
    """The line in pieces; every character ends up in one of them."""
    if _ONLY_PLAIN.fullmatch(command):
        return Line([Segment(words=[Word(each, each, True) for each in command.split()])], substitutes=False)
    reader = _Reader()
    for match in _PIECE.finditer(command):
        reader.take(match.lastgroup or "other", match[0], match[match.lastgroup or 0])
    reader.end_word()
    return Line([each for each in reader.segments if not _is_idle(each)], reader.substitutes)


def _is_idle(segment: Segment) -> bool:
    """Whether it is only the semicolon or newline that ends a line; any other joint without a command is odd."""
    return not (segment.words or segment.redirections or segment.joint.strip(";\n"))


class _Reader:
    def __init__(self) -> None:
        self.segments = [Segment()]
        self.substitutes = False
        self._raw: list[str] = []
        self._text: list[str] = []
        self._clear = True
        self._redirecting = False

    def take(self, kind: str, raw: str, text: str) -> None:
        if kind == "operator":
            self._operator(raw)
        elif kind == "blank":
            self.end_word()
        else:
            self.substitutes |= kind == "substitution" or (kind == "active" and ("$(" in raw or "`" in raw))
            self._raw.append(raw)
            self._text.append(text if kind in _CLEAR else raw)
            self._clear &= kind in _CLEAR

    def end_word(self) -> None:
        if not self._raw:
            return
        text = "".join(self._text)
        if self._redirecting:
            self.segments[-1].redirections.append(text)
        else:
            self.segments[-1].words.append(Word(text, "".join(self._raw), self._clear))
        self._raw, self._text = [], []
        self._clear, self._redirecting = True, False

    def _operator(self, raw: str) -> None:
        self.end_word()
        if "<" not in raw and ">" not in raw:
            self._redirecting = False
            self.segments.append(Segment(joint=raw))
            return
        self.segments[-1].redirections.append(raw)
        self._redirecting = "(" not in raw
        if "(" in raw:
            self.segments.append(Segment(joint=raw))
