"""What calling a function does: pure by name, known by its deed, or unknown."""

from collections.abc import Iterator
from enum import Enum
from functools import cache
from typing import NamedTuple

from sqlglot import exp

from qwed.engines._sql.function_names import PURE_NAMES
from qwed.guards.path import resolve
from qwed.words import Effect, EffectKind

MAX_TARGET = 200
REMOTE = (
    "http:",
    "https:",
    "ftp:",
    "s3:",
    "s3a:",
    "gs:",
    "gcs:",
    "abfs:",
    "abfss:",
    "azure:",
    "az:",
    "hdfs:",
    "//",
    "\\\\",
)


class Call(Enum):
    """What calling a function means."""

    PURE = "pure"
    STATEFUL = "stateful"
    UNKNOWN = "unknown"
    DANGEROUS = "dangerous"


class Deed(NamedTuple):
    """What a function does, and which of its arguments says to what."""

    kind: EffectKind
    argument: int = 0


def _table(rows: tuple[tuple[Deed, str], ...]) -> dict[str, Deed]:
    return {name: deed for deed, names in rows for name in names.split()}


_RUN = Deed(EffectKind.EXECUTE, -1)
_READ = Deed(EffectKind.READ)
_CALL = Deed(EffectKind.NETWORK)
_RULE = Deed(EffectKind.ADMIN, -1)

DANGEROUS_NAMES = _table(
    (
        (_RUN, "sleep benchmark waitfor delay get_lock release_lock release_all_locks is_free_lock master_pos_wait"),
        (_RUN, "source_pos_wait wait_for_executed_gtid_set sleepeachrow sleep_ms system$wait wait"),
        (_RUN, "load_extension fts3_tokenizer edit sys_exec sys_eval sys_get sys_set sys_bineval do_system eval exec"),
        (
            _RUN,
            "execute system shell reflect reflect2 java_method java_call executable result_scan dbms_xmlgen ts_stat",
        ),
        (_RUN, "query_to_xml query_to_xmlschema query_to_xml_and_xmlschema database_to_xml schema_to_xml table_to_xml"),
        (_RUN, "table_to_xmlschema schema_to_xmlschema database_to_xmlschema database_to_xml_and_xmlschema ts_rewrite"),
        (
            _RUN,
            "cursor_to_xml query query_table json_execute_serialized_sql crosstab_hash system$cancel_query merge_table",
        ),
        (
            _READ,
            "load_file readfile file glob input sniff_csv parquet_scan parquet_metadata parquet_schema getenv lsdir",
        ),
        (
            _READ,
            "parquet_file_metadata parquet_kv_metadata st_read st_drivers st_read_meta parse_filename bulk openxml",
        ),
        (_READ, "fn_trace_gettable fn_xe_file_target_read_file fn_get_audit_file fn_dblog fn_dump_dblog filesystem"),
        (
            _READ,
            "lo_import lo_get loread lo_open pg_stat_file pg_current_logfile pg_hba_file_rules dict_get_secret zipfile",
        ),
        (
            _READ,
            "sqlite_scan iceberg_scan delta_scan deltalake iceberg hudi read_files cloud_files getsettings bfilename",
        ),
        (Deed(EffectKind.WRITE), "writefile pg_file_write pg_file_rename pg_file_sync lowrite write_file to_file"),
        (Deed(EffectKind.WRITE, 1), "lo_export"),
        (Deed(EffectKind.WRITE, -1), "lo_put lo_create lo_creat lo_from_bytea lo_truncate lo_truncate64 lo_write"),
        (Deed(EffectKind.DELETE), "lo_unlink pg_file_unlink"),
        (
            _CALL,
            "url urlcluster s3 s3cluster gcs hdfs hdfscluster remote remotesecure mysql postgresql mongodb redis jdbc",
        ),
        (_CALL, "odbc cluster clusterallreplicas azureblobstorage azureblobstoragecluster postgres_scan mysql_scan"),
        (_CALL, "postgres_query mysql_query postgres_attach sqlite_attach openrowset openquery opendatasource"),
        (_CALL, "httpuritype dburitype xdburitype external_query urldecode_remote aws_lambda lambda_invoke invoke"),
        (_RULE, "set_config pg_promote set_masking_policy add_compression_policy citus_add_node shutdown"),
    )
)
_RULING_WORDS = (
    "terminate",
    "cancel",
    "reload",
    "rotate",
    "switch",
    "start_",
    "stop_",
    "backup_",
    "create_",
    "drop_",
    "logical",
    "replication",
    "import",
    "log_",
    "extension",
    "stat_reset",
    "wal_replay",
    "copy_",
)
DANGEROUS_PREFIXES: tuple[tuple[str, Deed], ...] = (
    ("pg_sleep", _RUN),
    ("pg_read_", _READ),
    ("pg_ls_", _READ),
    ("read_", _READ),
    ("pg_write_", Deed(EffectKind.WRITE)),
    ("pg_file_", Deed(EffectKind.WRITE)),
    ("lo_", _READ),
    ("dblink", _CALL),
    ("http", _CALL),
    ("aws_", _CALL),
    ("azure_storage", _CALL),
    ("utl_", _CALL),
    ("xp_", _RUN),
    ("sp_", _RUN),
    ("dbms_", _RUN),
    ("copy_", _RUN),
    ("plpython", _RUN),
    *((f"pg_{word}", _RULE) for word in _RULING_WORDS),
)
DANGEROUS_PACKAGES: tuple[tuple[str, Deed], ...] = (
    ("utl_file", _READ),
    ("utl_", _CALL),
    ("dbms_ldap", _CALL),
    ("dbms_cloud", _CALL),
    ("httpuritype", _CALL),
    ("http", _CALL),
    ("net", _CALL),
    ("dbms_", _RUN),
    ("ctxsys", _RUN),
    ("ordsys", _RUN),
    ("sys_xmlgen", _RUN),
    ("aws_s3", _CALL),
    ("aws_lambda", _CALL),
    ("cron", _RULE),
)
_HARMLESS_PACKAGES = frozenset({"dbms_lob", "dbms_random", "utl_raw", "utl_match", "dbms_crypto", "utl_i18n"})
_OWN_PACKAGES = frozenset({"", "pg_catalog", "information_schema", "sys", "dbo", "safe", "hll_count", "keys", "net"})
STATEFUL_NAMES = frozenset(
    """
    nextval setval pg_advisory_lock pg_advisory_xact_lock pg_advisory_unlock pg_advisory_unlock_all pg_notify
    pg_advisory_lock_shared pg_advisory_xact_lock_shared pg_advisory_unlock_shared pg_try_advisory_lock
    pg_try_advisory_xact_lock pg_try_advisory_lock_shared pg_try_advisory_xact_lock_shared sys_guid_seq
    """.split()  # noqa: SIM905 - a table of words reads better than a list of literals
)

