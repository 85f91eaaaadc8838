"""Rules for database clients: a statement in an argument is classified by its verb, any other is unresolved."""

import re

from qwed.guards._shell.command_model import (
    CommandCall,
    DataSource,
    ShellAnalysis,
    Violation,
    Word,
    join_words,
    names_in,
)
from qwed.guards._shell.options import Rule
from qwed.model import EffectKind

_VERBS: dict[str, EffectKind] = {
    **dict.fromkeys(
        ("select", "show", "explain", "describe", "desc", "with", "values", "pragma", "use", "table"), EffectKind.READ
    ),
    **dict.fromkeys(
        ("insert", "update", "create", "replace", "merge", "copy", "vacuum", "analyze", "upsert"), EffectKind.WRITE
    ),
    **dict.fromkeys(("delete", "drop", "truncate"), EffectKind.DELETE),
    **dict.fromkeys(
        ("alter", "grant", "revoke", "set", "kill", "shutdown", "reset", "flush", "reindex"), EffectKind.ADMIN
    ),
}
_RUNS = re.compile(
    r"(?i)\\!|\\g\s*\||\\o\s*\||\\copy\b.*program|\bprogram\s*'|\bsystem\s|\.shell\b|\.system\b|\.import\s*['\"]?\||"
    r"\bxp_cmdshell|sys_exec|sys_eval|load_extension|\.load\b|\.once\s*['\"]?\||\.output\s*['\"]?\||lo_export|into\s+(?:outfile|dumpfile)"
    r"|language\s+(?:plpythonu|plpython3u|c)\b|\.excel|edit\("
)
_READS_FILES = re.compile(
    r"(?i)pg_read_|pg_ls_|load_file|lo_import|readfile|writefile|\bcopy\b|load\s+data|\.read\b|\.output\b|\.dump\b|attach\b|dblink|\binto\b"
)
_STATEMENT_OPTIONS = {
    "psql": ("-c", "--command"),
    "mysql": ("-e", "--execute"),
    "mariadb": ("-e", "--execute"),
    "sqlcmd": ("-Q", "-q"),
    "clickhouse-client": ("-q", "--query"),
    "duckdb": ("-c", "-s"),
    "cqlsh": ("-e",),
    "mongosh": ("--eval",),
    "mongo": ("--eval",),
    "usql": ("-c",),
}


def _client(analysis: ShellAnalysis, call: CommandCall) -> None:
    options = _STATEMENT_OPTIONS[call.name]
    has_statement = False
    rest = iter(call.arguments)
    for word in rest:
        text = word.text
        option, has_value, value = text.partition("=")
        if option in options:
            analyze_statement(analysis, call.name, word._replace(text=value) if has_value else next(rest, Word("")))
            has_statement = True
        elif text[:2] in options and not text.startswith("--") and len(text) > 2:
            analyze_statement(analysis, call.name, word._replace(text=text[2:]))
            has_statement = True
        elif option in (
            "-f",
            "--file",
            "-i",
            "--init-command",
            "--pager",
            "-o",
            "--output",
            "--tee",
            "--load-data-local-dir",
        ):
            analysis.report.add_unresolved(f"`{call.name} {option}` reads commands from elsewhere")
    if call.name == "psql" and any(word.text in ("-l", "--list") for word in call.arguments):
        return
    if call.stdin.source is DataSource.TEXT:
        analyze_statement(analysis, call.name, Word(call.stdin.text))
    elif call.stdin.source is not DataSource.NOTHING or not has_statement:
        analysis.report.add_unresolved(f"the effect of `{call.name}` depends on its input")


def analyze_statement(analysis: ShellAnalysis, name: str, word: Word) -> None:
    """Report the effects of SQL, or of a client command, by its verbs."""
    if not word.is_exact:
        analysis.report.add_unresolved(f"a statement of `{name}` is known only at run time")
    if _RUNS.search(word.text):
        analysis.report.add_violation(Violation.ESCAPE)
    if _READS_FILES.search(word.text):
        analysis.report.add_unresolved(f"a statement of `{name}` may read or write files")
    for part in word.text.split(";"):
        text = part.strip()
        if text and not _is_client_query(text):
            kind = _VERBS.get(text.split(None, 1)[0].lower().strip("("), EffectKind.UNRESOLVED)
            _report_verb(analysis, name, kind, text)


