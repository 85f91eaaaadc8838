"""Verdicts of the stats engine on claims about files (INTERFACES 2, DESIGN 8)."""

import base64
import json
import statistics
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.engines._stats.duckdb_session import open_table
from qwed.engines._stats.table_files import open_sheet
from qwed.engines.pool import EnginePool
from qwed.engines.protocol import EngineRequest
from qwed.engines.registry import EngineRow
from qwed.engines.stats import verify
from qwed.model import Status, Verdict
from tests.support.case_tables import DATA, each, rows


def request(claim: str, content: bytes, **parameters: Any) -> EngineRequest:
    encoded = base64.b64encode(content).decode()
    return EngineRequest(query=claim, parameters={"content_base64": encoded, **parameters})


def ask(claim: str, content: bytes | str, **parameters: Any) -> Verdict:
    return verify(request(claim, content if isinstance(content, bytes) else content.encode(), **parameters))


def verdict_on_row(row: dict[str, Any]) -> Verdict:
    return ask(row["claim"], (DATA / "files" / row["file"]).read_bytes())


def label(row: dict[str, Any]) -> str:
    return row["claim"][:70]


@each("row", rows("stats_true.jsonl"), ids=label, at_once=20)
def test_what_the_file_says_is_verified_with_its_query(row):
    verdict = verdict_on_row(row)
    assert verdict.status is Status.VERIFIED, verdict.message
    assert verdict.result["sql"].startswith("SELECT ")
    assert verdict.result["value"] is not None


@each("row", rows("stats_false.jsonl"), ids=label, at_once=20)
def test_what_the_file_denies_fails_with_what_it_says(row):
    verdict = verdict_on_row(row)
    assert (verdict.status, verdict.checks_failed) == (Status.FAILED, ("claim_holds",)), verdict.message
    assert verdict.result["value"] is not None


@each("row", rows("stats_undecided.jsonl"), ids=label, at_once=20)
def test_what_is_not_understood_or_can_be_read_in_two_ways_is_not_decided(row):
    verdict = verdict_on_row(row)
    assert verdict.status is Status.INCONCLUSIVE, verdict.message
    assert not verdict.message.endswith(".")


@pytest.mark.parametrize("row", rows("stats_hostile.jsonl"), ids=label)
def test_a_broken_file_or_a_hostile_claim_is_refused_and_never_computed(row):
    assert ask(row["claim"], row["content"]).status.value == row["status"]


def test_the_evidence_can_be_run_by_a_person():
    path = DATA / "files" / "orders.csv"
    with duckdb.connect() as database:
        database.execute("CREATE TABLE data AS SELECT * FROM read_csv(?)", [str(path)])
        for claim in (
            "rows where region = 'EU' is 5",
            "max(amount) where status = 'open' = 249",
            "sum(amount) = 2047.7",
        ):
            result = ask(claim, path.read_bytes()).result
            assert database.execute(result["sql"], result["parameters"]).fetchall()[0][0] == float(result["value"])


def test_stats_do_nothing_to_the_world_and_fit_into_json():
    for row in rows("stats_true.jsonl")[::7] + rows("stats_undecided.jsonl")[::7]:
        verdict = verdict_on_row(row)
        assert (verdict.engine, verdict.effects, verdict.violations) == ("stats", (), ())
        json.dumps(dict(verdict.result))


def test_a_value_goes_into_the_query_as_a_parameter():
    verdict = ask("rows where name = 'x'' OR 1=1 --' is 0", "name,b\na,1\n")
    assert verdict.verified
    assert verdict.result["parameters"] == ["x' OR 1=1 --"]
    assert "1=1" not in verdict.result["sql"]


def test_a_name_is_quoted_whatever_is_in_it():
    content = 'a""; DROP TABLE data; --,b\n1,2\n3,4\n'
    verdict = ask('sum of "a""""; DROP TABLE data; --" = 4', content)
    assert verdict.status in (Status.VERIFIED, Status.BLOCKED, Status.INCONCLUSIVE)
    assert ask('sum of `x" y` = 4', '"x"" y",b\n4,2\n').verified


def test_money_is_added_exactly():
    content = "v,w\n" + "0.1,1\n" * 10
    assert ask("sum of v = 1", content).verified
    assert ask("sum of v != 1", content).status is Status.FAILED
    assert ask("sum of v < 1", content).status is Status.FAILED
    assert ask("sum of v = 0.9999999999999999", content).status is Status.FAILED


