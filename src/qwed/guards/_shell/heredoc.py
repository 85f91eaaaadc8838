"""Here-documents of a script: taken out of the text before it is parsed, because the grammar reads them differently.

Two readers have to agree: the scanner here puts a marked word in the place of each `<<END`, and the parser must find a
redirection from exactly this word.
"""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from qwed.guards._shell.syntax import HEREDOC_MARK, INNER_QUOTE

MAX_NESTING = 32
UNREADABLE = "a here-document is not read as a shell reads it"
_OPERATOR = re.compile(
    r"(?:(?<!\d)|(?<=[\s;|&()]\d))<<(-?)[ \t]*"
    r"(?:'([\w.!%+:-]+)'|\"([\w.!%+:-]+)\"|\\([\w.!%+:-]+)|([\w.!%+:-]+))(?=[\s;|&()<>]|\Z)"
)
_PLAIN = re.compile(r"(?:[^\\'\"`$#<()\n]|\\[^\n]|\\\n)++", re.DOTALL)
_SINGLE = re.compile(r"'[^']*+'")
_ANSI = re.compile(r"\$'(?:[^'\\]|\\.)*+'", re.DOTALL)
_COMMENT = re.compile(r"#[^\n]*+")
_QUOTED_PLAIN = re.compile(r"(?:[^\\\"`$]|\\.)++", re.DOTALL)
_SIMPLE_VARIABLE = re.compile(r"\$(?:[A-Za-z_]\w*+|[0-9@*#?$!_-]|\{[A-Za-z_]\w*+\})")


class HeredocError(ValueError):
    """The text has a here-document that cannot be taken out of it."""


class Heredoc(NamedTuple):
    """One here-document."""

    body: str
    is_literal: bool
    """True if the end mark is quoted, so that nothing in the body is expanded."""


class _Pending(NamedTuple):
    number: int
    end: str
    strips_tabs: bool
    is_literal: bool
    depth: int


