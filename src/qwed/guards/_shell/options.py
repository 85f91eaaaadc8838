"""Option parser for programs described by a table."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from qwed.guards._shell.command_model import CommandCall, ShellAnalysis, Violation, Word
from qwed.guards._shell.env_variables import SAFE_PAGERS
from qwed.model import EffectKind

Rule = Callable[[ShellAnalysis, CommandCall], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgramSpec:
    """Known options of a program, and its effect on its operands."""

    effect: EffectKind | None = EffectKind.READ
    """Effect on each operand; None if operands are only text."""
    free: bool = False
    """True if none of its other options writes, runs or reads anything."""
    flags: str = ""
    """Short options without a value."""
    valued: str = ""
    """Short options with a value that is not a file."""
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
    """Long options with an effect of their own, also if abbreviated; a value requires `=`."""
    text_first: bool = False
    """True if the first operand is a pattern, not a file."""
    pattern_options: frozenset[str] = frozenset({"-e", "--regexp", "-f", "--file", "--files"})
    """Options that give the pattern, so that every operand is a file."""
    most: int | None = None
    """Maximum number of operands; more have another meaning: `uniq a b` writes `b`."""
    least: int = 0
    default: str = ""
    """Target without operands."""
    last: EffectKind | None = None
    """Effect on the last operand instead."""
    also: tuple[EffectKind, ...] = ()
    """Additional effects on the first operand."""
    recursive_options: frozenset[str] | None = None
    """Options with which it reads every file below a directory; empty if it always does."""


class ParsedOptions(NamedTuple):
    """Options and operands of a command."""

    operands: list[Word]
    options: list[tuple[str, Word | None]]
    """Options with their values, if they take one."""
    unknown_option: str = ""
    """First option that is not in the table."""

    def has(self, *names: str) -> bool:
        """Return True if one of the options is present."""
        return any(name in names for name, _ in self.options)


@dataclass(slots=True)
class _OptionParser:
    program: ProgramSpec
    operands: list[Word] = field(default_factory=list)
    options: list[tuple[str, Word | None]] = field(default_factory=list)
    unknown_option: str = ""

    def take(self, word: Word, rest: "Iterable[Word]") -> None:
        text = word.text
        if not word.is_option or not (word.is_exact or text.startswith("--")):
            self.operands.append(word)
        elif text.startswith("--"):
            self._long(word, rest)
        else:
            self._cluster(word, rest)

    def _long(self, word: Word, rest: "Iterable[Word]") -> None:
        name_as_written, has_value, value = word.text.partition("=")
        program = self.program
        relevant = program.reads | program.writes | program.runs
        name = expand_abbreviation(name_as_written, relevant | program.acts, program.words | program.long_valued)
        if has_value:
            self.options.append((name, word._replace(text=value)))
        elif name in program.long_valued or name in relevant:
            self.options.append((name, next(iter(rest), None)))
        else:
            self.options.append((name, None))
        if not (program.free or name in program.words | program.long_valued | relevant | program.acts):
            self.unknown_option = self.unknown_option or word.text

    def _cluster(self, word: Word, rest: "Iterable[Word]") -> None:
        program = self.program
        letters = word.text[1:]
        for index, letter in enumerate(letters):
            option = f"-{letter}"
            if letter in program.valued or option in program.reads | program.writes | program.runs:
                attached = letters[index + 1 :]
                value = word._replace(text=attached) if attached else next(iter(rest), None)
                self.options.append((option, value))
                return
            rest_of_word = word._replace(text=letters[index + 1 :])
            if letter not in program.flags and _is_path(rest_of_word):
                self.options.append((option, rest_of_word))
                return
            self.options.append((option, None))
            if letter not in program.flags and not program.free:
                self.unknown_option = self.unknown_option or word.text


_SHORTEST = 3
"""Length of `--x`: most programs accept any prefix of an option."""


def expand_abbreviation(name: str, relevant: frozenset[str], others: frozenset[str]) -> str:
    """Return the relevant option that `name` abbreviates, or `name` itself."""
    if name in others or name in relevant or len(name) < _SHORTEST:
        return name
    return next((option for option in sorted(relevant) if option.startswith(name)), name)


_PATH = re.compile(r"[/~]|\.{1,2}/|[A-Za-z]:[\\/]")
_ATTACHED = re.compile(r"--?[A-Za-z][\w-]*=?(?=[/~]|\.{1,2}/|[A-Za-z]:[\\/])")


def attached_files(arguments: list[Word]) -> list[Word]:
    """Return the paths attached to an option, as in `-o/tmp/x` and `--log=/tmp/x`."""
    matches = ((word, _ATTACHED.match(word.text)) for word in arguments)
    return [word._replace(text=word.text[match.end() :]) for word, match in matches if match]


def values_of(arguments: list[Word], options: Iterable[str]) -> list[Word]:
    """Return the values of these options, separated by a blank or `=` or attached to the letter."""
    values: list[Word] = []
    for index, word in enumerate(arguments):
        for option in options:
            value = _value_of(word, option, arguments[index + 1 : index + 2])
            values += [] if value is None else [value]
    return values


def _value_of(word: Word, option: str, following: list[Word]) -> Word | None:
    if word.text == option:
        return following[0] if following else None
    mark = f"{option}=" if option.startswith("--") else option
    return word._replace(text=word.text[len(mark) :]) if word.text.startswith(mark) else None


def _is_path(word: Word) -> bool:
    return _PATH.match(word.text) is not None


def join_path(directory: Word, word: Word) -> Word:
    """Return the file that a word names after the program changed to `place`."""
    if directory.text == "." or _PATH.match(word.text):
        return word
    return word._replace(
        text=f"{directory.text.rstrip('/')}/{word.text}", is_exact=word.is_exact and directory.is_exact
    )


def parse_options(program: ProgramSpec, arguments: list[Word]) -> ParsedOptions:
    """Separate options and operands by the table of the program."""
    parse = _OptionParser(program)
    rest = iter(arguments)
    for word in rest:
        if word.text == "--":
            parse.operands += rest
        else:
            parse.take(word, rest)
    return ParsedOptions(parse.operands, parse.options, parse.unknown_option)


def analyze_operands(analysis: ShellAnalysis, name: str, program: ProgramSpec, arguments: list[Word]) -> None:
    """Report the effects of a program of the table on its operands and through its options."""
    parsed = parse_options(program, arguments)
    analyze_parsed(analysis, name, program, parsed)


def analyze_parsed(analysis: ShellAnalysis, name: str, program: ProgramSpec, parsed: ParsedOptions) -> None:
    """Report the effects of a program whose arguments are already parsed."""
    if parsed.unknown_option:
        analysis.report.add_unresolved(f"`{parsed.unknown_option[:64]}` is not a known option of `{name}`")
    if parsed.has("--help", "--version"):
        return
    for option, value in parsed.options:
        if value is not None:
            _analyze_option(analysis, program, option, value)
    _analyze_files(analysis, name, program, parsed)


def _analyze_option(analysis: ShellAnalysis, program: ProgramSpec, option: str, value: Word) -> None:
    if option in program.reads:
        analysis.add_file_effect(EffectKind.READ, value)
    elif option in program.writes:
        analysis.add_file_effect(EffectKind.WRITE, value)
    elif option in program.runs and value.text not in SAFE_PAGERS:
        analysis.report.add_violation(Violation.ESCAPE)
        analysis.report.add_effect(EffectKind.EXECUTE, value.text)
    elif option not in program.words | program.long_valued and option[1:] not in program.valued and _is_path(value):
        # Assume that an option that is not in the table has the same effect on a path as the program on its operands.
        _report_target(analysis, program.last or program.effect or EffectKind.READ, value)


def _analyze_files(analysis: ShellAnalysis, name: str, program: ProgramSpec, parsed: ParsedOptions) -> None:
    count = len(parsed.operands)
    if count < program.least or (program.most is not None and count > program.most):
        analysis.report.add_unresolved(f"`{name}` with {count} operands is not known")
    has_pattern_option = parsed.has(*program.pattern_options)
    targets = parsed.operands[1:] if program.text_first and not has_pattern_option else parsed.operands
    if not targets and program.default:
        targets = [Word(program.default)]
    kinds = [program.effect] * len(targets)
    if program.last is not None and kinds:
        kinds[-1] = program.last
    recursive = program.recursive_options is not None and (
        not program.recursive_options or parsed.has(*program.recursive_options)
    )
    for kind, target in zip(kinds, targets, strict=True):
        if kind is not None:
            _report_target(analysis, kind, target)
        if kind is EffectKind.READ and recursive:
            analysis.add_tree_read(target)
    for kind in program.also:
        _report_target(analysis, kind, parsed.operands[0] if parsed.operands else Word(program.default or name))


def _report_target(analysis: ShellAnalysis, kind: EffectKind, target: Word) -> None:
    if kind in (EffectKind.READ, EffectKind.WRITE, EffectKind.DELETE):
        analysis.add_file_effect(kind, target)
    else:
        analysis.report.add_effect(kind, target.text)
