"""Inputs of the SQL oracle: tables, mutations of them, generated queries, calls of every function, and lexical tricks."""

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache

from tests.oracle.sql_execution import functions
from tests.oracle.sql_oracle import LIMITS, SqlInput, predict
from tests.support.case_tables import DATA

_COLUMNS = (
    "id",
    "name",
    "email",
    "salary",
    "password",
    "user_id",
    "total",
    "status",
    "api_key",
    "*",
    "u.*",
    "users.*",
    "1",
    "'x'",
    "NULL",
    "u",
    "users",
    "rowid",
    "ctid",
    "oid",
)
_RELATIONS = (
    *(
        "users",
        "orders",
        "secrets",
        "recent",
        "users u",
        "users AS u",
        "orders o",
        '"users"',
        "public.users",
        "main.users",
        "app.users",
        "information_schema.tables",
    ),
    *(
        "pg_catalog.pg_class",
        "sqlite_master",
        "(SELECT * FROM users) u",
        "users NATURAL JOIN orders",
        "users u JOIN orders o ON u.id = o.user_id",
        "users u, secrets s",
    ),
    *(
        "users LEFT JOIN secrets USING (id)",
        "LATERAL (SELECT * FROM secrets) s",
        "pg_authid",
        "pg_shadow",
        "mysql.user",
        "mysql.global_priv",
        "duckdb_secrets()",
        "ROWS FROM (generate_series(1, 3)) g",
    ),
    *(
        "generate_series(1, 3) g(id)",
        "(VALUES (1, 2)) v(a, b)",
        "json_each('{\"a\":1}')",
        "read_csv('notes.csv')",
        "'notes.csv'",
        "glob('*')",
        "pragma_table_info('users')",
        "query('SELECT 1')",
        "query_table('secrets')",
        "(TABLE secrets) t",
        "ONLY users",
        "users TABLESAMPLE SYSTEM (50)",
    ),
)
_ENDS = (
    *(
        "",
        "",
        "",
        "LIMIT 1",
        "ORDER BY 1",
        "WHERE id = 1",
        "WHERE name LIKE 'a%'",
        "GROUP BY 1",
        "FOR UPDATE",
        "FOR SHARE",
        "LOCK IN SHARE MODE",
        "INTO t2",
        "INTO OUTFILE '/tmp/o'",
        "INTO @v",
    ),
    *(
        "UNION SELECT * FROM secrets",
        "UNION ALL SELECT 1",
        "EXCEPT SELECT 1",
        "; DELETE FROM users",
        "; DROP TABLE orders",
        "-- x",
        "/* x */",
        "FETCH FIRST 1 ROW ONLY",
        "WINDOW w AS (ORDER BY id)",
        "RETURNING *",
        "FORMAT CSV",
    ),
    *(
        "PROCEDURE ANALYSE()",
        "INTO DUMPFILE '/tmp/d'",
        "WHERE id IN (SELECT id FROM secrets)",
        "HAVING count(*) > 0",
        "OFFSET 0",
        "DELETE FROM users",
        "LIMIT (SELECT 1)",
    ),
)
_STATEMENTS = (
    *(
        "DELETE FROM users",
        "UPDATE users SET salary = 1",
        "INSERT INTO orders VALUES (9, 1, 1, 'x')",
        "DROP TABLE orders CASCADE",
        "TRUNCATE users",
        "CREATE TABLE t2 (a int)",
    ),
    *(
        "SELECT * FROM users",
        "SELECT * FROM secrets",
        "SELECT 1",
        "VALUES (1)",
        "TABLE users",
        "EXPLAIN SELECT 1",
        "EXPLAIN ANALYZE DELETE FROM users",
        "SHOW TABLES",
        "DESCRIBE users",
        "PRAGMA user_version = 3",
    ),
    *(
        "PRAGMA table_info(users)",
        "PRAGMA writable_schema = 1",
        "ATTACH '/tmp/x.db' AS x",
        "VACUUM INTO '/tmp/v.db'",
        "COPY users TO '/tmp/c.csv'",
        "COPY users TO PROGRAM 'cat > /tmp/p'",
        "DO $$ BEGIN DELETE FROM users; END $$",
    ),
    *(
        "CALL bump(1)",
        "EXECUTE IMMEDIATE 'DELETE FROM users'",
        "PREPARE p AS DELETE FROM users",
        "SET x = 1",
        "SET GLOBAL max_connections = 10",
        "RESET ALL",
        "LISTEN c",
        "NOTIFY c",
        "LOCK TABLE users",
        "ANALYZE",
        "VACUUM",
        "CHECKPOINT",
    ),
    *(
        "BEGIN",
        "COMMIT",
        "SAVEPOINT s",
        "WITH d AS (DELETE FROM users RETURNING *) SELECT * FROM d",
        "WITH x AS (SELECT 1) DELETE FROM users",
        "SELECT * INTO t3 FROM users",
        "CREATE TEMP TABLE t4 AS SELECT 1",
        "REPLACE INTO users VALUES (1, 'x', 'x', 1, 'x')",
    ),
    *(
        "MERGE INTO users USING orders ON false WHEN NOT MATCHED THEN INSERT VALUES (7)",
        "GRANT ALL ON users TO PUBLIC",
        "ALTER TABLE users ADD c int",
        "COMMENT ON TABLE users IS 'x'",
        "FROM users",
        "FROM users SELECT password",
        "PIVOT users ON name USING sum(id)",
        "SUMMARIZE users",
    ),
    *(
        "HANDLER users OPEN",
        "FLUSH TABLES",
        "KILL 1",
        "LOAD DATA INFILE 'notes.csv' INTO TABLE users",
        "INSTALL httpfs",
        "EXPORT DATABASE '/tmp/e'",
        "USE mysql",
        "DECLARE c CURSOR FOR SELECT 1",
        "ANALYZE FORMAT=JSON DELETE FROM users",
        "SHOW CREATE TABLE users",
    ),
)
_TRICKS = (
    *(
        "'",
        "''",
        "\\'",
        "E'\\'",
        "e'\\''",
        "$$",
        "$a$",
        '"',
        '\\"',
        "`",
        "/*",
        "*/",
        "/*!",
        "/*!50000 ",
        "/*M! ",
        "--",
        "-- ",
        "--\n",
        "#",
        "#\n",
        ";",
        "; ",
        "\n",
        "\r",
        "\x0c",
        "\\",
        "U&'",
        "N'",
        "X'",
        "B'",
    ),
    *(
        "q'[",
        "]'",
        "/*/*",
        "*/*/",
        "/**/",
        "--\r",
        "[",
        "]",
        "(",
        ")",
        ",",
        "@",
        ":",
        "::",
        "{",
        "}",
        "%",
        "\u00a0",
        "\u2028",
        "+",
        "||",
        " AS ",
        " FROM users",
        " UNION ",
        " SELECT ",
        " 'a' ",
        " 1 ",
        "x",
        "_utf8'",
        "0x",
        "E''",
    ),
)
_VALUES = (
    *(
        "1",
        "'x'",
        "'users'",
        "'secrets'",
        "'/home/dev/work/notes.csv'",
        "'/tmp/out'",
        "NULL",
        "id",
        "name",
        "password",
        "u",
        "'SELECT 1'",
        "'DELETE FROM users'",
        "'numbers'",
        "2, 3",
        "'a', 'b'",
        "'users', true",
        "''",
    ),
    *(
        "'SELECT * FROM secrets', true, true, ''",
        "ARRAY[1]",
        "'{}'",
        "1.5",
        "'numbers', 9",
        "'work_mem', '1MB', false",
        "pg_backend_pid()",
        "'users'::regclass",
        "1, 'x'",
        "'1 day'",
        "x'41'",
        "(SELECT api_key FROM secrets)",
        "*",
        "true",
        "'a','b','c'",
        "1,2,3",
    ),
)
_WRAPPERS = (
    *(
        "EXPLAIN {}",
        "EXPLAIN ANALYZE {}",
        "SELECT * FROM ({}) t",
        "WITH q AS ({}) SELECT * FROM q",
        "SELECT ({})",
        "({})",
        "SELECT EXISTS ({})",
        "{};",
        "/* {} */ SELECT 1",
        "SELECT 1 /* {} */",
        "-- x\n{}",
        "/*! {} */",
    ),
    *(
        "SELECT 1; {}",
        "{}; SELECT 1",
        "SELECT 1 UNION {}",
        "SELECT 1 WHERE EXISTS ({})",
        "WITH users AS (SELECT * FROM secrets) {}",
        "WITH RECURSIVE users AS (SELECT 1 UNION SELECT 2) {}",
        "SELECT 1 {}",
        "EXPLAIN (ANALYZE) {}",
        "CREATE VIEW v AS {}",
        "PREPARE p AS {}",
        "COPY ({}) TO '/tmp/c'",
    ),
    *(
        "SELECT '\\'; {}; --'",
        "SELECT E'\\' , '; {} -- '",
        "SELECT $${}$$",
        "SELECT $a$ ' $a$; {} -- '",
        'SELECT "\\"; {}; --"',
        "SELECT 1 --1; {}\n",
        "SELECT 1 #; {}\n",
        "SELECT 1 /* /* */ ; {} /* */ */",
        "SELECT 1 /*! ; {} */",
        "SELECT `\\`; {}; -- `",
        "SELECT '''\\'; {}; --'",
    ),
)


