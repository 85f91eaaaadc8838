"""`qwed cache`: statistics, and clearing with confirmation."""

import io
import json
import sys
from pathlib import Path

import pytest

from qwed.cli import main
from qwed_sdk.cache import CacheContext, VerificationCache

HERE = CacheContext("openai", "gpt-4o", "v1")
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def cache_path(tmp_path: Path) -> Path:
    with VerificationCache(tmp_path / "cache") as cache:
        cache.set("a query", {"status": "VERIFIED"}, HERE)
        cache.get("a query", HERE)
        cache.get("another", HERE)
    return tmp_path / "cache"


def test_the_counts_are_shown_to_people_and_to_programs(cache_path: Path, capsys: Capture) -> None:
    assert main(["cache", "stats", "--cache-dir", str(cache_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:5] == [str(cache_path), "  hits      1", "  misses    1", "  hit rate  50.0%", "  entries   1"]
    assert main(["cache", "stats", "--cache-dir", str(cache_path), "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)
    assert counts.pop("cache_size_bytes") > 0
    assert counts == {"hits": 1, "misses": 1, "total_entries": 1, "hit_rate": 0.5, "cache_dir": str(cache_path)}


def entries(directory: Path) -> int:
    with VerificationCache(directory) as cache:
        return cache.get_stats().total_entries


@pytest.mark.parametrize(("answer", "code", "left"), [("y\n", 0, 0), ("n\n", 1, 1), ("\n", 1, 1), ("", 1, 1)])
def test_clearing_asks_first_and_only_a_yes_is_a_yes(
    cache_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, answer: str, code: int, left: int
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    assert main(["cache", "clear", "--cache-dir", str(cache_path)]) == code
    printed = capsys.readouterr()
    assert printed.err.startswith(f"remove every entry of {cache_path}? [y/N] ")
    assert printed.out == (f"cleared {cache_path}\n" if code == 0 else "")
    assert ("nothing was removed" in printed.err) is (code == 1)
    assert entries(cache_path) == left


def test_clearing_with_yes_asks_nobody(cache_path: Path, capsys: Capture) -> None:
    assert main(["cache", "clear", "--yes", "--json", "--cache-dir", str(cache_path)]) == 0
    printed = capsys.readouterr()
    assert (json.loads(printed.out), printed.err) == ({"cleared": True, "cache_dir": str(cache_path)}, "")
    assert entries(cache_path) == 0


def test_a_damaged_cache_is_told_and_can_be_cleared(cache_path: Path, capsys: Capture) -> None:
    (cache_path / "cache.db").write_bytes(b"no database" * 500)
    assert main(["cache", "stats", "--cache-dir", str(cache_path)]) == 2
    assert capsys.readouterr() == ("", f"qwed: `{cache_path}/cache.db` is damaged: run `qwed cache clear`\n")
    assert main(["cache", "clear", "--yes", "--cache-dir", str(cache_path)]) == 0
    assert main(["cache", "stats", "--cache-dir", str(cache_path)]) == 0


def test_a_mistyped_directory_is_told_and_not_made(tmp_path: Path, capsys: Capture) -> None:
    for verb in (["stats"], ["clear", "--yes"]):
        assert main(["cache", *verb, "--cache-dir", str(tmp_path / "cahce")]) == 2
        message = f"qwed: `{tmp_path}/cahce` is not a directory: nothing is cached there\n"
        assert capsys.readouterr() == ("", message)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "cache").mkdir()
    assert main(["cache", "stats", "--cache-dir", str(tmp_path / "cache")]) == 0
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_directory_of_something_else_is_left_alone(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "project").mkdir(mode=0o755)
    (tmp_path / "project" / "main.py").touch()
    assert main(["cache", "clear", "--yes", "--cache-dir", str(tmp_path / "project")]) == 2
    assert "name a directory for the cache alone" in capsys.readouterr().err


def test_where_nothing_was_ever_cached_nothing_is_counted(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["cache", "stats", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["hits"] == 0
    assert main(["cache", "clear", "--yes"]) == 0
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "cache").mkdir()
    assert main(["cache", "stats", "--cache-dir", str(tmp_path / "cache")]) == 0
    assert list((tmp_path / "cache").iterdir()) == []
