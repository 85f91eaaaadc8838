"""Compares the schema in PostgreSQL with that of the migrations: columns, keys, checks, triggers and functions.

The expected schema is in `migrations/postgres/shape.json`, because the comparison must not write. Additions of an
administrator, such as an index or a view, are ignored; triggers on our tables are not.
"""

import json
from importlib import resources

from qwed.store.columns import COLUMNS
from qwed.store.postgres.connect import Connection

# Not current_schema(), where a new table would go: a schema named after the role comes before ours.
_HOME = "(SELECT relnamespace FROM pg_class WHERE relname = 'schema_versions' AND pg_table_is_visible(oid))"
_OURS = (
    f"SELECT oid FROM pg_class WHERE relnamespace = {_HOME} AND relkind IN ('r', 'p') "  # noqa: S608 - constants
    "AND NOT relispartition AND relname = ANY(%(tables)s)"
)
_COLUMNS = f"""
    SELECT 'column `' || attrelid::regclass || '.' || attname || '`', concat_ws(' ', format_type(atttypid, atttypmod),
        CASE WHEN attnotnull THEN 'NOT NULL' END, nullif(attidentity::text, ''),
        (SELECT collname FROM pg_collation c WHERE c.oid = attcollation AND collname != 'default'),
        (SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef d WHERE d.adrelid = attrelid AND d.adnum = attnum))
    FROM pg_attribute WHERE attrelid IN ({_OURS}) AND attnum > 0 AND NOT attisdropped
"""  # noqa: S608 - constants
_CONSTRAINTS = f"""
    SELECT 'constraint of `' || conrelid::regclass || '`: ' || pg_get_constraintdef(oid), convalidated::text
    FROM pg_constraint WHERE conrelid IN ({_OURS}) AND contype IN ('p', 'u', 'c', 'f') AND conparentid = 0
"""  # noqa: S608 - constants
_TRIGGERS = f"""
    SELECT 'trigger `' || tgname || '` of `' || tgrelid::regclass || '`', concat_ws(' ', tgenabled,
        regexp_replace(pg_get_triggerdef(oid), '(ON|FUNCTION) [^ ]*[.]', E'\\\\1 ', 'g'))
    FROM pg_trigger WHERE tgrelid IN ({_OURS} UNION SELECT inhrelid FROM pg_inherits
        WHERE inhparent = 'activities'::regclass) AND NOT tgisinternal AND tgparentid = 0
    UNION ALL SELECT 'rewrite rule `' || rulename || '` of `' || ev_class::regclass || '`', ev_type::text
    FROM pg_rewrite WHERE ev_class IN ({_OURS})
"""  # noqa: S608 - constants
_FUNCTIONS = f"""
    SELECT 'function `' || proname || '`', concat_ws(' ', prosecdef::text, md5(prosrc))
    FROM pg_proc WHERE pronamespace = {_HOME} AND proname = ANY(%(functions)s)
"""  # noqa: S608 - constants
_INDEXES = """
    SELECT 'partition `' || i.inhrelid::regclass || '`',
        string_agg(CASE WHEN x.indisunique THEN 'UNIQUE ' ELSE '' END || (
            SELECT string_agg(attname, ', ' ORDER BY array_position(x.indkey, attnum)) FROM pg_attribute
            WHERE attrelid = x.indrelid AND attnum = ANY(x.indkey)
        ), '; ' ORDER BY x.indisunique, x.indkey::text)
    FROM pg_inherits i JOIN pg_index x ON x.indrelid = i.inhrelid AND x.indisvalid
    WHERE i.inhparent = 'activities'::regclass GROUP BY i.inhrelid
"""
_PARTS = (_COLUMNS, _CONSTRAINTS, _TRIGGERS, _FUNCTIONS)
_MONTH = "partition `activities_other`"
TABLES = sorted([*COLUMNS, "activities", "daily_totals", "logs", "schema_versions"])
FUNCTIONS = ["begin_log", "count_erasure", "grow_logs", "index_month", "make_month", "raise_epoch", "write_batch"]


def schema_shape(connection: Connection) -> dict[str, str]:
    """Return every part of our schema by its name, and its definition."""
    names = {"tables": TABLES, "functions": FUNCTIONS}
    rows = [row for part in _PARTS for row in connection.execute(part.encode(), names).fetchall()]
    return {str(name): str(text) for name, text in [*rows, *connection.execute(_INDEXES.encode()).fetchall()]}


def schema_drift(connection: Connection) -> list[str]:
    """Return the parts that differ from this version, or act on our tables and are not ours."""
    expected: dict[str, str] = json.loads(
        (resources.files("qwed.store") / "migrations/postgres/shape.json").read_text()
    )
    actual = schema_shape(connection)
    # Every partition must have the indexes of the default one, and may have more.
    month = set(expected[_MONTH].split("; "))
    for name in [name for name in actual if name.startswith("partition ") and month <= set(actual[name].split("; "))]:
        actual[name] = expected.setdefault(name, expected[_MONTH])
    return sorted(name for name in expected | actual if expected.get(name) != actual.get(name))