@cache
def tables() -> tuple[str, ...]:
    """Return the statements of every SQL table."""
    texts: list[str] = []
    for path in sorted(DATA.glob("sql*.jsonl")):
        for line in path.read_text().splitlines():
            row = json.loads(line)
            given = row.get("query") or row.get("input") or ""
            texts.append(given["query"] if isinstance(given, dict) else given)
            texts += (
                [f"SELECT id FROM users WHERE name = '{row['payload']}'"] if isinstance(row.get("payload"), str) else []
            )
    return tuple(dict.fromkeys(_on_our_tables(text) for text in texts if isinstance(text, str) and 0 < len(text) < 600))


_TABLE = re.compile(r"\b(FROM|JOIN|INTO|UPDATE|TABLE)\s+([A-Za-z_]+)\b", re.IGNORECASE)
_OURS = ("users", "orders", "secrets")


def _on_our_tables(text: str) -> str:
    """Let a statement name tables that exist, so that it can run."""

    def rename(match: re.Match[str]) -> str:
        name = match[2].lower()
        known = name in _OURS or name.startswith(("pg_", "select", "information"))
        return match[0] if known else f"{match[1]} {_OURS[len(name) % 2]}"

    return _TABLE.sub(rename, text)


def _query(rng: random.Random) -> str:
    columns = ", ".join(_expression(rng) for _ in range(rng.choice((1, 1, 2, 3))))
    return f"SELECT {rng.choice(('', '', '', 'DISTINCT ', 'ALL ', 'TOP 1 '))}{columns} FROM {rng.choice(_RELATIONS)} {rng.choice(_ENDS)}".strip()


