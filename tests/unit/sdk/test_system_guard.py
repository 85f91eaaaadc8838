"""Commands and file access are verified without a server (INTERFACES 5)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from qwed_sdk.guards.system_guard import SystemGuard

DATA = Path(__file__).parents[2] / "data"


def commands(name):
    return [json.loads(line)["command"] for line in (DATA / name).read_text().splitlines()]


SQL = (
    "sqlite3 app.db 'SELECT count(*) FROM users'",
    "psql -c 'SELECT 1'",
    "sqlite3 -header -column app.db 'SELECT * FROM users LIMIT 5'",
    "psql -U app -d prod -c 'SELECT count(*) FROM orders'",
    "mysql -e 'SHOW TABLES' app",
)


def verified(command, **options):
    return SystemGuard(**options).verify_shell_command(command).verified


def test_no_attack_is_verified():
    guard = SystemGuard()
    assert [
        command for command in commands("shell_attacks.jsonl") if guard.verify_shell_command(command).verified
    ] == []


def test_commands_that_only_read_are_verified():
    guard = SystemGuard()
    refused = {
        command for command in commands("shell_honest.jsonl") if not guard.verify_shell_command(command).verified
    }
    # A client has nothing that judges SQL.
    assert refused == set(SQL)
    assert {guard.verify_shell_command(command).risk for command in SQL} == {"critical"}


def test_without_allowed_paths_nothing_is_written():
    for command in ("echo x > f", "touch f", "mkdir -p a/b", "cp a b", "git commit -m x", "sed -i s/a/b/ f"):
        result = SystemGuard().verify_shell_command(command)
        assert not result.verified
        assert "no allowed paths are given" in result.message


@pytest.mark.parametrize(
    ("command", "allowed"),
    [
        ("echo x > /srv/app/f", True),
        ("cp /srv/app/a /srv/app/b", True),
        ("mkdir -p build && touch build/x", True),
        ("cd /srv/app && echo x > f", True),
        ("cat notes.txt", True),
        ("ls -la | grep foo", True),
        ("echo x > /etc/hosts", False),
        ("echo x > ../f", False),
        ("cp /srv/app/a /srv/other", False),
        ("cat /srv/other/a", False),
        ("cd / && cat etc/hosts", False),
        ("cd $X && echo x > f", False),
        ("echo x > /srv/app/.env", False),
        ("rm /srv/app/f", False),
        ("curl https://example.com", False),
        ("python3 /srv/app/x.py", False),
        ("copy a.txt C:\\x", False),
        ("psql -c 'INSERT INTO t VALUES (1)'", False),
    ],
)
def test_allowed_paths_bound_reads_and_writes(command, allowed):
    assert verified(command, allowed_paths=["/srv/app"]) is allowed


def test_a_blocked_command_is_refused_wherever_it_stands():
    for command in ("git status", "ls && git log", "sh -c 'git status'", "env git log", "echo $(git status)"):
        result = SystemGuard(blocked_commands=["git"]).verify_shell_command(command)
        assert not result.verified
        assert result.message == "`git` is a blocked command"
    assert verified("ls", blocked_commands=["git"])


def test_a_result_reads_both_ways():
    result = SystemGuard().verify_shell_command("cat /etc/shadow")
    assert result["verified"] is result.verified is False
    assert result.risk == "critical"
    assert result.message == result.violations[0] == "reads the sensitive file `/etc/shadow`"
    assert {"kind": "SECRET", "target": "/etc/shadow"} in result.effects


def test_a_verified_command_has_no_violations():
    result = SystemGuard().verify_shell_command("git log --oneline | head -5")
    assert (result.verified, result.message, result.risk, result.violations) == (True, "allowed", "low", ())


@pytest.mark.parametrize(
    ("path", "operation", "allowed"),
    [
        ("notes.txt", "read", True),
        ("/usr/share/dict/words", "read", True),
        ("/etc/shadow", "read", False),
        ("~/.ssh/id_rsa", "read", False),
        (".env", "READ", False),
        ("/proc/self/root/etc/shadow", "read", False),
        ("%2e%2e/%2e%2e/etc/shadow", "read", False),
        ("notes.txt", "write", False),
        ("notes.txt", "delete", False),
        ("notes.txt", "execute", False),
        ("notes.txt", "", False),
        ("", "read", False),
        ("a\x00b", "read", False),
        ("$HOME/x", "read", False),
    ],
)
def test_a_file_may_be_read_unless_it_is_sensitive(path, operation, allowed):
    assert SystemGuard().verify_file_access(path, operation).verified is allowed


@pytest.mark.parametrize(
    ("path", "operation", "allowed"),
    [
        ("/srv/app/a", "read", True),
        ("/srv/app/a", "write", True),
        ("/srv/app/a", "delete", True),
        ("a/b.txt", "write", True),
        ("/srv/app/../other", "read", False),
        ("/srv/application/x", "write", False),
        ("/srv/app/.env", "write", False),
        ("../x", "write", False),
        ("/etc/hosts", "read", False),
    ],
)
def test_allowed_paths_bound_files(path, operation, allowed):
    assert SystemGuard(allowed_paths=["/srv/app"]).verify_file_access(path, operation).verified is allowed


def test_a_link_leads_where_it_points(tmp_path, monkeypatch):
    (tmp_path / "allowed" / "sub").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "f").touch()
    for name, target in (("out", tmp_path / "other"), ("in", tmp_path / "allowed" / "sub"), ("shadow", "/etc/shadow")):
        (tmp_path / "allowed" / name).symlink_to(target)
    (tmp_path / "alias").symlink_to(tmp_path / "allowed")
    guard = SystemGuard(allowed_paths=[str(tmp_path / "allowed")])
    inside = tmp_path / "allowed"
    for path in (inside / "in" / "new", inside / "sub" / "f", tmp_path / "alias" / "f", "in/f", "sub/f"):
        assert guard.verify_file_access(str(path), "write").verified or path == tmp_path / "alias" / "f", path
    for path in (inside / "out" / "f", inside / "out", inside / "shadow", "out/f", "sub/../out/f", inside / "o*" / "f"):
        for operation in ("read", "write", "delete"):
            assert not guard.verify_file_access(str(path), operation).verified, (path, operation)
    for command in (f"cat {inside}/out/f", "cat out/f", f"cat {inside}/*/f", f"cp {inside}/sub/f {inside}/out/g"):
        assert not guard.verify_shell_command(command).verified, command
    assert guard.verify_shell_command(f"cat {inside}/sub/f").verified
    monkeypatch.chdir(inside)
    assert not SystemGuard().verify_file_access("shadow").verified
    assert SystemGuard(allowed_paths=[str(tmp_path / "alias")]).verify_file_access(f"{tmp_path}/alias/sub/f").verified


def test_one_path_given_as_text_is_one_path():
    assert SystemGuard(allowed_paths="/srv/app").verify_file_access("/srv/app/a", "write").verified
    assert not SystemGuard(allowed_paths="/srv/app").verify_file_access("/a", "write").verified


def test_an_unknown_operation_is_refused_by_name():
    assert SystemGuard().verify_file_access("a", "chmod").message.startswith("unknown operation `chmod`")


@pytest.mark.parametrize("value", [None, 1, b"ls", ["ls"], {"a": 1}, object()])
def test_what_is_no_text_is_refused_and_nothing_is_raised(value):
    assert not SystemGuard().verify_shell_command(value).verified
    assert not SystemGuard().verify_file_access(value).verified
    assert not SystemGuard().verify_file_access("a", value).verified


@pytest.mark.parametrize("text", ["\ud800", "ls \ud800", "(" * 20_000, "$(" * 5_000, "\x00", "ls\udcff | cat"])
def test_odd_text_is_refused_and_nothing_is_raised(text):
    assert not SystemGuard().verify_shell_command(text).verified
    assert not SystemGuard().verify_file_access(text).verified or "/" not in text


WITHOUT_PARSER = """
import sys
from qwed_sdk.guards.system_guard import SystemGuard

sys.modules["tree_sitter_bash"] = None
result = SystemGuard().verify_shell_command("ls")
del sys.modules["tree_sitter_bash"]
print(result.verified, SystemGuard().verify_shell_command("ls").verified, result.message)
"""


def test_without_the_parser_everything_is_refused_and_the_message_says_what_to_install():
    ran = subprocess.run([sys.executable, "-c", WITHOUT_PARSER], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("False True ")
    assert "qwed[engines]" in ran.stdout
