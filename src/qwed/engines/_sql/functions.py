"""Classification of function calls: pure by name, with a known effect, or unknown."""

from collections.abc import Iterator
from enum import Enum
from functools import cache
from typing import NamedTuple

from sqlglot import exp

from qwed.engines._sql.function_names import is_pure
from qwed.guards.path import resolve
from qwed.model import Effect, EffectKind

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


class CallKind(Enum):
    """Kind of a function call."""

    PURE = "pure"
    STATEFUL = "stateful"
    DANGEROUS = "dangerous"


class FunctionEffect(NamedTuple):
    """Effect of a function, and the index of the argument that names its target."""

    kind: EffectKind
    argument: int = 0


def _table(rows: tuple[tuple[FunctionEffect, str], ...]) -> dict[str, FunctionEffect]:
    return {name: effect for effect, names in rows for name in names.split()}


_EXECUTE = FunctionEffect(EffectKind.EXECUTE, -1)
_READ = FunctionEffect(EffectKind.READ)
_NETWORK = FunctionEffect(EffectKind.NETWORK)
_ADMIN = FunctionEffect(EffectKind.ADMIN, -1)

DANGEROUS_NAMES = _table(
    (
        (
            _EXECUTE,
            "sleep benchmark waitfor delay get_lock release_lock release_all_locks is_free_lock master_pos_wait",
        ),
        (_EXECUTE, "source_pos_wait wait_for_executed_gtid_set sleepeachrow sleep_ms system$wait wait"),
        (
            _EXECUTE,
            "load_extension fts3_tokenizer edit sys_exec sys_eval sys_get sys_set sys_bineval do_system eval exec",
        ),
        (
            _EXECUTE,
            "execute system shell reflect reflect2 java_method java_call executable result_scan dbms_xmlgen ts_stat",
        ),
        (
            _EXECUTE,
            "query_to_xml query_to_xmlschema query_to_xml_and_xmlschema database_to_xml schema_to_xml table_to_xml",
        ),
        (
            _EXECUTE,
            "table_to_xmlschema schema_to_xmlschema database_to_xmlschema database_to_xml_and_xmlschema ts_rewrite",
        ),
        (
            _EXECUTE,
            "cursor_to_xml query query_table to_query json_execute_serialized_sql crosstab_hash system$cancel_query",
        ),
        (
            _EXECUTE,
            "merge_table",
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
        (
            FunctionEffect(EffectKind.WRITE),
            "writefile pg_file_write pg_file_rename pg_file_sync lowrite write_file to_file",
        ),
        (FunctionEffect(EffectKind.WRITE, 1), "lo_export"),
        (
            FunctionEffect(EffectKind.WRITE, -1),
            "lo_put lo_create lo_creat lo_from_bytea lo_truncate lo_truncate64 lo_write",
        ),
        (FunctionEffect(EffectKind.DELETE), "lo_unlink pg_file_unlink"),
        (
            _NETWORK,
            "url urlcluster s3 s3cluster gcs hdfs hdfscluster remote remotesecure mysql postgresql mongodb redis jdbc",
        ),
        (_NETWORK, "odbc cluster clusterallreplicas azureblobstorage azureblobstoragecluster postgres_scan mysql_scan"),
        (_NETWORK, "postgres_query mysql_query postgres_attach sqlite_attach openrowset openquery opendatasource"),
        (_NETWORK, "httpuritype dburitype xdburitype external_query urldecode_remote aws_lambda lambda_invoke invoke"),
        (_ADMIN, "set_config pg_promote set_masking_policy add_compression_policy citus_add_node shutdown"),
    )
)
_ADMIN_WORDS = (
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
DANGEROUS_PREFIXES: tuple[tuple[str, FunctionEffect], ...] = (
    ("pg_sleep", _EXECUTE),
    ("pg_read_", _READ),
    ("pg_ls_", _READ),
    ("read_", _READ),
    ("pg_write_", FunctionEffect(EffectKind.WRITE)),
    ("pg_file_", FunctionEffect(EffectKind.WRITE)),
    ("lo_", _READ),
    ("dblink", _NETWORK),
    ("http", _NETWORK),
    ("aws_", _NETWORK),
    ("azure_storage", _NETWORK),
    ("utl_", _NETWORK),
    ("xp_", _EXECUTE),
    ("sp_", _EXECUTE),
    ("dbms_", _EXECUTE),
    ("copy_", _EXECUTE),
    ("plpython", _EXECUTE),
    *((f"pg_{word}", _ADMIN) for word in _ADMIN_WORDS),
)
DANGEROUS_PACKAGES: tuple[tuple[str, FunctionEffect], ...] = (
    ("utl_file", _READ),
    ("utl_", _NETWORK),
    ("dbms_ldap", _NETWORK),
    ("dbms_cloud", _NETWORK),
    ("httpuritype", _NETWORK),
    ("http", _NETWORK),
    ("net", _NETWORK),
    ("dbms_", _EXECUTE),
    ("ctxsys", _EXECUTE),
    ("ordsys", _EXECUTE),
    ("sys_xmlgen", _EXECUTE),
    ("aws_s3", _NETWORK),
    ("aws_lambda", _NETWORK),
    ("cron", _ADMIN),
)
_HARMLESS_PACKAGES = frozenset({"dbms_lob", "dbms_random", "utl_raw", "utl_match", "dbms_crypto", "utl_i18n"})
STATEFUL_NAMES = frozenset(
    """
    nextval setval pg_advisory_lock pg_advisory_xact_lock pg_advisory_unlock pg_advisory_unlock_all pg_notify
    pg_advisory_lock_shared pg_advisory_xact_lock_shared pg_advisory_unlock_shared pg_try_advisory_lock
    pg_try_advisory_xact_lock pg_try_advisory_lock_shared pg_try_advisory_xact_lock_shared sys_guid_seq
    pg_current_xact_id txid_current setseed
    """.split()  # noqa: SIM905 - a table of words reads better than a list of literals
)

DANGEROUS_TYPES: tuple[type[exp.Expr], ...] = (exp.ReadCSV, exp.ReadParquet, exp.ToFile, exp.QueryTransform)
_EFFECT_OF_TYPE: dict[type[exp.Expr], FunctionEffect] = {
    exp.ReadCSV: _READ,
    exp.ReadParquet: _READ,
    exp.ToFile: FunctionEffect(EffectKind.WRITE),
    exp.QueryTransform: _EXECUTE,
}
NAMED_CALLS = (
    exp.Anonymous,
    exp.AnonymousAggFunc,
    exp.CombinedAggFunc,
    exp.ParameterizedAgg,
    exp.CombinedParameterizedAgg,
)


def classify_call(node: exp.Expr, dialect: str = "") -> CallKind:
    """Return the kind of the call; PURE for a node that is not a call, or that the dialect only computes."""
    if not _may_call(type(node)):  # type: ignore[arg-type]  # a class is hashable, mypy asks for its instances
        return CallKind.PURE
    if dialect and isinstance(node, NAMED_CALLS) and not _packages(node) and is_pure(call_name(node), dialect):
        return CallKind.STATEFUL if _sets_a_value(node) else CallKind.PURE
    if function_effect(node) is not None:
        return CallKind.STATEFUL if _tenant_setting(node) else CallKind.DANGEROUS
    stateful = isinstance(node, exp.NextValueFor) or call_name(node) in STATEFUL_NAMES or _sets_a_value(node)
    return CallKind.STATEFUL if stateful else CallKind.PURE


@cache
def _may_call(kind: type) -> bool:
    """Return True if a node of this type may be a call; cached, because most nodes are not."""
    return issubclass(kind, (exp.Func, *DANGEROUS_TYPES, exp.NextValueFor, *NAMED_CALLS))


def function_effect(node: exp.Expr) -> FunctionEffect | None:
    """Return the effect of a dangerous function, or None for any other node."""
    if isinstance(node, DANGEROUS_TYPES):
        return _EFFECT_OF_TYPE[type(node)]
    if not isinstance(node, exp.Func):
        return None
    packages = _packages(node)
    if _HARMLESS_PACKAGES & set(packages):
        return None
    by_package = (effect for package in packages for start, effect in DANGEROUS_PACKAGES if _begins(package, start))
    return next(by_package, None) or (effect_of_name(call_name(node)) if isinstance(node, NAMED_CALLS) else None)


def effect_of_name(name: str) -> FunctionEffect | None:
    """Return the effect of a function of this name, or None if it only computes."""
    if name in STATEFUL_NAMES:
        return None
    effect = DANGEROUS_NAMES.get(name)
    return effect or next((effect for start, effect in DANGEROUS_PREFIXES if name.startswith(start)), None)


def _begins(package: str, start: str) -> bool:
    return package.startswith(start) if start.endswith("_") else package == start


def effects_of_call(node: exp.Expr) -> Iterator[Effect]:
    """Yield the effects of a dangerous call on its target; a file that holds secrets adds one."""
    effect = function_effect(node)
    if effect is None:
        return
    target = _argument(node, effect.argument) or call_name(node)
    yield from file_effects(effect.kind, target)


def file_effects(kind: EffectKind, target: str) -> Iterator[Effect]:
    """Yield the effect on a file or an address, and SECRET if it holds secrets."""
    on_file = kind in {EffectKind.READ, EffectKind.WRITE, EffectKind.DELETE}
    if on_file and target.lower().startswith(REMOTE):
        kind = EffectKind.NETWORK
    yield Effect(kind, target[:MAX_TARGET])
    if on_file and resolve(target, None).sensitive:
        yield Effect(EffectKind.SECRET, target[:MAX_TARGET])


def _argument(node: exp.Expr, index: int) -> str:
    if index < 0:
        return ""
    arguments = list(node.expressions) if isinstance(node, exp.Anonymous) else list(node.iter_expressions())
    literal = arguments[index] if index < len(arguments) else None
    return literal.name if isinstance(literal, exp.Literal) and literal.is_string else ""


def _sets_a_value(node: exp.Expr) -> bool:
    """Return True for `last_insert_id(5)`, which sets what it returns without an argument."""
    return call_name(node) == "last_insert_id" and bool(node.expressions)


def _tenant_setting(node: exp.Expr) -> bool:
    """Return True for `set_config('app.tenant', ...)`: a custom setting that the database itself ignores."""
    return call_name(node) == "set_config" and "." in _argument(node, 0)


def call_name(node: exp.Expr) -> str:
    """Return the function's name as written, folded."""
    if isinstance(node, NAMED_CALLS):
        return node.name.lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else node.key


def _packages(node: exp.Expr) -> list[str]:
    parent = node.parent
    if not isinstance(node, exp.Func) or not isinstance(parent, exp.Dot) or parent.expression is not node:
        return []
    return [part.name.lower() for part in parent.this.find_all(exp.Identifier)] or [parent.this.name.lower()]
