"""Rules for database clients: their own commands are an allow-list, statements go to the judge of SQL."""

import re
from typing import NamedTuple

from qwed.guards._shell.command_model import CommandCall, DataSource, Rule, ShellAnalysis, Violation, Word, names_in
from qwed.guards._shell.grammar.effects import analyze_program
from qwed.guards._shell.grammar.loader import known_program
from qwed.model import EffectKind
from qwed.model.data_files import read_rules

_RUNS = re.compile(
    r"(?i)\\!|\\g\s*\||\\o\s*\||\\copy\b.*program|\bprogram\s*'|\A\s*system\s|\.shell\b|\.system\b|\.import\s*['\"]?\||"
    r"\bxp_cmdshell|sys_exec|sys_eval|load_extension|\.load\b|\.once\s*['\"]?\||\.output\s*['\"]?\||lo_export"
    r"|into\s+(?:outfile|dumpfile)|language\s+(?:plpythonu|plpython3u|c)\b|\.excel|edit\("
)


class Client(NamedTuple):
    """A database client: its dialect, and the commands of its own that only show something."""

    dialect: str
    shows: re.Pattern[str] = re.compile(r"(?!)")
    """Complete lines that are harmless."""
    refused: re.Pattern[str] = re.compile(r"(?!)")
    """Text that the client itself may understand as something else than SQL."""
    ends: re.Pattern[str] = re.compile(r"(?!)")
    """Ends of a statement that only say how to print it."""
    transfer: re.Pattern[str] = re.compile(r"(?!)")
    """Complete lines that copy between a table or a query and a file of this machine."""


_POSTGRES = Client(
    "postgres",
    re.compile(
        r"\\(?:d[a-zA-Z]{0,3}\+?|l\+?|z|conninfo|x|timing|pset|t|a|q|encoding|echo|h|sf\+?|sv\+?|f|H)"
        r"(?:[ \t]+(?:[\w.*,?+-]+|\"[\w .-]+\"))*[ \t]*;?"
    ),
    re.compile(r"\\|(?<![:\w]):(?![:=\s\d])"),
    transfer=re.compile(
        r"(?i)\\copy[ \t]+(?:\((?P<query>[^\\]*)\)|[\w.]+(?:[ \t]*\([\w, ]*\))?)[ \t]+(?:to[ \t]+'(?P<write>[^'\\]+)'"
        r"|from[ \t]+'(?P<read>[^'\\]+)'|to[ \t]+stdout)(?:[ \t]+(?:with|csv|header|binary|\((?:[\w, ]|'[^'\\]')*\)"
        r"|(?:delimiter|null|format|quote)[ \t]+(?:'[^'\\]?'|\w+)))*[ \t]*;?"
    ),
)
_MYSQL = Client(
    "mysql",
    re.compile(r"(?i)(?:status|use[ \t]+\w+|\\s|\\u[ \t]+\w+)[ \t]*;?"),
    re.compile(r"\\"),
    re.compile(r"\\[Gg]\s*(?=\Z|\n)"),
)
_DOT_COMMANDS = re.compile(
    r"\.(?:tables?|schema|fullschema|databases?|dbinfo|headers?|mode|ind(?:ex|ic)es|width|nullvalue|timer|show|stats"
    r"|eqp|explain|quit|exit|help|changes|echo|separator|maxrows|columns|rows|version|print|dump)"
    r"(?:[ \t]+[\w%*,.|'\"+-]+)*[ \t]*"
)
_SQLITE = Client(
    "sqlite",
    _DOT_COMMANDS,
    re.compile(r"(?m)^[ \t]*[./]"),
    transfer=re.compile(
        r"\.import(?:[ \t]+--(?:csv|ascii|skip[ \t]+\d+))*[ \t]+(?P<read>[\w./~][\w./-]*)[ \t]+\w+[ \t]*"
        r"|\.(?:backup|save|output|once)[ \t]+(?P<write>[\w./~][\w./-]*)[ \t]*"
    ),
)
_CLIENTS: dict[str, Client] = {
    **dict.fromkeys(("psql", "pgcli"), _POSTGRES),
    **dict.fromkeys(("mysql", "mariadb"), _MYSQL),
    **dict.fromkeys(("sqlite3", "sqlite"), _SQLITE),
    "duckdb": _SQLITE._replace(dialect="duckdb"),
    "clickhouse-client": Client("clickhouse"),
    "sqlcmd": Client("tsql", refused=re.compile(r"(?m)^[ \t]*(?::|!!|go\b)|\$\(")),
    "usql": Client("", refused=re.compile(r"\\|(?<![:\w]):(?![:=\s\d])")),
    "cqlsh": Client(""),
    "bq": Client("bigquery"),
    "csvsql": Client("sqlite"),
    "trino": Client("trino"),
    "presto": Client("presto"),
    "snowsql": Client("snowflake", refused=re.compile(r"(?m)^[ \t]*!|&")),
}
_CONNECTION = re.compile(r"\$\{?[A-Za-z_]\w*\}?")