@dataclass(slots=True)
class _Scanner:
    """Reader of the nesting of a script, up to what is needed to tell an operator from text."""

    text: str
    position: int = 0
    depth: int = 0
    output: list[str] = field(default_factory=list)
    documents: dict[int, Heredoc] = field(default_factory=dict)
    pending: list[_Pending] = field(default_factory=list)

    def scan_commands(self, closing: str) -> None:
        """Copy commands up to the closing parenthesis, or to the end."""
        self._enter()
        while self.position < len(self.text):
            if closing and self.text.startswith(closing, self.position):
                break
            self._take_command_part()
        else:
            if closing:
                raise HeredocError(UNREADABLE)
        if self.pending and self.pending[-1].depth == self.depth:
            raise HeredocError(UNREADABLE)
        self._copy(len(closing))
        self.depth -= 1

    def _enter(self) -> None:
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise HeredocError("the command is nested too deep")

    def _copy(self, length: int) -> None:
        self.output.append(self.text[self.position : self.position + length])
        self.position += length

    def _copy_match(self, pattern: re.Pattern[str]) -> bool:
        match = pattern.match(self.text, self.position)
        if match is None or not match[0]:
            return False
        self._refuse_lines(match[0])
        self._copy(len(match[0]))
        return True

    def _refuse_lines(self, piece: str) -> None:
        """Refuse a line break inside a word while a here-document has not begun."""
        if self.pending and "\n" in piece:
            raise HeredocError(UNREADABLE)

    def _take_command_part(self) -> None:
        text, position = self.text, self.position
        match text[position]:
            case "\n":
                self._copy(1)
                self._take_bodies()
            case "#" if position == 0 or text[position - 1] in " \t\n;&|()":
                self._copy_match(_COMMENT)
            case "<" if text.startswith("<<", position):
                self._take_operator()
            case "'":
                self._require(_SINGLE)
            case "(":
                self._copy(1)
                self.scan_commands(")")
            case _:
                if not self._copy_match(_PLAIN):
                    self._take_expansion()

    def _take_expansion(self) -> None:
        text, position = self.text, self.position
        if text[position] == '"':
            self._copy(1)
            self._scan_quoted('"')
        elif text.startswith("$'", position):
            self._require(_ANSI)
        else:
            self.take_substitution()

    def _require(self, pattern: re.Pattern[str]) -> None:
        if not self._copy_match(pattern):
            raise HeredocError("a quote is not closed")

    def take_substitution(self) -> None:
        """Copy `$( )`, `${ }`, a backquoted command or a single character."""
        text, position = self.text, self.position
        if text.startswith(("$((", "$["), position):
            self._take_arithmetic()
        elif text.startswith("$(", position):
            self._copy(2)
            self.scan_commands(")")
        elif text.startswith("${", position):
            self._copy(2)
            self._scan_quoted("}")
        elif text[position] == "`":
            self._take_backquoted()
        else:
            self._copy(1)

    def _take_arithmetic(self) -> None:
        """Copy arithmetic; `$((` may also begin a command in a subshell, which must not have a here-document."""
        start = self.position
        self._copy(2)
        if self.text[start + 1] == "(":
            self.scan_arithmetic()

    def scan_arithmetic(self) -> None:
        count = len(self.documents) + len(self.pending)
        self.scan_commands(")")
        if len(self.documents) + len(self.pending) != count:
            raise HeredocError(UNREADABLE)

    def _take_backquoted(self) -> None:
        match = re.compile(r"`(?:[^`\\]|\\.)*+`", re.DOTALL).match(self.text, self.position)
        if match is None:
            raise HeredocError("a backquote is not closed")
        if "<<" in match[0]:
            raise HeredocError(UNREADABLE)
        self._refuse_lines(match[0])
        self._copy(len(match[0]))

    def _scan_quoted(self, closing: str) -> None:
        """Copy text in double quotes or `${ }` up to its end."""
        self._enter()
        while not self.text.startswith(closing, self.position):
            if self.position >= len(self.text):
                raise HeredocError("a quote is not closed")
            self._take_quoted_part(closing)
        self._copy(1)
        self.depth -= 1

    def _take_quoted_part(self, closing: str) -> None:
        character = self.text[self.position]
        if character == '"' and closing == "}":
            self._copy(1)
            self._scan_quoted('"')
        elif closing == "}" and character not in "\\`$":
            self._refuse_lines(character)
            self._copy(1)
        elif not self._copy_match(_QUOTED_PLAIN):
            self.take_substitution()

    def _take_operator(self) -> None:
        if self.text.startswith("<<<", self.position):
            self._copy(3)
            return
        match = _OPERATOR.match(self.text, self.position)
        if match is None:
            raise HeredocError(UNREADABLE)
        quoted = next(filter(None, match.group(2, 3, 4)), "")
        index = len(self.documents) + len(self.pending)
        self.pending.append(_Pending(index, quoted or match[5], bool(match[1]), bool(quoted), self.depth))
        self.output.append(f"<{HEREDOC_MARK}{index}")
        self.position = match.end()

    def _take_bodies(self) -> None:
        if self.pending and self.pending[0].depth != self.depth:
            raise HeredocError(UNREADABLE)
        for document in self.pending:
            self.documents[document.number] = Heredoc(self._take_body(document), document.is_literal)
        self.pending.clear()

    def _take_body(self, document: _Pending) -> str:
        lines: list[str] = []
        while self.position < len(self.text):
            line = self._take_line(document)
            if line == document.end:
                return "".join(f"{line}\n" for line in lines)
            lines.append(line)
        raise HeredocError("a here-document has no end")

    def _take_line(self, document: _Pending) -> str:
        """Return the next line of a body; a line break after a backslash is removed where the body is expanded."""
        line = ""
        while True:
            end = self.text.find("\n", self.position)
            end = len(self.text) if end < 0 else end
            piece = self.text[self.position : end]
            self.position = min(end + 1, len(self.text))
            line += piece.lstrip("\t") if document.strips_tabs else piece
            backslashes = len(line) - len(line.rstrip("\\"))
            if document.is_literal or backslashes % 2 == 0 or self.position >= len(self.text):
                return line
            line = line[:-1]


def extract_heredocs(text: str) -> tuple[str, dict[int, Heredoc]]:
    """Return the text with a marked word in place of each here-document, and the here-documents."""
    if "<<" not in text.replace("<<<", ""):
        return text, {}
    scanner = _Scanner(text)
    scanner.scan_commands("")
    return "".join(scanner.output), scanner.documents


def quote_body(body: str) -> str:
    """Return the body of an expanded here-document as a word in double quotes; raises if it cannot be told what is
    quoted."""
    output: list[str] = []
    scanner = _Scanner(body, output=output)
    while scanner.position < len(body):
        _quote_part(scanner)
    return f'"{"".join(output)}"'


def _quote_part(scanner: _Scanner) -> None:
    text, position = scanner.text, scanner.position
    variable = _SIMPLE_VARIABLE.match(text, position)
    if variable:
        scanner.output.append(variable[0])
        scanner.position = variable.end()
    elif text[position] == "\\" and text[position + 1 : position + 2] not in ("$", "`", "\\"):
        scanner.output.append("\\\\")
        scanner.position += 1
    elif text[position] == "\\":
        scanner.output.append(text[position : position + 2])
        scanner.position += 2
    elif text[position] == '"':
        scanner.output.append(INNER_QUOTE)
        scanner.position += 1
    elif text[position] in "$`":
        scanner.take_substitution()
    else:
        match = re.compile(r"[^\\\"$`]++").match(text, position)
        scanner.position = match.end() if match else position + 1
        scanner.output.append(text[position : scanner.position])
