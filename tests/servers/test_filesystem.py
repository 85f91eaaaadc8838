"""`qwed-mcp proxy` with the reference file server, which is written for Node."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.published import FILES, answer_of, proxied
from tests.support.mcp_proxies import Session, session

NODE = shutil.which("node") or "node"


@pytest.fixture(scope="module")
def allowed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Allowed directory, inside one that the server serves completely."""
    directory = tmp_path_factory.mktemp("files") / "allowed"
    directory.mkdir()
    (directory / "notes.txt").write_text("tea at four\n")
    (directory.parent / "theirs.txt").write_text("nobody's business\n")
    return directory


@pytest.fixture(scope="module")
def command(allowed: Path) -> list[str]:
    """Server command; the server itself would read more than is allowed."""
    return [NODE, str(FILES), str(allowed.parent)]


@pytest.fixture(scope="module")
def proxied_session(allowed: Path, command: list[str]) -> Iterator[Session]:
    """Client of a proxy with a local Gate."""
    with proxied(allowed.parent / "home", "files", command, "--wait", "0", "--allow-path", str(allowed)) as connected:
        yield connected


@pytest.fixture(scope="module")
def direct_session(allowed: Path, command: list[str]) -> Iterator[Session]:
    """Client of the server without a proxy."""
    with session(command, allowed.parent / "bare") as connected:
        yield connected


def test_the_tools_are_listed_as_the_server_lists_them(proxied_session: Session, direct_session: Session) -> None:
    assert set(proxied_session.tools()) == set(direct_session.tools())


@pytest.mark.parametrize("tool", ["read_text_file", "list_directory", "get_file_info"])
def test_what_reads_in_the_allowed_directory_is_answered_as_without_us(
    tool: str, proxied_session: Session, direct_session: Session, allowed: Path
) -> None:
    path = str(allowed if tool == "list_directory" else allowed / "notes.txt")
    assert answer_of(proxied_session.call(tool, path=path)) == answer_of(direct_session.call(tool, path=path))


WAYS_OUT = ("{0}/../theirs.txt", "{0}/./../theirs.txt", "{0}/%2e%2e/theirs.txt", "/etc/passwd", "{0}/../../etc/passwd")


@pytest.mark.parametrize("way", WAYS_OUT)
def test_nothing_outside_the_allowed_directory_is_read(way: str, proxied_session: Session, allowed: Path) -> None:
    for tool in ("read_text_file", "get_file_info", "directory_tree"):
        reason = proxied_session.call_refused(tool, path=way.format(allowed))
        assert reason.startswith("DENIED: "), reason
        assert "nobody's" not in reason


def test_nothing_is_moved_or_written_outside(proxied_session: Session, allowed: Path) -> None:
    out = f"{allowed}/../moved.txt"
    assert proxied_session.call_refused("move_file", source=str(allowed / "notes.txt"), destination=out).startswith(
        "DENIED: "
    )
    assert proxied_session.call_refused("write_file", path=out, content="x").startswith("DENIED: ")
    assert sorted(path.name for path in allowed.parent.iterdir() if path.is_file()) == ["theirs.txt"]
    assert (allowed / "notes.txt").read_text() == "tea at four\n"


def test_what_lies_outside_is_not_read_among_what_lies_inside(proxied_session: Session, allowed: Path) -> None:
    paths = [str(allowed / "notes.txt"), f"{allowed}/../theirs.txt"]
    assert "nobody's" not in proxied_session.call_refused("read_multiple_files", paths=paths)
