"""Facts of an action: what engines and guards found in it, in the typed form that policies read.

A group is None if it does not apply. One that is not complete may lack entries, so nothing may be allowed by it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from qwed.model.effect import Effect

FACTS_VERSION = 1
"""Version of the groups and fields; later versions only add to them."""
MAX_ENTRIES = 1_000
"""Maximum number of entries of a list; a group with more is cut off there and incomplete."""
MAX_ENTRY_LENGTH = 4_096
"""Maximum length of an entry; a longer one is cut off and its group incomplete."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SqlFacts:
    """SQL statements of the action, those inside a command, a program or a parameter included."""

    complete: bool
    """False if a statement may do more than is listed."""
    statements: tuple[str, ...] = ()
    """Kinds of all statements in lower case, such as `select`; those inside a statement count if they change data."""
    tables: tuple[str, ...] = ()
    """Tables read or changed, in lower case, with the schema where it is written and is not the default one."""
    columns: tuple[str, ...] = ()
    """Columns read, written or compared, in lower case and without their table; `*` stands for all columns."""
    has_where: bool = False
    """True if every part that reads, updates or deletes rows of a table has a WHERE that excludes some of them."""
    limit: int | None = None
    """Largest number of rows that a statement can return, as its LIMIT says; absent if there is none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShellCommand:
    """One command of a script, also one that another command starts."""

    program: str
    """Name of the program, without a system directory: `rm` for `/bin/rm`; otherwise its path."""
    subcommand: str = ""
    """Subcommand, such as `push` of `git push`; the empty string if the program has none."""
    options: tuple[str, ...] = ()
    """Options one by one and without their values: `-rf` is `-r` and `-f`."""
    arguments: tuple[str, ...] = ()
    """Arguments that are neither options nor the subcommand, values of options included."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShellFacts:
    """Commands of the action, with the files and hosts they use."""

    complete: bool
    """False if a command may do more than is listed, or if a path depends on an unknown directory."""
    commands: tuple[ShellCommand, ...] = ()
    """All commands in the order they were found; a wrapper such as `sudo` and what it starts are two commands."""
    paths_read: tuple[str, ...] = ()
    """Files and directories read."""
    paths_written: tuple[str, ...] = ()
    """Files and directories created, changed or deleted."""
    hosts: tuple[str, ...] = ()
    """Hosts that a command connects to, in lower case and without a port."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpFacts:
    """The HTTP request of the action."""

    complete: bool
    """False if the action makes several requests, or one whose method or address is not known."""
    method: str = ""
    """Method in upper case, such as `GET`."""
    host: str = ""
    """Host in lower case (IDNA), without user and port; an IPv6 address without brackets."""
    path: str = ""
    """Path of the address, normalised and without query; `/` if it is empty."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EmailFacts:
    """Recipients of the messages that the action sends."""

    complete: bool
    """False if a recipient is not a plain address."""
    recipients: tuple[str, ...] = ()
    """All addresses (to, cc and bcc) in lower case, without display names."""
    domains: tuple[str, ...] = ()
    """Domains of the addresses in lower case (IDNA)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeFacts:
    """The program that the action contains."""

    complete: bool
    """False if the program may do more than is listed."""
    imports: tuple[str, ...] = ()
    """Modules imported, with their full names."""
    effects: tuple[Effect, ...] = ()
    """Effects of the program, with `kind` and `target`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimFacts:
    """The claim that an engine checked: math, logic, fact, stats and others."""

    complete: bool
    """False if the engine could not decide."""
    status: str = ""
    """Result in upper case: `VERIFIED`, `FAILED`, `CORRECTED` or `UNCERTAIN`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """Facts of one action; a group that does not apply is None."""

    sql: SqlFacts | None = None
    shell: ShellFacts | None = None
    http: HttpFacts | None = None
    email: EmailFacts | None = None
    code: CodeFacts | None = None
    claim: ClaimFacts | None = None


NO_FACTS = Facts()


def bounded(entries: Iterable[str]) -> tuple[tuple[str, ...], bool]:
    """Return the entries without duplicates, and True if none was left out or cut off."""
    return cut(dict.fromkeys(entries))


def cut(entries: Iterable[str]) -> tuple[tuple[str, ...], bool]:
    """Return the entries in their order, duplicates included, and True if none was left out or cut off."""
    listed = tuple(entries)
    if not listed or (len(listed) <= MAX_ENTRIES and max(map(len, listed)) <= MAX_ENTRY_LENGTH):
        return listed, True
    return tuple(entry[:MAX_ENTRY_LENGTH] for entry in listed[:MAX_ENTRIES]), False


def code_with_effects(effects: tuple[Effect, ...], *, complete: bool, imports: tuple[str, ...] = ()) -> CodeFacts:
    """Return the facts of code with these effects, of which the first are kept."""
    return CodeFacts(complete=complete and len(effects) <= MAX_ENTRIES, imports=imports, effects=effects[:MAX_ENTRIES])


def _merged(*lists: Iterable[str]) -> tuple[tuple[str, ...], bool]:
    return bounded(entry for entries in lists for entry in entries)


def merge_sql(first: SqlFacts | None, second: SqlFacts | None) -> SqlFacts | None:
    """Return the facts of two statements of one action."""
    if first is None or second is None:
        return second if first is None else first
    statements, all_statements = _merged(first.statements, second.statements)
    tables, all_tables = _merged(first.tables, second.tables)
    columns, all_columns = _merged(first.columns, second.columns)
    limits = (first.limit, second.limit)
    return SqlFacts(
        complete=first.complete and second.complete and all_statements and all_tables and all_columns,
        statements=statements,
        tables=tables,
        columns=columns,
        has_where=first.has_where and second.has_where,
        limit=None if None in limits else max(limit for limit in limits if limit is not None),
    )


def merge_code(first: CodeFacts | None, second: CodeFacts | None) -> CodeFacts | None:
    """Return the facts of two programs of one action."""
    if first is None or second is None:
        return second if first is None else first
    imports, all_imports = _merged(first.imports, second.imports)
    effects = tuple(dict.fromkeys((*first.effects, *second.effects)))
    return CodeFacts(
        complete=first.complete and second.complete and all_imports and len(effects) <= MAX_ENTRIES,
        imports=imports,
        effects=effects[:MAX_ENTRIES],
    )


def as_incomplete(facts: Facts) -> Facts:
    """Return the facts of what an action does with no group complete; that of a claim stays as it is."""
    groups = {name: getattr(facts, name) for name in ("sql", "shell", "http", "email", "code")}
    changed = {name: replace(group, complete=False) for name, group in groups.items() if group and group.complete}
    return replace(facts, **changed) if changed else facts


_MAX_CACHED_ENTRIES = 1_000


def is_small(facts: Facts) -> bool:
    """Return True if the facts may be kept in a cache of many actions."""
    shell, sql, code, email = facts.shell, facts.sql, facts.code, facts.email
    count = 0
    if shell is not None:
        count += len(shell.commands) + len(shell.paths_read) + len(shell.paths_written) + len(shell.hosts)
    if sql is not None:
        count += len(sql.tables) + len(sql.columns)
    if code is not None:
        count += len(code.imports) + len(code.effects)
    return count + (0 if email is None else len(email.recipients)) <= _MAX_CACHED_ENTRIES
