"""Finds the executable text in a call of an unregistered tool: a statement, a command or code, by the parameter's name.

Without a registry entry the names of the parameters are the only evidence. Text that may be executed is checked by the
analyzer of its kind; unreadable text is UNRESOLVED. A registry entry takes precedence.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from qwed.guards.code_findings import LANGUAGE_ALIASES, LANGUAGES
from qwed.guards.text_scan import MAX_DEPTH, MAX_STRINGS, strings_in
from qwed.kernel.analysis.content_scan import name_at
from qwed.kernel.analysis.embedded_values import MAX_LEVELS, embedded_value, strings_within
from qwed.kernel.analysis.parameter_kinds import ParameterName, classify_name
from qwed.kernel.analysis.sql_statements import is_statement, may_select
from qwed.kernel.analysis.text_forms import are_command_words, is_command
from qwed.kernel.analysis.unjudged_queries import names_language
from qwed.kernel.request import Action
from qwed.kernel.tool_verbs import meaning_of, words_of
from qwed.kernel.tools import SHELL, TOOL
from qwed.model import EffectKind
from qwed.model.tool_name import base_tool_name, server_of

EMBEDDED = -1
"""In a path: inside the text at the path so far."""
JsonPath = tuple[str | int, ...]
"""Path of a text in the action: `("parameters", "sql")`, `("query",)`."""


class ExecutableText(NamedTuple):
    """Text that would be executed, and its analyzer; TOOL if there is none for it."""

    analyzer: str
    path: JsonPath
    original: str
    """The text as it was sent, which may be executed."""
    normalized: str
    """The text as it is analyzed: a command with its arguments and its directory."""
    language: str | None = None
    is_explicit: bool = True
    """False if only the text itself, and no name, implies what it is."""

    @property
    def is_embedded(self) -> bool:
        """True for a text inside another text, which cannot be repaired in place."""
        return EMBEDDED in self.path

    @property
    def is_code(self) -> bool:
        """True for code, whose effect is EXECUTE unless something better is known."""
        return self.analyzer == "code" or self.language is not None


class ToolName(NamedTuple):
    """Facts that a tool's own name implies about the texts it takes."""

    words: frozenset[str]
    sql: bool
    database: bool
    language: str | None
    reads: bool
    of_database: bool
    """True if its server is named after a database: then every tool of it is a database tool."""
    server_words: frozenset[str] = frozenset()
    searches_text: bool = False
    """True for a search of code, documents or the web, where a statement is what is looked for."""
    takes_queries: bool = False
    """True for a tool that reads what it is asked for, so that even a `text` may be the query."""


_SQL_TEXT = """
sql postgres postgresql pg mysql mariadb sqlite sqlite3 duckdb mssql tsql plsql bigquery snowflake redshift clickhouse
bq oracle cockroach cockroachdb trino presto athena spanner databricks motherduck supabase neon planetscale turso libsql
"""
_SQL_WORDS = frozenset(_SQL_TEXT.split())
_DATABASE_WORDS = _SQL_WORDS | {"db", "database", "databases", "table", "tables"}
_ASKING_TEXT = "query get fetch list view show select retrieve count read lookup inspect browse"
_ASKING = frozenset(_ASKING_TEXT.split())
_SEARCHING = frozenset({"search", "find", "grep", "lookup"})
_SEARCHED_TEXT = "code codebase docs documentation web internet issues repositories papers articles files emails"
_SEARCHED = frozenset(_SEARCHED_TEXT.split())
_ON_PROSE_TEXT = "search docs documentation summary translation sentiment language text help guide"
_ON_PROSE = frozenset(_ON_PROSE_TEXT.split())
_QUERY_VERBS = frozenset({"read", "write", "run", "execute", "exec", "select", "raw", "sql", "do"})


def read_tool_name(name: str) -> ToolName:
    """Return the facts that the tool's own name implies."""
    words = words_of(base_tool_name(name))
    word_set = frozenset(words)
    runs_query = (
        len(words) > 1 and words[-1] in ("query", "queries", "statement") and bool(_QUERY_VERBS.intersection(words))
    )
    sql = runs_query or any(word in _SQL_WORDS or word.endswith("sql") for word in words)
    language = next((_language(word) for word in words if _language(word)), None)
    database = sql or bool(_DATABASE_WORDS & word_set)
    server_words = frozenset(words_of(server_of(name) or ""))
    of_database = not _DATABASE_WORDS.isdisjoint(server_words)
    searches_text = bool(_SEARCHING & word_set and _SEARCHED & word_set) and not database
    reads = meaning_of(name) == EffectKind.READ
    takes_queries = reads and not _ASKING.isdisjoint(word_set) and _ON_PROSE.isdisjoint(word_set)
    return ToolName(word_set, sql, database, language, reads, of_database, server_words, searches_text, takes_queries)


