"""Visitor for the syntax tree of a shell script: analyses every command, however it is joined, wrapped or repeated."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from qwed.guards._shell import pipe_flow
from qwed.guards._shell.command_model import NO_DATA, UNKNOWN_DATA, DataSource, PipeData, Violation, Word
from qwed.guards._shell.commands import analyze_command
from qwed.guards._shell.env_variables import analyze_assignment
from qwed.guards._shell.expansion import expand_words, refuse_hidden_substitution, text_of
from qwed.guards._shell.parse import parse, single_assignments
from qwed.guards._shell.parser_fixups import flatten_list, has_adjacent, is_arithmetic, split_backquotes
from qwed.guards._shell.scope import Scope
from qwed.model import EffectKind

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_DEPTH, MAX_WRAPPED = 40, 6
_TOO_DEEP = "the command is nested too deep"


class ShellVisitor(Scope):
    """Analysis of one command line."""

    def __init__(self) -> None:
        super().__init__()
        self._functions: set[str] = set()
        self._movers: set[str] = set()
        """Functions that change the directory."""
        self._defining: list[str] = []
        self._depth = self._wrapped = 0

    def visit_script(self, text: str, stdin: PipeData = NO_DATA) -> PipeData:
        """Analyse text that a shell would run and return its output."""
        if not self.can_analyze_inner(text):
            return UNKNOWN_DATA
        root = parse(text)
        if isinstance(root, str):
            self.report.add_unresolved(root)
            return UNKNOWN_DATA
        before, self.single_assigned = self.single_assigned, single_assignments(text)
        output = self.visit(root, stdin)
        self.single_assigned = before
        return output

    def visit(self, node: "Node", stdin: PipeData = NO_DATA) -> PipeData:
        """Analyse every command inside a node and return its output."""
        if self._depth > MAX_DEPTH:
            self.report.add_unresolved(_TOO_DEEP)
            return UNKNOWN_DATA
        self._depth += 1
        try:
            return _VISITS.get(node.type, ShellVisitor._parts)(self, node, stdin)
        finally:
            self._depth -= 1

    def visit_command(self, words: list[Word], stdin: PipeData = NO_DATA) -> PipeData:
        """Analyse a command given by its words and return its output."""
        if self._wrapped > MAX_WRAPPED:
            self.report.add_unresolved(_TOO_DEEP)
            return UNKNOWN_DATA
        self._wrapped += 1
        try:
            if not words:
                return NO_DATA
            if words[0].text in self._functions and words[0].is_exact:
                return self._call(words[0].text)
            analyze_command(self, words, stdin)
            return pipe_flow.command_output(words, stdin)
        finally:
            self._wrapped -= 1

    def _call(self, name: str) -> PipeData:
        if name in self._defining:
            self.report.add_violation(Violation.FORK_BOMB)
        if name in self._movers:
            self.change_directory(Word("$PWD", is_exact=False))
        return UNKNOWN_DATA

    def substitution(self, node: "Node") -> PipeData:
        """Analyse the commands inside `$( )` and return their output."""
        with self._isolated():
            self.in_test = False
            inner = [child for child in node.named_children if child.type != "comment"]
            if len(inner) == 1 and inner[0].type == "file_redirect":
                self._redirection(inner[0])
                return UNKNOWN_DATA
            return pipe_flow.merge_outputs([self.visit(child) for child in inner])

    def process(self, node: "Node") -> PipeData:
        """Analyse the commands inside `<( )` or `>( )`."""
        stdin = UNKNOWN_DATA if text_of(node).startswith(">") else NO_DATA
        with self._isolated():
            return pipe_flow.merge_outputs([self.visit(child, stdin) for child in node.named_children])

    @contextmanager
    def _isolated(self) -> Iterator[None]:
        before = self.directory, self.previous_directories, self.in_test
        try:
            yield
        finally:
            self.directory, self.previous_directories, self.in_test = before

    def _parts(self, node: "Node", stdin: PipeData) -> PipeData:
        """Visit all children in order."""
        if not node.named_child_count:
            refuse_hidden_substitution(self, text_of(node))
            return NO_DATA
        return pipe_flow.merge_outputs([self.visit(child, stdin) for child in node.named_children])

    def _value(self, node: "Node", _fed: PipeData) -> PipeData:
        expand_words(self, node)
        return NO_DATA

    def _list(self, node: "Node", stdin: PipeData) -> PipeData:
        return pipe_flow.merge_outputs([self.visit(item, stdin) for item in flatten_list(node)])

    def _pipeline(self, node: "Node", stdin: PipeData, last_stdin: PipeData = NO_DATA) -> PipeData:
        stages = node.named_children
        for index, stage in enumerate(stages):
            own = last_stdin if index == len(stages) - 1 and last_stdin is not NO_DATA else stdin
            with self._isolated():
                stdin = self.visit(stage, own)
        if self._defining and any(self._defining[-1] == text_of(stage).split(" ")[0] for stage in stages):
            self.report.add_violation(Violation.FORK_BOMB)
        return stdin

    def _subshell(self, node: "Node", stdin: PipeData) -> PipeData:
        with self._isolated():
            return self._parts(node, stdin)

    def _command(self, node: "Node", stdin: PipeData) -> PipeData:
        words: list[Word] = []
        self._require_blanks(node)
        before = self.in_test
        for child in node.children:
            self.in_test = before or bool(words and words[0].text == "test")
            if child.type == "variable_assignment":
                self._assignment(child, stdin, for_command=True)
            elif child.type in _REDIRECTIONS:
                stdin = self._redirection(child) or stdin
            elif child.is_named:
                words += expand_words(self, child)
            else:
                # The grammar parses `==` and `=~` as operators even where they are words.
                words.append(Word(child.type))
        self.in_test = before
        return self.visit_command(words, stdin)

    def _redirected_statement(self, node: "Node", stdin: PipeData) -> PipeData:
        """Visit a redirected statement; the tree attaches the redirection to the whole of `a && b > c`, but it belongs
        to the last command."""
        redirections = [child for child in node.named_children if child.type in _REDIRECTIONS]
        others = [child for child in node.named_children if child.type not in _REDIRECTIONS]
        body = [item for child in others for item in flatten_list(child)]
        printed = [self.visit(item, stdin) for item in body[:-1]]
        own = NO_DATA
        for child in redirections:
            own = self._redirection(child) or own
        for item in body[-1:]:
            last_stdin = own if own is not NO_DATA else stdin
            pipeline = item.type == "pipeline"
            printed.append(self._pipeline(item, stdin, own) if pipeline else self.visit(item, last_stdin))
        output = pipe_flow.merge_outputs(printed)
        for child in redirections:
            output = self._after_heredoc(child, output) if child.type == "heredoc_redirect" else output
        return output

    def _redirection(self, node: "Node") -> PipeData | None:
        """Analyse one redirection and return the input it provides; None for an output."""
        if node.type == "herestring_redirect":
            words = [word for child in node.named_children for word in expand_words(self, child)]
            return pipe_flow.text_data(words)
        if node.type == "heredoc_redirect":
            return self._heredoc(node)
        operator = next((child.type for child in node.children if not child.is_named), "")
        stdin = None
        for child in node.named_children:
            if child.type != "file_descriptor":
                for word in expand_words(self, child):
                    stdin = self._redirect(operator, word)
        return stdin

    def _redirect(self, operator: str, word: Word) -> PipeData | None:
        if operator in (">&", "<&") and (word.text.isdigit() or word.text.strip("0123456789") == "-"):
            return None
        if operator.startswith("<"):
            self.add_file_effect(EffectKind.READ, word)
            return pipe_flow.file_data(word)
        self.add_file_effect(EffectKind.WRITE, word)
        return None

    def _heredoc(self, node: "Node") -> PipeData:
        body = next((child for child in node.named_children if child.type == "heredoc_body"), None)
        quoted = any(child.type == "heredoc_start" and {*text_of(child)} & {*"'\"\\"} for child in node.named_children)
        for child in node.named_children:
            if child.type in _REDIRECTIONS:
                self._redirection(child)
        if body is None:
            return PipeData(DataSource.TEXT, "")
        return PipeData(DataSource.TEXT, text_of(body)) if quoted else self._unquoted_heredoc(body)

    def _unquoted_heredoc(self, body: "Node") -> PipeData:
        """Visit a here-document with an unquoted end mark: its substitutions run, and the grammar does not recognise
        backquotes in it."""
        inner = [child for child in body.named_children if child.type != "heredoc_content"]
        for child in inner:
            if not is_arithmetic(child):
                expand_words(self, child)
        pieces = split_backquotes(body, inner)
        for text in pieces[1::2]:
            self.visit_script(text.replace("\\`", "`"))
        if len(pieces) % 2 == 0:
            self.report.add_unresolved("a backquote is not closed")
        return UNKNOWN_DATA if inner or len(pieces) > 1 else PipeData(DataSource.TEXT, text_of(body))

    def _after_heredoc(self, node: "Node", printed: PipeData) -> PipeData:
        """Visit the rest of the line after `<<END`."""
        for child in node.named_children:
            if child.type == "pipeline" and child.children and child.children[0].type in ("|", "|&"):
                printed = self._pipeline(child, printed)
            elif child.type not in _HEREDOC_PARTS:
                printed = self.visit(child)
        return printed

    def _assignment(self, node: "Node", _fed: PipeData, for_command: bool = False) -> PipeData:
        name, _, _ = text_of(node).partition("=")
        values = [word for child in node.named_children[1:] for word in expand_words(self, child)]
        for child in node.named_children[:1]:
            if child.type == "subscript":
                self.visit(child)
        analyze_assignment(self.report, name.rstrip("+"), values, for_command)
        if not for_command:
            self.assign(name, [_join_values(values)] if len(values) != 1 else values)
        return NO_DATA

    def _for(self, node: "Node", stdin: PipeData) -> PipeData:
        children = node.named_children
        values = [word for child in children[1:] if child.type != "do_group" for word in expand_words(self, child)]
        self.assign(text_of(children[0]), values)
        return pipe_flow.merge_outputs([self.visit(child, stdin) for child in children if child.type == "do_group"])

    def _while(self, node: "Node", stdin: PipeData) -> PipeData:
        condition = text_of(node.named_children[0]).strip() if node.named_children else ""
        if condition in _ALWAYS[text_of(node)[:5]] and not _EXITS_LOOP.search(text_of(node)):
            self.report.add_unresolved("a loop never ends")
        return self._parts(node, stdin)

    def _c_for(self, node: "Node", stdin: PipeData) -> PipeData:
        if re.match(r"for\s*\(\(\s*;\s*;", text_of(node)) and not _EXITS_LOOP.search(text_of(node)):
            self.report.add_unresolved("a loop never ends")
        return self._parts(node, stdin)

    def _function(self, node: "Node", stdin: PipeData) -> PipeData:
        name = text_of(node.named_children[0])
        self._functions.add(name)
        self._defining.append(name)
        with self._isolated():
            before = self.directory, self.previous_directories
            for child in node.named_children[1:]:
                self.visit(child, stdin)
            self._movers |= {name} if (self.directory, self.previous_directories) != before else set()
        self._defining.pop()
        return NO_DATA

    def _case(self, node: "Node", stdin: PipeData) -> PipeData:
        outputs = []
        for child in node.named_children:
            if child.type == "case_item":
                outputs.append(self.visit(child, stdin))
            else:
                expand_words(self, child)
        return pipe_flow.merge_outputs(outputs)

    def _declaration(self, node: "Node", stdin: PipeData) -> PipeData:
        words = []
        self._require_blanks(node)
        for child in node.named_children:
            if child.type == "variable_assignment":
                self._assignment(child, stdin)
                words.append(Word("="))
            elif child.type == "variable_name":
                words.append(Word(text_of(child)))
            else:
                words += expand_words(self, child)
        return self.visit_command([Word(node.children[0].type), *words], stdin)

    def _require_blanks(self, node: "Node") -> None:
        """Report adjacent words, which are one word for a shell but not for the grammar: `export HIST""FILE=x`."""
        if has_adjacent([child for child in node.children if child.type not in _REDIRECTIONS]):
            self.report.add_violation(Violation.OBFUSCATED)

    def _unset(self, node: "Node", stdin: PipeData) -> PipeData:
        self._require_blanks(node)
        words = [word for child in node.named_children for word in expand_words(self, child)]
        self._functions -= {word.text for word in words}
        return self.visit_command([Word("unset"), *words], stdin)

    def _test_expression(self, node: "Node", stdin: PipeData) -> PipeData:
        """Visit a test: `[ -z "$API_KEY" ]` checks if a secret is set and does not reveal it."""
        before, self.in_test = self.in_test, True
        try:
            return self._parts(node, stdin)
        finally:
            self.in_test = before

    def _nothing(self, _node: "Node", _fed: PipeData) -> PipeData:
        return NO_DATA


def _join_values(values: list[Word]) -> Word:
    """Return the words of an assigned value as one word."""
    if not values:
        return Word("")
    return Word(" ".join(value.text for value in values), all(value.is_exact for value in values), is_computed=True)


_REDIRECTIONS = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})
_HEREDOC_PARTS = _REDIRECTIONS | {"heredoc_start", "heredoc_body", "heredoc_end", "file_descriptor"}
_ALWAYS = {
    "while": frozenset({"true", ":", "[ 1 ]", "[[ 1 ]]", "((1))", "(( 1 ))", "/bin/true", "! false", "[ true ]"}),
    "until": frozenset({"false", "[ 0 -eq 1 ]", "! true"}),
}
_EXITS_LOOP = re.compile(r"\b(?:break|exit|return|sleep)\b")
_VISITS: dict[str, Callable[[ShellVisitor, "Node", PipeData], PipeData]] = {
    "list": ShellVisitor._list,
    "pipeline": ShellVisitor._pipeline,
    "subshell": ShellVisitor._subshell,
    "command": ShellVisitor._command,
    "redirected_statement": ShellVisitor._redirected_statement,
    "variable_assignment": ShellVisitor._assignment,
    "for_statement": ShellVisitor._for,
    "while_statement": ShellVisitor._while,
    "c_style_for_statement": ShellVisitor._c_for,
    "function_definition": ShellVisitor._function,
    "case_statement": ShellVisitor._case,
    "declaration_command": ShellVisitor._declaration,
    "unset_command": ShellVisitor._unset,
    "test_command": ShellVisitor._test_expression,
    "comment": ShellVisitor._nothing,
    **dict.fromkeys(
        (
            *("word", "number", "string", "raw_string", "ansi_c_string", "translated_string", "concatenation"),
            *("simple_expansion", "expansion", "command_substitution", "process_substitution", "array"),
            *("arithmetic_expansion_", "extglob_pattern", "brace_expression"),
        ),
        ShellVisitor._value,
    ),
}
