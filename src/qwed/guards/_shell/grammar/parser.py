"""Parser of command lines: finds subcommands, options, values and operands by the grammar of a program."""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from qwed.guards._shell.command_model import Word
from qwed.guards._shell.grammar.model import Command, Option, Outcome, Slot

_COMPUTED = ("$", "`")
MAX_VERBS = 8
NO_OUTCOME = Outcome()


class Argument(NamedTuple):
    """A value of an option, or an operand, with its role."""

    role: str
    word: Word
    option: str = ""
    """Name of the option, or "" for an operand."""
    following: tuple[Word, ...] = ()
    """The words after it, for a role that takes all of them."""


@dataclass(slots=True)
class ParsedCommand:
    """A command line, as the grammar of its program understands it."""

    program: Command
    path: list[Command] = field(default_factory=list)
    """The program and its subcommands."""
    verbs: list[str] = field(default_factory=list)
    """The subcommands as they are written; several names may have one grammar."""
    outcome: Outcome = NO_OUTCOME
    options: list[Option] = field(default_factory=list)
    values: list[Argument] = field(default_factory=list)
    """Values of options, in order."""
    operands: list[Word] = field(default_factory=list)
    arguments: list[Argument] = field(default_factory=list)
    """Operands with their roles."""
    problems: dict[str, None] = field(default_factory=dict)
    """Reasons why the command line is not understood."""
    is_about: bool = False
    """True if it only prints help or a version."""

    @property
    def command(self) -> Command:
        """The innermost subcommand, or the program."""
        return self.path[-1]

    @property
    def name(self) -> str:
        """The program and its subcommands as they are written."""
        return " ".join((self.program.name, *self.verbs))

    def has(self, *names: str) -> bool:
        """Return True if one of these options, or options of this kind, is present."""
        return any(option.name in names or option.kind in names for option in self.options)

    def values_of(self, *names: str) -> list[Word]:
        """Return the values of these options."""
        return [value.word for value in self.values if value.option in names]


def parse(program: Command, arguments: list[Word]) -> ParsedCommand:
    """Parse the arguments of a program by its grammar; what is not understood is in `problems`."""
    parsed = ParsedCommand(program)
    rest = arguments
    command: Command | None = program
    while command is not None and len(parsed.path) <= MAX_VERBS:
        parsed.path.append(command)
        parsed.is_about = len(rest) == 1 and rest[0].is_exact and _is_about(command, rest[0].text)
        level = _Level(command, parsed)
        rest = level.run(rest)
        command = level.next_command
    _choose_outcome(parsed)
    return parsed


def _is_about(command: Command, text: str) -> bool:
    option = command.options.get(text)
    return option is not None and option.kind == "about"


