"""Publishers of log heads: what they write, and how they report failures."""

import asyncio
import errno
import fcntl
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from qwed.ledger.sequencer import Head
from qwed.model.clock import Clock
from qwed.settings import Settings, SettingsError
from qwed.witness.publishers import (
    MAX_CONCURRENT,
    FilePublisher,
    HttpsPublisher,
    Publisher,
    PublishResult,
    StdoutPublisher,
    append_lines,
    create_publishers,
    require_publishers,
)
from tests.support.manual_clock import ManualClock
from tests.support.webhook_receivers import WebhookReceiver as Listening
from tests.support.webhook_receivers import answering, unused_port

URL = "https://example.com/heads"


def head_of(size: int = 1, log_id: str = "org_1") -> Head:
    return Head(log_id=log_id, size=size, root="ab" * 32, time="2026-01-01T00:00:00Z", signature=f"a.{size}.c")


def head_json(size: int, log_id: str = "org_1") -> dict[str, Any]:
    return {
        "log_id": log_id,
        "size": size,
        "root": "ab" * 32,
        "time": "2026-01-01T00:00:00Z",
        "signature": f"a.{size}.c",
    }


def publish(publisher: Publisher, *heads: Head) -> PublishResult:
    return asyncio.run(publisher.publish(heads))


def lines_of(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text().splitlines() if line]


# Settings


def test_each_form_of_the_setting_is_a_place_and_one_that_is_named_twice_is_one(tmp_path: Path) -> None:
    file = f"file:{tmp_path}/with blanks and ümlauts"
    publishers = create_publishers(Settings(witness=("stdout", file, URL, "stdout")), Clock())
    assert [(type(publisher), publisher.kind) for publisher in publishers] == [
        (StdoutPublisher, "stdout"),
        (FilePublisher, "file"),
        (HttpsPublisher, "https"),
    ]
    assert publishers[1].name == file


def test_a_file_may_stand_in_a_home_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (publisher,) = create_publishers(Settings(witness=("file:~/heads",)), Clock())
    assert publisher.name == f"file:{tmp_path}/heads"


@pytest.mark.parametrize("url", ["http://example.com/", "https://127.0.0.1/", "https://user:word@example.com/"])
def test_a_url_that_webhooks_may_not_have_is_refused_by_name(url: str) -> None:
    with pytest.raises(SettingsError, match=r"QWED_WITNESS: `http.*` cannot be used: "):
        require_publishers(Settings(witness=("stdout", url)))


def test_a_file_in_the_data_directory_is_no_copy_elsewhere(tmp_path: Path) -> None:
    for name in (f"{tmp_path}/data/heads", f"{tmp_path}/data/qwed.db", f"{tmp_path}/x/../data/heads"):
        with pytest.raises(SettingsError, match="it is in the data directory"):
            require_publishers(Settings(witness=(f"file:{name}",), data_dir=tmp_path / "data"))
    require_publishers(Settings(witness=(f"file:{tmp_path}/heads",), data_dir=tmp_path / "data"))


def test_private_addresses_are_allowed_with_the_setting_of_webhooks() -> None:
    require_publishers(Settings(witness=("http://127.0.0.1:8080/heads",), webhook_allow_private=True))


def test_the_name_of_a_receiver_does_not_show_what_follows_its_host() -> None:
    (publisher,) = create_publishers(Settings(witness=("https://example.com:8443/in?token=secret",)), Clock())
    assert publisher.name == "https://example.com:8443"


# A file


def test_a_file_has_one_line_for_each_head_and_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    publisher = FilePublisher(tmp_path / "heads")
    assert publish(publisher, head_of(1), head_of(2)) == PublishResult(2)
    assert publish(publisher, head_of(3)) == PublishResult(1)
    assert lines_of(publisher.file) == [head_json(1), head_json(2), head_json(3)]
    assert publisher.file.stat().st_mode & 0o777 == 0o600


def test_what_a_file_holds_stays_as_it_is_even_where_it_is_half_a_line(tmp_path: Path) -> None:
    file = tmp_path / "heads"
    file.write_bytes(b'{"log_id":"or')
    publish(FilePublisher(file), head_of(2))
    first, second = file.read_bytes().splitlines()
    assert first == b'{"log_id":"or'
    assert json.loads(second) == head_json(2)