def _expression(rng: random.Random) -> str:
    draw = rng.random()
    if draw < 0.6:
        return rng.choice(_COLUMNS)
    if draw < 0.8:
        return f"{rng.choice(_all_functions())}({rng.choice(_VALUES)})"
    return rng.choice(
        (
            "(SELECT password FROM users LIMIT 1)",
            "(SELECT api_key FROM secrets)",
            "u.name",
            "u.to_jsonb",
            "users.row_to_json",
            "count(*)",
            "CASE WHEN id = 1 THEN salary END",
            "name AS password",
            "@v := 1",
            "nextval('numbers')",
            "NEXT VALUE FOR numbers",
            "(users).password",
            "u::text",
            "id IN (SELECT id FROM secrets)",
        )
    )  # noqa: E501


@cache
def _all_functions() -> tuple[str, ...]:
    listed = {name for names in functions().values() for name in names if re.fullmatch(r"[A-Za-z_]\w*", name)}
    maria = "load_file sleep benchmark get_lock release_lock release_all_locks setval lastval nextval sys_exec last_insert_id master_pos_wait updatexml extractvalue uuid user database version connection_id found_rows row_count name_const".split()  # noqa: E501
    return tuple(sorted({*listed, *maria}))


def _call(rng: random.Random) -> str:
    call = f"{rng.choice(_all_functions())}({rng.choice(_VALUES)})"
    return rng.choice(
        (
            "SELECT {}",
            "SELECT {}",
            "SELECT * FROM {}",
            "SELECT {} FROM users",
            "SELECT name FROM users WHERE {} IS NULL",
            "SELECT * FROM {} AS t",
            "CALL {}",
        )
    ).format(call)


