"""Clients of databases: a statement in an argument is judged by its verb, one from elsewhere is not known."""

import re

from qwed.guards._shell.model import Call, Look, Source, Violation, Word, joined, names_in
from qwed.guards._shell.options import Rule
from qwed.words import EffectKind

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


def _client(look: Look, call: Call) -> None:
    options = _STATEMENT_OPTIONS[call.name]
    found = False
    rest = iter(call.arguments)
    for word in rest:
        text = word.text
        option, given, value = text.partition("=")
        if option in options:
            statement(look, call.name, word._replace(text=value) if given else next(rest, Word("")))
            found = True
        elif text[:2] in options and not text.startswith("--") and len(text) > 2:
            statement(look, call.name, word._replace(text=text[2:]))
            found = True
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
            look.report.unclear(f"`{call.name} {option}` takes its orders from elsewhere")
    if call.name == "psql" and any(word.text in ("-l", "--list") for word in call.arguments):
        return
    if call.fed.source is Source.TEXT:
        statement(look, call.name, Word(call.fed.text))
    elif call.fed.source is not Source.NOTHING or not found:
        look.report.unclear(f"what `{call.name}` does depends on what it is fed")


def statement(look: Look, name: str, word: Word) -> None:
    """Judge SQL, or an order of the client, by its verbs."""
    if not word.known:
        look.report.unclear(f"a statement of `{name}` is decided while it runs")
    if _RUNS.search(word.text):
        look.report.violate(Violation.ESCAPE)
    if _READS_FILES.search(word.text):
        look.report.unclear(f"a statement of `{name}` may read or write files")
    for each in word.text.split(";"):
        text = each.strip()
        if text and not _is_question(text):
            kind = _VERBS.get(text.split(None, 1)[0].lower().strip("("), EffectKind.UNRESOLVED)
            _verb(look, name, kind, text)


_QUESTION = re.compile(
    r"\\(?:d|l|dt|du|dn|df|di|conninfo|x|timing|q|z)\b|\\d|\.(?:tables|schema|databases|headers|mode|indexes|quit|exit)\b"
)


def _is_question(text: str) -> bool:
    """Whether it is an order of the client that only shows something."""
    return _QUESTION.match(text) is not None


def _verb(look: Look, name: str, kind: EffectKind, text: str) -> None:
    if kind is EffectKind.UNRESOLVED:
        look.report.unclear(f"a statement of `{name}` is not known")
    elif kind is EffectKind.READ and re.search(
        r"(?i)\b(?:insert|update|delete|drop|truncate|alter|create|grant)\b", text
    ):
        look.report.unclear(f"a statement of `{name}` may change more than it says")
    else:
        look.report.effect(kind, f"database://{name}")


def _sqlite(look: Look, call: Call) -> None:
    words = [word for word in call.arguments if not word.is_option]
    if any(re.match(r"-(?:init|cmd|A)", word.text) for word in call.arguments):
        look.report.unclear(f"an option of `{call.name}` runs orders")
    for word in words[:1]:
        look.file(EffectKind.READ, word)
    for word in words[1:]:
        statement(look, call.name, word)
    if len(words) < 2:
        if call.fed.source is Source.TEXT:
            statement(look, call.name, Word(call.fed.text))
        else:
            look.report.unclear(f"what `{call.name}` does depends on what it is fed")


_REDIS_READS = names_in(
    """
    get mget keys scan exists ttl pttl type info ping dbsize hget hgetall hkeys hvals hlen lrange llen smembers scard
    sismember zrange zcard zscore strlen memory time llen hmget getrange object --version xlen xrange zcount
    """
)


def _redis(look: Look, call: Call) -> None:
    rest = iter(call.arguments)
    for word in rest:
        if word.text in ("-h", "-p", "-n", "-a", "-u", "--user", "--pass", "-s"):
            next(rest, None)
        elif not word.is_option:
            verb = word.text.lower()
            if verb in _REDIS_READS:
                look.report.effect(EffectKind.READ, f"database://{call.name}")
            elif verb in ("del", "flushall", "flushdb", "unlink", "hdel"):
                look.report.effect(EffectKind.DELETE, f"database://{call.name}")
            elif verb in ("config", "eval", "script", "module", "debug", "slaveof", "replicaof", "shutdown", "acl"):
                look.report.effect(EffectKind.ADMIN, joined(call.arguments))
            else:
                look.report.effect(EffectKind.WRITE, f"database://{call.name}")
            return
    look.report.unclear(f"what `{call.name}` does depends on what it is fed")


def _dump(look: Look, call: Call) -> None:
    """Whole databases leave or are replaced."""
    kind = (
        EffectKind.WRITE
        if "restore" in call.name or "import" in call.name or call.name == "createdb"
        else EffectKind.SECRET
    )
    look.report.effect(EffectKind.DELETE if call.name.startswith("drop") else kind, f"database://{call.name}")


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