_CLIENT_QUERY = re.compile(
    r"\\(?:d|l|dt|du|dn|df|di|conninfo|x|timing|q|z)\b|\\d|\.(?:tables|schema|databases|headers|mode|indexes|quit|exit)\b"
)


def _is_client_query(text: str) -> bool:
    """Return True if it is a client command that only shows something."""
    return _CLIENT_QUERY.match(text) is not None


def _report_verb(analysis: ShellAnalysis, name: str, kind: EffectKind, text: str) -> None:
    if kind is EffectKind.UNRESOLVED:
        analysis.report.add_unresolved(f"a statement of `{name}` is not known")
    elif kind is EffectKind.READ and re.search(
        r"(?i)\b(?:insert|update|delete|drop|truncate|alter|create|grant)\b", text
    ):
        analysis.report.add_unresolved(f"a statement of `{name}` may change data")
    else:
        analysis.report.add_effect(kind, f"database://{name}")


def _sqlite(analysis: ShellAnalysis, call: CommandCall) -> None:
    words = [word for word in call.arguments if not word.is_option]
    if any(re.match(r"-(?:init|cmd|A)", word.text) for word in call.arguments):
        analysis.report.add_unresolved(f"an option of `{call.name}` runs commands")
    for word in words[:1]:
        analysis.add_file_effect(EffectKind.READ, word)
    for word in words[1:]:
        analyze_statement(analysis, call.name, word)
    if len(words) < 2:
        if call.stdin.source is DataSource.TEXT:
            analyze_statement(analysis, call.name, Word(call.stdin.text))
        else:
            analysis.report.add_unresolved(f"the effect of `{call.name}` depends on its input")


_REDIS_READS = names_in(
    """
    get mget keys scan exists ttl pttl type info ping dbsize hget hgetall hkeys hvals hlen lrange llen smembers scard
    sismember zrange zcard zscore strlen memory time llen hmget getrange object --version xlen xrange zcount
    """
)


def _redis(analysis: ShellAnalysis, call: CommandCall) -> None:
    rest = iter(call.arguments)
    for word in rest:
        if word.text in ("-h", "-p", "-n", "-a", "-u", "--user", "--pass", "-s"):
            next(rest, None)
        elif not word.is_option:
            verb = word.text.lower()
            if verb in _REDIS_READS:
                analysis.report.add_effect(EffectKind.READ, f"database://{call.name}")
            elif verb in ("del", "flushall", "flushdb", "unlink", "hdel"):
                analysis.report.add_effect(EffectKind.DELETE, f"database://{call.name}")
            elif verb in ("config", "eval", "script", "module", "debug", "slaveof", "replicaof", "shutdown", "acl"):
                analysis.report.add_effect(EffectKind.ADMIN, join_words(call.arguments))
            else:
                analysis.report.add_effect(EffectKind.WRITE, f"database://{call.name}")
            return
    analysis.report.add_unresolved(f"the effect of `{call.name}` depends on its input")


def _dump(analysis: ShellAnalysis, call: CommandCall) -> None:
    """Report that a whole database is exported or replaced."""
    kind = (
        EffectKind.WRITE
        if "restore" in call.name or "import" in call.name or call.name == "createdb"
        else EffectKind.SECRET
    )
    analysis.report.add_effect(EffectKind.DELETE if call.name.startswith("drop") else kind, f"database://{call.name}")


RULES: dict[str, Rule] = {
    **dict.fromkeys(_STATEMENT_OPTIONS, _client),
    **dict.fromkeys(("sqlite3", "sqlite"), _sqlite),
    "redis-cli": _redis,
    **dict.fromkeys(
        (
            "pg_dump",
            "pg_dumpall",
            "mysqldump",
            "mongodump",
            "pg_restore",
            "mongorestore",
            "mongoimport",
            "mongoexport",
            "dropdb",
            "createdb",
            "dropuser",
        ),
        _dump,
    ),
}
