"""The one text of a custom tool's call that somebody would run: a statement, a command or code, told by its name.

Nobody described the tool, so what its parameters are called is all there is to go by. What may be run is judged by who
judges such text; what nobody can read is UNRESOLVED. Who knows better describes the tool in the registry: its row wins.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from qwed.guards.code_words import LANGUAGE_ALIASES, LANGUAGES
from qwed.guards.text import MAX_DEPTH, MAX_STRINGS, strings_in
from qwed.kernel.judging.beside import has_arguments, line_of, with_surroundings
from qwed.kernel.judging.content import name_at
from qwed.kernel.judging.naming import Name, read_name
from qwed.kernel.judging.stray import is_statement, may_select
from qwed.kernel.request import Action
from qwed.kernel.tools import READING_VERBS, SHELL, TOOL, words_of
from qwed.words.tool_name import bare, server_of

Place = tuple[str | int, ...]
"""Where in the action a text stands: `("parameters", "sql")`, `("query",)`."""


class Told(NamedTuple):
    """A text that would be run, and who judges it; TOOL where nobody can."""

    judge: str
    place: Place
    said: str
    """The text as it was said: what may be run."""
    text: str
    """The text as it is judged: a command with its arguments and the directory it runs in."""
    language: str | None = None
    sure: bool = True
    """False where only the text itself, and no name, tells that it is SQL."""

    @property
    def runs(self) -> bool:
        """Whether it is code, of which nothing better is known than that it is run."""
        return self.judge == "code" or self.language is not None


class ToolName(NamedTuple):
    """What a tool's own name tells about the texts it takes."""

    words: frozenset[str]
    sql: bool
    database: bool
    language: str | None
    reads: bool
    of_database: bool
    """Whether its server is called after a database: then it is one's tool, whatever it is called itself."""


_SQL_TEXT = """
sql postgres postgresql pg mysql mariadb sqlite sqlite3 duckdb mssql tsql plsql bigquery snowflake redshift clickhouse
"""
_SQL_WORDS = frozenset(_SQL_TEXT.split())
_DATABASE_WORDS = _SQL_WORDS | {"db", "database", "databases", "table", "tables"}
_RUNS = frozenset({"read", "write", "run", "execute", "exec", "select", "raw", "sql", "do"})


def read_tool_name(name: str) -> ToolName:
    """What the tool's own name tells."""
    words = words_of(bare(name))
    told = frozenset(words)
    runs_query = len(words) > 1 and words[-1] in ("query", "queries", "statement") and bool(_RUNS.intersection(words))
    sql = runs_query or any(word in _SQL_WORDS or word.endswith("sql") for word in words)
    language = next((_language(word) for word in words if _language(word)), None)
    database = sql or bool(_DATABASE_WORDS & told)
    of_database = not _DATABASE_WORDS.isdisjoint(words_of(server_of(name) or ""))
    return ToolName(told, sql, database, language, bool(words) and words[0] in READING_VERBS, of_database)


def _language(word: str) -> str | None:
    known = LANGUAGE_ALIASES.get(word, {"nodejs": "javascript"}.get(word, word))
    return known if known in LANGUAGES else None


class Member(NamedTuple):
    """A member of an object in the action, and what its name tells."""

    place: Place
    name: Name
    value: Any
    beside: Mapping[str, Any]
    """The object it is a member of."""


def texts_told(action: Action, tool: ToolName) -> list[Told]:
    """Every text of the call that would be run; two are one too many."""
    found: dict[tuple[str, str], Told] = {}
    for member in members(action):
        for told in _told_in(member, tool):
            found.setdefault((told.judge, told.text), told)
    return list(found.values())


def members(action: Action) -> Iterator[Member]:
    """Every member of every object in the action."""
    fields = {"query": action.query, "code": action.code}
    for field, text in fields.items():
        if text:
            yield Member((field,), read_name(field), text, fields)
    waiting: list[tuple[Place, Any, int]] = [(("parameters",), action.parameters or {}, 0)]
    seen = 0
    # What is larger or deeper is refused as unreadable before anybody runs it.
    while waiting and seen <= MAX_STRINGS:
        place, value, depth = waiting.pop()
        pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, item in pairs:
            seen += 1
            if isinstance(value, Mapping):
                yield Member((*place, key), read_name(str(key)), item, value)
            if isinstance(item, Mapping | list | tuple) and depth < MAX_DEPTH:
                waiting.append(((*place, key), item, depth + 1))


def _told_in(member: Member, tool: ToolName) -> Iterator[Told]:
    name, value = member.name, member.value
    if not value or not isinstance(value, str | list | tuple | Mapping):
        return
    if name.query:
        yield from _statements(member, tool)
    elif name.command or (_PROGRAM.fullmatch(name.plain) and _has_arguments(member)):
        yield _command(member, tool)
    elif isinstance(value, str) and (name.code or _is_function(name.plain, value)):
        yield from _code(member, tool)