def test_the_message_says_when_digits_decide():
    assert "at the digits written" in ask("average of v = 0.33", "v,w\n0,1\n0,1\n1,1\n").message
    assert "of a sample" in ask("stddev of v = 1", "v,w\n1,1\n2,1\n3,1\n").message
    assert "write `about 2`" in ask("average of v = 2", "v,w\n2,1\n2.5,1\n").message


def test_an_unknown_column_is_answered_with_the_columns():
    verdict = ask("average of sales = 1", "region,amount\nEU,1\n")
    assert verdict.result["columns"] == ["region", "amount"]
    assert "`region`, `amount`" in verdict.message


@pytest.mark.parametrize(
    ("content", "claim"),
    [
        ("\ufeffa,b\n1,2\n", "sum of a = 1"),
        ("a,b\r\n1,2\r\n3,4\r\n", "sum of b = 6"),
        ("a,b\r1,2\r3,4", "rows = 2"),
        ("a;b\n1;2\n", "sum of b = 2"),
        ("a|b\n1|2\n", "sum of b = 2"),
        ("a\tb\n1\t2\n", "sum of b = 2"),
        ("a,b\n1,2\n\n3,4\n\n\n", "rows = 2"),
        ('a,b\n"x\ny",2\n', "rows = 1"),
        ("a,b\n 1 , 2 \n", "sum of a = 1"),
        ("a,b\n", "rows = 0"),
        ("a,b\n1,=cmd()\n", "rows where b = '=cmd()' is 1"),
        ('{"a": 1}\n{"a": 2}\n', "sum of a = 3"),
        ('{"rows": [{"a": 1}, {"a": 2}]}', "sum of a = 3"),
        ('[{"a": 0.1}, {"a": 0.2}]', "sum of a = 0.3"),
        ('[{"a": ""}, {"a": null}]', "nulls in a = 1"),
        ('[{"a": 12345678901234567890123}]', "sum of a = 12345678901234567890123"),
        ("größe,b\n1,2\n", "sum of größe = 1"),
        ("value,b\n1,2\n", "average of value = 1"),
        ("rows,b\n7,2\n", 'sum of "rows" = 7'),
        ("t,b\n2024-01-01T10:00:00Z,1\n2024-01-01T12:30:00+01:00,1\n", "rows where t >= '2024-01-01T11:00' = 1"),
    ],
)
def test_honest_files_of_every_make_are_read(content, claim):
    verdict = ask(claim, content)
    assert verdict.verified, verdict.message


@pytest.mark.parametrize("declared", ["xls", "CSV", 7, [], "../csv"])
def test_an_unknown_format_is_refused_by_name(declared):
    verdict = ask("rows = 1", "a,b\n1,2\n", format=declared)
    assert (verdict.status, "csv, tsv, json, parquet" in verdict.message) == (Status.BLOCKED, True)


def test_a_file_is_not_what_its_format_says_but_what_it_is(tmp_path):
    content = parquet(tmp_path, "SELECT 1 AS a")
    assert ask("rows = 1", content, format="csv").status is Status.BLOCKED
    assert ask("rows = 1", "a,b\n1,2\n", format="parquet").status is not Status.VERIFIED
    assert ask("rows = 1", "a,b\n1,2\n", format="json").status is Status.BLOCKED


def test_text_of_another_encoding_is_refused():
    assert ask("rows = 1", "a,b\nä,2\n".encode("latin-1")).status is Status.BLOCKED
    assert ask("rows = 1", "a,b\n1,2\n".encode("utf-16")).status is Status.BLOCKED


def parquet(place: Path, select: str) -> bytes:
    path = place / "file.parquet"
    with duckdb.connect() as database:
        database.execute(f"COPY ({select}) TO '{path}' (FORMAT parquet, COMPRESSION zstd)")
    return path.read_bytes()


def test_parquet_is_read_with_its_own_types(tmp_path):
    content = parquet(
        tmp_path,
        "SELECT i AS id, (i % 100 + 0.25)::DECIMAL(10, 2) AS amount, i / 4 AS ratio, "
        "DATE '2024-01-01' + i::INT AS day, [i] AS list, "
        "CASE WHEN i % 2 = 0 THEN 'EU' ELSE 'US' END AS region FROM range(1000) t(i)",
    )
    for claim in (
        "rows = 1000",
        "sum of amount = 49750",
        "average of amount where region = 'EU' = 49.25",
        "max(day) = '2026-09-26'",
        "stddev of id = 288.82",
        "max(ratio) = 249.75",
        "columns = 6",
    ):
        assert ask(claim, content).verified, claim
    assert ask("number of distinct list = 1", content).status is Status.INCONCLUSIVE
    assert ask("sum of amount = 49750.01", content).status is Status.FAILED