@dataclass(slots=True)
class _Level:
    """The arguments of one command, up to its subcommand."""

    command: Command
    parsed: ParsedCommand
    next_command: Command | None = None
    only_operands: bool = False

    def run(self, arguments: list[Word]) -> list[Word]:
        """Take the arguments in order and return those after the subcommand."""
        self.only_operands = "no-options" in self.command.traits
        rest = deque(self._unbundle(arguments))
        while rest:
            word = rest.popleft()
            if "at-files" in self.command.traits and word.text.startswith("@"):
                self._report(f"the options in `{word.text[:64]}` are not known")
            if self.only_operands or not self._is_option(word):
                if self._descends(word):
                    return list(rest)
                self._add_operand(word)
            elif word.text == "--":
                self.only_operands = True
                self.parsed.options += [option for option in (self.command.options.get("--"),) if option is not None]
            else:
                self._option(word, rest)
        return []

    def _is_option(self, word: Word) -> bool:
        text = word.text
        return (text.startswith("-") and len(text) > 1) or (text.startswith("+") and text in self.command.options)

    def _descends(self, word: Word) -> bool:
        """Go on with the subcommand that the word names."""
        if not self.command.subcommands or self.parsed.operands:
            return False
        if not word.is_exact:
            self._report(f"the subcommand `{word.text[:64]}` of `{self.parsed.name}` is known only at run time")
            return False
        self.next_command = self.command.subcommand(word.text)
        if self.next_command is not None:
            self.parsed.verbs.append(word.text[:64])
        elif not self._takes_operands():
            self._report(f"`{word.text[:64]}` is not a known subcommand of `{self.parsed.name}`")
        return self.next_command is not None

    def _takes_operands(self) -> bool:
        return any(outcome.slots for outcome in self.command.outcomes)

    def _add_operand(self, word: Word) -> None:
        is_exempt = self.only_operands or "unparsed" in self.command.traits
        if not word.is_resolved and not is_exempt and word.text.startswith(_COMPUTED):
            self._may_be_option(word)
        elif not word.is_resolved and word.has_inner_quotes and "no-options" not in self.command.traits:
            self._report(f"`{word.text[:64]}` is known only at run time")
        self.parsed.operands.append(word)
        self.only_operands |= "posix" in self.command.traits

    def _may_be_option(self, word: Word) -> None:
        """Report a word that may turn out to be an option with an effect."""
        options = self.command.options.values()
        if any({*option.roles} - {"text"} or option.effects or option.outcomes for option in options):
            self._report(f"`{word.text[:64]}` is known only at run time")

    def _unbundle(self, arguments: list[Word]) -> list[Word]:
        """Put dashes before the letters of a first word such as `xzf`, and each value behind its letter."""
        if "bundle" not in self.command.traits or not arguments or not arguments[0].text[:1].isalpha():
            return arguments
        rest = iter(arguments[1:])
        words: list[Word] = []
        for letter in arguments[0].text:
            words.append(arguments[0]._replace(text=f"-{letter}"))
            option = self.command.options.get(f"-{letter}")
            if option is not None and option.roles and not option.optional:
                words += [value for value in (next(rest, None),) if value is not None]
        return [*words, *rest]

    def _option(self, word: Word, rest: deque[Word]) -> None:
        text, traits = word.text, self.command.traits
        if "leading" in traits and self.parsed.operands:
            self._report(f"`{text[:64]}` of `{self.parsed.name}` comes after an operand")
        name = text.partition("=")[0]
        if any(mark in name for mark in "$`*?[") and not word.is_exact:
            self._report(f"`{text[:64]}` is known only at run time")
        elif "number" in traits and text[1:].isdigit():
            return
        elif text.startswith("--") or {"words", "go"} & traits or text in self.command.options:
            self._long(word, rest)
        else:
            self._cluster(word, rest)

    def _long(self, word: Word, rest: deque[Word]) -> None:
        name, has_value, value = word.text.partition("=")
        option = self._find(name)
        if option is None:
            self._unknown(word, rest)
        elif has_value and not option.roles:
            plain = not (option.effects or option.outcomes or option.kind) or value == "true"
            if not (plain and {"go", "bool-values"} & self.command.traits):
                self._report(f"`{name[:64]}` of `{self.parsed.name}` has no value")
            self._use(option, [])
        else:
            attached = word._replace(text=value) if has_value else None
            self._with_values(option, attached, rest)

    def _find(self, name: str) -> Option | None:
        options = self.command.options
        option = options.get(name)
        if option is None and "go" in self.command.traits:
            option = options.get(f"-{name}") or options.get(name.removeprefix("-"))
        if option is not None or "abbrev" not in self.command.traits or not name.startswith("--"):
            return option
        matches = [option for known, option in options.items() if known.startswith(name)]
        if len({option.meaning for option in matches}) > 1:
            self._report(f"`{name[:64]}` of `{self.parsed.name}` is ambiguous")
        return matches[0] if matches else None

    def _unknown(self, word: Word, rest: deque[Word]) -> None:
        name, has_value, value = word.text.partition("=")
        if "open" in self.command.traits and name.startswith("--"):
            has_values = bool(has_value or (rest and not self._is_option(rest[0])))
            parameter = Option(name, ("parameter",) if has_values else (), many=has_values and name.endswith("s"))
            self._with_values(parameter, word._replace(text=value) if has_value else None, rest)
        else:
            self._report_unknown(word)

    def _cluster(self, word: Word, rest: deque[Word]) -> None:
        """Take a cluster of letters such as `-xzf`; the last letter may have a value."""
        letters = word.text[1:]
        for index, letter in enumerate(letters):
            option = self.command.options.get(f"-{letter}")
            if option is None:
                self._report_unknown(word)
                return
            if option.roles:
                attached = letters[index + 1 :]
                self._with_values(option, word._replace(text=attached) if attached else None, rest)
                return
            self._use(option, [])

    def _with_values(self, option: Option, attached: Word | None, rest: deque[Word]) -> None:
        values = [] if attached is None else [attached]
        if option.takes_rest:
            self._use(option, [*values, *rest])
            rest.clear()
            return
        while rest and not option.optional and self._wants_more(option, values, rest[0]):
            values.append(rest.popleft())
        if len(values) < len(option.roles) and not option.optional:
            self._report(f"`{option.name}` of `{self.parsed.name}` needs a value")
        self._use(option, values)

    def _wants_more(self, option: Option, values: list[Word], following: Word) -> bool:
        if option.many and len(values) >= len(option.roles):
            return not self._is_option(following)
        return len(values) < len(option.roles)

    def _use(self, option: Option, values: list[Word]) -> None:
        self.parsed.options.append(option)
        if option.takes_rest:
            for word in values[:1]:
                self.parsed.values.append(Argument(option.roles[0], word, option.name, tuple(values[1:])))
            return
        roles = option.roles if not option.many else option.roles * len(values)
        self.parsed.values += [Argument(role, word, option.name) for role, word in zip(roles, values, strict=False)]

    def _report_unknown(self, word: Word) -> None:
        if "unparsed" not in self.command.traits:
            self._report(f"`{word.text[:64]}` is not a known option of `{self.parsed.name}`")

    def _report(self, reason: str) -> None:
        self.parsed.problems[reason] = None


