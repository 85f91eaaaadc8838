"""Facts of a shell script: commands, paths and hosts, collected while the script is analysed."""

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from qwed.guards.path import PathLocation, resolve
from qwed.model import EffectKind, Facts
from qwed.model.canonical_names import canonical_host, canonical_path, canonical_url
from qwed.model.facts import (
    MAX_ENTRIES,
    MAX_ENTRY_LENGTH,
    CodeFacts,
    ShellCommand,
    ShellFacts,
    SqlFacts,
    bounded,
    cut,
    merge_code,
    merge_sql,
)

if TYPE_CHECKING:
    from qwed.guards._shell.command_model import Word
    from qwed.guards._shell.grammar.parser import ParsedCommand

_KERNEL_LINKS = ("/proc/", "/dev/fd", "/dev/std")
_LETTERS = re.compile(r"-[A-Za-z]{2,}")
_WHOLE_WORDS = frozenset({"find", "gfind", "java", "openssl"})
"""Programs without a grammar whose options are whole words after one dash."""
_WRITES_ELSEWHERE = frozenset(
    """
    gzip gunzip bzip2 bunzip2 pbzip2 pigz xz unxz pxz lzma unlzma zstd unzstd zstdmt pzstd lz4 unlz4 lzop brotli
    compress uncompress zip rar 7z 7za 7zr mktemp tempfile gpg gpg2 gpgsm sqlite3 duckdb pyvenv npm
    """.split()  # noqa: SIM905 - a table of words reads better than a list of literals
)
"""Programs that create files which the command does not name: `x.gz` beside `x`, one in /tmp, their own data."""
_OTHER_SETTINGS = ("--global", "--system", "--file", "-f", "--worktree")
"""Options of `git config` for a file elsewhere."""
_NUMBER = re.compile(r"-\d+")
_UNCERTAIN_PATTERN = re.compile(r"(?:\A|/)\.[*?\[]|[*?\[][^/]*/(?:.*/)?\.\.(?:/|\Z)")
"""Patterns that may match `..`, or that go up from what they match."""
_NOT_A_HOST = re.compile(r"\s|\A-")


@dataclass(slots=True)
class _FoundCommand:
    """A command as it was found, and as the grammar of its program reads it."""

    program: str
    words: "list[Word]"
    parsed: "ParsedCommand | None" = None


@dataclass(slots=True)
class ShellFactsCollector:
    """Facts of one script, in the order they were found."""

    complete: bool = True
    """False as soon as something was found that is not listed."""
    code: CodeFacts | None = None
    sql: SqlFacts | None = None
    _commands: list[_FoundCommand] = field(default_factory=list)
    _read: dict[str, None] = field(default_factory=dict)
    _written: dict[str, None] = field(default_factory=dict)
    _targets: dict[str, None] = field(default_factory=dict)
    """Targets of network effects."""
    _hosts: dict[str, str | None] = field(default_factory=dict)
    """Host of each network target that a rule has named itself."""

    def add_command(self, program: str, words: "list[Word]") -> None:
        """Add a command with the words after its name."""
        if program in _WRITES_ELSEWHERE or len(self._commands) > 4 * MAX_ENTRIES:
            self.complete = False
        if len(self._commands) <= 4 * MAX_ENTRIES:
            self._commands.append(_FoundCommand(program, words))

    def forget_commands(self) -> None:
        """Forget the commands so far, which only entered the directory of the script."""
        self._commands.clear()

    def describe(self, program: str, parsed: "ParsedCommand") -> None:
        """Note how the grammar reads the arguments of the command of this program that was added last."""
        if parsed.verbs[:1] == ["config"] and parsed.has(*_OTHER_SETTINGS):
            self.complete = False
        for found in reversed(self._commands[-8:]):
            if found.program == program and found.parsed is None:
                found.parsed = parsed
                return

    @property
    def command_count(self) -> int:
        """Number of commands so far."""
        return len(self._commands)

    def add_path(self, kind: EffectKind, path: str, *, certain: bool) -> None:
        """Add a file that is read, written or deleted; `certain` says if it can be no other one."""
        if not (certain and _is_plain_path(path)):
            self.complete = False
        entry = path if path.startswith("~") or not path else canonical_path(path)
        (self._read if kind is EffectKind.READ else self._written)[entry] = None

    def add_target(self, target: str) -> None:
        """Add the target of a network effect, of which the host is looked for."""
        self._targets[target] = None

    def add_url(self, target: str) -> None:
        """Add an address of which the scheme may be missing."""
        address = target if "://" in target else f"http://{target}"
        url = None if _NOT_A_HOST.search(target) else canonical_url(address)
        self._hosts[target] = None if url is None else url.host

    def note_unlisted(self) -> None:
        """Note that something happens that is not listed."""
        self.complete = False

    def add_code(self, code: CodeFacts) -> None:
        """Add the facts of a program inside the script."""
        self.code = merge_code(self.code, code)

    def add_sql(self, sql: SqlFacts | None) -> None:
        """Add the facts of statements inside the script."""
        self.sql = merge_sql(self.sql, sql)

    def merge(self, other: "ShellFactsCollector") -> None:
        """Add the facts of another reading of the same text."""
        self.complete &= other.complete
        self._commands += other._commands
        for mine, theirs in ((self._read, other._read), (self._written, other._written)):
            mine.update(theirs)
        self._targets.update(other._targets)

    def facts(self, *, resolved: bool) -> Facts:
        """Return the facts; `resolved` says if the effects of the script are certain."""
        hosts = [self._host_of(target) for target in self._targets]
        described = [_command_of(found) for found in self._commands]
        commands = tuple(dict.fromkeys(command for command, _ in described))
        known = [whole and _is_known(found) for found, (_, whole) in zip(self._commands, described, strict=True)]
        paths_read, all_read = bounded(self._read)
        paths_written, all_written = bounded(self._written)
        listed, all_hosts = bounded(host for host, _ in hosts if host)
        everything = all_read and all_written and all_hosts and len(commands) <= MAX_ENTRIES
        shell = ShellFacts(
            complete=self.complete and resolved and everything and all(known) and all(certain for _, certain in hosts),
            commands=commands[:MAX_ENTRIES],
            paths_read=paths_read,
            paths_written=paths_written,
            hosts=listed,
        )
        return Facts(shell=shell, sql=self.sql, code=self.code)

    def _host_of(self, target: str) -> tuple[str, bool]:
        """Return the host of a network target, or the empty string, and whether it is certain."""
        if target in self._hosts:
            return self._hosts[target] or "", self._hosts[target] is not None
        if "://" in target:
            url = canonical_url(target)
            return ("", False) if url is None else (url.host, True)
        # It may be the name of a setting, such as a remote of git, but a rule against this host should see it.
        host = canonical_host(target) if "." in target and not _NOT_A_HOST.search(target) else None
        return host or "", False