def _language(word: str) -> str | None:
    name = LANGUAGE_ALIASES.get(word, {"nodejs": "javascript"}.get(word, word))
    return name if name in LANGUAGES else None


class Member(NamedTuple):
    """A member of an object in the action, with its classified name."""

    path: JsonPath
    name: ParameterName
    value: Any
    siblings: Mapping[str, Any]
    """The object that contains it."""


def executable_texts_of(action: Action, tool: ToolName) -> list[ExecutableText]:
    """Return every text of the call that would be executed, by its name or else by its form; more than one is
    refused."""
    by_name = (text for member in members(action) for text in _executable_texts_in(member, tool))
    return _distinct(by_name) or _distinct(_texts_by_form(action, tool))


def _distinct(texts: Iterable[ExecutableText]) -> list[ExecutableText]:
    distinct: dict[tuple[str, str], ExecutableText] = {}
    for text in texts:
        distinct.setdefault((text.analyzer, text.normalized), text)
    return list(distinct.values())


def _texts_by_form(action: Action, tool: ToolName) -> Iterator[ExecutableText]:
    """Yield statements and commands under names that do not imply them, at any depth."""
    path: JsonPath = ("parameters", EMBEDDED)
    for where, text, _complete in strings_within(action.parameters):
        if not may_be_executed(classify_name(name_at(where)), tool):
            continue
        if is_statement(text):
            yield ExecutableText("sql", path, text, text, is_explicit=False)
        elif is_command(text):
            yield ExecutableText(SHELL, path, text, text, is_explicit=False)
    for member in members(action):
        if are_command_words(member.value) and may_be_executed(member.name, tool):
            line = shlex.join(member.value)
            yield ExecutableText(SHELL, path, line, line, is_explicit=False)


def may_be_executed(name: ParameterName, tool: ToolName) -> bool:
    """Return True if a text under this name might be more than content, a search term or a label."""
    if name.query or name.command or name.code:
        return False  # decided by the name
    return tool.takes_queries or not (name.content or name.stored)


def members(action: Action) -> Iterator[Member]:
    """Yield every member of every object in the action."""
    fields = {"query": action.query, "code": action.code}
    for field, text in fields.items():
        if text:
            yield Member((field,), classify_name(field), text, fields)
    pending: list[tuple[JsonPath, Any, int]] = [(("parameters",), action.parameters or {}, 0)]
    seen = 0
    # Larger or deeper parameters are refused as unreadable before they are executed.
    while pending and seen <= MAX_STRINGS:
        path, value, depth = pending.pop()
        pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, item in pairs:
            seen += 1
            place = (*path, key)
            if isinstance(value, Mapping):
                yield Member(place, classify_name(str(key)), item, value)
            elif isinstance(item, list | tuple):
                yield Member(place, classify_name(_last_name(path)), item, {})
            inner_place, inner = _inside(place, item)
            if isinstance(inner, Mapping | list | tuple) and depth < MAX_DEPTH:
                pending.append((inner_place, inner, depth + 1))


def _inside(place: JsonPath, item: Any) -> tuple[JsonPath, Any]:
    """Return an item, or the value inside a text."""
    if isinstance(item, str) and place.count(EMBEDDED) < MAX_LEVELS:
        return (*place, EMBEDDED), embedded_value(item)
    return place, item


def _last_name(path: JsonPath) -> str:
    return next((part for part in reversed(path) if isinstance(part, str)), "")


def _executable_texts_in(member: Member, tool: ToolName) -> Iterator[ExecutableText]:
    name, value = member.name, member.value
    if not value or not isinstance(value, str | list | tuple | Mapping):
        return
    if (name.query or name.command) and names_language(query_words(name, tool)):
        return  # judged as a query of that language
    if name.query:
        yield from _statements(member, tool)
    elif name.command or (_PROGRAM.fullmatch(name.plain) and _has_arguments(member)):
        yield _command(member, tool)
    elif isinstance(value, str) and (name.code or _is_function(name.plain, value)):
        yield from _code(member, tool)


