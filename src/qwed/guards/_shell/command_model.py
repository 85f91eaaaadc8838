"""Shared types of the shell guard: words, commands, piped data, and the report."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from qwed.guards._shell.facts import ShellFactsCollector
from qwed.guards.file_effects import file_effects
from qwed.model import NO_FACTS, OUTBOUND, Effect, EffectKind, Facts
from qwed.model.facts import SqlFacts

_WILD = re.compile(r"[*?\[]")
_ONE_LETTER = re.compile(r"\[[^\]!^]\]")
MAX_TARGET = 256
MAX_FILES = 4_000
MAX_REASONS = 100
_BEYOND_FILES = frozenset({EffectKind.EXECUTE, EffectKind.ADMIN, EffectKind.SPEND})
"""Effects that change more than the files and hosts that facts list: what another program does, the system, money."""


class Violation(StrEnum):
    """Constructs refused at every trust level, with the text of the answer."""

    SUBSTITUTION = "runs what another command prints"
    INLINE_CODE = "runs text as code"
    REMOTE_TO_SHELL = "downloads text and runs it as a script"
    DECODED_TO_SHELL = "decodes text and runs it as a script"
    PIPED_TO_SHELL = "feeds text to a shell"
    FORK_BOMB = "starts copies of itself without end"
    REVERSE_SHELL = "opens a shell to another machine"
    OBFUSCATED = "hides the name of what it runs"
    ENVIRONMENT = "makes other programs load code through their environment"
    ESCAPE = "makes a program run another one through its options"
    EXFILTRATION = "sends a secret to another machine"
    PERSISTENCE = "plants code that runs later"


@dataclass(frozen=True, slots=True)
class ShellFindings:
    """Effects of the command, constructs refused at every trust level, and unresolved parts."""

    effects: tuple[Effect, ...] = ()
    violations: tuple[str, ...] = ()
    unresolved: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    """Names of all programs it starts, as far as they are known."""
    facts: Facts = NO_FACTS
    refused: tuple[str, ...] = ()
    """For each violation the command that has it, or the empty string."""


class StatementFindings(NamedTuple):
    """Effects, violations and unresolved parts of the statements in a command."""

    effects: tuple[Effect, ...] = ()
    violations: tuple[str, ...] = ()
    unresolved: tuple[str, ...] = ()
    files: tuple[Effect, ...] = ()
    """Effects on files, not on the database."""
    facts: SqlFacts | None = None


StatementJudge = Callable[[str, str], StatementFindings]
"""Judge of SQL text in a dialect."""


class Word(NamedTuple):
    """One word as the program receives it; parts known only at run time stay as written."""

    text: str
    is_exact: bool = True
    """True if `text` is the exact value."""
    pattern: bool = False
    """True if a glob or a listing determines the file names; `text` is the pattern or the directory."""
    has_inner_quotes: bool = False
    """True if there are quotes or escapes inside a word that needs none."""
    is_computed: bool = False
    """True if the word is composed of variables or command output."""
    origin: Violation | None = None
    """Violation to report if this text is run as code."""
    is_number: bool = False
    """True if the word is an integer that is known only at run time."""
    splits: bool = False
    """True if the script computes the text and it may become several words."""
    any_name: bool = False
    """True if it stands for files of any name, hidden ones too; `text` is their directory or the pattern."""
    is_summarized: bool = False
    """True if nothing of the content of these files is shown, although they are opened."""

    @property
    def is_resolved(self) -> bool:
        """True if the value is exact or a pattern."""
        return self.is_exact or self.pattern

    @property
    def is_as_written(self) -> bool:
        """True if the value is exact or a pattern that stands in the script; names in a listing are not known."""
        return self.is_exact or (self.pattern and not self.is_computed and not self.is_number)

    @property
    def is_several(self) -> bool:
        """True if the word may become several words: the names that a pattern matches, or a listing."""
        return (
            self.pattern
            and not self.is_number
            and (self.is_computed or _WILD.search(_ONE_LETTER.sub("", self.text)) is not None)
        )

    @property
    def is_option(self) -> bool:
        """True if the program parses the word as an option."""
        return self.text.startswith("-") and len(self.text) > 1


class DataSource(StrEnum):
    """Origin of the text a command reads."""

    NOTHING = "nothing"
    TEXT = "text"
    NUMBER = "number"
    LISTING = "listing"
    UNKNOWN = "unknown"
    DECODED = "decoded"
    REMOTE = "remote"


class PipeData(NamedTuple):
    """Content of the standard input or output of a command."""

    source: DataSource = DataSource.NOTHING
    text: str = ""
    """The text itself for TEXT, the directory of the listing for LISTING."""
    any_name: bool = False
    """True if files of any name, hidden ones too, can be in a LISTING."""

    @property
    def violation(self) -> Violation:
        """Violation to report if this text is run as a script."""
        return _RUN_AS_SCRIPT.get(self.source, Violation.PIPED_TO_SHELL)


_RUN_AS_SCRIPT = {DataSource.REMOTE: Violation.REMOTE_TO_SHELL, DataSource.DECODED: Violation.DECODED_TO_SHELL}
NO_DATA = PipeData()
UNKNOWN_DATA = PipeData(DataSource.UNKNOWN)


class CommandCall(NamedTuple):
    """One command: its name, its arguments, and its standard input."""

    name: str
    arguments: list[Word]
    stdin: PipeData = NO_DATA

    @property
    def line(self) -> str:
        """The command as one line, for a message or a target."""
        return join_words([Word(self.name), *self.arguments])

    @property
    def texts(self) -> list[str]:
        """The arguments as text."""
        return [word.text for word in self.arguments]

    @property
    def operands(self) -> list[Word]:
        """The arguments that are not options."""
        return [word for word in self.arguments if not word.is_option]


@dataclass(slots=True)
class ShellReport:
    """Findings in the order they were added, without duplicates."""

    effects: dict[Effect, None] = field(default_factory=dict)
    violations: dict[str, str] = field(default_factory=dict)
    """Violations, each with the command in which it was found first."""
    _words: list[Word] = field(default_factory=list)
    """Words of the command that is being analysed."""
    unresolved: dict[str, None] = field(default_factory=dict)
    programs: dict[str, None] = field(default_factory=dict)
    facts: ShellFactsCollector = field(default_factory=ShellFactsCollector)
    _secret_sources: set[object] = field(default_factory=set)
    _outbound_sources: set[object] = field(default_factory=set)

    def add_effect(self, kind: EffectKind, target: str, source: object = None) -> None:
        """Add an effect of the command; effects with the same source are of one program that contacts its service."""
        if len(self.effects) >= MAX_FILES:
            self.add_unresolved(f"the command has more than {MAX_FILES} effects")
            return
        for effect in file_effects(kind, target[:MAX_TARGET]):
            self.effects[effect] = None
            self._note_source(effect, object() if source is None else source)
        self._note_facts(kind, target)

    def _note_facts(self, kind: EffectKind, target: str) -> None:
        if kind in OUTBOUND:
            self.facts.add_target(target)
        elif kind in _BEYOND_FILES:
            self.facts.note_unlisted()

    def _note_source(self, effect: Effect, source: object) -> None:
        # Requests are authenticated with secrets in variables, so only files and the whole environment count.
        if effect.kind is EffectKind.SECRET and not effect.target.startswith("$"):
            self._secret_sources.add(source)
        elif effect.kind in OUTBOUND:
            self._outbound_sources.add(source)

    def add_violation(self, violation: str) -> None:
        """Add a construct that is refused at every trust level."""
        if violation not in self.violations:
            self.violations[violation] = join_words(self._words)

    @contextmanager
    def analysing(self, words: list[Word]) -> Iterator[None]:
        """Note that a command is being analysed, which violations then name; one that it starts comes in its place."""
        outer, self._words = self._words, words
        try:
            yield
        finally:
            self._words = outer

    def add_unresolved(self, reason: str) -> None:
        """Add a reason why the effect cannot be determined from the text."""
        if len(self.unresolved) < MAX_REASONS:
            self.unresolved[reason] = None

    def findings(self) -> ShellFindings:
        """Return the findings; a secret and outbound traffic are exfiltration, unless programs only fetch secrets."""
        secrets, outbound = self._secret_sources, self._outbound_sources
        if secrets and outbound and secrets != outbound:
            self.add_violation(Violation.EXFILTRATION)
        if self.violations and not self.unresolved:
            self.add_unresolved("the code it runs is known only at run time")
        if self.unresolved:
            self.effects[Effect(EffectKind.UNRESOLVED, next(iter(self.unresolved))[:MAX_TARGET])] = None
        return ShellFindings(
            tuple(self.effects),
            tuple(self.violations),
            tuple(self.unresolved),
            tuple(self.programs),
            self.facts.facts(resolved=not self.unresolved),
            tuple(self.violations.values()),
        )


class ShellAnalysis(Protocol):
    """Interface of the shell visitor that the rules for programs use."""

    report: ShellReport

    def add_file_effect(self, kind: EffectKind, word: Word) -> None:
        """Add an effect on the file that a word names."""

    def add_tree_read(self, word: Word) -> None:
        """Add a read of every file below the directory that a word names."""

    def visit_command(self, words: list[Word], stdin: PipeData = NO_DATA) -> PipeData:
        """Analyse a command that another program starts, given by its words, and return its output."""

    def visit_script(self, text: str, stdin: PipeData = NO_DATA, *, same_shell: bool = False) -> PipeData:
        """Analyse text that another shell, or the same one, would run and return its output."""

    def can_analyze_inner(self, text: str) -> bool:
        """Return True if one more nested text may be analysed."""

    def judge_sql(self, name: str, sql: str, dialect: str) -> None:
        """Report the effects of the statements that a database client is given."""

    def assign(self, name: str, values: list[Word]) -> None:
        """Assign one of several values to a variable."""

    def forget(self, name: str) -> None:
        """Note that a variable gets a value that is not known."""

    def export(self, name: str) -> None:
        """Put a variable with its present value into the environment."""

    def trace_commands(self) -> None:
        """Note that the shell prints its commands with their values."""

    def forget_function(self, name: str) -> None:
        """Note that a function is removed."""

    def is_integer(self, name: str) -> bool:
        """Return True if a variable certainly holds an integer."""

    def add_path_facts(self, kind: EffectKind, text: str, *, certain: bool) -> None:
        """Add a path to the facts only: that of a file with which code inside the script works."""

    def program_path(self, text: str) -> str:
        """Return the path of a program that is named by its path."""

    def change_directory(self, word: Word) -> None:
        """Change the directory that relative paths start from."""


Rule = Callable[[ShellAnalysis, CommandCall], None]
"""Reports the effects of one command."""


def refuse_code(report: ShellReport, text: str) -> None:
    """Report text with a command in it where a shell evaluates the text."""
    if "$(" in text or "`" in text:
        report.add_violation(Violation.INLINE_CODE)


def names_in(text: str) -> frozenset[str]:
    """Return the set of blank-separated names in a table."""
    return frozenset(text.split())


def join_words(words: list[Word]) -> str:
    """Return the words as one line, for a message or a target."""
    return " ".join(word.text for word in words[:64])[:MAX_TARGET]
