"""Entries, contexts, lifetimes and counts of the verification cache, as the seed describes them."""

import importlib
import inspect
import itertools
import re
import sqlite3
import subprocess
import sys
import types
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path
from typing import Any

import pytest

from qwed.model.record import ResponseRecord
from qwed_sdk import cache as package
from qwed_sdk.cache import MAX_ENTRIES, TTL, CacheContext, CacheStats, VerificationCache
from qwed_sdk.cache.serialize import MAX_DEPTH, MAX_RESULT_BYTES
from qwed_sdk.cache.verification import MAX_QUERY_CHARS
from tests.support.manual_clock import ManualClock

HERE = CacheContext(provider="openai", model="gpt-4o", policy_version="v1")
FULL = replace(HERE, tenant_id="acme", env_fingerprint="prod")
VERIFIED = {"status": "VERIFIED", "verified": True, "result": {"value": 4, "parts": [1, 2.5, None, "é"]}}
QUERY = "What is 2+2?"


@pytest.fixture
def manual_clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def cache(tmp_path: Path, manual_clock: ManualClock) -> Iterator[VerificationCache]:
    with VerificationCache(tmp_path / "cache", clock=lambda: manual_clock.now) as opened:
        yield opened


def rows(cache: VerificationCache, query: str, *values: Any) -> list[Any]:
    """Run a statement on the file as another program would, and return its rows."""
    connection = sqlite3.connect(cache.cache_dir / "cache.db")
    try:
        with connection:
            return connection.execute(query, values).fetchall()
    finally:
        connection.close()


def test_it_is_called_as_printed() -> None:
    calls = {"__init__": ["cache_dir", "ttl"], "get": ["query", "context"], "set": ["query", "result", "context"]}
    for name, printed in calls.items():
        parameters = list(inspect.signature(getattr(VerificationCache, name)).parameters.values())[1:]
        assert [parameter.name for parameter in parameters if parameter.kind is not parameter.KEYWORD_ONLY] == printed
    parameters_by_name = inspect.signature(VerificationCache).parameters
    assert (parameters_by_name["cache_dir"].default, parameters_by_name["ttl"].default) == (None, 86_400)


def test_what_was_set_is_got_back(cache: VerificationCache) -> None:
    assert cache.get(QUERY, HERE) is None
    cache.set(QUERY, VERIFIED, HERE)
    assert cache.get(QUERY, HERE) == VERIFIED


def test_capitals_and_spaces_of_a_sentence_do_not_matter_unless_asked_to(cache: VerificationCache) -> None:
    cache.set(QUERY, VERIFIED, HERE)
    assert cache.get("  WHAT is   2+2?", HERE) == VERIFIED
    assert cache.get("  WHAT is   2+2?", HERE, normalize=False) is None
    cache.set("Polish is a language", {"n": 1}, HERE, normalize=False)
    assert cache.get("polish is a language", HERE, normalize=False) is None
    assert cache.get("Polish is a language", HERE, normalize=False) == {"n": 1}


def test_a_claim_about_two_variables_is_not_answered_for_one_about_one(cache: VerificationCache) -> None:
    cache.set("x = x", VERIFIED, HERE)
    assert cache.get("X = x", HERE) is None


CHANGED: list[dict[str, Any]] = [
    {field.name: value} for field in fields(CacheContext) for value in ("other", "ACME", "openai ", "None")
]
CHANGED += [{"tenant_id": None}, {"env_fingerprint": None}, {"tenant_id": "prod", "env_fingerprint": "acme"}]


@pytest.mark.parametrize("change", CHANGED, ids=str)
def test_any_other_context_is_a_miss_and_an_entry_of_its_own(cache: VerificationCache, change: dict[str, Any]) -> None:
    other = replace(FULL, **change)
    cache.set(QUERY, VERIFIED, FULL)
    assert cache.get(QUERY, other) is None
    cache.set(QUERY, {"status": "FAILED"}, other)
    assert (cache.get(QUERY, FULL), cache.get(QUERY, other)) == (VERIFIED, {"status": "FAILED"})


def test_fields_do_not_run_into_one_another_and_none_is_no_text() -> None:
    parts = ["a", "b", "ab", '","', "a\0b", "null", "None", "\\"]
    whole = [CacheContext(*chosen) for chosen in itertools.product(parts, repeat=3)]
    whole += [CacheContext("a", "b", "c", *chosen) for chosen in itertools.product([None, *parts], repeat=2)]
    assert len({context.fingerprint for context in whole}) == len(whole)


