"""Private files are written atomically and never readable by others."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from qwed.model.private_files import read_private, write_private


def _mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "data" / "secret.key"


@pytest.mark.parametrize("data", [b"", b"x", b"\0\xff\r\n", b"x" * 100_000], ids=["nothing", "a byte", "bytes", "many"])
def test_what_was_written_is_read(file: Path, data: bytes) -> None:
    write_private(file, data)
    assert read_private(file) == data


def test_neither_the_file_nor_its_directory_is_open_to_others(file: Path) -> None:
    before = os.umask(0)
    try:
        write_private(file, b"x")
    finally:
        os.umask(before)
    assert (_mode(file), _mode(file.parent)) == (0o600, 0o700)
    assert [entry.name for entry in file.parent.iterdir()] == [file.name]


def test_it_is_written_over_as_a_whole(file: Path) -> None:
    write_private(file, b"a longer text than the second")
    write_private(file, b"second")
    assert read_private(file) == b"second"
    assert [entry.name for entry in file.parent.iterdir()] == [file.name]


def test_what_a_crash_left_half_written_is_not_in_the_way(file: Path) -> None:
    write_private(file, b"first")
    file.with_name(f"{file.name}.new").write_bytes(b"half a sec")
    assert read_private(file) == b"first"
    file.with_name(f"{file.name}.new").chmod(0o600)
    write_private(file, b"second")
    assert read_private(file) == b"second"


@pytest.mark.parametrize("fails", ["fsync", "rename"])
def test_where_the_disk_fails_what_was_there_stays(file: Path, monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    write_private(file, b"first")

    def full(*_args: Any) -> None:
        raise OSError(28, "no space left on device")

    if fails == "fsync":
        monkeypatch.setattr(os, "fsync", full)
    else:
        monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(OSError, match="no space left"):
        write_private(file, b"second")
    assert read_private(file) == b"first"


def test_it_is_on_disk_before_it_is_given_its_name(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    fsync, rename = os.fsync, Path.rename

    def synced(handle: int) -> None:
        done.append("directory" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    def renamed(self: Path, target: Path) -> Path:
        done.append("name")
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "rename", renamed)
    write_private(file, b"x")
    assert done == ["file", "name", "directory"]


@pytest.mark.parametrize("mode", [0o601, 0o610, 0o604, 0o640, 0o644, 0o660, 0o777])
def test_what_others_could_have_read_is_not_believed(file: Path, mode: int) -> None:
    write_private(file, b"x")
    file.chmod(mode)
    with pytest.raises(PermissionError, match=f"mode {mode:o}.*chmod 600"):
        read_private(file)


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_what_only_its_owner_can_read_is(file: Path, mode: int) -> None:
    write_private(file, b"x")
    file.chmod(mode)
    assert read_private(file) == b"x"


def test_a_file_that_is_not_there_is_said_to_be_missing(file: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_private(file)