_TAKES_FUNCTION = re.compile(r"(?:\w+_)?(?:function|func|fn|callback|handler|lambda|predicate|expression)")
_FUNCTION = re.compile(r"\s*(?:async\b\s*)?(?:\([\w\s,{}.]{0,200}\)\s*=>|\w{1,64}\s*=>|function\b\s*\w*\s*\()")


def _is_function(name: str, value: str) -> bool:
    """Return True if the value is a JavaScript function under a name that takes one: it would be called."""
    return bool(_TAKES_FUNCTION.fullmatch(name) and _FUNCTION.match(value))


_PROGRAM = re.compile(r"(?:\w+_)?(?:program|executable|binary|bin|exe|entry_?point)")


def _has_arguments(member: Member) -> bool:
    """Return True if a program and its arguments are separate members, and not inside a command object."""
    if classify_name(str(member.path[-2])).command:
        return False
    return isinstance(member.value, list | tuple) or _has_argument_member(member.siblings)


def _statements(member: Member, tool: ToolName) -> Iterator[ExecutableText]:
    is_explicit = tool.sql or member.name.sql
    if tool.searches_text and not is_explicit:
        return
    texts = [(member.path, member.value)]
    if isinstance(member.value, list | tuple):
        texts = [((*member.path, index), item) for index, item in enumerate(member.value)]
    for path, text in texts:
        if isinstance(text, Mapping):
            yield from _statements_inside(path, text)
        elif isinstance(text, str) and text and (is_explicit or _may_be_statement(text)):
            yield ExecutableText("sql", path, text, text, is_explicit=is_explicit)


def _statements_inside(path: JsonPath, parts: Mapping[str, Any]) -> Iterator[ExecutableText]:
    """Yield statements in an object with values: `{"text": "DELETE ...", "values": [4]}`, under any name."""
    for key, text in parts.items():
        if isinstance(text, str) and not classify_name(str(key)).query and is_statement(text):
            yield ExecutableText("sql", (*path, key), text, text, is_explicit=False)


_ONE_WORD = re.compile(r"[\w.-]{0,64}")


def _may_be_statement(text: str) -> bool:
    """Return True if the text may be a statement although no name implies it; a single word is a search term."""
    return _ONE_WORD.fullmatch(text) is None and (is_statement(text) or may_select(text))


def _code(member: Member, tool: ToolName) -> Iterator[ExecutableText]:
    languages = {tool.language, *_stated_languages(member.siblings)} - {None}
    if not member.name.code and not languages:
        languages = {"javascript"}
    if not languages and _ONE_WORD.fullmatch(member.value):
        return  # a country, an error code, a timestamp (`ts`): a single word does nothing
    candidates = {_language(member.name.plain.rpartition("_")[2]), *languages} - {None}
    language = candidates.pop() if len(candidates) == 1 else None
    analyzer = "code" if language in LANGUAGES else TOOL
    yield ExecutableText(analyzer, member.path, member.value, member.value, language or "")


def _stated_languages(siblings: Mapping[str, Any]) -> Iterator[str]:
    for name in ("language", "lang", "runtime", "interpreter"):
        value = siblings.get(name)
        if isinstance(value, str) and value:
            yield _language(value.strip().lower()) or value


def _command(member: Member, tool: ToolName) -> ExecutableText:
    value = member.value
    languages = {*_stated_languages(member.siblings), tool.language} - {None, "bash", "sql"}
    if "script" in member.name.plain and languages and isinstance(value, str):
        return next(_code(member, tool), ExecutableText(TOOL, member.path, value, value))
    line = value if isinstance(value, str) else _command_line_of(value, several=member.name.plain.endswith("s"))
    if line is None:
        return ExecutableText(TOOL, member.path, "", "")
    normalized = _with_context(
        line, {name: sibling for name, sibling in member.siblings.items() if name != member.path[-1]}
    )
    original = value if isinstance(value, str) else line
    return (
        ExecutableText(TOOL, member.path, original, original)
        if normalized is None
        else ExecutableText(SHELL, member.path, original, normalized)
    )


# Parameters beside a command that change what is executed: arguments, directory, environment, input.
_SUBCOMMAND = re.compile(r"(?:\w+_)?sub_?commands?|action|verb")
ARGUMENTS = re.compile(r"(?:\w+_)?(?:args?|arguments?|argv|params?|parameters|flags?|options|opts|switches)")
_DIRECTORY = re.compile(
    r"(?:\w+_)?cwd|work_?dir(?:ectory)?"
    r"|(?:(?:working|current|base|project|repo|root|run|start|exec)_)?(?:dir|directory|path|folder|root)|workspace"
)
_INPUT = re.compile(r"(?:\w+_)?std_?in(?:_\w+)?|(?:\w+_)?standard_input|input(?:_\w+)?")
_VARIABLES = re.compile(r"(?:\w+_)?(?:env|environ|environment|env_?vars?|environment_var(?:iable)?s?)")
_VARIABLE = re.compile(r"[A-Za-z_]\w*")


