"""What the rooms of the shell guard hand to one another: words, what flows into a command, and the findings so far."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from qwed.guards.files import file_effects
from qwed.words import LEAVING, Effect, EffectKind

MAX_TARGET = 256
MAX_FILES = 4_000
MAX_REASONS = 100


class Violation(StrEnum):
    """Shapes refused whoever asks, in the words the answer uses."""

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
    """What the command does, which shapes are refused at every trust level, and what could not be resolved."""

    effects: tuple[Effect, ...] = ()
    violations: tuple[str, ...] = ()
    unresolved: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    """The names of everything it starts, as far as they are known."""


class Word(NamedTuple):
    """One word as the program gets it; what is decided only while it runs stays as it is written."""

    text: str
    known: bool = True
    """Whether `text` is exact."""
    pattern: bool = False
    """Whether the shell, or a listing, picks the file names; `text` says from where."""
    spliced: bool = False
    """Whether quotes or escapes stand inside a word that needs none."""
    built: bool = False
    """Whether it is put together from variables or the output of commands."""
    origin: Violation | None = None
    """What running this text as code would be called."""

    @property
    def settled(self) -> bool:
        """Whether we can name what it stands for."""
        return self.known or self.pattern

    @property
    def is_option(self) -> bool:
        """Whether the program takes it for an option."""
        return self.text.startswith("-") and len(self.text) > 1


class Source(StrEnum):
    """Where the text a command reads comes from."""

    NOTHING = "nothing"
    TEXT = "text"
    LISTING = "listing"
    UNKNOWN = "unknown"
    DECODED = "decoded"
    REMOTE = "remote"


class Feed(NamedTuple):
    """What a command finds on its standard input, or leaves on its standard output."""

    source: Source = Source.NOTHING
    text: str = ""
    """The text itself for TEXT, where the listing starts for LISTING."""

    @property
    def violation(self) -> Violation:
        """What running this text as a script is called."""
        return _RUN_AS_SCRIPT.get(self.source, Violation.PIPED_TO_SHELL)


_RUN_AS_SCRIPT = {Source.REMOTE: Violation.REMOTE_TO_SHELL, Source.DECODED: Violation.DECODED_TO_SHELL}
NOTHING = Feed()
UNKNOWN = Feed(Source.UNKNOWN)


class Call(NamedTuple):
    """One command: its name, the words behind it, and what it finds on its standard input."""

    name: str
    arguments: list[Word]
    fed: Feed = NOTHING

    @property
    def line(self) -> str:
        """The command as one line, for a message or a target."""
        return joined([Word(self.name), *self.arguments])

    @property
    def texts(self) -> list[str]:
        """The words behind the name as text."""
        return [word.text for word in self.arguments]

    @property
    def operands(self) -> list[Word]:
        """The words that are no options."""
        return [word for word in self.arguments if not word.is_option]


@dataclass(slots=True)
class ShellReport:
    """Findings in the order they were made, each once."""

    effects: dict[Effect, None] = field(default_factory=dict)
    violations: dict[str, None] = field(default_factory=dict)
    unresolved: dict[str, None] = field(default_factory=dict)
    programs: dict[str, None] = field(default_factory=dict)

    def effect(self, kind: EffectKind, target: str) -> None:
        """Something the command would do."""
        if len(self.effects) >= MAX_FILES:
            self.unclear(f"the command does more than {MAX_FILES} things")
            return
        if Effect(kind, target[:MAX_TARGET]) not in self.effects:
            self.effects.update(dict.fromkeys(file_effects(kind, target[:MAX_TARGET])))

    def violate(self, violation: str) -> None:
        """A shape that is refused at every trust level."""
        self.violations[violation] = None

    def unclear(self, reason: str) -> None:
        """Something that cannot be told from the text."""
        if len(self.unresolved) < MAX_REASONS:
            self.unresolved[reason] = None

    def findings(self) -> ShellFindings:
        """The report closed; a secret and a way out in one command is a secret leaving."""
        kinds = {effect.kind for effect in self.effects}
        # A variable in a request is how its sender is recognised; a file or the whole environment is not.
        secrets = [each for each in self.effects if each.kind is EffectKind.SECRET and not each.target.startswith("$")]
        if secrets and kinds & LEAVING:
            self.violate(Violation.EXFILTRATION)
        if self.violations and not self.unresolved:
            self.unclear("what is run is decided while it runs")
        if self.unresolved:
            self.effects[Effect(EffectKind.UNRESOLVED, next(iter(self.unresolved))[:MAX_TARGET])] = None
        return ShellFindings(tuple(self.effects), tuple(self.violations), tuple(self.unresolved), tuple(self.programs))


class Look(Protocol):
    """What the rules for programs may ask of the walk that found the program."""

    report: ShellReport

    def file(self, kind: EffectKind, word: Word) -> None:
        """Something done to the file a word names."""

    def tree(self, word: Word) -> None:
        """Every file below the directory a word names is read."""

    def command(self, words: list[Word], fed: Feed = NOTHING) -> Feed:
        """Judge a command by its words."""

    def script(self, text: str, fed: Feed = NOTHING) -> Feed:
        """Judge text a shell would run."""

    def inner(self, text: str) -> bool:
        """Whether one more text inside the command may be judged."""

    def assign(self, name: str, values: list[Word]) -> None:
        """Give a variable one of several values."""

    def enter(self, word: Word) -> None:
        """Change the directory that relative paths start from."""


def names_in(text: str) -> frozenset[str]:
    """The blank-separated names of a table."""
    return frozenset(text.split())


def joined(words: list[Word]) -> str:
    """The words as one line, for a message or a target."""
    return " ".join(word.text for word in words[:64])[:MAX_TARGET]