_TAKES_FUNCTION = re.compile(r"(?:\w+_)?(?:function|func|fn|callback|handler|lambda|predicate|expression)")
_FUNCTION = re.compile(r"\s*(?:async\b\s*)?(?:\([\w\s,{}.]{0,200}\)\s*=>|\w{1,64}\s*=>|function\b\s*\w*\s*\()")


def _is_function(name: str, value: str) -> bool:
    """Whether it is a function of JavaScript where one is taken: whoever takes one runs it."""
    return bool(_TAKES_FUNCTION.fullmatch(name) and _FUNCTION.match(value))


_PROGRAM = re.compile(r"(?:\w+_)?(?:program|executable|binary|bin|exe|entry_?point)")


def _has_arguments(member: Member) -> bool:
    """Whether a program and its arguments are given apart; a command that is an object nobody can read as a whole."""
    if read_name(str(member.place[-2])).command:
        return False
    return isinstance(member.value, list | tuple) or has_arguments(member.beside)


def _statements(member: Member, tool: ToolName) -> Iterator[Told]:
    sure = tool.sql or member.name.sql
    texts = [(member.place, member.value)]
    if isinstance(member.value, list | tuple):
        texts = [((*member.place, at), each) for at, each in enumerate(member.value)]
    for place, text in texts:
        if isinstance(text, Mapping):
            yield from _statements_inside(place, text)
        elif isinstance(text, str) and text and (sure or _reads_as_statement(text)):
            yield Told("sql", place, text, text, sure=sure)


def _statements_inside(place: Place, parts: Mapping[str, Any]) -> Iterator[Told]:
    """A statement beside its values: `{"text": "DELETE ...", "values": [4]}`, whatever its own name is."""
    for key, text in parts.items():
        if isinstance(text, str) and not read_name(str(key)).query and is_statement(text):
            yield Told("sql", (*place, key), text, text, sure=False)


_ONE_WORD = re.compile(r"[\w.-]{0,64}")


def _reads_as_statement(text: str) -> bool:
    """Whether a text may be a statement where no name tells of any; one word by itself is looked for."""
    return _ONE_WORD.fullmatch(text) is None and (is_statement(text) or may_select(text))


def _code(member: Member, tool: ToolName) -> Iterator[Told]:
    stated = {tool.language, *_stated_languages(member.beside)} - {None}
    if not member.name.code and not stated:
        stated = {"javascript"}
    if not stated and _ONE_WORD.fullmatch(member.value):
        return  # a country, an error, a moment (`ts`): one word by itself does nothing
    known = {_language(member.name.plain.rpartition("_")[2]), *stated} - {None}
    language = known.pop() if len(known) == 1 else None
    judge = "code" if language in LANGUAGES else TOOL
    yield Told(judge, member.place, member.value, member.value, language or "")


def _stated_languages(beside: Mapping[str, Any]) -> Iterator[str]:
    for name in ("language", "lang", "runtime", "interpreter"):
        stated = beside.get(name)
        if isinstance(stated, str) and stated:
            yield _language(stated.strip().lower()) or stated


def _command(member: Member, tool: ToolName) -> Told:
    value = member.value
    stated = {*_stated_languages(member.beside), tool.language} - {None, "bash", "sql"}
    if "script" in member.name.plain and stated and isinstance(value, str):
        return next(_code(member, tool), Told(TOOL, member.place, value, value))
    line = value if isinstance(value, str) else line_of(value, several=member.name.plain.endswith("s"))
    if line is None:
        return Told(TOOL, member.place, "", "")
    whole = with_surroundings(line, {name: each for name, each in member.beside.items() if name != member.place[-1]})
    said = value if isinstance(value, str) else line
    return Told(TOOL, member.place, said, said) if whole is None else Told(SHELL, member.place, said, whole)


def has_stray_statement(action: Action, tool: ToolName, told: Told | None) -> bool:
    """Whether a tool of a database is given a statement under a name that tells of none."""
    strings = strings_in(action.parameters)
    names = [(read_name(name_at(path)), text) for path, text in strings]
    if not (tool.database or tool.of_database or any(name.database for name, _text in names)):
        return False
    said = None if told is None else told.said
    return any(text != said and not name.content and is_statement(text) for name, text in names)


def at_place(members: Any, place: Place) -> Any:
    """What stands there."""
    for key in place:
        members = members[key]
    return members


def put_at(members: Any, place: Place, value: Any) -> Any:
    """The members with `value` in that place."""
    if not place:
        return value
    first, *rest = place
    changed = list(members) if isinstance(members, list) else dict(members)
    changed[first] = put_at(changed[first], tuple(rest), value)  # type: ignore[index]
    return changed