def test_a_broken_parquet_file_is_never_verified_of_another_value(tmp_path):
    content = parquet(tmp_path, "SELECT i AS a FROM range(1000) t(i)")
    for at in range(4, len(content) - 4, 97):
        broken = content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :]
        assert ask("rows = 1001", broken).status is not Status.VERIFIED


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT content FROM read_text('/etc/hostname')",
        "COPY data TO '/tmp/x.csv'",
        "ATTACH '/tmp/x.db'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SET memory_limit = '100GB'",
        "SELECT * FROM read_csv('upload://file')",
    ],
)
def test_the_database_reaches_nothing_but_the_file(sql):
    with open_table(open_sheet(b"a,b\n1,2\n", None)) as table, pytest.raises(duckdb.Error):
        table.fetch(sql)


def test_a_worker_of_the_pool_answers_within_its_limits():
    pool = EnginePool([EngineRow(name="stats", module="qwed.engines.stats")], size=2)
    pool.start()
    try:
        content = b"region,amount\n" + b"".join(
            b"%s,%d.5\n" % (b"NSEW"[i % 4 : i % 4 + 1], i % 100) for i in range(300_000)
        )
        true = request("sum of amount where region = 'N' = 3637500", content)
        bomb = request("rows = 5", b"[" * 5_000_000)
        futures = [pool.submit("stats", item, 60.0, for_agent=True, who="") for item in (true, bomb)]
        assert [item.wait_result(120.0).status for item in futures] == [Status.VERIFIED, Status.BLOCKED]
    finally:
        pool.close()


numbers = st.lists(st.decimals(-1000, 1000, places=2, allow_nan=False, allow_infinity=False), min_size=2, max_size=12)


def to_csv(values: list[Decimal]) -> str:
    return "v,w\n" + "".join(f"{value},1\n" for value in values)


@settings(max_examples=8, deadline=None)
@given(numbers, st.sampled_from([Decimal("0.01"), Decimal("-0.01"), Decimal(1), Decimal("0.000001")]))
def test_measures_agree_with_exact_fractions_and_nothing_else_is_verified(values, slip):
    content = to_csv(values)
    exact = {
        "sum": sum(values),
        "median": statistics.median(values),
        "min": min(values),
        "max": max(values),
    }
    assert ask(" and ".join(f"{name} of v = {value:f}" for name, value in exact.items()), content).verified
    for name, value in exact.items():
        assert ask(f"{name} of v = {value + slip:f}", content).status is Status.FAILED
    mean = Fraction(sum(values)) / len(values)
    rounded = Decimal(round(mean * 1000)) / 1000
    assert ask(f"average of v = {rounded:.3f}", content).verified
    assert ask(f"average of v = {rounded + Decimal('0.002'):.3f}", content).status is Status.FAILED
    assert not ask(f"average of v > {rounded + 1:f}", content).verified


@settings(max_examples=6, deadline=None)
@given(numbers)
def test_the_spread_agrees_with_the_standard_library(values):
    content = to_csv(values)
    spreads = {
        "stddev": statistics.stdev(values),
        "population standard deviation": statistics.pstdev(values),
        "variance": statistics.variance(values),
        "population variance": statistics.pvariance(values),
    }
    within = (f"{name} of v is between {value - 1:f} and {value + 1:f}" for name, value in spreads.items())
    assert ask(" and ".join(within), content).verified
    for name, value in spreads.items():
        assert ask(f"{name} of v > {value + 1:f}", content).status is Status.FAILED


@settings(max_examples=40, deadline=None)
@given(st.text(alphabet="abrows of=<>'\"()., 12%±whereand[]`-*", max_size=40) | st.text(max_size=20))
def test_no_claim_raises(text):
    verdict = ask(text, "a,b\n1,2\n")
    assert verdict.engine == "stats"
    json.dumps(dict(verdict.result))


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=60) | st.text(alphabet='ab,;"\n\t 12.{}[]:', max_size=60).map(str.encode))
def test_no_file_raises(content):
    assert ask("rows = 1000", content).status is not Status.VERIFIED