def _is_plain_path(path: str) -> bool:
    """Return True for an absolute path that is what its text says."""
    if not path.startswith("/") or "$" in path or "`" in path or _UNCERTAIN_PATTERN.search(path):
        return False
    return not path.startswith(_KERNEL_LINKS) or resolve(path, None).location is not PathLocation.UNRESOLVABLE


def _is_known(found: _FoundCommand) -> bool:
    """Return True if every word of the command is known."""
    return all(word.is_as_written for word in found.words)


def _command_of(found: _FoundCommand) -> tuple[ShellCommand, bool]:
    """Return a command as a fact, and True if nothing of it was left out."""
    parsed = found.parsed
    if parsed is None:
        names: Iterable[str] = _raw_options(found.program, found.words)
        arguments = [word.text for word in found.words if not word.is_option]
    else:
        names = _option_names(found, parsed)
        arguments = [word.text for word in (*parsed.operands, *(value.word for value in parsed.values))]
    options, all_options = bounded(names)
    listed, all_arguments = cut(arguments)
    verbs = "" if parsed is None else " ".join(_verbs(parsed))
    command = ShellCommand(
        program=found.program[:MAX_ENTRY_LENGTH], subcommand=verbs, options=options, arguments=listed
    )
    return command, all_options and all_arguments and len(found.program) <= MAX_ENTRY_LENGTH


def _option_names(found: _FoundCommand, parsed: "ParsedCommand") -> Iterator[str]:
    yield from (option.name for option in parsed.options)
    # Grammars with these traits accept options that they do not list.
    if any("unparsed" in command.traits for command in parsed.path):
        yield from _raw_options(found.program, found.words)
    elif any("number" in command.traits for command in parsed.path):
        yield from (word.text for word in found.words if _NUMBER.fullmatch(word.text))


def _verbs(parsed: "ParsedCommand") -> Iterator[str]:
    """Yield the subcommands; one that is abbreviated has its full name."""
    for holder, command, verb in zip(parsed.path, parsed.path[1:], parsed.verbs, strict=False):
        yield command.name.rpartition(" ")[2] if "verb-abbrev" in holder.traits else verb


def _raw_options(program: str, words: "Iterable[Word]") -> Iterator[str]:
    """Yield options as they are written, and each letter of a cluster."""
    for word in words:
        if word.is_option:
            name = word.text.partition("=")[0]
            yield name
            if _LETTERS.fullmatch(name) and program not in _WHOLE_WORDS:
                yield from (f"-{letter}" for letter in name[1:])


def program_path(text: str, directory: str) -> str:
    """Return the path of a program from the directory in which it is started; a plain name stays one."""
    return canonical_path(posixpath.join(directory, text)) if directory and "/" in text else text