def _operand(word: Word) -> Word:
    """Return an address in a variable of the user as an operand; it is not an option."""
    plain = not (word.is_resolved or word.splits or word.origin) and _CONNECTION.fullmatch(word.text)
    return Word("database") if plain else word


def _client(analysis: ShellAnalysis, call: CommandCall) -> None:
    call = call._replace(arguments=[_operand(word) for word in call.arguments])
    grammar = known_program(call.name)
    parsed = analyze_program(analysis, call, grammar)
    if parsed.is_about or parsed.has("lists"):
        return
    options = [name for name, option in grammar.options.items() if option.kind == "statement"]
    statements = parsed.values_of(*options)
    if call.name in ("sqlite3", "sqlite", "duckdb"):
        statements = [*statements, *parsed.operands[1:]]
    for word in statements:
        _analyze_text(analysis, call.name, word)
    if call.stdin.source is DataSource.TEXT and not statements:
        _analyze_text(analysis, call.name, Word(call.stdin.text))
    elif not statements or (call.name not in _IGNORES_INPUT and call.stdin.source is not DataSource.NOTHING):
        analysis.report.add_unresolved(f"the effect of `{call.name}` depends on its input")


_IGNORES_INPUT = names_in(
    "psql pgcli mysql mariadb sqlite3 sqlite mongosh mongo cqlsh sqlcmd usql trino presto snowsql"
)
"""Clients that do not read their input if a statement is given."""


def _analyze_text(analysis: ShellAnalysis, name: str, word: Word) -> None:
    """Report the effects of statements and client commands, each of the latter on a line of its own."""
    if _RUNS.search(word.text):
        analysis.report.add_violation(Violation.ESCAPE)
    if not word.is_exact:
        analysis.report.add_unresolved(f"a statement of `{name}` is known only at run time")
        return
    if name in _DOCUMENT_CLIENTS:
        _analyze_documents(analysis, name, word.text)
        return
    client = _CLIENTS[name]
    sql: list[str] = []
    for line in word.text.split("\n"):
        transfer = client.transfer.fullmatch(line.strip()) if _begins_statement(sql) else None
        if transfer is not None:
            _analyze_transfer(analysis, name, client, transfer)
        elif not (_begins_statement(sql) and client.shows.fullmatch(line.strip())):
            sql.append(line)
    _analyze_statements(analysis, name, client, client.ends.sub(";", "\n".join(sql)))


def _analyze_transfer(analysis: ShellAnalysis, name: str, client: Client, transfer: re.Match[str]) -> None:
    """Report a copy between the database and a file: what is read from the file changes a table."""
    parts = transfer.groupdict()
    if parts["read"]:
        analysis.add_file_effect(EffectKind.READ, Word(parts["read"]))
        analysis.report.add_effect(EffectKind.WRITE, f"database://{name}")
    elif parts["write"]:
        analysis.add_file_effect(EffectKind.WRITE, Word(parts["write"]))
    if parts.get("query"):
        _analyze_statements(analysis, name, client, parts["query"])
    else:
        analysis.report.add_effect(EffectKind.READ, f"database://{name}")


def _begins_statement(lines: list[str]) -> bool:
    """Return True if the next line begins a statement, where alone a client looks for its own commands."""
    before = "\n".join(lines).rstrip()
    return not before or before.endswith(";")


def _analyze_statements(analysis: ShellAnalysis, name: str, client: Client, sql: str) -> None:
    if client.refused.search(sql):
        analysis.report.add_unresolved(f"a command of `{name}` is not known to be harmless")
    elif sql.strip().strip(";").strip():
        analysis.judge_sql(name, sql, client.dialect)


_DOCUMENT_CLIENTS = names_in("mongosh mongo")
_DOCUMENT_VALUES = re.compile(
    r"(?:ObjectId|ISODate|(?:new )?Date|NumberLong|NumberInt)\((?:\"[\w:.+-]*\"|'[\w:.+-]*'|\d*)\)"
)
_ARGUMENTS = r"\((?:[\w\s{}\[\]:,.'\"$/|*+?^<>=!@#%&-])*\)"
_DOCUMENT_READS = re.compile(
    rf"(?:printjson\()?db(?:\.(?:getSiblingDB|getCollection)\(['\"][\w.-]+['\"]\))?(?:\.\w+)?"
    rf"\.(?:find|findOne|count|countDocuments|estimatedDocumentCount|distinct|aggregate|getIndexes|stats|dataSize"
    rf"|totalSize|getCollectionNames|getCollectionInfos|version|hostInfo|serverStatus|isMaster|hello){_ARGUMENTS}"
    rf"(?:\.(?:limit|sort|skip|toArray|pretty|count|explain|size|length|hint|batchSize|project){_ARGUMENTS}|\.length)*\)?"
    r"|show (?:dbs|databases|collections|tables|users|roles)"
)
_DOCUMENT_CODE = re.compile(
    r"\$(?:out|merge|where|function|accumulator)\b|=>|\bfunction\b|\bthis\b|=(?!=)"
    r"|[{,]\s*\[[^\[\]]*\]\s*:|['\"]\s*\+|\+\s*['\"]"
)


