"""The directory of a cache is private, and nothing that belongs to others is changed."""

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from qwed_sdk.cache import CacheContext, CacheError, VerificationCache

HERE = CacheContext("openai", "gpt-4o", "v1")
NOBODY = 65_534


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def use(directory: Path) -> None:
    with VerificationCache(directory) as cache:
        cache.set("a query", {"n": 1}, HERE)
        assert cache.get("a query", HERE) == {"n": 1}
        assert {mode(file) for file in directory.iterdir()} == {0o600}


def test_directory_and_files_are_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        use(tmp_path / "new" / "cache")
    finally:
        os.umask(before)
    assert mode(tmp_path / "new" / "cache") == 0o700


def test_what_was_open_to_others_is_closed_to_them(tmp_path: Path) -> None:
    directory = tmp_path / "cache"
    use(directory)
    connection = sqlite3.connect(directory / "cache.db")
    try:
        connection.execute("SELECT count(*) FROM cache_v2").fetchone()
        for path in (directory, *directory.iterdir()):
            path.chmod(0o777)
        use(directory)
    finally:
        connection.close()
    assert mode(directory) == 0o700


def test_a_directory_that_holds_more_than_a_cache_is_not_closed_to_others(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir(mode=0o755)
    (tmp_path / "project" / "main.py").touch()
    with pytest.raises(CacheError, match="contains other files: name a directory for the cache alone"):
        VerificationCache(tmp_path / "project")
    assert mode(tmp_path / "project") == 0o755
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o1777)
    with pytest.raises(CacheError, match="name a directory for the cache alone"):
        VerificationCache(tmp_path / "shared")
    assert mode(tmp_path / "shared") == 0o1777


@pytest.mark.parametrize("name", ["cache.db", "cache.db-wal", "cache.db-shm"])
def test_a_link_in_place_of_a_file_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "cache").mkdir(mode=0o700)
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "cache" / name).symlink_to(precious)
    with pytest.raises(CacheError, match=f"{name}` is a link or not a regular file: remove it"):
        VerificationCache(tmp_path / "cache")
    assert precious.read_text() == "precious"


def test_a_link_to_nowhere_and_a_directory_in_place_of_the_file_are_refused(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir(mode=0o700)
    (tmp_path / "one" / "cache.db").symlink_to(tmp_path / "nowhere")
    (tmp_path / "other" / "cache.db").mkdir()
    for name in ("one", "other"):
        with pytest.raises(CacheError, match="is a link or not a regular file"):
            VerificationCache(tmp_path / name)
    assert not (tmp_path / "nowhere").exists()


def test_a_link_or_a_file_in_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(CacheError, match="is a link or not a directory"):
        VerificationCache(tmp_path / "link")
    (tmp_path / "file").touch()
    for directory in (tmp_path / "file", tmp_path / "file" / "cache", Path("/proc/cache")):
        with pytest.raises(CacheError, match="cannot be used for a cache"):
            VerificationCache(directory)


def given_away(directory: Path, name: str) -> Path:
    """Return a cache in which a file belongs to another user; without root, a directory of the system."""
    if os.geteuid() != 0:
        return Path("/usr")
    use(directory)
    (directory / name).open("ab").close() if name else None
    os.chown(directory / name, NOBODY, NOBODY)
    return directory


@pytest.mark.parametrize("name", ["", "cache.db", "cache.db-wal"])
def test_what_belongs_to_another_user_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(CacheError, match="belongs to another user"):
        VerificationCache(given_away(tmp_path / "cache", name))


PROGRAM = """
import os, sys
from pathlib import Path
from qwed_sdk.cache import CacheContext, CacheError, VerificationCache
home, here = Path(sys.argv[1]), CacheContext("openai", "gpt-4o", "v1")
if os.geteuid() == 0:
    os.chown(home, 65534, 65534)
    os.setgid(65534)
    os.setuid(65534)
cache = VerificationCache(home / "cache")
cache.set("a query", {"n": 1}, here)
cache.close()
(home / "cache" / "cache.db").chmod(0o400)
(home / "cache").chmod(0o500)
print(cache.get("a query", here), cache.get("another", here))
try:
    cache.set("a query", {"n": 2}, here)
except CacheError as error:
    print(error)
(home / "cache").chmod(0o700)
(home / "cache" / "cache.db").unlink()
(home / "cache").chmod(0o500)
try:
    VerificationCache(home / "cache")
except CacheError as error:
    print(error)
"""


def test_a_directory_that_cannot_be_written_misses_and_says_so(tmp_path: Path) -> None:
    """Runs as a user without root rights, in a directory that every user can reach."""
    home = Path(subprocess.check_output(["mktemp", "-d", "/tmp/qwed-cache-XXXXXX"], text=True).strip())
    try:
        done = subprocess.run([sys.executable, "-c", PROGRAM, home], capture_output=True, text=True, timeout=60)
    finally:
        subprocess.run(["chmod", "-R", "u+rwx", home], check=True)
        subprocess.run(["rm", "-r", home], check=True)
    assert done.returncode == 0, done.stderr
    got, refused, opened = done.stdout.splitlines()
    assert got in ("None None", "{'n': 1} None")
    assert "cannot be used: " in refused
    assert opened == f"`{home}/cache` cannot be used for a cache: Permission denied"
