"""`qwed-mcp proxy` before the file server of the protocol's authors, which is written for Node."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.published import FILES, proxied, told
from tests.support.proxies import Session, session

NODE = shutil.which("node") or "node"


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that is allowed, in one the server may serve whole."""
    place = tmp_path_factory.mktemp("files") / "allowed"
    place.mkdir()
    (place / "notes.txt").write_text("tea at four\n")
    (place.parent / "theirs.txt").write_text("nobody's business\n")
    return place


@pytest.fixture(scope="module")
def command(ours: Path) -> list[str]:
    """The server itself would read more than is allowed: what is refused is refused before it."""
    return [NODE, str(FILES), str(ours.parent)]


@pytest.fixture(scope="module")
def guarded(ours: Path, command: list[str]) -> Iterator[Session]:
    """A client before a proxy that decides by itself."""
    with proxied(ours.parent / "home", "files", command, "--wait", "0", "--allow-path", str(ours)) as found:
        yield found


@pytest.fixture(scope="module")
def bare(ours: Path, command: list[str]) -> Iterator[Session]:
    """A client before the server alone."""
    with session(command, ours.parent / "bare") as found:
        yield found


def test_the_tools_are_listed_as_the_server_lists_them(guarded: Session, bare: Session) -> None:
    assert set(guarded.tools()) == set(bare.tools())


@pytest.mark.parametrize("tool", ["read_text_file", "list_directory", "get_file_info"])
def test_what_reads_in_the_allowed_directory_is_answered_as_without_us(
    tool: str, guarded: Session, bare: Session, ours: Path
) -> None:
    path = str(ours if tool == "list_directory" else ours / "notes.txt")
    assert told(guarded.call(tool, path=path)) == told(bare.call(tool, path=path))


WAYS_OUT = ("{0}/../theirs.txt", "{0}/./../theirs.txt", "{0}/%2e%2e/theirs.txt", "/etc/passwd", "{0}/../../etc/passwd")


@pytest.mark.parametrize("way", WAYS_OUT)
def test_nothing_outside_the_allowed_directory_is_read(way: str, guarded: Session, ours: Path) -> None:
    for tool in ("read_text_file", "get_file_info", "directory_tree"):
        reason = guarded.refused(tool, path=way.format(ours))
        assert reason.startswith("DENIED: "), reason
        assert "nobody's" not in reason


def test_nothing_is_moved_or_written_outside(guarded: Session, ours: Path) -> None:
    out = f"{ours}/../moved.txt"
    assert guarded.refused("move_file", source=str(ours / "notes.txt"), destination=out).startswith("DENIED: ")
    assert guarded.refused("write_file", path=out, content="x").startswith("DENIED: ")
    assert sorted(each.name for each in ours.parent.iterdir() if each.is_file()) == ["theirs.txt"]
    assert (ours / "notes.txt").read_text() == "tea at four\n"


def test_what_lies_outside_is_not_read_among_what_lies_inside(guarded: Session, ours: Path) -> None:
    paths = [str(ours / "notes.txt"), f"{ours}/../theirs.txt"]
    assert "nobody's" not in guarded.refused("read_multiple_files", paths=paths)