@pytest.mark.parametrize("field", [field.name for field in fields(CacheContext)])
@pytest.mark.parametrize("blank", ["", " ", "\t\n"])
def test_a_blank_field_is_refused_by_name(field: str, blank: str) -> None:
    with pytest.raises(ValueError, match=f"`{field}` is blank"):
        replace(FULL, **{field: blank})


@pytest.mark.parametrize("field", [field.name for field in fields(CacheContext)])
@pytest.mark.parametrize("value", [1, b"x", ["a"], True])
def test_a_field_that_is_no_text_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"`{field}` is a {type(value).__name__}"):
        replace(FULL, **{field: value})


def test_three_fields_must_be_there_and_none_is_not_there() -> None:
    for field in ("provider", "model", "policy_version"):
        missing: dict[str, Any] = {field: None}
        with pytest.raises(TypeError, match=f"`{field}` is a NoneType"):
            replace(FULL, **missing)
    with pytest.raises(TypeError):
        CacheContext("openai", "gpt-4o")  # type: ignore[call-arg]
    for value, reason in (("x" * 4097, "4097 characters"), ("\ud800", "not valid Unicode")):
        with pytest.raises(ValueError, match=reason):
            replace(FULL, tenant_id=value)


def test_a_context_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        HERE.tenant_id = "other"  # type: ignore[misc]


def test_without_a_context_nothing_is_kept_or_found(cache: VerificationCache) -> None:
    careless: Any = cache
    with pytest.raises(TypeError, match="context"):
        careless.get("2+2")
    with pytest.raises(TypeError, match="context"):
        careless.set("2+2", VERIFIED)
    for wrong in (None, "v1", {"provider": "openai"}):
        with pytest.raises(TypeError, match="give a CacheContext"):
            careless.get("2+2", wrong)
        with pytest.raises(TypeError, match="give a CacheContext"):
            careless.set("2+2", VERIFIED, wrong)


def test_an_entry_lives_a_day_and_is_deleted_when_it_is_asked_for_later(
    cache: VerificationCache, manual_clock: ManualClock
) -> None:
    cache.set(QUERY, VERIFIED, HERE)
    manual_clock.now += TTL - 1
    assert cache.get(QUERY, HERE) == VERIFIED
    manual_clock.now += 1
    assert rows(cache, "SELECT count(*) FROM cache_v2") == [(1,)]
    assert cache.get(QUERY, HERE) is None
    assert rows(cache, "SELECT count(*) FROM cache_v2") == [(0,)]


def test_being_asked_for_does_not_make_an_entry_younger_but_being_set_does(
    cache: VerificationCache, manual_clock: ManualClock
) -> None:
    cache.set(QUERY, VERIFIED, HERE)
    manual_clock.now += TTL / 2
    assert cache.get(QUERY, HERE) == VERIFIED
    manual_clock.now += TTL / 2
    assert cache.get(QUERY, HERE) is None
    cache.set(QUERY, VERIFIED, HERE)
    manual_clock.now += TTL / 2
    cache.set(QUERY, {"n": 2}, HERE)
    manual_clock.now += TTL / 2
    assert cache.get(QUERY, HERE) == {"n": 2}


def test_an_entry_from_the_future_is_a_miss(cache: VerificationCache, manual_clock: ManualClock) -> None:
    cache.set(QUERY, VERIFIED, HERE)
    manual_clock.now -= 3600
    assert cache.get(QUERY, HERE) is None


def test_with_no_lifetime_nothing_is_found(tmp_path: Path) -> None:
    with VerificationCache(tmp_path / "cache", ttl=0) as cache:
        cache.set(QUERY, VERIFIED, HERE)
        assert cache.get(QUERY, HERE) is None


@pytest.mark.parametrize(
    ("ttl", "error"),
    [(-1, ValueError), (float("nan"), ValueError), (float("inf"), ValueError), ("1", TypeError), (True, TypeError)],
)
def test_a_lifetime_is_a_number_of_seconds(tmp_path: Path, ttl: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="`ttl`"):
        VerificationCache(tmp_path / "cache", ttl=ttl)
    assert not (tmp_path / "cache").exists()


