"""The observer sees what commands, programs and statements do, whatever the classifiers say of them."""

from pathlib import Path

import pytest

from qwed.model import Risk
from tests.oracle import python_oracle, recording, shell_execution, shell_oracle, sql_execution, stand_in_verbs, trace
from tests.oracle.predictions import Prediction
from tests.oracle.python_execution import execute as execute_programs
from tests.oracle.shell_oracle import observed_effects

pytestmark = pytest.mark.drill

NOTHING = Prediction(Risk.LOW)
COMMANDS = {
    "touch pwn": "write /home/dev/project/pwn",
    "echo x >> a.txt": "write /home/dev/project/a.txt",
    "chmod 600 f": "write /home/dev/project/f",
    "rm -rf src": "delete /home/dev/project/src",
    "mv f h": "delete /home/dev/project/f",
    "echo x > /etc/passwd": "write /etc/passwd",
    "rm -rf /*": "delete /home/dev",
    "setsid -f touch pwn": "write /home/dev/project/pwn",
    "x='a[0$(touch pwn)]'; echo $((x))": "write /home/dev/project/pwn",
    "./run.sh": "execute run.sh",
    "cat ~/.ssh/id_ed25519": "secret ssh",
    "md5sum ~/.aws/credentials": "secret /home/dev/.aws/credentials",
    "printenv": "secret variable",
    "cat /etc/shadow": "secret shadow",
    "bash -c 'exec 3<>/dev/tcp/127.0.0.1/80'": "network 127.0.0.1:80",
    "kill -9 -1": "admin ended the sandbox",
    "kubectl -n get delete ns prod": "verb kubectl delete ns",
    ":(){ :|:& };:": "",
    "ls | wc -l; git status; cat f": "",
}
PROGRAMS = {
    "open('pwn', 'w')": "write open pwn",
    "import os\nos.remove('f')": "write os.remove f",
    "import os\nos.system('touch pwn')": "write /home/dev/project/pwn",
    "import subprocess\nsubprocess.run(['true'])": "process subprocess.Popen true",
    "import socket\nsocket.create_connection(('127.0.0.1', 9))": "network socket.getaddrinfo 127.0.0.1",
    "eval('1 + 1')": "dynamic exec",
    "import os\nprint(os.environ)": "secret variable",
    "print(open('/home/dev/.netrc').read())": "secret netrc",
    "import os\nwhile True: os.fork()": "process os.fork",
    "import json\nfrom collections import namedtuple\nprint(json.dumps(namedtuple('P', 'x')(1)))": "",
}
STATEMENTS = {
    "SELECT id FROM users": {},
    "DELETE FROM users": {"sqlite", "duckdb", "postgres", "mysql"},
    "SELECT nextval('numbers')": {"duckdb", "postgres", "mysql"},
    "SELECT bump(1)": {"postgres"},
    "SELECT E'\\' , '; DELETE FROM users -- '": {"duckdb", "postgres"},
    "SELECT '\\'; DELETE FROM users; --' AS note": {"sqlite", "duckdb", "postgres"},
    "SELECT set_config('work_mem', '1MB', false)": {"postgres"},
    "SELECT pg_advisory_lock(1)": {"postgres"},
    "SELECT * FROM users INTO OUTFILE '/tmp/out'": {"mysql"},
    "PRAGMA user_version = 3": {"sqlite"},
    "ATTACH '/home/dev/files/other.db' AS other": {"sqlite", "duckdb"},
    "COPY users TO '/tmp/out.csv'": {"duckdb", "postgres"},
    "COPY users TO '/dev/stdout'": {"duckdb"},
    "COPY users TO '/dev/stdin'": set(),
    "COPY users TO STDOUT": set(),
    "SELECT 2": set(),
}


def test_the_observer_sees_what_a_command_does() -> None:
    observations = shell_execution.execute(list(COMMANDS), ["kubectl"])
    for (command, expected), observation in zip(COMMANDS.items(), observations, strict=True):
        effects = [
            text
            for text in observed_effects(observation, NOTHING)
            if not text.startswith("execute") or "run.sh" in text
        ]
        assert any(text.startswith(expected) for text in effects) if expected else not effects, (command, effects)


def test_a_command_starts_with_the_project_as_it_was() -> None:
    commands = ["rm -rf ~ /etc /tmp", "cat f .git/HEAD ~/.netrc /etc/passwd", "chmod -R 0 .", "cat src/app.py"]
    statuses = [row.status for row in shell_execution.execute(commands, [])]
    assert (statuses[1], statuses[3]) == (0, 0)


def test_the_observer_sees_what_a_program_does() -> None:
    observations = execute_programs(list(PROGRAMS))
    for (program, expected), observation in zip(PROGRAMS.items(), observations, strict=True):
        effects = python_oracle.observed_effects(observation)
        assert any(text.startswith(expected) for text in effects) if expected else not effects, (program, effects)


def test_the_observer_sees_what_a_statement_changes_on_each_database() -> None:
    outcomes = sql_execution.execute(list(STATEMENTS))
    usable = set(sql_execution.databases())
    for (statement, expected), outcome in zip(STATEMENTS.items(), outcomes, strict=True):
        changed = {name for name, row in outcome.items() if row.changes}
        # On MariaDB a sequence is read with another syntax.
        assert changed | {"mysql"} == (set(expected) & usable) | {"mysql"}, (statement, outcome)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("docker -l info rm -f db", "rm db"),
        ("docker ps -a", ""),
        ("kubectl --user get delete ns prod", "delete ns"),
        ("aws --query describe ec2 terminate-instances", "ec2 terminate-instances"),
        ("aws ec2 describe-instances", ""),
        ("npm --cache list run pwn", "run pwn"),
        ("systemctl --property status stop nginx", "stop nginx"),
        ("docker --help", ""),
    ],
)
def test_a_recorded_verb_is_read_by_option_tables_of_its_own(words: str, expected: str) -> None:
    assert stand_in_verbs.deed(words.split()) == expected


def test_a_recorded_command_is_judged_again_as_it_was_judged_first(tmp_path: Path) -> None:
    runs = shell_oracle.run(["ls | wc -l", "rm -rf src", "git status"])
    recording.append(tmp_path / "runs.gz", runs[:1])
    recording.append(tmp_path / "runs.gz", runs[1:])
    assert shell_oracle.rejudge(list(recording.records([tmp_path / "runs.gz"]))) == runs


def test_a_command_that_was_not_traced_is_run_again_if_it_is_judged_harmless() -> None:
    record = shell_oracle.run(["git status"])[0].record() | {"traced": False, "observation": {"status": None}}
    assert shell_oracle.rejudge([record])[0].observation.status == 0


def test_interrupted_lines_of_a_trace_are_put_together() -> None:
    lines = [
        b'1 unlink("/marker/0") = -1 ENOENT (No such file or directory)',
        b'2 execve("/usr/bin/ls", ["ls", "a\\tb"], 0x1 /* 2 vars */ <unfinished ...>',
        b'3 connect(3, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("192.0.2.1")}, 16) = -1 EPERM (x)',
        b"2 <... execve resumed>) = 0",
    ]
    deeds = trace.read(lines)[0]
    assert [row.arguments for row in deeds.executed] == [("ls", "a\tb")]
    assert deeds.attempts == [("network", "192.0.2.1:80")]
