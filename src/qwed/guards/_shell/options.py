"""Options and operands of a program whose ways are in a table."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from qwed.guards._shell.model import Call, Look, Violation, Word
from qwed.guards._shell.variables import PLAIN_SHOWERS
from qwed.words import EffectKind

Rule = Callable[[Look, Call], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """The options of a program that are known, and what it does to its operands."""

    effect: EffectKind | None = EffectKind.READ
    """Done to each operand; None where operands are only text."""
    free: bool = False
    """Whether no option of it writes, runs or reads anything."""
    flags: str = ""
    """Short options without a value."""
    valued: str = ""
    """Short options that take a value which is no file."""
    words: frozenset[str] = frozenset()
    """Long options without a value or with `=value`."""
    long_valued: frozenset[str] = frozenset()
    """Long options whose value may be the next word."""
    reads: frozenset[str] = frozenset()
    """Options whose value is a file it reads."""
    writes: frozenset[str] = frozenset()
    """Options whose value is a file it writes."""
    runs: frozenset[str] = frozenset()
    """Options whose value is a program it runs, or code."""
    acts: frozenset[str] = frozenset()
    """Long options that do something on their own, however abbreviated; a value of one needs its `=`."""
    text_first: bool = False
    """Whether the first operand is a pattern, not a file."""
    pattern_options: frozenset[str] = frozenset({"-e", "--regexp", "-f", "--file", "--files"})
    """Options that give the pattern, so that every operand is a file."""
    most: int | None = None
    """More operands than this mean something else: `uniq a b` writes `b`."""
    least: int = 0
    default: str = ""
    """What it works on when no operand is given."""
    last: EffectKind | None = None
    """Done to the last operand instead."""
    also: tuple[EffectKind, ...] = ()
    """Done besides, to the first operand."""
    deep: frozenset[str] | None = None
    """Options with which it reads every file below a directory; none at all where it always does."""


class Parsed(NamedTuple):
    """The words of a command told apart."""

    operands: list[Word]
    options: list[tuple[str, Word | None]]
    """Each option with the value that belongs to it, if it takes one."""
    strange: str = ""
    """The first option that is not in the table."""

    def has(self, *names: str) -> bool:
        """Whether one of the options is given."""
        return any(name in names for name, _ in self.options)


@dataclass(slots=True)
class _Parse:
    program: Program
    operands: list[Word] = field(default_factory=list)
    options: list[tuple[str, Word | None]] = field(default_factory=list)
    strange: str = ""

    def take(self, word: Word, rest: "Iterable[Word]") -> None:
        text = word.text
        if not word.is_option or not (word.known or text.startswith("--")):
            self.operands.append(word)
        elif text.startswith("--"):
            self._long(word, rest)
        else:
            self._cluster(word, rest)

    def _long(self, word: Word, rest: "Iterable[Word]") -> None:
        short, given, value = word.text.partition("=")
        program = self.program
        telling = program.reads | program.writes | program.runs
        name = in_full(short, telling | program.acts, program.words | program.long_valued)
        if given:
            self.options.append((name, word._replace(text=value)))
        elif name in program.long_valued or name in telling:
            self.options.append((name, next(iter(rest), None)))
        else:
            self.options.append((name, None))
        if not (program.free or name in program.words | program.long_valued | telling | program.acts):
            self.strange = self.strange or word.text

    def _cluster(self, word: Word, rest: "Iterable[Word]") -> None:
        program = self.program
        letters = word.text[1:]
        for at, letter in enumerate(letters):
            option = f"-{letter}"
            if letter in program.valued or option in program.reads | program.writes | program.runs:
                attached = letters[at + 1 :]
                value = word._replace(text=attached) if attached else next(iter(rest), None)
                self.options.append((option, value))
                return
            behind = word._replace(text=letters[at + 1 :])
            if letter not in program.flags and _is_place(behind):
                self.options.append((option, behind))
                return
            self.options.append((option, None))
            if letter not in program.flags and not program.free:
                self.strange = self.strange or word.text


_SHORTEST = 3
"""`--x`: most programs take any beginning of an option for it."""


def in_full(name: str, telling: frozenset[str], others: frozenset[str]) -> str:
    """The option that `name` abbreviates, where that is one which does something."""
    if name in others or name in telling or len(name) < _SHORTEST:
        return name
    return next((option for option in sorted(telling) if option.startswith(name)), name)


_PLACE = re.compile(r"[/~]|\.{1,2}/|[A-Za-z]:[\\/]")
_ATTACHED = re.compile(r"--?[A-Za-z][\w-]*=?(?=[/~]|\.{1,2}/|[A-Za-z]:[\\/])")


def attached_files(arguments: list[Word]) -> list[Word]:
    """The paths that stand right behind an option, as in `-o/tmp/x` and `--log=/tmp/x`."""
    found = ((word, _ATTACHED.match(word.text)) for word in arguments)
    return [word._replace(text=word.text[match.end() :]) for word, match in found if match]


def values_of(arguments: list[Word], options: Iterable[str]) -> list[Word]:
    """The values of these options, whether they stand behind a blank, behind `=` or right behind the letter."""
    found: list[Word] = []
    for at, word in enumerate(arguments):
        for option in options:
            value = _value_of(word, option, arguments[at + 1 : at + 2])
            found += [] if value is None else [value]
    return found


def _value_of(word: Word, option: str, following: list[Word]) -> Word | None:
    if word.text == option:
        return following[0] if following else None
    mark = f"{option}=" if option.startswith("--") else option
    return word._replace(text=word.text[len(mark) :]) if word.text.startswith(mark) else None


def _is_place(word: Word) -> bool:
    return _PLACE.match(word.text) is not None


def below(place: Word, word: Word) -> Word:
    """The file a word names once a program has gone to `place`."""
    if place.text == "." or _PLACE.match(word.text):
        return word
    return word._replace(text=f"{place.text.rstrip('/')}/{word.text}", known=word.known and place.known)


def parsed(program: Program, arguments: list[Word]) -> Parsed:
    """Options and operands told apart by the table of the program."""
    parse = _Parse(program)
    rest = iter(arguments)
    for word in rest:
        if word.text == "--":
            parse.operands += rest
        else:
            parse.take(word, rest)
    return Parsed(parse.operands, parse.options, parse.strange)


def judge_operands(look: Look, name: str, program: Program, arguments: list[Word]) -> None:
    """Report what a program of the table does to its operands and through its options."""
    found = parsed(program, arguments)
    judge_parsed(look, name, program, found)


def judge_parsed(look: Look, name: str, program: Program, found: Parsed) -> None:
    """The same for words that are told apart already."""
    if found.strange:
        look.report.unclear(f"`{found.strange[:64]}` is not a known option of `{name}`")
    if found.has("--help", "--version"):
        return
    for option, value in found.options:
        if value is not None:
            _judge_option(look, program, option, value)
    _judge_files(look, name, program, found)


def _judge_option(look: Look, program: Program, option: str, value: Word) -> None:
    if option in program.reads:
        look.file(EffectKind.READ, value)
    elif option in program.writes:
        look.file(EffectKind.WRITE, value)
    elif option in program.runs and value.text not in PLAIN_SHOWERS:
        look.report.violate(Violation.ESCAPE)
        look.report.effect(EffectKind.EXECUTE, value.text)
    elif option not in program.words | program.long_valued and option[1:] not in program.valued and _is_place(value):
        # What an option that is not in the table does with a path is at worst what the program does to its operands.
        _touch(look, program.last or program.effect or EffectKind.READ, value)


def _judge_files(look: Look, name: str, program: Program, found: Parsed) -> None:
    count = len(found.operands)
    if count < program.least or (program.most is not None and count > program.most):
        look.report.unclear(f"`{name}` with {count} operands is not known")
    given = found.has(*program.pattern_options)
    targets = found.operands[1:] if program.text_first and not given else found.operands
    if not targets and program.default:
        targets = [Word(program.default)]
    kinds = [program.effect] * len(targets)
    if program.last is not None and kinds:
        kinds[-1] = program.last
    deep = program.deep is not None and (not program.deep or found.has(*program.deep))
    for kind, target in zip(kinds, targets, strict=True):
        if kind is not None:
            _touch(look, kind, target)
        if kind is EffectKind.READ and deep:
            look.tree(target)
    for kind in program.also:
        _touch(look, kind, found.operands[0] if found.operands else Word(program.default or name))


def _touch(look: Look, kind: EffectKind, target: Word) -> None:
    if kind in (EffectKind.READ, EffectKind.WRITE, EffectKind.DELETE):
        look.file(kind, target)
    else:
        look.report.effect(kind, target.text)