def test_past_the_limit_those_go_that_were_not_asked_for_the_longest(cache: VerificationCache) -> None:
    queries = [f"query number {number}" for number in range(MAX_ENTRIES)]
    for query in queries:
        cache.set(query, {"query": query}, HERE)
    assert cache.get(queries[0], HERE) is not None
    cache.set(queries[1], {"query": "again"}, HERE)
    for extra in range(3):
        cache.set(f"one more {extra}", {}, HERE)
    assert rows(cache, "SELECT count(*) FROM cache_v2") == [(MAX_ENTRIES,)]
    hits = [cache.get(query, HERE) is not None for query in queries[:6]]
    assert hits == [True, True, False, False, False, True]


def test_who_was_asked_last_is_known_across_processes_and_whatever_the_clock(
    tmp_path: Path, manual_clock: ManualClock
) -> None:
    class Small(VerificationCache):
        MAX_ENTRIES = 3

    here, there = (Small(tmp_path / "cache", clock=lambda: manual_clock.now) for _ in range(2))
    with here, there:
        for query in ("a", "b", "c"):
            here.set(query, {}, HERE)
            manual_clock.now += 5
        manual_clock.now -= 9
        assert there.get("a", HERE) == {}
        manual_clock.now += 20
        there.set("d", {}, HERE)
        assert [here.get(query, HERE) is not None for query in "abcd"] == [True, False, True, True]


def test_the_key_is_composite_and_the_query_is_not_kept(cache: VerificationCache) -> None:
    cache.set("a secret question", {}, FULL)
    primary = {row[1]: row[5] for row in rows(cache, "PRAGMA table_info(cache_v2)")}
    assert {name: position for name, position in primary.items() if position} == {"key": 1, "context_fingerprint": 2}
    assert rows(cache, "SELECT context_fingerprint FROM cache_v2") == [(FULL.fingerprint,)]
    assert "secret question" not in str(rows(cache, "SELECT * FROM cache_v2"))


def test_the_table_of_an_older_version_is_neither_read_nor_touched(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    file = tmp_path / "cache" / "cache.db"
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE cache (key TEXT PRIMARY KEY, result TEXT, created_at REAL)")
    connection.execute("INSERT INTO cache VALUES (?, ?, ?)", (QUERY, '{"status": "VERIFIED"}', 9e9))
    connection.commit()
    connection.close()
    with VerificationCache(tmp_path / "cache") as cache:
        assert cache.get(QUERY, HERE) is None
        cache.set(QUERY, VERIFIED, HERE)
        cache.clear()
        assert cache.get_stats().total_entries == 0
        assert rows(cache, "SELECT count(*) FROM cache") == [(1,)]


def test_a_table_with_other_columns_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    connection = sqlite3.connect(tmp_path / "cache" / "cache.db")
    connection.execute("CREATE TABLE cache_v2 (key TEXT, context_fingerprint TEXT, result TEXT)")
    connection.commit()
    connection.close()
    with VerificationCache(tmp_path / "cache") as cache:
        assert cache.get(QUERY, HERE) is None
        cache.set(QUERY, VERIFIED, HERE)
        assert cache.get(QUERY, HERE) == VERIFIED


REPLAYS = {
    "the fingerprint of another context": "UPDATE cache_v2 SET context_fingerprint = :fingerprint",
    "both of another context": "UPDATE cache_v2 SET context_fingerprint = :fingerprint, context = :text",
    "a copy for another context": (
        "INSERT INTO cache_v2 SELECT key, :fingerprint, :text, result, digest, created_at, 9 FROM cache_v2"
    ),
}


@pytest.mark.parametrize("replay", REPLAYS.values(), ids=REPLAYS)
def test_a_row_moved_to_another_context_is_never_returned_there(cache: VerificationCache, replay: str) -> None:
    other = replace(FULL, tenant_id="other")
    cache.set(QUERY, VERIFIED, FULL)
    connection = sqlite3.connect(cache.cache_dir / "cache.db")
    with connection:
        connection.execute(replay, {"fingerprint": other.fingerprint, "text": other.text})
    connection.close()
    assert cache.get(QUERY, other) is None


SPOILED = [
    "result = '{}'",
    "result = 'not json'",
    "result = '[]'",
    "result = ''",
    "result = x'ff'",
    "result = cast(x'ff' AS TEXT)",
    "result = 1",
    "result = replace(result, 'VERIFIED', 'FAILED')",
    "created_at = created_at + 1",
    "created_at = 'now'",
    "created_at = 9e999",
    "context = '[]'",
    "context = x'00'",
    "digest = ''",
    "digest = x'00'",
]


@pytest.mark.parametrize("spoil", SPOILED)
def test_a_spoiled_row_is_a_miss_and_can_be_written_again(cache: VerificationCache, spoil: str) -> None:
    cache.set(QUERY, VERIFIED, HERE)
    rows(cache, f"UPDATE cache_v2 SET {spoil}")
    assert cache.get(QUERY, HERE) is None
    cache.set(QUERY, VERIFIED, HERE)
    assert cache.get(QUERY, HERE) == VERIFIED


def test_changing_a_result_does_not_change_the_cache(cache: VerificationCache) -> None:
    result: dict[str, Any] = {"checks": ["a"]}
    cache.set(QUERY, result, HERE)
    result["checks"].append("b")
    first = cache.get(QUERY, HERE)
    assert first == {"checks": ["a"]}
    first["checks"].clear()
    assert cache.get(QUERY, HERE) == {"checks": ["a"]}


def test_the_results_of_the_client_are_kept_as_dicts(cache: VerificationCache) -> None:
    expected = {"status": "VERIFIED", "checks": ["a", "b"]}
    for answer in (ResponseRecord(expected), types.MappingProxyType({"status": "VERIFIED", "checks": ("a", "b")})):
        cache.set(QUERY, answer, HERE)
        cached = cache.get(QUERY, HERE)
        assert (cached, type(cached)) == (expected, dict)


NO_RESULTS: dict[str, Any] = {
    "`result['when']` is a set": {"when": {1}},
    "`result['a'][1]` is a bytes": {"a": [1, b"x"]},
    "`result` has the key `1`, a int": {1: "a"},
    "`result['a']` is a object": {"a": object()},
    "a result must be a dict, not a list": [1],
    "a result must be a dict, not a str": "VERIFIED",
    "a result must be a dict, not a NoneType": None,
}


@pytest.mark.parametrize(("message", "value"), NO_RESULTS.items(), ids=NO_RESULTS)
def test_what_is_no_json_is_refused_by_name(cache: VerificationCache, message: str, value: Any) -> None:
    with pytest.raises(TypeError, match=re.escape(message)):
        cache.set(QUERY, value, HERE)
    assert cache.get(QUERY, HERE) is None


def _nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"in": value}
    return value