def _soup(rng: random.Random) -> str:
    parts = [
        "SELECT ",
        *(rng.choice(_TRICKS) for _ in range(rng.randrange(1, 7))),
        rng.choice(("", f"; {rng.choice(_STATEMENTS)}", f"; {rng.choice(_STATEMENTS[:6])}")),
    ]
    parts += [rng.choice(_TRICKS) for _ in range(rng.randrange(0, 4))]
    return "".join(parts)


def _wrapped(rng: random.Random, text: str) -> str:
    return rng.choice(_WRAPPERS).replace("{}", text)


def _edited(rng: random.Random, text: str, known: Sequence[str]) -> str:
    parts = re.findall(r"\s+|\w+|.", text)
    place = rng.randrange(len(parts))
    choice = rng.random()
    if choice < 0.3:
        parts[place] = rng.choice(_TRICKS)
    elif choice < 0.5:
        parts.insert(place, rng.choice(_TRICKS))
    elif choice < 0.7:
        donor = re.findall(r"\s+|\w+|.", rng.choice(known))
        start = rng.randrange(len(donor))
        parts[place:place] = donor[start : start + rng.randrange(1, 6)]
    elif choice < 0.85:
        parts[place] = rng.choice((*_COLUMNS, *_VALUES, *_RELATIONS))
    else:
        del parts[place]
    return "".join(parts)


def generate(seed: int, extra: Sequence[str] = ()) -> Iterator[SqlInput]:
    """Yield statements without end, each with permissions."""
    rng = random.Random(seed)
    known = [*tables(), *(_on_our_tables(text) for text in extra)]
    makers: tuple[Callable[[], str], ...] = (
        lambda: _query(rng),
        lambda: _query(rng),
        lambda: _call(rng),
        lambda: _soup(rng),
        lambda: _wrapped(rng, rng.choice(_STATEMENTS)),
        lambda: _wrapped(rng, rng.choice(known)),
        lambda: _edited(rng, rng.choice(known), known),
        lambda: _edited(rng, _query(rng), known),
        lambda: rng.choice(known),
    )
    while True:
        text = rng.choice(makers)()
        if text.strip():
            yield SqlInput(text, rng.choice(LIMITS))


def select(seed: int, inputs: Iterator[SqlInput], one_in: int = 10) -> Iterator[SqlInput]:
    """Yield what is predicted to be harmless and has not been seen, and one in `one_in` of the others."""
    rng = random.Random(seed)
    seen: set[int] = set()
    for row in inputs:
        if hash(row) in seen:
            continue
        seen.add(hash(row))
        if any(prediction.is_harmless for prediction in predict(*row).values()) or rng.random() * one_in < 1:
            yield row