def test_a_file_that_was_moved_away_is_begun_anew(tmp_path: Path) -> None:
    publisher = FilePublisher(tmp_path / "heads")
    publish(publisher, head_of(1))
    publisher.file.rename(tmp_path / "heads.1")
    publish(publisher, head_of(2))
    assert lines_of(publisher.file) == [head_json(2)]


def test_the_mode_an_operator_gave_a_file_stays(tmp_path: Path) -> None:
    file = tmp_path / "heads"
    file.touch()
    file.chmod(0o640)
    publish(FilePublisher(file), head_of())
    assert file.stat().st_mode & 0o777 == 0o640


def test_a_directory_that_is_not_there_is_an_outcome(tmp_path: Path) -> None:
    outcome = publish(FilePublisher(tmp_path / "none" / "heads"), head_of())
    assert outcome == PublishResult(0, os.strerror(errno.ENOENT))


def test_only_a_regular_file_is_written(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert publish(FilePublisher(tmp_path / "pipe"), head_of()) == PublishResult(0, "it is not a regular file")
    assert publish(FilePublisher(tmp_path), head_of()).published == 0


def test_lines_of_several_writers_do_not_run_into_each_other(tmp_path: Path) -> None:
    file = tmp_path / "heads"
    lines = [json.dumps({"writer": writer, "text": "x" * 600}).encode() + b"\n" for writer in range(4)]
    threads = [
        threading.Thread(target=lambda line=line: [append_lines(file, line) for _ in range(25)]) for line in lines
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(line["writer"] for line in lines_of(file)) == [writer for writer in range(4) for _ in range(25)]


# The standard output


def test_the_standard_output_gets_one_line_for_each_head() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading) as reader:
        assert publish(StdoutPublisher(writing), head_of(1), head_of(2)) == PublishResult(2)
        os.close(writing)
        assert [json.loads(line) for line in reader] == [{"qwed_head": head_json(1)}, {"qwed_head": head_json(2)}]


def test_a_reader_that_has_stopped_reading_holds_up_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qwed.witness.publishers.STDOUT_WAIT_SECONDS", 0.01)
    reading, writing = os.pipe()
    os.write(writing, b"x" * fcntl.fcntl(writing, fcntl.F_GETPIPE_SZ))
    assert publish(StdoutPublisher(writing), head_of()) == PublishResult(0, "standard output is not being read")
    os.close(reading)
    os.close(writing)


def test_a_reader_that_is_gone_is_an_outcome() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    outcome = publish(StdoutPublisher(writing), head_of())
    os.close(writing)
    assert outcome == PublishResult(0, "the standard output cannot be written: Broken pipe")


def test_a_process_without_a_standard_output_writes_to_no_other_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.__stdout__", None)
    assert publish(StdoutPublisher(), head_of()) == PublishResult(0, "the process has no standard output")


# A receiver


def receiver_at(url: str) -> HttpsPublisher:
    settings = Settings(witness=(url,), webhook_allow_private=True)
    (publisher,) = create_publishers(settings, ManualClock().clock())
    assert isinstance(publisher, HttpsPublisher)
    return publisher


def test_a_receiver_is_sent_the_head_and_nothing_that_is_not_signed_by_the_node() -> None:
    there = Listening(answering(204))
    assert publish(receiver_at(there.url("/in?t=1", scheme="http")), head_of(7)) == PublishResult(1)
    heard = there.next()
    there.close()
    assert heard.line == "POST /in?t=1 HTTP/1.1"
    assert json.loads(heard.body) == head_json(7)
    assert (heard.headers["qwed-event"], heard.headers["qwed-notice"]) == ("head", "head_org_1_7")
    assert "qwed-signature" not in heard.headers


def test_a_receiver_that_refuses_is_an_outcome_and_the_rest_is_left_for_later() -> None:
    there = Listening(answering(200, *[200] * (MAX_CONCURRENT - 1), 503))
    heads = [head_of(1, f"org_{number}") for number in range(3 * MAX_CONCURRENT)]
    outcome = publish(receiver_at(there.url(scheme="http")), *heads)
    there.close()
    assert outcome == PublishResult(MAX_CONCURRENT, "the receiver answered 503")
    assert there.connections == 2 * MAX_CONCURRENT


def test_a_receiver_that_is_not_there_is_an_outcome() -> None:
    assert publish(receiver_at(f"http://127.0.0.1:{unused_port()}/"), head_of()).error == "the connection was refused"