def _circular() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["in"] = value
    return value


UNKEPT = {
    "nan": ({"a": float("nan")}, r"`result\['a'\]` is nan"),
    "infinity": ({"a": [-float("inf")]}, r"`result\['a'\]\[0\]` is -inf"),
    "digits": ({"a": 10**5000}, "digits"),
    "long": ({"a": "x" * MAX_RESULT_BYTES}, f"at most {MAX_RESULT_BYTES} are stored"),
    "deep": (_nested(MAX_DEPTH + 1), "nested deeper than 64"),
    "circular": (_circular(), "nested deeper than 64"),
}


@pytest.mark.parametrize(("value", "reason"), UNKEPT.values(), ids=UNKEPT)
def test_what_cannot_be_kept_is_refused(cache: VerificationCache, value: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        cache.set(QUERY, value, HERE)
    assert cache.get(QUERY, HERE) is None


def test_the_largest_result_and_the_strangest_texts_come_back_whole(cache: VerificationCache) -> None:
    for value in (
        {"a": "x" * (MAX_RESULT_BYTES - 8)},
        _nested(MAX_DEPTH),
        {"\0": "\ud800 \U0001f600 ' \" \\ \u2028"},
        {},
    ):
        cache.set(QUERY, value, HERE)
        assert cache.get(QUERY, HERE) == value
    for query in ("", " ", "\0", "\ud800", "x" * MAX_QUERY_CHARS, "'" * 10, "\U0001f600"):
        cache.set(query, {"length": len(query)}, HERE)
        assert cache.get(query, HERE) == {"length": len(query)}


def test_a_query_that_is_too_long_is_a_miss_and_cannot_be_set(cache: VerificationCache) -> None:
    assert cache.get("x" * (MAX_QUERY_CHARS + 1), HERE) is None
    with pytest.raises(ValueError, match=f"at most {MAX_QUERY_CHARS}"):
        cache.set("x" * (MAX_QUERY_CHARS + 1), {}, HERE)
    for query in (None, b"2+2", 4):
        with pytest.raises(TypeError, match="give a string"):
            cache.get(query, HERE)  # type: ignore[arg-type]


def test_every_status_is_kept_as_it_was_set(cache: VerificationCache) -> None:
    for status in ("VERIFIED", "FAILED", "INCONCLUSIVE", "ERROR"):
        cache.set(QUERY, {"status": status}, HERE)
        assert cache.get(QUERY, HERE) == {"status": status}


def test_lookups_are_counted_for_all_who_share_the_cache(cache: VerificationCache) -> None:
    assert cache.get_stats() == CacheStats(0, 0, 0, cache.get_stats().cache_size_bytes)
    assert cache.get_stats().hit_rate == 0.0
    cache.get(QUERY, HERE)
    cache.set(QUERY, VERIFIED, HERE)
    for _ in range(3):
        cache.get(QUERY, HERE)
    counts = cache.get_stats()
    assert (counts.hits, counts.misses, counts.total_entries, counts.hit_rate) == (3, 1, 1, 0.75)
    assert counts.cache_size_bytes >= sum(file.stat().st_size for file in [cache.cache_dir / "cache.db"]) > 0
    cache.close()
    with VerificationCache(cache.cache_dir) as later:
        assert later.get_stats().hits == 3


def test_many_lookups_are_written_without_waiting_for_the_end(cache: VerificationCache) -> None:
    for _ in range(100):
        cache.get(QUERY, HERE)
    assert rows(cache, "SELECT hits, misses FROM cache_v2_counts") == [(0, 100)]


def test_clearing_removes_every_entry_and_every_count(cache: VerificationCache) -> None:
    for number in range(300):
        cache.set(f"query {number}", {"text": "x" * 1000, "secret": "hunter22"}, HERE)
        cache.get(f"query {number}", FULL)
    before = cache.get_stats().cache_size_bytes
    cache.clear()
    assert cache.get("query 1", HERE) is None
    counts = cache.get_stats()
    assert (counts.hits, counts.misses, counts.total_entries) == (0, 1, 0)
    assert counts.cache_size_bytes < before
    assert all(b"hunter22" not in file.read_bytes() for file in cache.cache_dir.iterdir())


def test_a_closed_cache_opens_again_when_it_is_used(cache: VerificationCache) -> None:
    cache.set(QUERY, VERIFIED, HERE)
    cache.close()
    cache.close()
    assert cache.get(QUERY, HERE) == VERIFIED


def test_counts_are_printed_without_colours_where_colorama_is_missing(
    cache: VerificationCache, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "colorama", None)
    cache.get(QUERY, HERE)
    cache.print_stats()
    size = cache.get_stats().cache_size_bytes
    lines = ["Verification cache", "  hits      0", "  misses    1", "  hit rate  0.0%", "  entries   0"]
    assert capsys.readouterr().out == "\n".join([*lines, f"  size      {size:,} bytes", ""])


def test_counts_are_printed_in_colours_where_colorama_is_installed(
    cache: VerificationCache, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    installed: Any = types.ModuleType("colorama")
    installed.Fore, installed.Style = types.SimpleNamespace(CYAN="\x1b[36m"), types.SimpleNamespace(RESET_ALL="\x1b[0m")
    monkeypatch.setitem(sys.modules, "colorama", installed)
    monkeypatch.delenv("NO_COLOR", raising=False)
    cache.print_stats()
    assert "  hits      \x1b[36m0\x1b[0m\n" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    cache.print_stats()
    assert "\x1b" not in capsys.readouterr().out


def test_the_default_place_is_under_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with VerificationCache() as cache:
        assert cache.cache_dir == tmp_path / ".qwed" / "cache"
    with VerificationCache("~/elsewhere") as cache:
        assert cache.cache_dir == tmp_path / "elsewhere"


def test_a_program_that_changes_its_directory_keeps_its_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with VerificationCache("cache") as cache:
        cache.set(QUERY, VERIFIED, HERE)
        monkeypatch.chdir(tmp_path / "elsewhere")
        assert cache.get(QUERY, HERE) == VERIFIED
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_the_module_has_what_it_says_and_needs_no_http_library() -> None:
    assert (MAX_ENTRIES, TTL, VerificationCache.MAX_ENTRIES) == (1000, 86_400, 1000)
    assert all(hasattr(package, name) for name in package.__all__)
    program = "import qwed_sdk.cache, sys; print(sorted({'httpx', 'msgspec', 'cryptography'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
    importlib.reload(package)