def _command_line_of(value: Any, *, several: bool) -> str | None:
    """Return one command from a list of words, or several from a list of lines; both where it is ambiguous."""
    if not isinstance(value, Sequence) or not all(isinstance(item, str | int | float) for item in value):
        return None
    words = [str(item) for item in value]
    as_words = shlex.join(words)
    if not several or len(words) < 2:
        return as_words
    as_lines = "\n".join(words)
    return as_lines if re.search(r"\s", words[0]) else f"{as_lines}\n{as_words}"


def _has_argument_member(siblings: Mapping[str, Any]) -> bool:
    """Return True if one of these members holds arguments of a program."""
    return next(_values_named(siblings, ARGUMENTS), None) is not None


def _with_context(line: str, siblings: Mapping[str, Any]) -> str | None:
    """Return the command as it would run; None if another member decides what is executed in an unknown way."""
    if next(_values_named(siblings, _INPUT), None) is not None:
        return None
    for value in (*_values_named(siblings, _SUBCOMMAND), *_values_named(siblings, ARGUMENTS)):
        words = value if isinstance(value, str) else _command_line_of(value, several=False)
        if words is None:
            return None
        line = f"{line} {words}"
    setup = _setup_lines(siblings)
    return None if setup is None else "\n".join([*setup, line])


def _values_named(siblings: Mapping[str, Any], name: re.Pattern[str]) -> Iterator[Any]:
    """Yield the non-empty values under such a name; a boolean adds nothing to a command."""
    for key, value in siblings.items():
        if value and not isinstance(value, bool) and name.fullmatch(classify_name(key).plain):
            yield value


def _setup_lines(siblings: Mapping[str, Any]) -> list[str] | None:
    lines = []
    for variables in _values_named(siblings, _VARIABLES):
        if not isinstance(variables, Mapping):
            return None
        for variable, value in variables.items():
            if not _VARIABLE.fullmatch(variable):
                return None
            lines.append(f"export {variable}={shlex.quote(str(value))}")
    directories = [(key, value) for key, value in siblings.items() if _is_directory(key, value)]
    if len(directories) == 1 and _WORKING_DIRECTORY.fullmatch(classify_name(directories[0][0]).plain):
        # The command is started there, or not at all.
        return [f"cd {shlex.quote(str(directories[0][1]))} || exit", *lines]
    return lines + [f"cd {shlex.quote(str(directory))}" for _, directory in directories]


def _is_directory(key: str, value: Any) -> bool:
    return bool(value) and not isinstance(value, bool) and bool(_DIRECTORY.fullmatch(classify_name(key).plain))


_WORKING_DIRECTORY = re.compile(r"cwd|(?:current_)?work(?:ing)?_?dir(?:ectory)?")


def query_words(name: ParameterName, tool: ToolName) -> frozenset[str]:
    """Return the words that may name the language of a query: those of its parameter, and of its tool."""
    own = frozenset(name.plain.split("_"))
    return own | tool.words | tool.server_words if name.query or name.command else own


def has_unanalyzed_statement(action: Action, tool: ToolName, executable_text: ExecutableText | None) -> bool:
    """Return True if a database tool gets a statement in a parameter whose name does not imply one."""
    strings = strings_in(action.parameters)
    names = [(classify_name(name_at(path)), text) for path, text in strings]
    is_sql = executable_text is not None and executable_text.analyzer == "sql"
    if not (is_sql or tool.database or tool.of_database or any(name.database for name, _text in names)):
        return False
    original = None if executable_text is None else executable_text.original
    return any(text != original and not name.content and is_statement(text) for name, text in names)


def value_at(members: Any, path: JsonPath) -> Any:
    """Return the value at this path."""
    for key in path:
        members = members[key]
    return members


def with_value_at(members: Any, path: JsonPath, value: Any) -> Any:
    """Return the members with `value` at this path."""
    if not path:
        return value
    first, *rest = path
    changed = list(members) if isinstance(members, list) else dict(members)
    changed[first] = with_value_at(changed[first], tuple(rest), value)  # type: ignore[index]
    return changed
