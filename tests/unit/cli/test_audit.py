"""`qwed audit`: a healthy log is clean, and every manipulation by SQL is found and named."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

import qwed
from qwed.cli import main
from qwed.ledger import verifier
from qwed.store.migrate import migrate, migrations
from tests.support.fake_server import fake_server, respond_with
from tests.support.manual_clock import ManualClock
from tests.support.server import Server
from tests.unit.cli.history import (
    History,
    Tamper,
    create_history,
    open_database,
    query_value,
    rebuild_hashes,
    resign_heads,
    tamper,
)

ROOT = Path(__file__).parents[3]
OLD_ROWS = Path(__file__).parents[1] / "store"
QWED = (sys.executable, "-m", "qwed.cli")


class Ran(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def findings(self) -> list[str]:
        """Findings without the names of the logs."""
        lines = [
            line
            for line in self.out.splitlines()
            if not re.search(r" entr(y|ies), |^note: |^\d+ problems? found$|^nothing is wrong$", line)
        ]
        return [line.removeprefix(line[: line.index(": ") + 2]) if line.startswith("org_") else line for line in lines]


Run = Callable[..., Ran]


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    """A history that no test changes."""
    return create_history(tmp_path_factory.mktemp("history"))


@pytest.fixture
def copy(history: History, tmp_path: Path) -> History:
    """A history that a test may change."""
    return history.copy(tmp_path)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    for name in ("QWED_DATA_DIR", "QWED_BASE_URL", "QWED_API_KEY"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: object) -> Ran:
        code = main(["audit", *map(str, arguments)])
        return Ran(code, *capsys.readouterr())

    return call


def index_of(data: Path, where: str) -> int:
    """Return the log index of the first such entry."""
    return int(query_value(data, f"SELECT log_index FROM activities WHERE {where} ORDER BY sequence LIMIT 1"))


# A healthy log


def test_a_healthy_log_is_clean_with_everything_that_can_be_compared(history: History, run: Run) -> None:
    jwks = history.data / "signing.jwks"
    ran = run("verify", "--data-dir", history.data, "--head", history.heads, "--jwks", jwks)
    assert (ran.code, ran.findings, ran.err) == (0, [], "")
    first, second, last = ran.out.splitlines()
    assert re.fullmatch(
        rf"{history.first}: \d+ entries, \d+ heads, root [0-9a-f]{{64}}; "
        r"content: \d+ checked, \d+ erased, \d+ none; compared with 2 saved heads",
        first,
    )
    assert second.startswith(f"{history.second}: ")
    assert last == "nothing is wrong"


def test_a_history_has_every_kind_of_thing_in_it(history: History) -> None:
    with open_database(history.data) as connection:
        events = {row[0] for row in connection.execute("SELECT event || decision FROM activities")}
    assert {"APPROVED", "CORRECTED", "DENIED", "PENDING", "approved", "rejected", "expired", "executed"} <= events
    assert {"trust_requested", "trust_raised", "signing_key_rotated", "trust_lowered", "complaint"} <= events
    assert {"trust_degraded", "erased", "attestation_revoked", "halted", "organisation_added", "key_revoked"} <= events


def test_verifying_writes_nothing(history: History, run: Run) -> None:
    before = {file.name: (file.stat().st_mtime_ns, file.stat().st_size) for file in history.data.iterdir()}
    assert run("verify", "--data-dir", history.data).code == 0
    assert {file.name: (file.stat().st_mtime_ns, file.stat().st_size) for file in history.data.iterdir()} == before


def test_one_organisation_alone(history: History, run: Run) -> None:
    ran = run("verify", "--data-dir", history.data, "--organisation", history.second, "--head", history.heads)
    assert ran.code == 0
    assert ran.out.splitlines()[0] == f"note: 2 heads of other logs in {history.heads} were not compared"
    assert history.first not in ran.out


def test_the_answer_as_json(history: History, run: Run) -> None:
    ran = run("verify", "--data-dir", history.data, "--json")
    report = json.loads(ran.out)
    assert (report["valid"], report["count"], report["findings"], report["notes"]) == (True, 0, [], [])
    assert [log["log_id"] for log in report["logs"]] == [history.first, history.second]
    assert report["logs"][0]["size"] == query_value(
        history.data, "SELECT count(*) FROM activities WHERE organisation_id = ?", history.first
    )
    assert set(report["logs"][0]["contents"]) == {"checked", "erased", "none"}


def test_the_directory_may_come_from_its_variable(history: History, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QWED_DATA_DIR", str(history.data))
    monkeypatch.setenv("QWED_PORT", "no number, and none of our business")
    assert run("verify").code == 0


def test_without_the_key_of_the_vault_it_says_what_was_not_checked(copy: History, run: Run) -> None:
    (copy.data / "vault.key").unlink()
    ran = run("verify", "--data-dir", copy.data)
    assert ran.code == 0
    assert ran.out.startswith(f"note: content was not checked: {copy.data}/vault.key does not exist\n")
    assert " unopened" in ran.out


def test_content_whose_time_is_over_is_counted_and_not_wrong(copy: History, run: Run) -> None:
    last = query_value(copy.data, "SELECT max(sequence) - 10 FROM activities")
    with open_database(copy.data) as connection:
        connection.execute("UPDATE activities SET payload = '' WHERE sequence <= ?", (last,))
        connection.execute("INSERT INTO meta VALUES ('content_dropped', ?)", (str(last),))
    ran = run("verify", "--data-dir", copy.data)
    assert (ran.code, ran.findings) == (0, [])
    assert re.search(r"\d+ expired", ran.out)


@pytest.mark.parametrize("name", ["a?b#c%20d", "with blanks & ümlauts", "-v"])
def test_a_directory_may_have_any_name(history: History, tmp_path: Path, run: Run, name: str) -> None:
    shutil.copytree(history.data, tmp_path / name)
    assert run("verify", f"--data-dir={tmp_path / name}").code == 0


def test_what_a_crash_has_left_is_read_too(tmp_path: Path, run: Run) -> None:
    crashing = (
        "import os, signal, sys, qwed; gate = qwed.open(sys.argv[1]); "
        "gate.register_agent(name='crashed', principal_id='ops'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", crashing, str(tmp_path / "left")], check=False, timeout=60)
    assert (tmp_path / "left" / "qwed.db-wal").stat().st_size > 0
    ran = run("verify", "--data-dir", tmp_path / "left")
    assert ran.code == 0
    assert ": 1 entry, 1 head, " in ran.out


def test_a_log_without_entries_is_clean(tmp_path: Path, run: Run) -> None:
    with qwed.open(tmp_path / "data"):
        pass
    ran = run("verify", "--data-dir", tmp_path / "data")
    assert (ran.code, ": 0 entries, 0 heads, " in ran.out) == (0, True)
    assert run("head", "--data-dir", tmp_path / "data").code == 2
    assert run("export", "--data-dir", tmp_path / "data", "--output", tmp_path / "log").code == 0
    assert run("verify", "--export", tmp_path / "log").code == 0


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_log_that_an_earlier_version_began_is_clean_once_it_was_brought_up(
    tmp_path: Path, run: Run, version: int
) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    with open_database(data) as connection:
        connection.isolation_level = None
        migrate(connection, upto=version)
        connection.executescript((OLD_ROWS / f"rows_{version:04}.sql").read_text())
        connection.isolation_level = ""
    with qwed.open(data, clock=ManualClock().clock()) as gate:
        first = gate.organisation_id
    ran = run("verify", "--data-dir", data, "--organisation", first)
    assert (ran.code, ran.findings) == (0, [])
    assert re.search(r"content: \d+ uncommitted", ran.out)
    assert (
        run("export", "--data-dir", data, "--organisation", first, "--payloads", "--output", tmp_path / "log").code == 0
    )
    assert run("verify", "--export", tmp_path / "log").code == 0


# Manipulated databases


def _swap(data: Path) -> None:
    """Two decisions of one subject change places, leaf by leaf."""
    with open_database(data) as connection:
        (one, first), (two, second) = connection.execute(
            "SELECT sequence, leaf FROM activities WHERE decision = 'APPROVED' ORDER BY sequence LIMIT 2"
        ).fetchall()
        connection.execute("UPDATE activities SET leaf = ? WHERE sequence = ?", (second, one))
        connection.execute("UPDATE activities SET leaf = ? WHERE sequence = ?", (first, two))


def _duplicate(data: Path) -> None:
    """The last decision of the first log once more, at its end, with hashes that fit."""
    with open_database(data) as connection:
        connection.execute(
            f"INSERT INTO activities (organisation_id, log_index, activity_id, {_REST}) "
            f"SELECT organisation_id, log_index + 1, activity_id || 'x', {_REST} FROM activities a "
            f"WHERE organisation_id = {_FIRST} ORDER BY log_index DESC LIMIT 1"
        )
    rebuild_hashes(data, query_value(data, "SELECT organisation_id FROM organisations ORDER BY rowid LIMIT 1"))


def _edit_with_hashes(data: Path) -> None:
    tamper(data, f"UPDATE activities SET leaf = replace(leaf, 'DENIED', 'APPROVED') WHERE sequence = ({_DENIED})")
    for log_id in _logs(data):
        rebuild_hashes(data, log_id)


def _logs(data: Path) -> list[str]:
    with open_database(data) as connection:
        return [row[0] for row in connection.execute("SELECT organisation_id FROM organisations ORDER BY rowid")]


def script(text: str) -> Tamper:
    return lambda data: _run_sql(data, text)


def sql(*statements: str) -> Tamper:
    return lambda data: tamper(data, *statements)


_DENIED = "SELECT sequence FROM activities WHERE decision = 'DENIED' ORDER BY sequence LIMIT 1"
_APPROVED = "SELECT sequence FROM activities WHERE decision = 'APPROVED' ORDER BY sequence LIMIT 1"
_EXECUTED = "(SELECT activity_id FROM executions WHERE success = 0 LIMIT 1)"
_FIRST = "(SELECT organisation_id FROM organisations ORDER BY rowid LIMIT 1)"
_SECOND = "(SELECT organisation_id FROM organisations ORDER BY rowid LIMIT 1 OFFSET 1)"
_KEPT = (
    "SELECT sequence FROM activities WHERE decision = 'APPROVED' AND subject_id IN "
    "(SELECT subject_id FROM subjects WHERE key IS NOT NULL) ORDER BY sequence"
)
_REST = "agent_id, at, decision, leaf, payload, event, subject_id, nodes"

TAMPERED: dict[str, tuple[Tamper, str]] = {
    "a leaf is edited": (
        sql(f"UPDATE activities SET leaf = replace(leaf, 'DENIED', 'APPROVED') WHERE sequence = ({_DENIED})"),
        r"entry {denied}: its leaf_hash is not ",
    ),
    "a leaf is edited and its hashes fit": (
        _edit_with_hashes,
        r"head of size \d+: its root is not that of the entries",
    ),
    "a leaf is no JSON any more": (
        sql(f"UPDATE activities SET leaf = 'nothing' WHERE sequence = ({_DENIED})"),
        r"entry {denied}: its leaf or its row cannot be read",
    ),
    "a leaf is no text any more": (
        sql(f"UPDATE activities SET leaf = CAST(x'ff00fe' AS TEXT) WHERE sequence = ({_DENIED})"),
        r"entry {denied}: its leaf or its row cannot be read",
    ),
    "the column decision": (
        sql(f"UPDATE activities SET decision = 'APPROVED' WHERE sequence = ({_DENIED})"),
        r"entry {denied}: its column `decision` says `APPROVED`, its leaf `DENIED`",
    ),
    "the column activity_id": (
        sql(f"UPDATE activities SET activity_id = 'act_x' WHERE sequence = ({_DENIED})"),
        r"entry {denied}: its column `activity_id` says `act_x`, its leaf `act_[0-9a-f]+`",
    ),
    "the column agent_id": (
        sql(f"UPDATE activities SET agent_id = 'agent_x' WHERE sequence = ({_DENIED})"),
        r"entry {denied}: its column `agent_id` says `agent_x`, its leaf `agent_[0-9a-f]+`",
    ),
    "the column at": (
        sql(f"UPDATE activities SET at = at - 3600 WHERE sequence = ({_DENIED})"),
        r"entry {denied}: its column `at` says `[0-9.]+`, its leaf `[0-9.]+`",
    ),
    "the column at, by a moment": (
        sql(f"UPDATE activities SET at = at - 0.002 WHERE sequence = ({_DENIED})"),
        r"entry {denied}: its column `at` says ",
    ),
    "the column event": (
        sql(f"UPDATE activities SET event = 'executed' WHERE sequence = ({_DENIED})"),
        r"entry {denied}: its column `event` says `executed`, its leaf ``",
    ),
    "the column attestation_id": (
        sql(f"UPDATE activities SET attestation_id = 'att_x' WHERE sequence = ({_DENIED})"),
        r"entry {denied}: its column `attestation_id` says `att_x`, its leaf `None`",
    ),
    "a terminal is given orders": (
        sql(f"UPDATE activities SET decision = char(27) || '[2J' WHERE sequence = ({_DENIED})"),
        r"entry {denied}: its column `decision` says `\\x1b\[2J`, its leaf `DENIED`",
    ),
    "content is edited": (
        sql(f"UPDATE activities SET payload = 'AAAA' || substr(payload, 5) WHERE sequence = ({_KEPT} LIMIT 1)"),
        r"entry {kept}: its content cannot be decrypted: the content at act_[0-9a-f]+ was changed",
    ),
    "content is put in the clear": (
        sql(f"UPDATE activities SET payload = '{{}}' WHERE sequence = ({_KEPT} LIMIT 1)"),
        r"entry {kept}: its content cannot be decrypted",
    ),
    "content is taken from another activity": (
        sql(
            "UPDATE activities SET (payload, subject_id) = (SELECT payload, subject_id FROM activities "
            f"WHERE sequence = ({_KEPT} LIMIT 1 OFFSET 1)) WHERE sequence = ({_KEPT} LIMIT 1)"
        ),
        r"entry {kept}: its content cannot be decrypted",
    ),
    "content is removed early": (
        sql(f"UPDATE activities SET payload = '' WHERE sequence = ({_KEPT} LIMIT 1)"),
        r"entry {kept}: its content was removed before its retention ended",
    ),
    "content is added where there was none": (
        sql(
            f"UPDATE activities SET payload = (SELECT payload FROM activities WHERE sequence = ({_KEPT} LIMIT 1)) "
            "WHERE sequence = (SELECT min(sequence) FROM activities WHERE payload = '{}')"
        ),
        r"entry \d+: it has content that its leaf does not commit to",
    ),
    "the subject of a content is removed": (
        sql(
            "DELETE FROM subjects WHERE subject_id = "
            f"(SELECT subject_id FROM activities WHERE sequence = ({_KEPT} LIMIT 1))"
        ),
        r"entry {kept}: its content cannot be decrypted: the subject of its content is missing",
    ),
    "an entry is removed": (
        sql(f"DELETE FROM activities WHERE sequence = ({_DENIED})"),
        r"entry {after}: entries {denied} to {denied} are missing before it",
    ),
    "two entries change places": (_swap, r"entry {approved}: its leaf_hash is not "),
    "an entry stands there twice": (_duplicate, r"the log: no head covers its entries from \d+ on"),
    "a kept hash of a subtree": (
        sql(
            "UPDATE activities SET nodes = substr(nodes, 1, 64) || replace(substr(nodes, 65), 'a', 'b') "
            f"WHERE log_index = 7 AND organisation_id = {_FIRST}"
        ),
        r"entry 7: the stored hash of the \d+ entries that end with it is wrong",
    ),
    "kept hashes are removed": (
        sql("UPDATE activities SET nodes = '' WHERE log_index = 7"),
        r"entry 7: the number of its stored hashes is wrong",
    ),
    "kept hashes are no hashes": (
        sql("UPDATE activities SET nodes = 'none' WHERE log_index = 7"),
        r"entry 7: the number of its stored hashes is wrong",
    ),
    "the last head is removed": (
        sql(f"DELETE FROM heads WHERE organisation_id = {_FIRST} AND size > 60"),
        r"the log: no head covers its entries from \d+ on",
    ),
    "all heads are removed": (sql("DELETE FROM heads"), r"the log: no head covers its entries from 0 on"),
    "a head is of another log": (
        sql(
            f"UPDATE heads SET signature = (SELECT signature FROM heads WHERE organisation_id = {_FIRST} AND size = 5) "
            f"WHERE organisation_id = {_SECOND} AND size = 5"
        ),
        r"head of size 5: it is of another log",
    ),
    "a head is no head any more": (
        sql("UPDATE heads SET signature = 'nothing' WHERE size = 5"),
        r"line \d+: ",
    ),
    "an approval is settled past the log": (
        sql(
            "UPDATE approvals SET state = 'approved' WHERE approval_id = "
            "(SELECT max(approval_id) FROM approvals WHERE state = 'pending')"
        ),
        r"approval `apr_[0-9a-f]+`: it is approved, but no entry of the log resolved it so",
    ),
    "a rejection is made an approval": (
        sql("UPDATE approvals SET state = 'approved' WHERE state = 'rejected'"),
        r"entry \d+: it resolved the approval `apr_[0-9a-f]+` as rejected, but the approval is approved",
    ),
    "an approval waits again": (
        sql("UPDATE approvals SET state = 'pending' WHERE state = 'expired'"),
        r"entry \d+: it resolved the approval `apr_[0-9a-f]+` as expired, but the approval is pending",
    ),
    "an approval is removed": (
        sql("DELETE FROM approvals WHERE state = 'rejected'"),
        r"entry \d+: the approval it resolved is missing",
    ),
    "who approved is another": (
        sql("UPDATE approvals SET resolution = replace(resolution, '\"gate\"', '\"key_x\"') WHERE state = 'approved'"),
        r"entry \d+: the approval `apr_[0-9a-f]+` has another resolution",
    ),
    "what was approved cost less": (
        sql("UPDATE approvals SET cost = cost - 1 WHERE state = 'approved'"),
        r"entry \d+: the approval `apr_[0-9a-f]+` has another resolution",
    ),
    "who asked is another": (
        sql("UPDATE approvals SET requested_by = 'key_x' WHERE state = 'pending'"),
        r"entry \d+: the approval `apr_[0-9a-f]+` has another requester, time or kind",
    ),
    "what was asked for is another thing": (
        sql("UPDATE approvals SET kind = 'trust_elevation' WHERE state = 'pending'"),
        r"entry \d+: the approval `apr_[0-9a-f]+` has another requester, time or kind",
    ),
    "an approval nobody asked for": (
        sql(
            "INSERT INTO approvals (approval_id, organisation_id, agent_id, activity_id, action_hash, state, cost, "
            f"tokens, high_risk_calls, created_at, expires_at) SELECT 'apr_x', {_FIRST}, 'a', 'act_x', '', 'pending', "
            "0, 0, 0, 0, 0"
        ),
        r"approval `apr_x`: no entry of the log requested it",
    ),
    "an execution fails no more": (
        sql(f"UPDATE executions SET success = 1 WHERE activity_id = {_EXECUTED}"),
        r"entry \d+: the execution it reports is recorded as success at ",
    ),
    "an execution was at another time": (
        sql("UPDATE executions SET at = at + 60 WHERE success = 0"),
        r"entry \d+: the execution it reports is recorded as failure at ",
    ),
    "an execution is removed": (
        sql(f"DELETE FROM executions WHERE activity_id = {_EXECUTED}"),
        r"entry \d+: the execution it reports is missing",
    ),
    "an execution nobody reported": (
        sql(
            "INSERT INTO executions SELECT activity_id, 1, NULL, 0 FROM activities WHERE decision = 'DENIED' LIMIT 1",
        ),
        r"execution of `act_[0-9a-f]+`: no entry of the log reports it",
    ),
    "an execution of nothing": (
        sql("INSERT INTO executions VALUES ('act_x', 1, NULL, 0)"),
        r"execution of `act_x`: there is no such activity",
    ),
    "a revocation is removed": (
        sql("DELETE FROM revocations"),
        r"entry \d+: the revocation of `att_[0-9a-f]+` is missing or different",
    ),
    "a revocation was at another time": (
        sql("UPDATE revocations SET at = at + 60"),
        r"entry \d+: the revocation of `att_[0-9a-f]+` is missing or different",
    ),
    "a revocation nobody made": (
        sql(f"INSERT INTO revocations VALUES ('att_x', {_SECOND}, 'act_x', 0)"),
        r"revocation of `att_x`: no entry of the log reports it",
    ),
    "a subject is erased past the log": (
        sql(
            "UPDATE subjects SET key = NULL WHERE subject_id = "
            f"(SELECT subject_id FROM activities WHERE sequence = ({_KEPT} LIMIT 1))"
        ),
        r"subject `sub_[0-9a-f]+`: its key was destroyed, but no entry of the log reports an erasure",
    ),
    "who was erased has a key again": (
        sql("UPDATE subjects SET key = (SELECT max(key) FROM subjects) WHERE key IS NULL"),
        r"entry \d+: the erased subject has a key again, or is missing",
    ),
    "an agent is trusted more": (
        sql("UPDATE agents SET trust = 3 WHERE trust = 0"),
        r"agent `agent_[0-9a-f]+`: its trust level is 3, but \d according to the log",
    ),
    "an agent is let go on": (
        sql("UPDATE agents SET status = 'active' WHERE status = 'suspended'"),
        r"agent `agent_[0-9a-f]+`: it is active, but suspended according to the log",
    ),
    "an agent is removed": (
        sql("DELETE FROM agents WHERE status = 'suspended'"),
        r"agent `agent_[0-9a-f]+`: the log registered it, but it is missing",
    ),
    "a key is slipped in": (
        sql(
            "INSERT INTO keys SELECT 'key_x', organisation_id, 'x', 'owner', 'qwed_live_x', digest, created_at + 1, "
            "NULL, NULL FROM keys LIMIT 1"
        ),
        r"key `key_x`: no entry of the log created it",
    ),
    "a revoked key opens again": (
        sql("UPDATE keys SET revoked_at = NULL WHERE revoked_at IS NOT NULL"),
        r"key `key_[0-9a-f]+`: the log revoked it, but it is active",
    ),
    "a key is removed": (
        sql("DELETE FROM keys WHERE revoked_at IS NOT NULL"),
        r"key `key_[0-9a-f]+`: the log created it, but it is missing",
    ),
    "the kill switch is thrown": (
        sql(f"UPDATE organisations SET halted_at = 1 WHERE organisation_id = {_SECOND}"),
        r"the kill switch: according to the log it is off",
    ),
    "an organisation is removed": (
        sql(f"DELETE FROM organisations WHERE organisation_id = {_SECOND}"),
        r"entry \d+: the organisation `org_[0-9a-f]+` is missing",
    ),
    "a trigger waits for what comes": (
        script("CREATE TRIGGER quiet AFTER INSERT ON executions BEGIN UPDATE executions SET success = 1; END"),
        r"trigger `quiet`: it differs from the schema of this version of qwed",
    ),
    "a table takes anything": (
        script(
            "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql, 'STRICT', '') WHERE name IN "
            "('activities', 'executions', 'subjects', 'approvals'); PRAGMA writable_schema = RESET; "
            "UPDATE activities SET nodes = 3, payload = x'00', at = 'soon', leaf = 7 WHERE log_index = 9; "
            "UPDATE activities SET log_index = 'first' WHERE log_index = 11; "
            "UPDATE executions SET success = 'yes'; UPDATE subjects SET key = 'none' WHERE key IS NOT NULL; "
            "UPDATE approvals SET resolution = 7 WHERE state != 'pending'"
        ),
        r"table `activities`: it differs from the schema of this version of qwed",
    ),
    "an organisation is slipped in": (
        sql("INSERT INTO organisations VALUES ('org_x', 'x', 0, NULL)"),
        r"organisation `org_x`: no entry of a log created it",
    ),
}


def entry_positions(data: Path) -> dict[str, int]:
    """Return the log indexes of the entries that the table refers to by name."""
    denied = index_of(data, f"sequence = ({_DENIED})")
    stored = index_of(data, f"sequence = ({_KEPT} LIMIT 1)")
    approved = index_of(data, f"sequence = ({_APPROVED})")
    return {"denied": denied, "after": denied + 1, "kept": stored, "approved": approved}


@pytest.mark.parametrize("name", TAMPERED)
def test_what_is_done_to_a_database_is_found_and_named(name: str, copy: History, run: Run) -> None:
    hand_in, expected = TAMPERED[name]
    for place, index in entry_positions(copy.data).items():
        expected = expected.replace(f"{{{place}}}", str(index))
    pattern = re.compile(expected)
    hand_in(copy.data)
    ran = run("verify", "--data-dir", copy.data, "--head", copy.heads)
    assert ran.code == 1
    assert any(pattern.match(finding) for finding in ran.findings), ran.out
    assert ran.out.splitlines()[-1].endswith(" found")
    assert "\x1b" not in ran.out


# A head that was kept elsewhere


def _cut_off(data: Path) -> None:
    log_id = _logs(data)[1]
    with open_database(data) as connection:
        size = connection.execute(
            "SELECT size FROM heads WHERE organisation_id = ? AND size < 51 ORDER BY size DESC LIMIT 1", (log_id,)
        ).fetchone()[0]
        for statement in (
            "DELETE FROM heads WHERE organisation_id = ? AND size > ?",
            "DELETE FROM executions WHERE activity_id IN (SELECT leaf ->> 'about' FROM activities "
            "WHERE organisation_id = ? AND log_index >= ? AND event = 'executed')",
            "DELETE FROM agents WHERE agent_id IN (SELECT agent_id FROM activities WHERE organisation_id = ? AND "
            "log_index >= ? AND event = 'registered')",
            "DELETE FROM activities WHERE organisation_id = ? AND log_index >= ?",
        ):
            connection.execute(statement, (log_id, size))


def test_the_end_of_a_log_cut_off_with_care_is_found_by_whoever_kept_a_head(copy: History, run: Run) -> None:
    _cut_off(copy.data)
    assert run("verify", "--data-dir", copy.data).code == 0
    ran = run("verify", "--data-dir", copy.data, "--head", copy.heads)
    assert ran.code == 1
    expected = re.compile(
        r"the head of size \d+ on line \d+ of heads.jsonl: the log has only \d+ entries: it was truncated, "
        r"or an older copy was restored"
    )
    assert len(ran.findings) == 2
    assert all(map(expected.fullmatch, ran.findings))
    assert run("verify", "--data-dir", copy.data, "--head", copy.heads, "--organisation", copy.first).code == 0


def test_an_older_copy_put_back_is_found_by_whoever_kept_a_head(copy: History, tmp_path: Path, run: Run) -> None:
    older = copy.copy(tmp_path / "older")
    with qwed.open(copy.data) as gate:
        gate.register_agent(name="one more", principal_id="ops")
    saved = tmp_path / "saved.json"
    saved.write_text(run("head", "--data-dir", copy.data, "--organisation", copy.first).out)
    shutil.copy(older.data / "qwed.db", copy.data / "qwed.db")
    assert run("verify", "--data-dir", copy.data, "--head", copy.heads).code == 0
    ran = run("verify", "--data-dir", copy.data, "--head", saved)
    assert (ran.code, len(ran.findings)) == (1, 1)
    assert "an older copy was restored" in ran.findings[0]


@pytest.mark.parametrize("option", ["--head", "--jwks"])
def test_a_log_rewritten_as_a_whole_under_another_key_is_found_by_whoever_kept_a_head_or_the_keys(
    copy: History, tmp_path: Path, run: Run, option: str
) -> None:
    trusted = {"--head": copy.heads, "--jwks": tmp_path / "trusted.jwks"}
    shutil.copy(copy.data / "signing.jwks", trusted["--jwks"])
    tamper(
        copy.data, f"UPDATE activities SET leaf = replace(leaf, '\"low\"', '\"high\"') WHERE sequence = ({_APPROVED})"
    )
    keyring = None
    for log_id in _logs(copy.data):
        keyring = resign_heads(copy.data, log_id, keyring)
    assert run("verify", "--data-dir", copy.data).code == 0
    ran = run("verify", "--data-dir", copy.data, option, trusted[option])
    assert ran.code == 1
    expected = {"--head": "entries of the log do not match the signed head", "--jwks": "no known key has its kid"}
    assert any(expected[option] in finding for finding in ran.findings)


def test_heads_signed_anew_over_the_same_entries_are_found_by_whoever_kept_a_head(copy: History, run: Run) -> None:
    keyring = None
    for log_id in _logs(copy.data):
        keyring = resign_heads(copy.data, log_id, keyring)
    ran = run("verify", "--data-dir", copy.data, "--head", copy.heads)
    assert (ran.code, len(ran.findings)) == (1, 4)
    assert all("no known key has its kid" in finding for finding in ran.findings)


def test_a_log_that_is_gone_is_found_by_whoever_kept_a_head(copy: History, run: Run) -> None:
    for table in ("activities", "heads", "agents", "keys", "organisations"):
        tamper(copy.data, f"DELETE FROM {table} WHERE organisation_id = '{copy.second}'")
    ran = run("verify", "--data-dir", copy.data, "--head", copy.heads)
    assert ran.code == 1
    assert f"log `{copy.second}`: {copy.heads} has a head of it, but the log is missing" in ran.findings


def test_heads_of_another_node_are_no_comfort(history: History, tmp_path: Path, run: Run) -> None:
    with qwed.open(tmp_path / "other") as gate:
        gate.register_agent(name="other", principal_id="ops")
    saved = tmp_path / "head.json"
    saved.write_text(run("head", "--data-dir", tmp_path / "other").out)
    ran = run("verify", "--data-dir", history.data, "--head", saved)
    assert ran.code == 1
    assert ran.findings == [f"{saved}: none of its heads belongs to a verified log"]
    both = tmp_path / "both.jsonl"
    both.write_text(saved.read_text() + history.heads.read_text())
    assert run("verify", "--data-dir", history.data, "--head", both).code == 0


def test_a_head_that_was_changed_where_it_was_kept_is_told(history: History, tmp_path: Path, run: Run) -> None:
    saved = tmp_path / "head.json"
    head = json.loads(history.heads.read_text().splitlines()[-1])
    saved.write_text(json.dumps({**head, "size": head["size"] + 1}))
    ran = run("verify", "--data-dir", history.data, "--head", saved)
    assert ran.code == 1
    assert ran.findings[0] == "line 1 of head.json: it does not say what was signed"


# Export


def test_an_export_is_verified_by_the_command_and_by_the_single_file(
    history: History, tmp_path: Path, run: Run
) -> None:
    file = tmp_path / "with blanks ü.jsonl"
    place = ("--data-dir", history.data, "--organisation", history.first)
    assert run("export", *place, "--output", file) == Ran(0, "", "")
    ran = run("verify", "--export", file, "--head", history.heads, "--jwks", history.data / "signing.jwks")
    assert (ran.code, ran.findings) == (0, [])
    assert "compared with 2 saved heads" in ran.out
    assert verifier.main([str(file), "--jwks", str(history.data / "signing.jwks")]) == 0
    assert set(json.loads(file.read_text().splitlines()[1])["entry"]) == {"index", "leaf", "leaf_hash"}


def test_content_in_an_export_is_proven_and_what_was_erased_says_so(history: History, tmp_path: Path, run: Run) -> None:
    file = tmp_path / "log.jsonl"
    file.touch(0o644)
    place = ("--data-dir", history.data, "--organisation", history.first)
    assert run("export", *place, "--output", file, "--payloads").code == 0
    assert file.stat().st_mode & 0o777 == 0o600
    lines = file.read_text().splitlines()
    entries = [json.loads(line)["entry"] for line in lines if line.startswith('{"entry"')]
    assert {"payload", "salt"} <= set().union(*entries)
    assert any(entry.get("erased") is True for entry in entries)
    assert run("verify", "--export", file).code == 0
    place_of = next(number for number, line in enumerate(lines) if '"payload":"{' in line)
    lines[place_of] = lines[place_of].replace('"payload":"{', '"payload":"{ ')
    file.write_text("\n".join(lines) + "\n")
    ran = run("verify", "--export", file)
    assert (ran.code, len(ran.findings)) == (1, 1)
    assert re.match(r"entry \d+: its payload is not .* its leaf commits to", ran.findings[0])


def test_an_export_that_was_cut_off_is_found_by_whoever_kept_a_head(history: History, tmp_path: Path, run: Run) -> None:
    file = tmp_path / "log.jsonl"
    run("export", "--data-dir", history.data, "--organisation", history.first, "--output", file)
    lines = file.read_text().splitlines()
    shorter = [*lines[: next(n for n, line in enumerate(lines) if line.startswith('{"head"')) + 1], lines[-1]]
    file.write_text("\n".join(shorter) + "\n")
    assert run("verify", "--export", file).code == 0
    ran = run("verify", "--export", file, "--head", history.heads)
    assert ran.code == 1
    assert "the log has only 1 entry" in ran.findings[0]


def test_an_export_through_a_pipe_and_standard_input(history: History) -> None:
    place = ["--data-dir", str(history.data), "--organisation", history.second]
    with subprocess.Popen([*QWED, "audit", "export", *place], stdout=subprocess.PIPE) as export:
        ran = subprocess.run(
            [*QWED, "audit", "verify", "--export", "-", "--progress"],
            stdin=export.stdout,
            capture_output=True,
            text=True,
        )
    assert (ran.returncode, export.returncode) == (0, 0)
    assert "nothing is wrong" in ran.stdout


def test_a_reader_who_leaves_early_is_no_error(history: History) -> None:
    command = [*QWED, "audit", "export", "--data-dir", str(history.data), "--organisation", history.first]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as export:
        assert export.stdout is not None
        assert export.stderr is not None
        export.stdout.readline()
        export.stdout.close()
        assert export.stderr.read() == b""


def test_content_that_does_not_open_is_told_and_the_rest_is_exported(copy: History, tmp_path: Path, run: Run) -> None:
    tamper(
        copy.data, f"UPDATE activities SET payload = 'AAAA' || substr(payload, 5) WHERE sequence = ({_KEPT} LIMIT 1)"
    )
    log_id = query_value(copy.data, f"SELECT organisation_id FROM activities WHERE sequence = ({_KEPT} LIMIT 1)")
    file = tmp_path / "log.jsonl"
    ran = run("export", "--data-dir", copy.data, "--organisation", log_id, "--payloads", "--output", file)
    assert (ran.code, ran.err) == (1, "qwed: 1 content could not be decrypted: run `qwed audit verify`\n")
    assert run("verify", "--export", file).code == 0


# Head


def test_the_head_is_the_one_the_server_gives(history: History, run: Run) -> None:
    head = json.loads(run("head", "--data-dir", history.data, "--organisation", history.second).out)
    assert list(head) == ["log_id", "size", "root", "time", "signature"]
    newest = query_value(history.data, "SELECT max(size) FROM heads WHERE organisation_id = ?", history.second)
    assert (head["log_id"], head["size"]) == (history.second, newest)


# What cannot be read


def _no_database(data: Path) -> None:
    (data / "qwed.db").unlink()


def _not_sqlite(data: Path) -> None:
    (data / "qwed.db").write_bytes(b"no database at all" * 100)


def _half(data: Path) -> None:
    whole = (data / "qwed.db").read_bytes()
    (data / "qwed.db").write_bytes(whole[: len(whole) // 2])


def _version(number: int) -> Tamper:
    def change(data: Path) -> None:
        with open_database(data) as connection:
            connection.execute(f"PRAGMA user_version = {number}")

    return change


UNREADABLE: dict[str, tuple[Tamper, str]] = {
    "no directory": (shutil.rmtree, "there is no directory "),
    "no database": (_no_database, "there is no database in "),
    "no SQLite": (_not_sqlite, "is not a readable database: "),
    "half a database": (_half, "is not a readable database: "),
    "an older database": (_version(3), "older than signed log heads: start `qwed serve` on it once"),
    "a newer database": (_version(99), f"newer than this qwed ({migrations()[-1][0]}): upgrade qwed"),
    "a table is gone": (lambda data: _run_sql(data, "DROP TABLE heads"), "lacks the table `heads`"),
    "a table is a view": (
        lambda data: _run_sql(data, "DROP TABLE heads; CREATE VIEW heads AS SELECT 1"),
        "lacks the table `heads`",
    ),
    "no public keys": (lambda data: (data / "signing.jwks").unlink(), "signing.jwks is missing"),
    "public keys that are none": (lambda data: _write(data / "signing.jwks", "[]"), "is not the JWKS of a node"),
    "a key that is none": (
        lambda data: _write(data / "signing.jwks", '{"issuer": "x", "keys": [{}]}'),
        "the node's public keys cannot be used",
    ),
    "a vault's key that is none": (lambda data: _write(data / "vault.key", "zz"), "does not hold a key"),
    "a vault's key that others may read": (lambda data: (data / "vault.key").chmod(0o644), "run chmod 600 on it"),
}


def _run_sql(data: Path, script: str) -> None:
    with open_database(data) as connection:
        connection.executescript(script)


def _write(file: Path, text: str) -> None:
    file.write_text(text)


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_is_said_in_one_sentence(name: str, copy: History, run: Run) -> None:
    hand_in, expected = UNREADABLE[name]
    hand_in(copy.data)
    ran = run("verify", "--data-dir", copy.data)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("qwed: ")
    assert ran.err.count("\n") == 1
    assert expected in ran.err


def _nonsense(place: Path) -> dict[str, tuple[list[str], str]]:
    text, missing = str(place / "text"), str(place / "missing")
    _write(place / "text", "nothing of the kind\n")
    return {
        "no such head": (["verify", "--head", missing], f"{missing} cannot be read: No such file"),
        "no head in it": (["verify", "--head", text], f"{text} holds no head"),
        "no JWKS": (["verify", "--jwks", text], f"{text} is not a JWKS"),
        "no such JWKS": (["verify", "--jwks", missing], f"{missing} cannot be read"),
        "no such export": (["verify", "--export", missing], f"{missing} cannot be read"),
        "an export that is a directory": (["verify", "--export", str(place)], "cannot be read: Is a directory"),
        "an unknown organisation": (
            ["verify", "--organisation", "org_x"],
            "there is no organisation `org_x`: the organisations are org_",
        ),
        "an unknown organisation to export": (
            ["export", "--organisation", "org_x"],
            "there is no organisation `org_x`",
        ),
        "one of several": (["export"], "there are 2 organisations: choose one with --organisation: org_"),
        "one of several heads": (["head"], "there are 2 organisations"),
    }


@pytest.mark.parametrize("name", _nonsense(Path("/tmp")))
def test_a_slip_of_the_pen_is_answered_in_one_sentence(name: str, history: History, tmp_path: Path, run: Run) -> None:
    (verb, *rest), expected = _nonsense(tmp_path)[name]
    place = [] if "--export" in rest else ["--data-dir", str(history.data)]
    ran = run(verb, *place, *rest)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert expected in ran.err


def test_an_export_that_the_disk_has_no_room_for_leaves_what_was_there(history: History, tmp_path: Path) -> None:
    file = tmp_path / "out" / "log"
    file.parent.mkdir()
    file.write_text("the one of last week")
    place = f'--data-dir "{history.data}" --organisation "{history.first}" --output "{file}"'
    shell = f'ulimit -f 8; exec "{sys.executable}" -m qwed.cli audit export {place}'
    ran = subprocess.run(["/bin/bash", "-c", shell], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (2, f"qwed: {file} cannot be written: File too large\n")
    assert [path.name for path in file.parent.iterdir()] == ["log"]
    assert file.read_text() == "the one of last week"


def test_an_export_is_not_written_among_the_files_of_the_server(history: History, tmp_path: Path, run: Run) -> None:
    place = ("--data-dir", history.data, "--organisation", history.first)
    assert run("export", *place, "--output", history.data / "qwed.db").code == 2
    assert run("export", *place, "--output", tmp_path / "none" / "log").code == 2
    assert run("verify", "--data-dir", history.data).code == 0


def test_a_file_that_is_no_export_is_no_log(history: History, tmp_path: Path, run: Run) -> None:
    _write(tmp_path / "text", "nothing of the kind\n")
    assert run("verify", "--export", tmp_path / "text").code == 2
    assert run("verify", "--export", history.heads).code == 2
    assert run("verify", "--export", tmp_path / "text", "--data-dir", history.data).code == 2


def test_every_help_text_says_what_the_verb_is_for() -> None:
    ran = subprocess.run([*QWED, "audit", "verify", "--help"], capture_output=True, text=True, env={"COLUMNS": "100"})
    assert ran.returncode == 0
    assert "0 nothing is wrong, 1 something is wrong, 2 the log could not be read" in ran.stdout
    for option in ("--data-dir", "--export", "--head", "--jwks", "--organisation", "--json", "--progress"):
        assert option in ran.stdout


@pytest.mark.parametrize("command", ["audit verify", "audit export", "audit head", "audit erase", "attestation verify"])
def test_every_option_is_documented(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command.split(), "--help"]) == 0
    options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) - {"--help"}
    assert options <= set(re.findall(r"--[a-z-]+", (ROOT / "docs" / "audit.md").read_text()))


# Erasing


def test_erasing_asks_for_a_word_first(copy: History, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(os.devnull) as nobody:
        monkeypatch.setattr("sys.stdin", nobody)
        ran = run("erase", "--subject", "bob", "--data-dir", copy.data)
    assert (ran.code, ran.out) == (2, "")
    assert "add --yes" in ran.err
    assert run("erase", "--subject", "bob", "--data-dir", copy.data, "--yes").out == "erased\n"
    assert (
        run("erase", "--subject", "bob", "--data-dir", copy.data, "--yes").out
        == "nothing is stored about this subject\n"
    )
    assert run("verify", "--data-dir", copy.data, "--head", copy.heads).code == 0


def test_a_log_that_was_changed_is_not_written_to(copy: History, run: Run) -> None:
    tamper(copy.data, f"DELETE FROM heads WHERE organisation_id = {_FIRST} AND size > 60")
    ran = run("erase", "--subject", "bob", "--data-dir", copy.data, "--yes")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "run `qwed audit verify`" in ran.err


def test_erasing_creates_no_database(tmp_path: Path, run: Run) -> None:
    ran = run("erase", "--subject", "bob", "--data-dir", tmp_path / "slip", "--yes")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert not (tmp_path / "slip").exists()


# With a running server


class Busy:
    """Client that sends requests until stopped or until a number is reached."""

    def __init__(self, server: Server, times: int) -> None:
        self._server = server
        self._times = times
        self._stop, self._begun = threading.Event(), threading.Event()
        self.asked = 0
        self._thread = threading.Thread(target=self._go)

    def __enter__(self) -> "Busy":
        self._thread.start()
        assert self._begun.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _go(self) -> None:
        headers = {"X-API-Key": self._server.owner_key}
        with httpx.Client(base_url=self._server.base_url, headers=headers, timeout=30) as client:
            agent = client.post("/agents/register", json={"name": "busy", "principal_id": "ops"}).json()["agent_id"]
            while not self._stop.is_set() and self.asked < self._times:
                context = {"conversation_id": f"c{self.asked}", "step_number": 1, "subject": f"s{self.asked % 7}"}
                letter = {"type": "send_email", "parameters": {"to": "a@example.com"}}
                action = {"type": "calculate", "query": "1 + 1 = 2"} if self.asked % 3 else letter
                answer = client.post(f"/agents/{agent}/verify", json={"action": action, "context": context}).json()
                if answer["decision"] == "PENDING":
                    client.post(f"/approvals/{answer['approval_id']}/approve", json={"reason": "yes"})
                elif self.asked % 5 == 0:
                    client.post(f"/agents/{agent}/actions/{answer['action_id']}/execution", json={"success": True})
                self.asked += 1
                self._begun.set()


@pytest.mark.parametrize(
    ("looks", "times"), [(1, 60), pytest.param(20, 1_000_000, marks=pytest.mark.drill)], ids=["a look", "many looks"]
)
def test_beside_a_server_under_load_the_log_is_clean_and_heads_taken_before_agree(
    tmp_path: Path, run: Run, looks: int, times: int
) -> None:
    server = Server(tmp_path / "data")
    place = ("--data-dir", server.data_dir)
    saved = tmp_path / "heads.jsonl"
    try:
        with Busy(server, times) as busy, saved.open("a") as heads:
            asking = httpx.get(f"{server.base_url}/audit/head", headers={"X-API-Key": server.owner_key}, timeout=30)
            heads.write(asking.text + "\n")
            for _ in range(looks):
                heads.write(run("head", *place).out)
                heads.flush()
                ran = run("verify", *place, "--head", saved)
                assert (ran.code, ran.err) == (0, ""), ran.out
        assert f"compared with {looks + 1} saved heads" in ran.out
        assert busy.asked > 0
        _erases_through(server, run)
    finally:
        assert server.stop() == 0


def _erases_through(server: Server, run: Run) -> None:
    """The command asks the server that has the directory; without its address it says so."""
    command = ("erase", "--subject", "s1", "--yes", "--data-dir", server.data_dir)
    refused = run(*command)
    assert refused.code == 2
    assert "a server runs on" in refused.err
    assert run(*command, "--url", server.base_url) == Ran(0, "erased\n", "")
    assert run("verify", "--data-dir", server.data_dir).code == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QWED_API_KEY", "qwed_live_wrong")
        patch.setenv("QWED_BASE_URL", server.base_url)
        ran = run(*command)
    assert ran.code == 2
    assert ran.err.startswith("qwed: unknown or revoked credential (QWED-AUTH-002)")


def test_a_server_that_does_not_answer_is_said_in_one_sentence(copy: History, run: Run) -> None:
    ran = run("erase", "--subject", "s", "--yes", "--data-dir", copy.data, "--url", "http://127.0.0.1:9")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "request to http://127.0.0.1:9 failed" in ran.err


def test_a_server_elsewhere_is_not_shown_the_key_of_the_one_here(
    server: Server, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".qwed").mkdir()
    (tmp_path / ".qwed" / "data").symlink_to(server.data_dir)
    monkeypatch.setenv("HOME", str(tmp_path))
    ran = run("erase", "--subject", "s", "--yes", "--url", "http://qwed.invalid")
    assert ran == Ran(2, "", "qwed: an API key for http://qwed.invalid is missing: set QWED_API_KEY\n")


@pytest.mark.parametrize("response", [{}, {"erased": "yes"}, {"erased": None}])
def test_only_a_server_that_says_so_has_erased(
    response: dict[str, Any], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QWED_API_KEY", "qwed_live_k")
    with fake_server(respond_with(200, response)) as other:
        ran = run("erase", "--subject", "s", "--yes", "--url", other.url)
    assert (ran.code, ran.out) == (2, "")
    assert "the answer has no `erased`" in ran.err