DANGEROUS_TYPES: tuple[type[exp.Expr], ...] = (exp.ReadCSV, exp.ReadParquet, exp.ToFile, exp.QueryTransform)
_DEED_OF_TYPE: dict[type[exp.Expr], Deed] = {
    exp.ReadCSV: _READ,
    exp.ReadParquet: _READ,
    exp.ToFile: Deed(EffectKind.WRITE),
    exp.QueryTransform: _RUN,
}
UNKNOWN_TYPES: tuple[type[exp.Expr], ...] = (
    exp.AIAgg,
    exp.AIClassify,
    exp.AIEmbed,
    exp.AIForecast,
    exp.AIGenerate,
    exp.AISimilarity,
    exp.AISummarizeAgg,
    exp.DynamicIdentifier,
    exp.FeaturesAtTime,
    exp.GenerateBool,
    exp.GenerateDouble,
    exp.GenerateEmbedding,
    exp.GenerateInt,
    exp.GenerateTable,
    exp.GenerateText,
    exp.MLForecast,
    exp.MLTranslate,
    exp.NetFunc,
    exp.Predict,
    exp.Secret,
    exp.VectorSearch,
)
_NAMED = (exp.Anonymous, exp.AnonymousAggFunc, exp.CombinedAggFunc, exp.ParameterizedAgg, exp.CombinedParameterizedAgg)
_ENDINGS = ("if", "array", "state", "merge", "ordefault", "ornull", "distinct", "foreach", "map", "resample")


