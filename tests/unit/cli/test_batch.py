"""`qwed batch`: input formats, output formats and inputs of any length."""

import io
import json
import os
import re
import signal
import sys
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from qwed.cli import main
from qwed.cli.backend import MAX_FILE, MAX_TEXT
from qwed.cli.batch import output as output_module
from qwed.cli.batch import runner, signals
from qwed.cli.batch.batch_backend import RecyclingGate
from qwed.cli.batch.input import BatchInputError, BatchItem, InputFormat, format_of, read_items
from qwed.cli.batch.signals import defer_interrupt
from qwed.engines.uploads import MAX_BYTES
from qwed.gate import GateError
from qwed.kernel.verification import batch_jobs
from qwed.settings import Settings
from tests.support.case_tables import each, rows
from tests.support.server import Server
from tests.support.terminal import Terminal

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def server_env(server: Server, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The server under test is the one that is meant; also as an environment."""
    named = {"QWED_BASE_URL": server.base_url, "QWED_API_KEY": server.owner_key}
    for name, value in named.items():
        monkeypatch.setenv(name, value)
    return {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **named}


def _read(content: bytes, written: InputFormat, kind: str | None = None) -> tuple[list[BatchItem], str | None]:
    """Return the items, and the error that ended them."""
    items: list[BatchItem] = []
    try:
        items.extend(read_items(io.BytesIO(content), written, kind))
    except BatchInputError as error:
        return items, str(error)
    return items, None


def _unexpected_status(job_id: str) -> dict[str, Any]:
    raise AssertionError(f"{job_id} was over")


@each("row", rows("batch_inputs.jsonl"), ids=lambda row: row["name"])
def test_items_are_read_however_they_are_written(row: dict[str, Any]) -> None:
    content = row["text"].encode()
    written = InputFormat(row["format"]) if "format" in row else format_of(row["file"], content)
    expected = [BatchItem(*item) for item in row["items"]]
    assert _read(content, written) == (expected, row.get("unreadable"))


def test_the_bounds_are_those_of_the_server() -> None:
    assert (runner.MAX_ITEMS, MAX_FILE) == (batch_jobs.MAX_ITEMS, MAX_BYTES)
    assert Settings().max_body_bytes == MAX_TEXT


def test_the_type_is_for_items_that_name_none() -> None:
    items, _ = _read(b'"1 = 1"\n{"query": "SELECT 1", "type": "sql"}\n7\n', InputFormat.JSONL, "math")
    assert [item.body.get("type") for item in items] == ["math", "sql", None]


def test_a_line_that_is_too_long_or_no_text_takes_no_other_along() -> None:
    content = b"1 = 1\n" + b"9" * (3 << 20) + b"\n\xff\xfe\n2 = 2\n"
    items, _ = _read(content, InputFormat.TEXT)
    assert [(item.number, item.error) for item in items] == [
        (1, None),
        (2, "it is longer than 1 MiB"),
        (3, "it is not valid UTF-8"),
        (4, None),
    ]
    longest = b"9" * MAX_TEXT + b"\n"
    assert _read(longest, InputFormat.TEXT) == ([BatchItem(1, {"query": "9" * MAX_TEXT})], None)


def test_hostile_json_ends_the_reading_and_nothing_else() -> None:
    assert _read(b"[" * 100_000, InputFormat.JSON)[1] == "item 1 is not valid JSON: it is nested too deeply"
    assert (
        _read(b'["' + b"x" * (3 << 20), InputFormat.JSON)[1] == "item 1 is not valid JSON, or it is longer than 1 MiB"
    )
    assert _read(b'["\xff"]', InputFormat.JSON)[1] == "it is not valid UTF-8"
    (line,) = _read(b"[" * 100_000, InputFormat.JSONL)[0]
    assert line.error == "it is not valid JSON: it is nested too deeply"
    (number,) = _read(b'{"query": "x", "params": {"n": ' + b"9" * 5_000 + b"}}", InputFormat.JSONL)[0]
    assert str(number.error).startswith("it is not valid JSON: ")


def test_an_array_of_any_length_is_read_piece_by_piece() -> None:
    class Endless(io.RawIOBase):
        """An array that never ends."""

        calls = 0

        def read(self, size: int = -1) -> bytes:
            assert size > 0
            self.calls += 1
            return b'["1 = 1"' if self.calls == 1 else b', {"query": "2 = 2"}'

    items = read_items(Endless(), InputFormat.JSON, None)  # type: ignore[arg-type]
    assert [next(items).number for _ in range(5_000)][-1] == 5_000


def test_jobs_stay_within_the_bounds_of_a_request() -> None:
    sizes: list[int] = []

    def verify_batch(items: list[dict[str, Any]], _options: Any) -> dict[str, Any]:
        assert len(items) <= batch_jobs.MAX_ITEMS
        sizes.append(len(json.dumps({"items": items}, ensure_ascii=False).encode()))
        answers = [{"id": str(place), "query": "", "status": "completed"} for place in range(len(items))]
        return {"status": "completed", "items": answers}

    doors = runner.JobClient(verify_batch, _unexpected_status, LookupError)
    items = [BatchItem(number, {"query": "\u00e9" * 30_000}) for number in range(1, 101)]
    items += [BatchItem(number, {"query": "1 = 1"}) for number in range(101, 2_001)]
    items += [BatchItem(2_001, {"query": "x" * (MAX_TEXT + 1)}), BatchItem(2_002, {"query": "\ud800"})]
    done = [outcome for part in runner.run_jobs(items, doors) for outcome in part]
    assert [outcome.number for outcome in done] == list(range(1, 2_003))
    assert [outcome.error and outcome.error["code"] for outcome in done[-3:]] == [None, "QWED-REQ-002", "QWED-REQ-001"]
    assert max(sizes) <= MAX_TEXT


@pytest.mark.parametrize(
    "answers",
    [None, [], [{"id": "0"}], [{"id": "1"}, {"id": "0"}], ["0", "1"], [{"id": "0"}, {"id": "1"}, {"id": "2"}]],
)
def test_an_item_that_comes_back_without_an_answer_is_not_passed_over(answers: Any, capsys: Capture) -> None:
    doors = runner.JobClient(
        lambda _items, _options: {"status": "completed", "items": answers}, _unexpected_status, LookupError
    )
    with pytest.raises(SystemExit):
        list(runner.run_jobs([BatchItem(1, {"query": "1 = 1"}), BatchItem(2, {"query": "1 = 1"})], doors))
    assert capsys.readouterr().err == "qwed: the server returned a job without a result for each item\n"


def test_engines_of_this_process_keep_the_answers_of_a_batch_only_for_a_while() -> None:
    with closing(RecyclingGate(most=3_000)) as gates:
        first = gates.verify_batch([{"query": "1 = 1"}], None)
        assert gates.get_batch_status(first["job_id"])["status"] == "completed"
        second = gates.verify_batch([{"query": "1 = 1"}] * 2, None)
        assert second["summary"]["verified"] == 2
        with pytest.raises(GateError):
            gates.get_batch_status(first["job_id"])


def test_the_items_are_not_written_over(server_env: dict[str, str], tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "claims.jsonl"
    file.write_text('"1 = 1"\n')
    (tmp_path / "link.jsonl").symlink_to(file)
    for output in (file, tmp_path / "link.jsonl"):
        assert main(["batch", "-f", str(file), "-o", str(output)]) == 2
        assert "is the input file: choose another --output" in capsys.readouterr().err
    assert file.read_text() == '"1 = 1"\n'


def test_rows_are_for_people_and_the_exit_code_for_programs(
    server_env: dict[str, str], tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "claims.txt"
    file.write_text("2+2 = 4\n\n2+2 = 5\n[red]\x1b[31mrain?\n")
    assert main(["batch", "-f", str(file)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["LINE", "STATUS", "ENGINE", "QUERY"]
    assert lines[1].split()[:3] == ["1", "VERIFIED", "math"]
    assert lines[2].split()[:3] == ["3", "FAILED", "math"]
    assert lines[2].endswith("`2+2` is 4, not 5")
    assert "[red]\\x1b[31mrain?" in lines[3]
    assert lines[4] == "1 of 3 verified, 2 failed"
    assert main(["batch", "-f", str(file), "--failures"]) == 1
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["LINE", "3", "4", "1"]
    file.write_text("2+2 = 4\n")
    assert main(["batch", "-f", str(file)]) == 0


def test_json_is_one_object_and_an_output_lines(server_env: dict[str, str], tmp_path: Path, capsys: Capture) -> None:
    file, output = tmp_path / "claims.csv", tmp_path / "answers.jsonl"
    file.write_text(
        "query,type,context\n2+2 = 4,math,\nThe plant opened in 1998,fact,The plant opened in 1998.\nx,fact,\n"
    )
    assert main(["batch", "-f", str(file), "--json"]) == 1
    whole = json.loads(capsys.readouterr().out)
    assert whole["summary"] == {
        "total": 3,
        "verified": 2,
        "failed": 0,
        "errors": 1,
        "skipped": 0,
        "complete": True,
    }
    assert [item["verified"] for item in whole["items"]] == [True, True, False]
    assert whole["items"][2] == {
        "number": 4,
        "query": "x",
        "type": "fact",
        "status": "failed",
        "result": None,
        "error": {"code": "QWED-REQ-004", "message": "`context` is required"},
        "latency_ms": None,
        "verified": False,
    }
    assert main(["batch", "-f", str(file), "-o", str(output)]) == 1
    assert capsys.readouterr().out == f"2 of 3 verified, 1 could not be sent: {output}\n"
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    assert [line["number"] for line in lines] == [2, 3, 4]
    assert main(["batch", "-f", str(file), "-o", str(output), "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {"summary": whole["summary"], "output": str(output)}


def test_items_that_are_refused_take_no_other_along(
    server_env: dict[str, str], tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "claims.jsonl"
    lines: list[Any] = [{"query": f"{n} = {n}"} for n in range(60)]
    for n in (0, 17, 18, 59):
        lines[n] = {"query": "x", "type": "poetry"}
    lines[30] = {"query": "x", "params": {"colour": 1}}
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines) + "{nonsense\n")
    for place in ([], ["--local"]):
        assert main(["batch", "-f", str(file), "--json", *place]) == 1
        whole = json.loads(capsys.readouterr().out)
        assert (whole["summary"]["total"], whole["summary"]["verified"], whole["summary"]["errors"]) == (61, 55, 6)
        assert [item["number"] for item in whole["items"] if item["error"]] == [1, 18, 19, 31, 60, 61]
        assert "unknown type `poetry`" in whole["items"][0]["error"]["message"]


def test_the_first_failure_can_be_the_end(server_env: dict[str, str], tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "claims.txt"
    file.write_text("1 = 1\n" * 12 + "1 = 2\n" + "1 = 1\n" * 500)
    assert main(["batch", "-f", str(file), "--json", "--fail-fast"]) == 1
    summary = json.loads(capsys.readouterr().out)["summary"]
    assert summary["failed"] == 1
    assert summary["total"] <= 30
    assert summary["complete"] is False


def test_what_came_before_an_input_broke_off_is_answered(
    server_env: dict[str, str], tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "claims.json"
    file.write_text('["1 = 1", "2 = 2", {"query"')
    assert main(["batch", "-f", str(file), "--json"]) == 2
    printed = capsys.readouterr()
    assert json.loads(printed.out)["summary"] == {
        "total": 2,
        "verified": 2,
        "failed": 0,
        "errors": 0,
        "skipped": 0,
        "complete": False,
    }
    assert printed.err == f"qwed: `{file}`: item 3 is not valid JSON: expecting ':' delimiter\n"


def test_a_server_that_is_lost_ends_it_and_touches_no_old_output(
    server_env: dict[str, str], tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old.jsonl").write_text("old\n")
    (tmp_path / "claims.txt").write_text("1 = 1\n")
    monkeypatch.setenv("QWED_BASE_URL", "http://127.0.0.1:1")
    assert main(["batch", "-f", str(tmp_path / "claims.txt"), "-o", str(tmp_path / "old.jsonl")]) == 2
    assert "request to http" in capsys.readouterr().err
    assert (tmp_path / "old.jsonl").read_text() == "old\n"
    monkeypatch.setenv("QWED_BASE_URL", server_env["QWED_BASE_URL"])
    assert main(["batch", "-f", str(tmp_path / "claims.txt"), "-o", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"qwed: `{tmp_path}` cannot be written: Is a directory\n"


def test_standard_input_is_read_as_it_comes(
    server_env: dict[str, str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'["1 = 1", "2 = 3"]')))
    assert main(["batch", "-f", "-", "--type", "math", "--json"]) == 1
    assert [item["type"] for item in json.loads(capsys.readouterr().out)["items"]] == ["math", "math"]


def _many(tmp_path: Path, count: int) -> str:
    """A file of so many claims, one of fifty false."""
    file = tmp_path / "many.txt"
    file.write_text("".join(f"{n} + {n} = {2 * n + (n % 50 == 0)}\n" for n in range(count)))
    return str(file)


def test_thousands_of_lines_are_verified_with_a_bar_for_whoever_watches(
    server_env: dict[str, str], tmp_path: Path
) -> None:
    with Terminal(["batch", "-f", _many(tmp_path, 1_000), "--failures"], server_env) as terminal:
        assert terminal.end() == 1
        seen = terminal.seen
    assert "\u2501" in seen
    assert "100%" in seen
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen)
    assert len(re.findall(r"[\r\n] +\d+  FAILED        math ", plain)) == 20
    assert plain.endswith("980 of 1000 verified, 20 failed\r\n")


def test_whoever_stops_it_keeps_what_was_written(server_env: dict[str, str], tmp_path: Path) -> None:
    output = tmp_path / "answers.jsonl"
    arguments = ["batch", "-f", _many(tmp_path, 5_000), "-o", str(output), "--json"]
    with Terminal(arguments, server_env, only_stderr=True) as terminal:
        terminal.until("verified")
        os.killpg(terminal.process.pid, signal.SIGINT)
        assert terminal.end() == 130
        assert terminal.process.stdout is not None
        printed = json.loads(terminal.process.stdout.read())
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    assert 0 < len(lines) == printed["summary"]["total"] < 5_000
    assert printed["summary"]["complete"] is False
    assert "Traceback" not in terminal.seen


class _InterruptAt:
    """Trace function that sends Ctrl-C at the n-th line of the writing code, after the first job was written."""

    def __init__(self, nth: int) -> None:
        self._nth = nth
        self._begun = False
        self.reached: set[tuple[str, int]] = set()

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> Any:
        name = frame.f_code.co_name
        self._begun = self._begun or (name == "update" and frame.f_code.co_filename in _WRITING)
        if not self._begun or name in ("close", "_summarized") or frame.f_code.co_filename not in _WRITING:
            return None
        place = (name, frame.f_lineno)
        if event == "line" and place not in self.reached:
            self.reached.add(place)
            if len(self.reached) == self._nth:
                signal.raise_signal(signal.SIGINT)
        return self


_WRITING = (output_module.__file__, signals.__file__)


@pytest.mark.parametrize("whole", [False, True], ids=["lines in a file", "one object"])
def test_wherever_it_is_stopped_the_summary_is_about_what_was_written(
    server_env: dict[str, str], tmp_path: Path, capsys: Capture, whole: bool
) -> None:
    file, output = _many(tmp_path, 12), tmp_path / "answers.jsonl"
    arguments = ["batch", "-f", file, "--json", *([] if whole else ["-o", str(output)])]
    codes: list[int] = []
    while not codes or codes[-1] == 130:
        stops = _InterruptAt(len(codes) + 1)
        sys.settrace(stops)
        try:
            codes.append(main(arguments))
        finally:
            sys.settrace(None)
        printed = json.loads(capsys.readouterr().out)
        written = printed["items"] if whole else output.read_text().splitlines()
        assert 0 < len(written) == printed["summary"]["total"], len(codes)
    assert len(codes) > 20
    assert codes[-1] == 1


def test_ctrl_c_waits_for_what_must_not_be_divided_and_a_second_one_does_not() -> None:
    done: list[str] = []
    before = signal.getsignal(signal.SIGINT)

    def stopped(times: int) -> None:
        with defer_interrupt():
            for number in range(times):
                signal.raise_signal(signal.SIGINT)
                done.append(f"{number + 1} of {times}")

    for times in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            stopped(times)
    assert done == ["1 of 1", "1 of 2"]
    assert signal.getsignal(signal.SIGINT) is before
