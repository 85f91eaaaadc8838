"""The walk over the syntax tree of a shell: every command in it, whatever joins, wraps or repeats them."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from qwed.guards._shell import flow
from qwed.guards._shell.commands import judge
from qwed.guards._shell.model import NOTHING, UNKNOWN, Feed, Source, Violation, Word
from qwed.guards._shell.nodes import backquoted, is_sum, touch, unrolled
from qwed.guards._shell.scope import Scope
from qwed.guards._shell.tree import parse, single_assignments
from qwed.guards._shell.values import require_plain, text_of, words_of
from qwed.guards._shell.variables import judge_assignment
from qwed.words import EffectKind

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_DEPTH, MAX_WRAPPED = 40, 6
_TOO_DEEP = "the command is nested too deep"


class Walk(Scope):
    """One reading of one command line."""

    def __init__(self) -> None:
        super().__init__()
        self._functions: set[str] = set()
        self._movers: set[str] = set()
        """Functions that change the directory."""
        self._defining: list[str] = []
        self._depth = self._wrapped = 0

    def script(self, text: str, fed: Feed = NOTHING) -> Feed:
        """Judge text a shell would run."""
        if not self.inner(text):
            return UNKNOWN
        root = parse(text)
        if isinstance(root, str):
            self.report.unclear(root)
            return UNKNOWN
        before, self.single = self.single, single_assignments(text)
        found = self.visit(root, fed)
        self.single = before
        return found

    def visit(self, node: "Node", fed: Feed = NOTHING) -> Feed:
        """Judge every command inside a node; the answer is what it prints."""
        if self._depth > MAX_DEPTH:
            self.report.unclear(_TOO_DEEP)
            return UNKNOWN
        self._depth += 1
        try:
            return _VISITS.get(node.type, Walk._parts)(self, node, fed)
        finally:
            self._depth -= 1

    def command(self, words: list[Word], fed: Feed = NOTHING) -> Feed:
        """Judge a command by its words."""
        if self._wrapped > MAX_WRAPPED:
            self.report.unclear(_TOO_DEEP)
            return UNKNOWN
        self._wrapped += 1
        try:
            if not words:
                return NOTHING
            if words[0].text in self._functions and words[0].known:
                return self._call(words[0].text)
            judge(self, words, fed)
            return flow.output(words, fed)
        finally:
            self._wrapped -= 1

    def _call(self, name: str) -> Feed:
        if name in self._defining:
            self.report.violate(Violation.FORK_BOMB)
        if name in self._movers:
            self.enter(Word("$PWD", known=False))
        return UNKNOWN

    def substitution(self, node: "Node") -> Feed:
        """Judge the commands inside `$( )` and say what they print."""
        with self._apart():
            self.testing = False
            inner = [child for child in node.named_children if child.type != "comment"]
            if len(inner) == 1 and inner[0].type == "file_redirect":
                self._redirection(inner[0])
                return UNKNOWN
            return flow.merged([self.visit(child) for child in inner])

    def process(self, node: "Node") -> Feed:
        """Judge the commands inside `<( )` or `>( )`."""
        fed = UNKNOWN if text_of(node).startswith(">") else NOTHING
        with self._apart():
            return flow.merged([self.visit(child, fed) for child in node.named_children])

    @contextmanager
    def _apart(self) -> Iterator[None]:
        before = self.directory, self.left, self.testing
        try:
            yield
        finally:
            self.directory, self.left, self.testing = before

    def _parts(self, node: "Node", fed: Feed) -> Feed:
        """Everything inside, in order."""
        if not node.named_child_count:
            require_plain(self, text_of(node))
            return NOTHING
        return flow.merged([self.visit(child, fed) for child in node.named_children])

    def _value(self, node: "Node", _fed: Feed) -> Feed:
        words_of(self, node)
        return NOTHING

    def _list(self, node: "Node", fed: Feed) -> Feed:
        return flow.merged([self.visit(item, fed) for item in unrolled(node)])

    def _pipeline(self, node: "Node", fed: Feed, last_fed: Feed = NOTHING) -> Feed:
        stages = node.named_children
        for at, stage in enumerate(stages):
            own = last_fed if at == len(stages) - 1 and last_fed is not NOTHING else fed
            with self._apart():
                fed = self.visit(stage, own)
        if self._defining and any(self._defining[-1] == text_of(stage).split(" ")[0] for stage in stages):
            self.report.violate(Violation.FORK_BOMB)
        return fed

    def _subshell(self, node: "Node", fed: Feed) -> Feed:
        with self._apart():
            return self._parts(node, fed)

    def _command(self, node: "Node", fed: Feed) -> Feed:
        words: list[Word] = []
        self._require_blanks(node)
        before = self.testing
        for child in node.children:
            self.testing = before or bool(words and words[0].text == "test")
            if child.type == "variable_assignment":
                self._assignment(child, fed, for_command=True)
            elif child.type in _REDIRECTIONS:
                fed = self._redirection(child) or fed
            elif child.is_named:
                words += words_of(self, child)
            else:
                # The grammar knows `==` and `=~` as operators, even where they are words.
                words.append(Word(child.type))
        self.testing = before
        return self.command(words, fed)

    def _redirected(self, node: "Node", fed: Feed) -> Feed:
        """The tree hangs a redirection on the whole of `a && b > c`; it is that of the last command alone."""
        redirections = [child for child in node.named_children if child.type in _REDIRECTIONS]
        others = [child for child in node.named_children if child.type not in _REDIRECTIONS]
        body = [item for child in others for item in unrolled(child)]
        printed = [self.visit(item, fed) for item in body[:-1]]
        own = NOTHING
        for child in redirections:
            own = self._redirection(child) or own
        for item in body[-1:]:
            last_fed = own if own is not NOTHING else fed
            pipeline = item.type == "pipeline"
            printed.append(self._pipeline(item, fed, own) if pipeline else self.visit(item, last_fed))
        found = flow.merged(printed)
        for child in redirections:
            found = self._after_heredoc(child, found) if child.type == "heredoc_redirect" else found
        return found

    def _redirection(self, node: "Node") -> Feed | None:
        """Judge one redirection; the answer is what it feeds, None for an output."""
        if node.type == "herestring_redirect":
            words = [word for child in node.named_children for word in words_of(self, child)]
            return flow.text_feed(words)
        if node.type == "heredoc_redirect":
            return self._heredoc(node)
        operator = next((child.type for child in node.children if not child.is_named), "")
        fed = None
        for child in node.named_children:
            if child.type != "file_descriptor":
                for word in words_of(self, child):
                    fed = self._redirect(operator, word)
        return fed

    def _redirect(self, operator: str, word: Word) -> Feed | None:
        if operator in (">&", "<&") and (word.text.isdigit() or word.text.strip("0123456789") == "-"):
            return None
        if operator.startswith("<"):
            self.file(EffectKind.READ, word)
            return flow.file_feed(word)
        self.file(EffectKind.WRITE, word)
        return None

    def _heredoc(self, node: "Node") -> Feed:
        body = next((child for child in node.named_children if child.type == "heredoc_body"), None)
        quoted = any(child.type == "heredoc_start" and {*text_of(child)} & {*"'\"\\"} for child in node.named_children)
        for child in node.named_children:
            if child.type in _REDIRECTIONS:
                self._redirection(child)
        if body is None:
            return Feed(Source.TEXT, "")
        return Feed(Source.TEXT, text_of(body)) if quoted else self._expanded(body)

    def _expanded(self, body: "Node") -> Feed:
        """A here-document whose end is not quoted: what it inserts is run; the grammar overlooks backquotes."""
        inner = [child for child in body.named_children if child.type != "heredoc_content"]
        for child in inner:
            if not is_sum(child):
                words_of(self, child)
        pieces = backquoted(body, inner)
        for text in pieces[1::2]:
            self.script(text.replace("\\`", "`"))
        if len(pieces) % 2 == 0:
            self.report.unclear("a backquote is not closed")
        return UNKNOWN if inner or len(pieces) > 1 else Feed(Source.TEXT, text_of(body))

    def _after_heredoc(self, node: "Node", printed: Feed) -> Feed:
        """What stands behind `<<END` on its line."""
        for child in node.named_children:
            if child.type == "pipeline" and child.children and child.children[0].type in ("|", "|&"):
                printed = self._pipeline(child, printed)
            elif child.type not in _HEREDOC_PARTS:
                printed = self.visit(child)
        return printed

    def _assignment(self, node: "Node", _fed: Feed, for_command: bool = False) -> Feed:
        name, _, _ = text_of(node).partition("=")
        values = [word for child in node.named_children[1:] for word in words_of(self, child)]
        for child in node.named_children[:1]:
            if child.type == "subscript":
                self.visit(child)
        judge_assignment(self.report, name.rstrip("+"), values, for_command)
        if not for_command:
            self.assign(name, [_whole(values)] if len(values) != 1 else values)
        return NOTHING

    def _for(self, node: "Node", fed: Feed) -> Feed:
        children = node.named_children
        values = [word for child in children[1:] if child.type != "do_group" for word in words_of(self, child)]
        self.assign(text_of(children[0]), values)
        return flow.merged([self.visit(child, fed) for child in children if child.type == "do_group"])

    def _while(self, node: "Node", fed: Feed) -> Feed:
        condition = text_of(node.named_children[0]).strip() if node.named_children else ""
        if condition in _ALWAYS[text_of(node)[:5]] and not _LEAVES.search(text_of(node)):
            self.report.unclear("a loop never ends")
        return self._parts(node, fed)

    def _c_for(self, node: "Node", fed: Feed) -> Feed:
        if re.match(r"for\s*\(\(\s*;\s*;", text_of(node)) and not _LEAVES.search(text_of(node)):
            self.report.unclear("a loop never ends")
        return self._parts(node, fed)

    def _function(self, node: "Node", fed: Feed) -> Feed:
        name = text_of(node.named_children[0])
        self._functions.add(name)
        self._defining.append(name)
        with self._apart():
            before = self.directory, self.left
            for child in node.named_children[1:]:
                self.visit(child, fed)
            self._movers |= {name} if (self.directory, self.left) != before else set()
        self._defining.pop()
        return NOTHING

    def _case(self, node: "Node", fed: Feed) -> Feed:
        found = []
        for child in node.named_children:
            if child.type == "case_item":
                found.append(self.visit(child, fed))
            else:
                words_of(self, child)
        return flow.merged(found)

    def _declaration(self, node: "Node", fed: Feed) -> Feed:
        words = []
        self._require_blanks(node)
        for child in node.named_children:
            if child.type == "variable_assignment":
                self._assignment(child, fed)
                words.append(Word("="))
            elif child.type == "variable_name":
                words.append(Word(text_of(child)))
            else:
                words += words_of(self, child)
        return self.command([Word(node.children[0].type), *words], fed)

    def _require_blanks(self, node: "Node") -> None:
        """Words that touch are one word for a shell: the grammar cut it, as in `export HIST""FILE=x`."""
        if touch([child for child in node.children if child.type not in _REDIRECTIONS]):
            self.report.violate(Violation.OBFUSCATED)

    def _unset(self, node: "Node", fed: Feed) -> Feed:
        self._require_blanks(node)
        words = [word for child in node.named_children for word in words_of(self, child)]
        self._functions -= {word.text for word in words}
        return self.command([Word("unset"), *words], fed)

    def _tested(self, node: "Node", fed: Feed) -> Feed:
        """`[ -z "$API_KEY" ]` asks whether a secret is there and shows none of it."""
        before, self.testing = self.testing, True
        try:
            return self._parts(node, fed)
        finally:
            self.testing = before

    def _nothing(self, _node: "Node", _fed: Feed) -> Feed:
        return NOTHING


def _whole(values: list[Word]) -> Word:
    """The words of one assigned value."""
    if not values:
        return Word("")
    return Word(" ".join(value.text for value in values), all(value.known for value in values), built=True)


_REDIRECTIONS = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})
_HEREDOC_PARTS = _REDIRECTIONS | {"heredoc_start", "heredoc_body", "heredoc_end", "file_descriptor"}
_ALWAYS = {
    "while": frozenset({"true", ":", "[ 1 ]", "[[ 1 ]]", "((1))", "(( 1 ))", "/bin/true", "! false", "[ true ]"}),
    "until": frozenset({"false", "[ 0 -eq 1 ]", "! true"}),
}
_LEAVES = re.compile(r"\b(?:break|exit|return|sleep)\b")
_VISITS: dict[str, Callable[[Walk, "Node", Feed], Feed]] = {
    "list": Walk._list,
    "pipeline": Walk._pipeline,
    "subshell": Walk._subshell,
    "command": Walk._command,
    "redirected_statement": Walk._redirected,
    "variable_assignment": Walk._assignment,
    "for_statement": Walk._for,
    "while_statement": Walk._while,
    "c_style_for_statement": Walk._c_for,
    "function_definition": Walk._function,
    "case_statement": Walk._case,
    "declaration_command": Walk._declaration,
    "unset_command": Walk._unset,
    "test_command": Walk._tested,
    "comment": Walk._nothing,
    **dict.fromkeys(
        (
            *("word", "number", "string", "raw_string", "ansi_c_string", "translated_string", "concatenation"),
            *("simple_expansion", "expansion", "command_substitution", "process_substitution", "array"),
            *("arithmetic_expansion_", "extglob_pattern", "brace_expression"),
        ),
        Walk._value,
    ),
}