def _choose_outcome(parsed: ParsedCommand) -> None:
    """Choose the effects by the modes and the number of operands, and give each operand its role."""
    modes = list(dict.fromkeys(option.outcomes for option in parsed.options if option.outcomes))
    if len(modes) > 1:
        parsed.problems[f"`{parsed.name}` is given options that contradict each other"] = None
    outcomes = [outcome for mode in modes or [parsed.command.outcomes] for outcome in mode]
    given = sum(option.kind == "give" for option in parsed.options) > 0
    count = len(parsed.operands) + given
    outcome = next((outcome for outcome in outcomes if outcome.accepts(count)), None)
    if outcome is None:
        if not parsed.problems and not parsed.is_about:
            parsed.problems[_missing(parsed, count)] = None
        outcome = outcomes[-1] if outcomes else Outcome(("unresolved",))
    parsed.outcome = outcome
    slots = outcome.slots[1:] if given else outcome.slots
    parsed.arguments = _assign(slots, parsed.operands)


def _missing(parsed: ParsedCommand, count: int) -> str:
    name = parsed.name
    if not parsed.command.outcomes:
        return f"`{name}` without a subcommand is not known"
    return f"`{name}` with {count} operands is not known"


def _assign(slots: tuple[Slot, ...], operands: list[Word]) -> list[Argument]:
    """Give each operand the role of its position."""
    arguments: list[Argument] = []
    rest = list(operands)
    for index, slot in enumerate(slots):
        after = slots[index + 1 :]
        if slot.takes_rest:
            return arguments + [Argument(slot.roles[0], word, following=tuple(rest[1:])) for word in rest[:1]]
        reserved = sum(other.number in ("", "+") for other in after)
        take = max(0, len(rest) - reserved)
        take = take - sum(other.number == "?" for other in after) if slot.number in ("*", "+") else min(1, take)
        words, rest = rest[: max(take, 0)], rest[max(take, 0) :]
        if not words and slot.default:
            words = [Word(slot.default)]
        arguments += [Argument(role, word) for word in words for role in slot.roles]
        later = [role for other in after for role in other.roles if not other.takes_rest]
        arguments += [Argument(role, word) for word in words if word.is_several for role in later]
    # Operands beyond the slots have been reported; they may be files.
    return arguments + [Argument("text", word) for word in rest]
