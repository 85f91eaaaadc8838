"""Sandbox selection: the configured one if it works, otherwise none, with the reason."""

import os
import stat
import sysconfig
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from qwed_mcp.sandbox import Bubblewrap, SandboxUnavailable, Unconfined, sandbox_from, selection
from qwed_mcp.sandbox.filesystem import LAUNCHER, find_visible_files
from qwed_mcp.sandbox.mount_namespace import closed_ancestor, expose_in_this_thread
from qwed_mcp.settings import NONE, McpSettings
from tests.support.sandbox_escapes import open_directory

ROOT = Path(__file__).parents[4]
OR_NONE = "or set QWED_MCP_SANDBOX=none to run code without a sandbox"


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Empty directory, readable by all, that is the only one searched for tools."""
    with open_directory() as place:
        monkeypatch.setattr(selection, "TOOL_DIRECTORIES", (str(place),))
        yield place


def install(place: Path, script: str) -> Path:
    bwrap = place / "bwrap"
    bwrap.write_text(f"#!/bin/sh\n[ \"$1\" = --version ] && echo 'bubblewrap 0.8.0' && exit\n{script}\n")
    bwrap.chmod(0o755)
    return bwrap


def reason() -> str:
    sandbox = sandbox_from(McpSettings())()
    assert isinstance(sandbox, SandboxUnavailable), sandbox
    return sandbox.reason


def test_bubblewrap_is_the_default_and_none_is_only_taken_when_it_is_said() -> None:
    assert isinstance(sandbox_from(McpSettings())(), Bubblewrap)
    assert isinstance(sandbox_from(McpSettings(sandbox=NONE))(), Unconfined)


def test_what_works_is_remembered() -> None:
    chosen = sandbox_from(McpSettings())
    assert chosen() is chosen()


def test_without_bubblewrap_the_sentence_says_what_to_install(tools: Path) -> None:
    assert (
        reason() == f"bubblewrap is not installed: install it (Debian, Ubuntu: `apt-get install bubblewrap`), {OR_NONE}"
    )


def test_what_did_not_work_is_tried_again(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = sandbox_from(McpSettings())
    assert isinstance(chosen(), SandboxUnavailable)
    monkeypatch.undo()
    assert isinstance(chosen(), Bubblewrap)


def test_an_old_bubblewrap_is_refused(tools: Path) -> None:
    install(tools, "").write_text("#!/bin/sh\necho 'bubblewrap 0.7.9'\n")
    assert reason() == f"bubblewrap is older than 0.8.0: install a newer one, {OR_NONE}"


def test_a_bubblewrap_that_does_not_say_its_version_is_refused(tools: Path) -> None:
    install(tools, "").write_text("#!/bin/sh\n")
    assert reason().startswith("bubblewrap is older than 0.8.0")


@pytest.mark.parametrize("mode", [stat.S_IWGRP, stat.S_IWOTH])
def test_a_bubblewrap_that_others_could_have_put_there_is_not_taken(tools: Path, mode: int) -> None:
    install(tools, "exit 1").chmod(0o755 | mode)
    assert reason().startswith("bubblewrap is not installed")


def test_a_path_in_the_environment_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "exit 1")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert isinstance(sandbox_from(McpSettings())(), Bubblewrap)


@pytest.mark.parametrize(
    ("complaint", "remedy"),
    [
        ("No permissions to create new namespace, likely because ...", "kernel.unprivileged_userns_clone=1"),
        ("setting up uid map: Permission denied", "kernel.apparmor_restrict_unprivileged_userns=0"),
        ("Creating new namespace failed: Operation not permitted", "seccomp=unconfined"),
        ("Can't mount proc on /newroot/proc: Operation not permitted", "systempaths=unconfined"),
        ("something else", "bubblewrap does not work here: `"),
    ],
)
def test_where_bubblewrap_does_not_work_the_sentence_says_what_to_allow(
    tools: Path, complaint: str, remedy: str
) -> None:
    install(tools, f'echo "bwrap: {complaint}" >&2; exit 1')
    assert remedy in reason()
    assert complaint in reason()
    assert OR_NONE in reason()


def test_a_bubblewrap_that_runs_the_job_and_does_not_confine_it_is_refused(tools: Path) -> None:
    fake = f"""#!{find_visible_files().python}
import os, sys
if sys.argv[1:] == ["--version"]:
    print("bubblewrap 0.8.0")
    raise SystemExit
words = sys.argv[1:]
number = lambda name: int(words[words.index(name) + 1])
os.write(number("--json-status-fd"), b'{{"child-pid": %d}}\\n' % os.getpid())
os.read(number("--block-fd"), 1)
last = len(words) - words[::-1].index("--")
os.execv(words[last], words[last:])
"""
    install(tools, "").write_text(fake)
    assert reason().startswith("bubblewrap does not work here: `")


@pytest.mark.parametrize(
    "below", [sysconfig.get_path("purelib"), sysconfig.get_path("stdlib"), str(LAUNCHER.parents[1])]
)
def test_a_data_directory_that_a_job_would_see_is_refused(monkeypatch: pytest.MonkeyPatch, below: str) -> None:
    monkeypatch.setenv("QWED_DATA_DIR", f"{below}/data")
    assert reason().startswith(f"the data directory `{below}/data` is in `")


def test_a_home_with_the_packages_in_it_is_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QWED_DATA_DIR", str(ROOT))
    assert isinstance(sandbox_from(McpSettings())(), Bubblewrap)


def test_without_a_home_there_is_a_sandbox_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "nowhere")
    assert isinstance(sandbox_from(McpSettings())(), Bubblewrap)


def test_of_the_sources_the_packages_alone_are_shown() -> None:
    visible = {*find_visible_files().paths}
    assert {ROOT / "src" / name for name in ("qwed", "qwed_mcp", "qwed_new", "qwed_sdk")} <= visible
    assert not visible & {
        ROOT,
        ROOT / "src",
        ROOT / ".git",
        ROOT / "tests",
        ROOT / ".venv",
        Path("/"),
        Path("/etc"),
        Path.home(),
    }
    assert [path for path in visible if str(path).startswith("/etc/")] == [Path("/etc/ld.so.cache")]


def test_the_outermost_directory_that_others_cannot_pass_is_named() -> None:
    with open_directory() as place:
        (place / "closed" / "inner").mkdir(parents=True)
        (place / "closed").chmod(0o700)
        assert closed_ancestor(Path("/usr/lib")) is None
        assert closed_ancestor(place / "closed") is None
        assert closed_ancestor(place / "closed" / "inner" / "more") == place / "closed"


def test_what_is_shown_in_one_thread_stays_closed_in_the_others(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        return  # only root makes mounts
    closed = tmp_path / "closed"
    (closed / "shown").mkdir(parents=True)
    (closed / "shown" / "file").touch()
    (closed / "hidden").touch()
    closed.chmod(0o700)
    seen: list[object] = []

    def look() -> None:
        expose_in_this_thread([closed / "shown"])
        seen.extend([os.listdir(closed), os.listdir(closed / "shown"), stat.S_IMODE(closed.stat().st_mode)])

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [["shown"], ["file"], 0o755]
    assert (sorted(os.listdir(closed)), stat.S_IMODE(closed.stat().st_mode)) == (["hidden", "shown"], 0o700)