def _analyze_documents(analysis: ShellAnalysis, name: str, text: str) -> None:
    """Report statements of the MongoDB shell; only plain queries are understood."""
    for statement in _DOCUMENT_VALUES.sub("1", text).split(";"):
        plain = statement.strip()
        if plain and (not _DOCUMENT_READS.fullmatch(plain) or _DOCUMENT_CODE.search(plain)):
            analysis.report.add_unresolved(f"a statement of `{name}` is not known to be harmless")
    analysis.report.add_effect(EffectKind.READ, f"database://{name}")


def _mongo(analysis: ShellAnalysis, call: CommandCall) -> None:
    if any(word.text.endswith((".js", ".mjs", ".cjs", ".mongodb")) for word in call.arguments):
        analysis.report.add_effect(EffectKind.EXECUTE, call.line)
        return
    _client(analysis, call)


def _bq(analysis: ShellAnalysis, call: CommandCall) -> None:
    """Report the effects of the client of BigQuery; its subcommand `query` has a statement."""
    parsed = analyze_program(analysis, call, known_program(call.name))
    if parsed.command.name == "bq query" and not parsed.is_about:
        for word in parsed.operands:
            _analyze_text(analysis, call.name, word)


_REDIS = {tuple(name.split("/")): EffectKind[kind] for name, kind in read_rules(__file__, "redis_commands.txt").items()}
"""Effects by command, and by command and subcommand."""


def _redis(analysis: ShellAnalysis, call: CommandCall) -> None:
    call = call._replace(arguments=[_operand(word) for word in call.arguments])
    parsed = analyze_program(analysis, call, known_program(call.name))
    if parsed.is_about or (parsed.outcome.slots == () and not parsed.operands):
        return
    words = [word.text.lower() for word in parsed.operands]
    kind = EffectKind.READ if parsed.has("scans") and not words else _redis_kind(words)
    if kind is None or not all(word.is_exact for word in parsed.operands[:2]):
        analysis.report.add_unresolved(f"the effect of `{call.name}` depends on its input")
    else:
        analysis.report.add_effect(kind, call.line if kind is EffectKind.ADMIN else f"database://{call.name}")


def _redis_kind(words: list[str]) -> EffectKind | None:
    return _REDIS.get(tuple(words[:2])) or _REDIS.get(tuple(words[:1]))


def _export(analysis: ShellAnalysis, call: CommandCall) -> None:
    """Report that a whole database, or only the description of its tables, is exported."""
    parsed = analyze_program(analysis, call, known_program(call.name))
    if not parsed.is_about:
        kind = EffectKind.READ if parsed.has("schema") else EffectKind.SECRET
        analysis.report.add_effect(kind, f"database://{call.name}")


def _csv_query(analysis: ShellAnalysis, call: CommandCall) -> None:
    """Report the statements that csvkit runs in a database in memory, in which the files are the tables."""
    parsed = analyze_program(analysis, call, known_program(call.name))
    for word in parsed.values_of("--query"):
        _analyze_text(analysis, call.name, word)


def _dump(analysis: ShellAnalysis, call: CommandCall) -> None:
    """Report that a whole database is exported or replaced."""
    restores = "restore" in call.name or "import" in call.name or call.name == "createdb"
    kind = EffectKind.WRITE if restores else EffectKind.SECRET
    analysis.report.add_effect(EffectKind.DELETE if call.name.startswith("drop") else kind, f"database://{call.name}")


_EXPORTS = names_in("pg_dump pg_dumpall mysqldump mariadb-dump")
_DUMPS = names_in(
    """
    mongodump pg_restore mongorestore mongoimport mongoexport dropdb createdb
    dropuser
    """
)
DATABASE_CLIENTS = frozenset(
    {*_CLIENTS, *_EXPORTS, *_DOCUMENT_CLIENTS, "redis-cli", "valkey-cli", "keydb-cli", "pg_isready"}
) - {
    "sqlite3",
    "sqlite",
    "duckdb",
    "csvsql",
}
"""Programs that take the address of a database, which may contain a password."""
RULES: dict[str, Rule] = {
    **dict.fromkeys(_CLIENTS, _client),
    "bq": _bq,
    **dict.fromkeys(_DOCUMENT_CLIENTS, _mongo),
    **dict.fromkeys(("redis-cli", "valkey-cli", "keydb-cli"), _redis),
    **dict.fromkeys(_DUMPS, _dump),
    **dict.fromkeys(_EXPORTS, _export),
    "csvsql": _csv_query,
}
