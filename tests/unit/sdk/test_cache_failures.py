"""A cache with an unusable file: `get` misses, `set` raises the reason, and no wrong result is returned."""

import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from qwed_sdk.cache import CacheContext, CacheError, VerificationCache
from qwed_sdk.cache import sqlite_file as cache_file

HERE = CacheContext("openai", "gpt-4o", "v1")
COUNT = 60


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[VerificationCache]:
    with VerificationCache(tmp_path / "cache") as cache:
        for number in range(COUNT):
            cache.set(f"query {number}", {"number": number, "text": "x" * 700}, HERE)
        yield cache


def right_or_missing(cache: VerificationCache) -> int:
    """Return the number of hits; every hit is the right result."""
    results = [(number, cache.get(f"query {number}", HERE)) for number in range(COUNT)]
    assert [number for number, result in results if result is not None and result["number"] != number] == []
    return sum(result is not None for _, result in results)


def file_of(cache: VerificationCache) -> Path:
    return cache.cache_dir / "cache.db"


@pytest.mark.parametrize("content", [b"this is no database" * 300, b"SQLite format 3\0" + b"\xff" * 5000, b"\0" * 8192])
def test_a_file_that_is_no_database_misses_says_so_and_is_replaced_by_clear(
    filled: VerificationCache, content: bytes
) -> None:
    filled.close()
    file_of(filled).write_bytes(content)
    with VerificationCache(filled.cache_dir) as cache:
        assert right_or_missing(cache) == 0
        with pytest.raises(CacheError, match=r"cache\.db` is damaged: run `qwed cache clear`"):
            cache.set("a", {}, HERE)
        with pytest.raises(CacheError, match="is damaged"):
            cache.get_stats()
        cache.clear()
        cache.set("a", {"n": 1}, HERE)
        assert (cache.get("a", HERE), cache.get_stats().total_entries) == ({"n": 1}, 1)


def test_a_file_damaged_while_it_is_open_gives_no_wrong_answer(filled: VerificationCache) -> None:
    filled.close()
    whole, chance = file_of(filled).read_bytes(), random.Random(7)
    for _ in range(25):
        file_of(filled).write_bytes(whole)
        assert right_or_missing(filled) == COUNT
        filled.close()
        assert filled.get("query 1", HERE) is not None
        for _ in range(chance.choice([1, 3])):
            with file_of(filled).open("r+b") as out:
                out.seek(chance.randrange(len(whole)))
                out.write(chance.randbytes(chance.choice([1, 8, 300])))
        right_or_missing(filled)
        with suppress(CacheError):
            filled.set("one more", {"n": 1}, HERE)
        filled.close()
        right_or_missing(filled)
        filled.close()
    filled.clear()
    filled.set("query 1", {"number": 1}, HERE)
    assert right_or_missing(filled) == 1


@pytest.mark.parametrize("companion", ["-wal", "-shm"])
def test_a_damaged_log_gives_no_wrong_answer(filled: VerificationCache, tmp_path: Path, companion: str) -> None:
    """A crash leaves the log behind without the process that wrote it."""
    chance = random.Random(companion)
    for number in range(15):
        copy = tmp_path / f"copy {number}"
        copy.mkdir(mode=0o700)
        for name in ("cache.db", "cache.db-wal", *(["cache.db-shm"] if companion == "-shm" else [])):
            content = bytearray((filled.cache_dir / name).read_bytes())
            if name.endswith(companion):
                at = chance.randrange(len(content))
                content[at : at + 64] = chance.randbytes(64)
            (copy / name).write_bytes(content)
        with VerificationCache(copy) as cache:
            right_or_missing(cache)


def test_a_truncated_file_gives_no_wrong_answer(filled: VerificationCache) -> None:
    filled.close()
    content = file_of(filled).read_bytes()
    for length in range(0, len(content), 4097):
        file_of(filled).write_bytes(content[:length])
        with VerificationCache(filled.cache_dir) as cache:
            right_or_missing(cache)


def test_a_removed_directory_forgets_everything_and_is_made_again(filled: VerificationCache) -> None:
    subprocess.run(["rm", "-r", filled.cache_dir], check=True)
    assert right_or_missing(filled) == 0
    filled.set("query 1", {"number": 1}, HERE)
    assert right_or_missing(filled) == 1
    assert file_of(filled).stat().st_mode & 0o777 == 0o600


