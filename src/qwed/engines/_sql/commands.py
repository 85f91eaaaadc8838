"""Statements that the parser returns as text: their effects, derived from their first words."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from qwed.engines._sql.functions import effect_of_name, file_effects
from qwed.model import Effect, EffectKind

SHELL = "command_execution"
DYNAMIC = "dynamic_sql"
FILE_ACCESS = "file_access"
TIME_DELAY = "time_delay"
LOADS_CODE = "loads_code"
NETWORK_ACCESS = "network_access"
SHUTDOWN = "shutdown"
UNSAFE_SETTING = "unsafe_setting"
IMPERSONATION = "impersonation"
DANGEROUS_FUNCTION = "dangerous_function"

_MAX_LENGTH = 4_000
_MAX_NAMES = 400
"""Limits on the part of a text that is searched for words, paths and calls."""

_PATH = r".{0,400}?'(?P<path>[^']*)'"
_ANY_PATH = r"(?:.{0,400}?'(?P<path>[^']*)')?"
_EXEC = r"EXEC(?:UTE)?\s+(?:@\w+\s*=\s*)?(?:[\[\]\"\w]*\s*\.\s*){0,3}[\[\"]?(?P<name>"
_READS_OF_PRAGMA = (
    "table_info table_xinfo table_list index_list index_info index_xinfo foreign_key_list foreign_key_check "
    "database_list collation_list function_list module_list pragma_list compile_options integrity_check quick_check"
)
_PLAIN_PRAGMAS = (
    "user_version schema_version application_id encoding page_count page_size freelist_count journal_mode foreign_keys "
    "cache_size data_version auto_vacuum synchronous busy_timeout"
)
_READS_OF_PROCEDURES = (
    "help helptext helpindex helpconstraint helpdb helpuser helprole helprolemember helptrigger helpstats columns "
    "tables who who2 spaceused databases depends pkeys fkeys statistics stored_procedures sproc_columns"
)
_SHOWN = (
    # A text stands after a word that says what it is; DuckDB describes a file where it stands alone.
    r"(?:I?LIKE|STARTS\s+WITH|FOR|FROM|IN|TO|WITH)\s+'[^'\\]*+'"
    r"|WHERE\s+[\w`\"]+\s*(?:=|<>|!=|\bLIKE\b)\s*(?:'[^'\\]*+'|\d++)(?:\s+(?:AND|OR)\b(?=\s))?"
    r"|(?!WHERE\b|[\w.]+\.(?:csv|tsv|json|jsonl|ndjson|parquet|xlsx|gz|zst|db|txt)\b)[\w$@.*=,-]++|\"\w++\"|`[\w-]++`(?:\.`[\w-]++`)*|\((?:VERBOSE|FORMAT\s+\w+)\)"
)
_PRINCIPALS = (
    "USER|ROLE|LOGIN|GROUP|EXTENSION|SERVER|ACCOUNT|SYSTEM|POLICY|RESOURCE|WAREHOUSE|TABLESPACE|PUBLICATION|"
    "SUBSCRIPTION|PROFILE|COLLATION|DOMAIN|TYPE|STATISTICS|QUOTA|MASKING|NETWORK|SHARE|CREDENTIAL|CERTIFICATE|KEY|"
    "MASTER|SYMMETRIC|ASYMMETRIC|SESSION|INSTANCE|DEFAULT|OPERATOR|CAST|LANGUAGE|SYNONYM|PUBLIC|CONNECTION|MACRO|"
    r"MATERIALIZED|EXTERNAL\s+SCHEMA"
)
_MAINTENANCE = (
    "VACUUM|REINDEX|CLUSTER|REFRESH|OPTIMIZE|LOCK|UNLOCK|CHECKPOINT|DISCARD|RESET|SAVEPOINT|RELEASE|START|END|ABORT|"
    "LISTEN|UNLISTEN|DEALLOCATE|FLUSH|SECURITY|REASSIGN|CACHE|UNCACHE|CLEAR|MSCK|REPAIR|PURGE|DBCC|KILL|DETACH|"
    "RECONFIGURE|CLOSE|NOTIFY|UNDROP|SUSPEND|RESUME|RENAME"
)


class Command(NamedTuple):
    """Effects of a statement, and the violation if it is refused at every trust level."""

    effects: tuple[Effect, ...]
    violation: str = ""


class _Row(NamedTuple):
    start: re.Pattern[str]
    kinds: tuple[EffectKind, ...]
    violation: str = ""


def _row(start: str, *kinds: EffectKind, violation: str = "") -> _Row:
    return _Row(re.compile(start, re.IGNORECASE | re.DOTALL), kinds, violation)


_E = EffectKind
_ROWS = (
    _row(_EXEC + r"xp_cmdshell|sp_oa\w+|xp_servicecontrol|sp_start_job|sp_add_job\w*)", _E.EXECUTE, violation=SHELL),
    _row(_EXEC + r"xp_(?:dirtree|fileexist|subdirs|getfiledetails))" + _ANY_PATH, _E.READ, violation=FILE_ACCESS),
    _row(_EXEC + r"sp_executesql|sp_prepare|sp_prepexec|sp_execute_external_script)", _E.EXECUTE, violation=DYNAMIC),
    _row(_EXEC + r"sp_send_dbmail)", _E.COMMUNICATE, violation=NETWORK_ACCESS),
    _row(
        rf"EXEC(?:UTE)?\s+(?:(?:sys|dbo|master\.(?:sys|dbo)?)\.)?(?P<name>sp_(?:{'|'.join(_READS_OF_PROCEDURES.split())}))\b"
        r"(?:\s+(?:@\w+\s*=\s*)?(?:N?'[^']*'|[\w.]+)\s*,?)*\s*;?\s*$",
        _E.READ,
    ),
    _row(_EXEC + r"sp_configure|sp_add\w+|sp_grant\w+|sp_password|sp_setapprole|xp_\w+)", _E.ADMIN, violation=SHELL),
    _row(r"EXEC(?:UTE)?\s*\(|EXECUTE\s+IMMEDIATE\b", _E.EXECUTE, violation=DYNAMIC),
    _row(r"EXEC(?:UTE)?\s+AS\b|SET\s+SESSION\s+AUTHORIZATION\b|SETUSER\b", _E.ADMIN, violation=IMPERSONATION),
    _row(r"WAITFOR\s+(?:DELAY|TIME)\b", _E.EXECUTE, violation=TIME_DELAY),
    _row(r"(?:SYSTEM\s+)?SHUTDOWN\b", _E.ADMIN, violation=SHUTDOWN),
    _row(r"SHOW\s+CREATE\s+USER\b", _E.SECRET),
    _row(r"SHOW\s+[\w.]*(?:secret|password|passphrase|conninfo|token|private_key|api_key)\w*\s*;?\s*$", _E.SECRET),
    _row(rf"SHOW(?:\s+(?:{_SHOWN}))*+\s*;?\s*$", _E.READ),
    _row(rf"PRAGMA\s+(?:\w+\.)?(?:{'|'.join(_READS_OF_PRAGMA.split())})\s*(?:$|;|\(\s*[^()]*\)\s*;?\s*$)", _E.READ),
    _row(rf"PRAGMA\s+(?:\w+\.)?(?:{'|'.join(_PLAIN_PRAGMAS.split())})\s*;?\s*$", _E.READ),
    _row(
        r"PRAGMA\s+(?:\w+\.)?(?:writable_schema|temp_store_directory|trusted_schema)",
        _E.ADMIN,
        violation=UNSAFE_SETTING,
    ),
    _row(r"ATTACH\b" + _PATH, _E.READ, _E.WRITE, violation=FILE_ACCESS),
    _row(r"LOAD\s+(?:DATA|XML)\b" + _PATH, _E.READ, violation=FILE_ACCESS),
    _row(r"(?:LOAD|INSTALL|FORCE\s+INSTALL)\b", _E.EXECUTE, violation=LOADS_CODE),
    _row(r"BULK\s+INSERT\b" + _PATH, _E.READ, violation=FILE_ACCESS),
    _row(r"BACKUP\b" + _ANY_PATH, _E.WRITE, violation=FILE_ACCESS),
    _row(r"RESTORE\b" + _ANY_PATH, _E.READ, _E.ADMIN, violation=FILE_ACCESS),
    _row(r"VACUUM\b[^']{0,200}\bINTO\b" + _PATH, _E.WRITE, violation=FILE_ACCESS),
    _row(r"EXPORT\s+(?:DATA|DATABASE)\b" + _ANY_PATH, _E.WRITE, violation=FILE_ACCESS),
    _row(r"(?:UNLOAD|PUT|GET|IMPORT|REMOVE|RM)\b", _E.NETWORK, violation=NETWORK_ACCESS),
    _row(r"ADD\s+(?:JAR|FILE|FILES|ARCHIVE)\b", _E.EXECUTE, violation=LOADS_CODE),
    _row(r"CREATE\b.{0,400}\b(?:SONAME|USING\s+JAR|ASSEMBLY|JAVA)\b", _E.EXECUTE, violation=LOADS_CODE),
    _row(
        r"CREATE\b.{0,4000}\bLANGUAGE\s+'?(?:C|INTERNAL|PLPYTHON\w*|PLPERLU|PLSH|PLTCLU)\b",
        _E.EXECUTE,
        violation=LOADS_CODE,
    ),
    _row(
        r"CREATE\s+EXTENSION\b.{0,60}\b(?:plpython\w*|plperlu|pltclu|plsh|dblink|file_fdw|postgres_fdw|adminpack|pg_net)\b",
        _E.EXECUTE,
        violation=LOADS_CODE,
    ),
    _row(
        r"CREATE\b.{0,80}\b(?:SERVER|DATABASE\s+LINK|STAGE|FOREIGN)\b", _E.NETWORK, _E.ADMIN, violation=NETWORK_ACCESS
    ),
    _row(r"SET\s+GLOBAL\s+(?:general_log|slow_query_log|log_bin|secure_file)", _E.ADMIN, violation=UNSAFE_SETTING),
    _row(r"ALTER\s+SYSTEM\b.{0,80}(?:_command|preload_libraries)\b", _E.EXECUTE, _E.ADMIN, violation=SHELL),
    _row(rf"(?:CREATE|ALTER|DROP)\s+(?:OR\s+REPLACE\s+)?(?:{_PRINCIPALS})\b", _E.ADMIN),
    _row(r"(?:SET|GRANT|REVOKE|DENY)\b", _E.ADMIN),
    _row(
        r"ANALYZE\s*(?:;|$|(?:VERBOSE\s+|TABLE\s+|LOCAL\s+)*(?!SELECT|DELETE|UPDATE|INSERT|FORMAT|WITH)[\w\"`])",
        _E.ADMIN,
    ),
    _row(rf"(?:{_MAINTENANCE})\b", _E.ADMIN),
)
_OUTFILE = re.compile(r"\bINTO\s+(?:OUT|DUMP)FILE\s+'(?P<path>[^']*)'", re.IGNORECASE)
_CALL = re.compile(
    r"(?<![\w$])([A-Za-z_][\w$]{2,60})\s*\(|\bEXEC(?:UTE)?\s+(?:\w+\.+){0,3}([A-Za-z_]\w{2,60})", re.IGNORECASE
)


def classify_command(text: str) -> Command | None:
    """Return the known effects of a statement, or None if its words match no row."""
    head = text.strip()[:_MAX_LENGTH]
    for row in _ROWS:
        match = row.start.match(head)
        if match:
            return Command(tuple(_effects(row, match)), row.violation)
    return None


def _effects(row: _Row, match: re.Match[str]) -> Iterator[Effect]:
    groups = match.groupdict()
    target = groups.get("path") or groups.get("name")
    for kind in row.kinds:
        if groups.get("path"):
            yield from file_effects(kind, str(target))
        else:
            reads = kind is EffectKind.READ and not target
            yield Effect(kind, "information_schema" if reads else (target or match[0].split()[0].upper()))


def dangerous_calls(text: str) -> Iterator[tuple[str, Effect]]:
    """Yield (violation, effect) for each dangerous function call in a text that does not parse."""
    names = [first or second for first, second in _CALL.findall(text[:_MAX_LENGTH])][:_MAX_NAMES]
    for name in dict.fromkeys(name.lower() for name in names):
        effect_rule = effect_of_name(name)
        if effect_rule is not None:
            yield f"{DANGEROUS_FUNCTION}:{name}", Effect(effect_rule.kind, name)
    for match in _OUTFILE.finditer(text[:_MAX_LENGTH]):
        yield from ((FILE_ACCESS, effect) for effect in file_effects(EffectKind.WRITE, match["path"]))
