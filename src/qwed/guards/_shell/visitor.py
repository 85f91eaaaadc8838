"""Visitor for the syntax tree of a shell script: analyses every command, however it is joined, wrapped or repeated."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING

from qwed.guards._shell import pipe_flow
from qwed.guards._shell.arithmetic import visit_arithmetic, visit_operand
from qwed.guards._shell.command_model import (
    NO_DATA,
    UNKNOWN_DATA,
    PipeData,
    StatementJudge,
    Violation,
    Word,
)
from qwed.guards._shell.commands import analyze_command
from qwed.guards._shell.conditions import shows_operands
from qwed.guards._shell.databases import DATABASE_CLIENTS
from qwed.guards._shell.env_variables import analyze_assignment, analyze_prefix
from qwed.guards._shell.expansion import expand_words, text_of
from qwed.guards._shell.parse import parse
from qwed.guards._shell.parser_fixups import ListItem, exits_without_directory, flatten_list, has_adjacent
from qwed.guards._shell.redirections import REDIRECTIONS, Redirections
from qwed.guards._shell.syntax import WORD_NODES
from qwed.guards._shell.variables import VariableHistory, join_values

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_DEPTH, MAX_WRAPPED = 40, 6
MAX_REPEATS = 64
_TOO_DEEP = "the command is nested too deep"
NO_HISTORY = VariableHistory()


class ShellVisitor(Redirections):
    """Analysis of one command line."""

    def __init__(self, history: VariableHistory = NO_HISTORY, judge: StatementJudge | None = None) -> None:
        super().__init__(history)
        self.judge = judge
        self._functions: dict[str, bool] = {}
        """Functions, and whether it is certain that they are defined."""
        self._homes: dict[str, str] = {}
        """Directory in which each function is defined."""
        self._movers: set[str] = set()
        """Functions that change the directory."""
        self._defining: list[str] = []
        self._depth = self._wrapped = self._branches = 0
        self._repeats = 1
        """Visits of the loop body that is being visited, for all loops around it."""

    def visit_script(self, text: str, stdin: PipeData = NO_DATA, *, same_shell: bool = False) -> PipeData:
        """Analyse text that another shell, or the same one, would run and return its output."""
        if not self.can_analyze_inner(text):
            return UNKNOWN_DATA
        script = parse(text)
        if isinstance(script, str):
            self.report.add_unresolved(script)
            return UNKNOWN_DATA
        if script.problem:
            self.report.add_unresolved(script.problem)
        before, self.heredocs = (self.heredocs, self._functions), script.heredocs
        with self.variables.branch() if same_shell else self.variables.new_process():
            self._functions = self._functions if same_shell else {}
            output = self.visit(script.root, stdin)
        self.heredocs, self._functions = before
        return output

    def visit(self, node: "Node", stdin: PipeData = NO_DATA) -> PipeData:
        """Analyse every command inside a node and return its output."""
        if self._depth > MAX_DEPTH:
            self.report.add_unresolved(_TOO_DEEP)
            return UNKNOWN_DATA
        self._depth += 1
        try:
            return _VISITS.get(node.type, ShellVisitor._unknown)(self, node, stdin)
        finally:
            self._depth -= 1

    def visit_command(self, words: list[Word], stdin: PipeData = NO_DATA) -> PipeData:
        """Analyse a command that another program starts, given by its words, and return its output."""
        if self._wrapped > MAX_WRAPPED:
            self.report.add_unresolved(_TOO_DEEP)
            return UNKNOWN_DATA
        self._wrapped += 1
        try:
            if not words:
                return NO_DATA
            analyze_command(self, words, stdin)
            return pipe_flow.command_output(words, stdin)
        finally:
            self._wrapped -= 1

    def _run(self, words: list[Word], stdin: PipeData) -> PipeData:
        """Analyse a command of the script itself, which may be a function."""
        name = words[0].text if words and words[0].is_exact else ""
        if name not in self._functions:
            return self.visit_command(words, stdin)
        self._call(name)
        if self._homes.get(name) != self.directory:
            # The paths in its body were taken from the directory in which it was defined.
            self.report.facts.note_unlisted()
        if not (self._functions[name] and self.variables.is_inherited(f"{name}()")):
            self.visit_command(words, stdin)
        return UNKNOWN_DATA

    def _call(self, name: str) -> None:
        if name in self._defining:
            self.report.add_violation(Violation.FORK_BOMB)
        if name in self._movers:
            self.change_directory(Word("$PWD", is_exact=False))

    def forget_function(self, name: str) -> None:
        """Note that a function is removed."""
        if name in self._functions:
            self.variables.assign(f"{name}()", [])
            del self._functions[name]

    def substitution(self, node: "Node") -> PipeData:
        """Analyse the commands inside `$( )` and return their output."""
        with self._isolated():
            self.in_test = False
            inner = [child for child in node.named_children if child.type != "comment"]
            if len(inner) == 1 and inner[0].type == "file_redirect":
                return self.redirection(inner[0]) or UNKNOWN_DATA
            return self._statements(node, NO_DATA)

    def arithmetic(self, node: "Node") -> None:
        """Analyse the arithmetic inside a node."""
        visit_arithmetic(self, node)

    def process(self, node: "Node") -> PipeData:
        """Analyse the commands inside `<( )` or `>( )`."""
        stdin = UNKNOWN_DATA if text_of(node).startswith(">") else NO_DATA
        with self._isolated():
            return self._statements(node, stdin)

    @contextmanager
    def _isolated(self) -> Iterator[None]:
        """Visit commands that run in a process of their own."""
        before = self.directory, self.previous_directories, self.in_test, self.entered
        try:
            with self._branch():
                yield
        finally:
            self.directory, self.previous_directories, self.in_test, self.entered = before

    @contextmanager
    def _branch(self) -> Iterator[None]:
        """Visit commands that may not run."""
        self._branches += 1
        try:
            with self.variables.branch():
                yield
        finally:
            self._branches -= 1

    def _unknown(self, node: "Node", stdin: PipeData) -> PipeData:
        """Report a node that is not understood, and what its parts do in any case."""
        self.report.add_unresolved(f"`{text_of(node)[:64]}` is not part of the shell language that is understood")
        return self._parts(node, stdin)

    def _parts(self, node: "Node", stdin: PipeData) -> PipeData:
        """Visit all children in order."""
        return pipe_flow.merge_outputs([self.visit(child, stdin) for child in node.named_children])

    def _statements(self, node: "Node", stdin: PipeData) -> PipeData:
        """Visit commands in order; one in the background is a process of its own."""
        outputs = []
        children = node.children
        for index, child in enumerate(children):
            if not child.is_named:
                continue
            if index + 1 < len(children) and children[index + 1].type == "&":
                with self._isolated():
                    outputs.append(self.visit(child, stdin))
            else:
                outputs.append(self.visit(child, stdin))
        return pipe_flow.merge_outputs(outputs)

    def _branching(self, node: "Node", stdin: PipeData) -> PipeData:
        with self._branch():
            return self._statements(node, stdin)

    def _compound(self, node: "Node", stdin: PipeData) -> PipeData:
        if node.children[0].type == "((":
            for child in node.named_children:
                visit_arithmetic(self, child)
            return NO_DATA
        return self._statements(node, stdin)

    def _value(self, node: "Node", _fed: PipeData) -> PipeData:
        expand_words(self, node)
        return NO_DATA

    def _list(self, node: "Node", stdin: PipeData) -> PipeData:
        """Visit `a && b || c`: what the first one assigns is certain, the others only after `&&` and inside."""
        items = flatten_list(node)
        is_start = not self.report.facts.command_count
        # A function may stand in place of `cd` and `exit`.
        is_plain = self._functions.keys().isdisjoint(("cd", "exit"))
        with self.after_cd(is_plain and all(item.operator in ("", "&&") for item in items)):
            outputs = [self._visit_and_enter(items[0].node, stdin)]
            with self._branch():
                outputs += [self._visit_and_enter(item, stdin) for item in self._in_order(items[1:])]
        if is_plain and not self._branches and not self._wrapped and exits_without_directory(items):
            self.entered = True
            if is_start:
                self.report.facts.forget_commands()
        return pipe_flow.merge_outputs(outputs)

    def _visit_and_enter(self, node: "Node", stdin: PipeData) -> PipeData:
        output = self.visit(node, stdin)
        self.enter_after(node)
        return output

    def _in_order(self, items: list[ListItem]) -> Iterator["Node"]:
        """Yield the commands of a list; what is assigned after `||` is not certain in the commands that follow."""
        before, certain = self.variables.mark(), True
        for item in items:
            certain = certain and item.operator in ("", "&&")
            if not certain:
                self.variables.reset(before)
            yield item.node

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
            return self._statements(node, stdin)

    def _command(self, node: "Node", stdin: PipeData, more: Iterable["Node"] = ()) -> PipeData:
        words: list[Word] = []
        self._require_blanks(node)
        before = self.in_test
        for child in (*node.children, *more):
            self.in_test = before or (bool(words and words[0].text in ("test", "[")) and not shows_operands(node))
            self.connects = bool(words and words[0].text in DATABASE_CLIENTS)
            if child.type == "variable_assignment":
                self._prefix(child, node)
            elif child.type in REDIRECTIONS:
                stdin = self.redirection(child) or stdin
                words += self.words_after(child)
            else:
                words += self.argument_words(child)
        self.in_test, self.connects = before, False
        return self._run(words, stdin)

    def expand(self, node: "Node") -> list[Word]:
        """Return the words that a node expands to."""
        return expand_words(self, node)

    def argument_words(self, node: "Node") -> list[Word]:
        if not node.is_named:
            # The grammar parses `==` and `=~` as operators even where they are words.
            return [Word(node.type)]
        if node.type not in WORD_NODES:
            self.report.add_unresolved(f"`{text_of(node)[:64]}` is not a word of a command that is understood")
        return expand_words(self, node)

    def _redirected_statement(self, node: "Node", stdin: PipeData) -> PipeData:
        """Visit a redirected statement; the tree attaches the redirection to the whole of `a && b > c`, but it belongs
        to the last command."""
        with self._branch():
            return self._redirected(node, stdin)

    def _redirected(self, node: "Node", stdin: PipeData) -> PipeData:
        redirections = [child for child in node.named_children if child.type in REDIRECTIONS]
        bodies = [child for child in node.named_children if child.type not in REDIRECTIONS]
        items = [item for child in bodies for item in flatten_list(child)]
        body = self._in_order(items)
        outputs = [self.visit(item, stdin) for item in islice(body, max(len(items) - 1, 0))]
        own = NO_DATA
        for child in redirections:
            own = self.redirection(child) or own
        more = [extra for child in redirections for extra in self.arguments_after(child)]
        for item in body:
            last_stdin = own if own is not NO_DATA else stdin
            outputs.append(self._visit_redirected(item, stdin, last_stdin, more))
        return pipe_flow.merge_outputs(outputs)

    def _visit_redirected(self, item: "Node", stdin: PipeData, own: PipeData, more: list["Node"]) -> PipeData:
        if item.type == "command":
            return self._command(item, own, more)
        if more:
            self.report.add_unresolved("words after a redirection belong to no command")
        return self._pipeline(item, stdin, own) if item.type == "pipeline" else self.visit(item, own)

    def _assigned_values(self, node: "Node") -> tuple[str, list[Word]]:
        """Return the name and the values of an assignment; the name is empty if it is not a plain one."""
        target = node.named_children[0]
        values = [word for child in node.named_children[1:] for word in expand_words(self, child)]
        if target.type == "subscript":
            self._subscript(target)
            return text_of(target.named_children[0]), []
        return text_of(target), values

    def _subscript(self, node: "Node") -> None:
        """Visit the index of an array, which a shell evaluates as arithmetic."""
        for child in node.named_children[1:]:
            visit_arithmetic(self, child)

    def _assignment(self, node: "Node", _fed: PipeData = NO_DATA) -> PipeData:
        name, values = self._assigned_values(node)
        value = values if len(values) == 1 else [join_values(values)]
        if any(child.type == "+=" for child in node.children) or node.named_children[0].type == "subscript":
            # The rest of the value is not known.
            analyze_assignment(self.report, name, value, exported=name in self.exported)
            self.variables.forget(name)
        else:
            self.assign(name, value)
        return NO_DATA

    def _prefix(self, node: "Node", command: "Node") -> None:
        """Visit an assignment before a command, which is in the environment of this command only."""
        name, values = self._assigned_values(node)
        program = command.child_by_field_name("name")
        if name == "IFS" and program is not None and text_of(program) == "read":
            return
        analyze_prefix(self.report, name, values or [Word("")])
        if program is None or self.variables.is_assigned(name):
            self.variables.forget(name)

    def _for(self, node: "Node", stdin: PipeData) -> PipeData:
        children = node.named_children
        values = [word for child in children[1:] if child.type != "do_group" for word in expand_words(self, child)]
        bodies = [child for child in children if child.type == "do_group"]
        with self._branch():
            if node.children[0].type != "for":
                self.forget(text_of(children[0]))
            elif self._can_repeat(values):
                return self._repeat(text_of(children[0]), values, bodies, stdin)
            else:
                self.assign(text_of(children[0]), values)
            with self.loop():
                return pipe_flow.merge_outputs([self.visit(child, stdin) for child in bodies])

    def _can_repeat(self, values: list[Word]) -> bool:
        """Return True if the values are known and so few that the body can be visited for each of them."""
        return 1 < len(values) <= MAX_REPEATS // self._repeats and all(value.is_exact for value in values)

    def _repeat(self, name: str, values: list[Word], bodies: list["Node"], stdin: PipeData) -> PipeData:
        """Visit the body of a loop once for each value of its variable."""
        outputs = []
        self._repeats *= len(values)
        before = self.variables.places()
        for value in values:
            directory = self.directory
            with self.variables.repetition(before):
                self.assign(name, [value])
                outputs += [self.visit(child, stdin) for child in bodies]
            if self.directory != directory:
                # The change may fail, or the loop may end before it.
                self.change_directory(Word("$PWD", is_exact=False))
        self._repeats //= len(values)
        return pipe_flow.merge_outputs(outputs)

    def _while(self, node: "Node", stdin: PipeData) -> PipeData:
        condition = text_of(node.named_children[0]).strip() if node.named_children else ""
        if condition in _ALWAYS[text_of(node)[:5]] and not _EXITS_LOOP.search(text_of(node)):
            self.report.add_unresolved("a loop never ends")
        with self.loop():
            return self._statements(node, stdin)

    def _c_for(self, node: "Node", stdin: PipeData) -> PipeData:
        if re.match(r"for\s*\(\(\s*;\s*;", text_of(node)) and not _EXITS_LOOP.search(text_of(node)):
            self.report.add_unresolved("a loop never ends")
        outputs = []
        with self.loop():
            for child in node.named_children:
                if child.type in ("do_group", "compound_statement"):
                    outputs.append(self.visit(child, stdin))
                else:
                    visit_arithmetic(self, child)
        return pipe_flow.merge_outputs(outputs)

    def _if(self, node: "Node", stdin: PipeData) -> PipeData:
        """Visit the condition, which always runs, and the rest, which may not."""
        children = node.children
        then = next((index for index, child in enumerate(children) if child.type == "then"), len(children))
        outputs = [self.visit(child, stdin) for child in children[:then] if child.is_named]
        with self._branch():
            before = self.variables.mark()
            for child in children[then:]:
                if child.type in ("elif_clause", "else_clause"):
                    self.variables.reset(before)
                outputs += [self.visit(child, stdin)] if child.is_named else []
        return pipe_flow.merge_outputs(outputs)

    def _function(self, node: "Node", stdin: PipeData) -> PipeData:
        name = text_of(node.named_children[0])
        self._functions[name], self._homes[name] = not self._branches, self.directory
        self._defining.append(name)
        with self._isolated():
            before = self.directory, self.previous_directories
            for child in node.named_children[1:]:
                if child.type in REDIRECTIONS:
                    self.redirection(child)
                else:
                    self.visit(child, stdin)
            self._movers |= {name} if (self.directory, self.previous_directories) != before else set()
        self._defining.pop()
        return NO_DATA

    def _case(self, node: "Node", stdin: PipeData) -> PipeData:
        outputs = []
        for child in node.named_children:
            if child.type == "case_item":
                outputs.append(self._case_item(child, stdin))
            elif child.type != "comment":
                expand_words(self, child)
        return pipe_flow.merge_outputs(outputs)

    def _case_item(self, node: "Node", stdin: PipeData) -> PipeData:
        patterns = node.children_by_field_name("value")
        for child in patterns:
            expand_words(self, child)
        with self._branch():
            bodies = [child for child in node.named_children if child not in patterns]
            return pipe_flow.merge_outputs([self.visit(child, stdin) for child in bodies])

    def _declaration(self, node: "Node", stdin: PipeData) -> PipeData:
        words, keyword = [], node.children[0].type
        self._require_blanks(node)
        exports = keyword == "export"
        self.in_map = any(_MAP_OPTION.fullmatch(text_of(child)) for child in node.named_children)
        for child in node.named_children:
            if child.type == "variable_assignment":
                name = text_of(child.named_children[0])
                self.exported |= {name} if exports else set()
                self._assignment(child)
                words.append(Word(name, is_number=True))
            elif child.type == "variable_name":
                words.append(Word(text_of(child)))
            else:
                words += expand_words(self, child)
                exports = exports or any(word.is_option and "x" in word.text for word in words)
        self.in_map = False
        return self._run([Word(keyword), *words], stdin)

    def _require_blanks(self, node: "Node") -> None:
        """Report adjacent words, which are one word for a shell but not for the grammar: `export HIST""FILE=x`."""
        if has_adjacent([child for child in node.children if child.type not in REDIRECTIONS]):
            self.report.add_violation(Violation.OBFUSCATED)

    def _unset(self, node: "Node", stdin: PipeData) -> PipeData:
        self._require_blanks(node)
        words = [word for child in node.named_children for word in expand_words(self, child)]
        return self._run([Word(node.children[0].type), *words], stdin)

    def _test_expression(self, node: "Node", _fed: PipeData) -> PipeData:
        """Visit a test: `[ -z "$API_KEY" ]` checks if a secret is set and does not reveal it."""
        before, self.in_test = self.in_test, not shows_operands(node)
        try:
            for child in node.named_children:
                visit_operand(self, child, double=node.children[0].type == "[[")
        finally:
            self.in_test = before
        return NO_DATA

    def _nothing(self, _node: "Node", _fed: PipeData) -> PipeData:
        return NO_DATA


_MAP_OPTION = re.compile(r"-[a-zA-Z]*A[a-zA-Z]*")
_ALWAYS = {
    "while": frozenset({"true", ":", "[ 1 ]", "[[ 1 ]]", "((1))", "(( 1 ))", "/bin/true", "! false", "[ true ]"}),
    "until": frozenset({"false", "[ 0 -eq 1 ]", "! true"}),
}
_EXITS_LOOP = re.compile(r"\b(?:break|exit|return|sleep)\b")
_VISITS: dict[str, Callable[[ShellVisitor, "Node", PipeData], PipeData]] = {
    **dict.fromkeys(("program", "do_group"), ShellVisitor._statements),
    **dict.fromkeys(("negated_command", "variable_assignments"), ShellVisitor._parts),
    **dict.fromkeys(("elif_clause", "else_clause"), ShellVisitor._branching),
    "do_group": ShellVisitor._branching,
    "compound_statement": ShellVisitor._compound,
    "list": ShellVisitor._list,
    "pipeline": ShellVisitor._pipeline,
    "subshell": ShellVisitor._subshell,
    "command": ShellVisitor._command,
    "redirected_statement": ShellVisitor._redirected_statement,
    "variable_assignment": ShellVisitor._assignment,
    "for_statement": ShellVisitor._for,
    "while_statement": ShellVisitor._while,
    "c_style_for_statement": ShellVisitor._c_for,
    "if_statement": ShellVisitor._if,
    "function_definition": ShellVisitor._function,
    "case_statement": ShellVisitor._case,
    "declaration_command": ShellVisitor._declaration,
    "unset_command": ShellVisitor._unset,
    "test_command": ShellVisitor._test_expression,
    "comment": ShellVisitor._nothing,
    **dict.fromkeys(WORD_NODES, ShellVisitor._value),
}
