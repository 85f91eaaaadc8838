"""Redirections of a command: the files they open, and the input that they give it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from qwed.guards._shell import pipe_flow
from qwed.guards._shell.command_model import UNKNOWN_DATA, DataSource, PipeData, Word
from qwed.guards._shell.expansion import text_of
from qwed.guards._shell.heredoc import Heredoc, HeredocError, quote_body
from qwed.guards._shell.parse import heredoc_number, parse
from qwed.guards._shell.parser_fixups import names_directory
from qwed.guards._shell.scope import Scope
from qwed.guards._shell.syntax import INNER_QUOTE
from qwed.guards._shell.variables import VariableHistory
from qwed.model import EffectKind

if TYPE_CHECKING:
    from tree_sitter import Node

REDIRECTIONS = frozenset({"file_redirect", "herestring_redirect"})
_CLOSING = frozenset({">&-", "<&-"})
_OPERATORS = frozenset({"<", ">", ">>", ">|", "&>", "&>>", ">&", "<&"}) | _CLOSING


class Redirections(Scope):
    """Analysis of redirections, for the visitor of a script."""

    def __init__(self, history: VariableHistory) -> None:
        super().__init__(history)
        self.heredocs: dict[int, Heredoc] = {}
        self._is_joined = False

    @contextmanager
    def after_cd(self, is_joined: bool) -> Iterator[None]:
        """Visit commands, of which those after a `cd` are known to run in its directory if all are joined by `&&`."""
        before, self._is_joined = (self.entered, self._is_joined), is_joined
        try:
            yield
        finally:
            self.entered, self._is_joined = before

    @contextmanager
    def loop(self) -> Iterator[None]:
        """Visit the body of a loop once; if it changes the directory, other rounds start in another one."""
        before = self.directory
        yield
        if self.directory != before:
            self.report.facts.note_unlisted()

    def enter_after(self, node: "Node") -> None:
        """Note that the commands after this one run in the directory that it enters."""
        self.entered |= self._is_joined and names_directory(node)

    def expand(self, node: "Node") -> list[Word]:
        """Return the words that a node expands to."""
        raise NotImplementedError

    def argument_words(self, node: "Node") -> list[Word]:
        """Return the words of one argument of a command."""
        raise NotImplementedError

    def arguments_after(self, redirection: "Node") -> list["Node"]:
        """Return the words that the tree takes for further files of a redirection: they are arguments."""
        words = [child for child in redirection.named_children if child.type != "file_descriptor"]
        closes = any(child.type in _CLOSING for child in redirection.children)
        return words if closes else words[1:]

    def words_after(self, redirection: "Node") -> list[Word]:
        """Return the arguments that the tree takes for further files of a redirection."""
        return [word for child in self.arguments_after(redirection) for word in self.argument_words(child)]

    def redirection(self, node: "Node") -> PipeData | None:
        """Analyse one redirection and return the input it provides; None for an output."""
        if node.type == "herestring_redirect":
            words = [word for child in node.named_children for word in self.expand(child)]
            return pipe_flow.text_data(words)
        operator = next((child.type for child in node.children if not child.is_named), "")
        if operator not in _OPERATORS:
            self.report.add_unresolved(f"the redirection `{operator[:8]}` is not understood")
        descriptor = node.child_by_field_name("descriptor")
        is_stdin = descriptor is None or text_of(descriptor) == "0"
        number = heredoc_number(node)
        if number is not None:
            data: PipeData | None = self._heredoc(self.heredocs.get(number))
        else:
            data = self._redirect_words(operator, node)
        return data if is_stdin else None

    def _redirect_words(self, operator: str, node: "Node") -> PipeData | None:
        files = [child for child in node.named_children if child.type != "file_descriptor"][:1]
        words = [word for child in files for word in self.expand(child)] if operator not in _CLOSING else []
        if operator not in _CLOSING and len(words) != 1:
            self.report.add_unresolved("a redirection must name one file")
        data = None
        for word in words:
            data = self._redirect(operator, word)
        return data

    def _redirect(self, operator: str, word: Word) -> PipeData | None:
        if operator in (">&", "<&") and (word.text.isdigit() or word.text.strip("0123456789") == "-"):
            return None
        if operator.startswith("<"):
            self.add_file_effect(EffectKind.READ, word)
            return pipe_flow.file_data(word)
        self.add_file_effect(EffectKind.WRITE, word)
        return None

    def _heredoc(self, document: Heredoc | None) -> PipeData:
        if document is None:
            self.report.add_unresolved("a here-document is not read as a shell reads it")
            return UNKNOWN_DATA
        if document.is_literal or not {*document.body} & {*"$`\\"}:
            return PipeData(DataSource.TEXT, document.body)
        return self._expanded_heredoc(document.body)

    def _expanded_heredoc(self, body: str) -> PipeData:
        """Visit a here-document with an unquoted end mark, which is expanded like text in double quotes."""
        try:
            script = parse(f": {quote_body(body)}")
        except HeredocError as problem:
            script = str(problem)
        if isinstance(script, str):
            self.report.add_unresolved(script)
            return UNKNOWN_DATA
        if script.problem:
            self.report.add_unresolved(script.problem)
        before, self.heredocs = self.heredocs, script.heredocs
        command = script.root.named_children[0]
        words = [word for child in command.named_children[1:] for word in self.expand(child)]
        self.heredocs = before
        if len(words) == 1 and words[0].is_exact:
            return PipeData(DataSource.TEXT, words[0].text.replace(INNER_QUOTE, '"'))
        return UNKNOWN_DATA