def call_of(node: exp.Expr) -> Call:
    """What calling this function means; PURE for a node that is no call."""
    if not _may_call(type(node)):  # type: ignore[arg-type]  # a class is hashable, mypy asks for its instances
        return Call.PURE
    if deed_of(node) is not None:
        return Call.STATEFUL if _tenant_setting(node) else Call.DANGEROUS
    if isinstance(node, UNKNOWN_TYPES) or (isinstance(node, exp.Columns) and not isinstance(node.this, exp.Star)):
        return Call.UNKNOWN
    if isinstance(node, exp.NextValueFor):
        return Call.STATEFUL
    if isinstance(node, _NAMED):
        return Call.PURE if isinstance(node.parent, exp.Hint) else _named(call_name(node), _packages(node))
    # A function of somebody's own schema may share its name with a known one.
    return Call.PURE if set(_packages(node)) <= _OWN_PACKAGES else Call.UNKNOWN


@cache
def _may_call(kind: type) -> bool:
    """Most nodes of a statement are none of these, and each is asked."""
    return issubclass(kind, (exp.Func, *DANGEROUS_TYPES, *UNKNOWN_TYPES, exp.Columns, exp.NextValueFor, *_NAMED))


def deed_of(node: exp.Expr) -> Deed | None:
    """What a dangerous function does, or nothing for any other node."""
    if isinstance(node, DANGEROUS_TYPES):
        return _DEED_OF_TYPE[type(node)]
    if not isinstance(node, exp.Func):
        return None
    packages = _packages(node)
    if _HARMLESS_PACKAGES & set(packages):
        return None
    by_package = (deed for package in packages for start, deed in DANGEROUS_PACKAGES if _begins(package, start))
    return next(by_package, None) or (deed_named(call_name(node)) if isinstance(node, _NAMED) else None)


def deed_named(name: str) -> Deed | None:
    """What a function of this name does, if that is more than computing."""
    if name in STATEFUL_NAMES:
        return None
    found = DANGEROUS_NAMES.get(name)
    return found or next((deed for start, deed in DANGEROUS_PREFIXES if name.startswith(start)), None)


def _begins(package: str, start: str) -> bool:
    return package.startswith(start) if start.endswith("_") else package == start


def effects_of_call(node: exp.Expr) -> Iterator[Effect]:
    """What a dangerous call would do, and to what; a file that holds secrets is one."""
    deed = deed_of(node)
    if deed is None:
        return
    target = _argument(node, deed.argument) or call_name(node)
    yield from file_effects(deed.kind, target)


def file_effects(kind: EffectKind, target: str) -> Iterator[Effect]:
    """The effect on a file or an address by its text; what holds secrets says so."""
    on_file = kind in {EffectKind.READ, EffectKind.WRITE, EffectKind.DELETE}
    if on_file and target.lower().startswith(REMOTE):
        kind = EffectKind.NETWORK
    yield Effect(kind, target[:MAX_TARGET])
    if on_file and resolve(target, None).sensitive:
        yield Effect(EffectKind.SECRET, target[:MAX_TARGET])


def _argument(node: exp.Expr, place: int) -> str:
    if place < 0:
        return ""
    given = list(node.expressions) if isinstance(node, exp.Anonymous) else list(node.iter_expressions())
    literal = given[place] if place < len(given) else None
    return literal.name if isinstance(literal, exp.Literal) and literal.is_string else ""


def _tenant_setting(node: exp.Expr) -> bool:
    """`set_config('app.tenant', ...)`: a setting of the application's own, which no part of the database obeys."""
    return call_name(node) == "set_config" and "." in _argument(node, 0)


def call_name(node: exp.Expr) -> str:
    """The function's name as the text has it, folded."""
    if isinstance(node, _NAMED):
        return node.name.lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else node.key


def _packages(node: exp.Expr) -> list[str]:
    parent = node.parent
    if not isinstance(node, exp.Func) or not isinstance(parent, exp.Dot) or parent.expression is not node:
        return []
    return [part.name.lower() for part in parent.this.find_all(exp.Identifier)] or [parent.this.name.lower()]


def _named(name: str, packages: list[str]) -> Call:
    if name in STATEFUL_NAMES:
        return Call.STATEFUL
    if set(packages) & _HARMLESS_PACKAGES:
        return Call.PURE
    return Call.PURE if _is_pure(name) and set(packages) <= _OWN_PACKAGES else Call.UNKNOWN


def _is_pure(name: str) -> bool:
    """A known name, or a known aggregate with one of the endings that combine it (`sumIf`, `uniqMerge`)."""
    if name in PURE_NAMES:
        return True
    return any(name.endswith(ending) and name[: -len(ending)] in PURE_NAMES for ending in _ENDINGS)
