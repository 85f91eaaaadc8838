"""`qwed hook`: files with the step counters of sessions."""

import fcntl
import json
import os
import stat
import threading
from pathlib import Path

import pytest

from qwed_sdk.errors import UsageError
from qwed_sdk.session_store import (
    MAX_ENTRIES,
    RETENTION_SECONDS,
    HookSession,
    hashed_name,
    locked_session,
    remove_expired,
    session_directory,
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def save(name: str, step: int) -> Path:
    with locked_session(name) as session:
        session.steps = {"t": step}
        session.save()
    return session.file


def test_what_was_counted_is_there_again() -> None:
    save("a", 7)
    with locked_session("a") as session:
        assert (session.steps, session.calls, session.waiting) == ({"t": 7}, {}, {})


def test_the_files_are_for_their_owner_alone() -> None:
    directory = session_directory()
    directory.chmod(0o755)
    file = save("a", 1)
    assert (mode_of(directory), mode_of(file), mode_of(file.with_suffix(".lock"))) == (0o700, 0o600, 0o600)


def test_a_name_tells_nothing_of_the_session() -> None:
    name = hashed_name("http://127.0.0.1", "agent_1", "my secret session/../x")
    assert (len(name), name.isalnum()) == (32, True)
    assert name != hashed_name("http://127.0.0.1", "agent_1my secret session/../x")


def test_a_write_that_breaks_off_leaves_what_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    file = save("a", 1)

    def fails(*_args: object) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(UsageError, match="no space left on device"):
        save("a", 2)
    assert json.loads(file.read_text())["steps"] == {"t": 1}


def test_only_the_newest_calls_are_kept(tmp_path: Path) -> None:
    session = HookSession(tmp_path / "a.json", {}, {str(number): "act" for number in range(MAX_ENTRIES + 5)})
    session.save()
    assert next(iter(json.loads(session.file.read_text())["calls"])) == "5"


def test_a_session_is_held_by_one_at_a_time() -> None:
    order: list[str] = []
    inside, go_on = threading.Event(), threading.Event()

    def first() -> None:
        with locked_session("a"):
            inside.set()
            go_on.wait(30)
            order.append("first")

    def second() -> None:
        with locked_session("a"):
            order.append("second")

    one, other = threading.Thread(target=first), threading.Thread(target=second)
    one.start()
    inside.wait(30)
    other.start()
    go_on.set()
    one.join()
    other.join()
    assert order == ["first", "second"]


def test_what_nobody_used_for_a_month_is_swept_away() -> None:
    old, new = save("old", 1), save("new", 1)
    for file in (old, old.with_suffix(".lock")):
        os.utime(file, (1, 1))
    remove_expired(session_directory())
    assert (old.exists(), new.exists()) == (False, True)


def test_what_is_held_is_not_swept_away() -> None:
    with locked_session("old") as session:
        session.save()
        os.utime(session.file, (1, 1))
        remove_expired(session_directory())
        assert session.file.exists()


def test_a_new_session_sweeps() -> None:
    old = save("old", 1)
    os.utime(old, (1, 1))
    save("new", 1)
    assert not old.exists()


def test_young_files_stay() -> None:
    file = save("a", 1)
    remove_expired(session_directory(), file.stat().st_mtime + RETENTION_SECONDS - 1)
    assert file.exists()


def test_a_lock_that_was_swept_away_while_somebody_waited_is_taken_anew() -> None:
    file = save("a", 1)
    lock = file.with_suffix(".lock")
    acquired = threading.Event()

    def waits() -> None:
        with locked_session("a"):
            acquired.set()

    with lock.open() as swept:
        fcntl.flock(swept, fcntl.LOCK_EX)
        waiting = threading.Thread(target=waits)
        waiting.start()
        lock.unlink()
    waiting.join()
    assert acquired.is_set()
    assert lock.exists()