def test_a_log_removed_while_it_is_in_use_divides_nobody(filled: VerificationCache) -> None:
    (filled.cache_dir / "cache.db-wal").unlink()
    right_or_missing(filled)
    filled.set("query 1", {"number": 1, "n": 2}, HERE)
    with VerificationCache(filled.cache_dir) as other:
        assert other.get("query 1", HERE) == filled.get("query 1", HERE) == {"number": 1, "n": 2}


def test_a_file_replaced_by_another_is_opened_anew(filled: VerificationCache, tmp_path: Path) -> None:
    with VerificationCache(tmp_path / "other") as other:
        other.set("query 1", {"number": 1, "from": "the other"}, HERE)
    for name in filled.cache_dir.iterdir():
        name.unlink()
    (tmp_path / "other" / "cache.db").rename(file_of(filled))
    assert filled.get("query 1", HERE) == {"number": 1, "from": "the other"}
    assert right_or_missing(filled) == 1


def test_a_process_that_holds_the_file_delays_nobody_for_ever(
    filled: VerificationCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_file, "BUSY_TIMEOUT", 0.05)
    with VerificationCache(filled.cache_dir) as cache:
        connection = sqlite3.connect(file_of(filled), isolation_level=None)
        connection.execute("BEGIN EXCLUSIVE")
        try:
            assert cache.get("query 1", HERE) == {"number": 1, "text": "x" * 700}
            assert cache.get("an unknown query", HERE) is None
            with pytest.raises(CacheError, match="was locked by another process for"):
                cache.set("a", {}, HERE)
            with pytest.raises(CacheError, match="was locked by another process for"):
                cache.clear()
        finally:
            connection.close()
        cache.set("a", {"n": 1}, HERE)
        assert (cache.get("a", HERE), right_or_missing(cache)) == ({"n": 1}, COUNT)


def test_a_full_disk_keeps_what_is_there_and_says_so(tmp_path: Path) -> None:
    program = f"""
import resource, signal
from qwed_sdk.cache import CacheContext, CacheError, VerificationCache
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
here = CacheContext("openai", "gpt-4o", "v1")
cache = VerificationCache({str(tmp_path / "cache")!r})
for number in range(5):
    cache.set(f"query {{number}}", {{"number": number}}, here)
cache.close()
cache.get("query 1", here)
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
refused = 0
for number in range(5, 12):
    try:
        cache.set(f"query {{number}}", {{"number": number, "text": "x" * 20_000}}, here)
    except CacheError as error:
        refused += 1
        message = str(error)
    for known in range(12):
        assert (cache.get(f"query {{known}}", here) or {{"number": known}})["number"] == known
assert cache.get("query 2", here) == {{"number": 2}}
print(refused > 0, "cannot be used" in message)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("True True\n", "")
    with VerificationCache(tmp_path / "cache") as cache:
        assert cache.get("query 2", HERE) == {"number": 2}
        cache.set("query 9", {"number": 9}, HERE)
        assert cache.get("query 9", HERE) == {"number": 9}


def test_a_process_killed_while_it_writes_leaves_a_whole_cache(tmp_path: Path) -> None:
    program = f"""
from qwed_sdk.cache import CacheContext, VerificationCache
here = CacheContext("openai", "gpt-4o", "v1")
cache = VerificationCache({str(tmp_path / "cache")!r})
number = 0
while True:
    cache.set(f"query {{number % 60}}", {{"number": number % 60, "text": "x" * (number % 5000)}}, here)
    number += 1
    if number % 50 == 0:
        print(number, flush=True)
"""
    for lines in (1, 3, 4):
        writer = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        for _ in range(lines):
            assert writer.stdout.readline()
        writer.kill()
        writer.wait()
        writer.stdout.close()
        with VerificationCache(tmp_path / "cache") as cache:
            assert right_or_missing(cache) >= 50
            cache.set("one more", {}, HERE)
        connection: Any = sqlite3.connect(tmp_path / "cache" / "cache.db")
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.close()
