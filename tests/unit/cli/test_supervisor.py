"""`qwed serve --workers N`: stub workers are started, replaced and stopped."""

import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qwed.cli.multiprocess.plan import engines_per_worker
from qwed.cli.multiprocess.process import bind_socket
from qwed.cli.multiprocess.supervisor import TRIES
from tests.support.listening import listen, reserve_address
from tests.support.supervisor_main import ROOT

PATIENCE = 60.0

Take = Callable[[str, int], socket.socket]


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until the condition holds."""
    ends, tick = time.monotonic() + PATIENCE, threading.Event()
    while not condition():
        assert time.monotonic() < ends
        tick.wait(0.01)


def is_running(pid: str) -> bool:
    """Return True if the process runs and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Supervised:
    """A supervisor with stub workers."""

    def __init__(self, directory: Path, size: int = 2, words: str = "") -> None:
        self.words, self._marks, self._log = directory / "words", directory / "marks", directory / "log"
        self.words.write_text(words)
        self._marks.touch()
        self.program = directory / "program"
        self.program.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        self.program.chmod(0o700)
        arguments = (str(size), str(self.program), str(self.words), str(self._marks))
        command = [sys.executable, "-m", "tests.support.supervisor_main", *arguments]
        with self._log.open("w") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout is not None
        self._said = self.process.stdout

    def greeting(self) -> str:
        """Return its next line; empty if it ends without one."""
        return self._said.readline().strip()

    def listens(self) -> int:
        """Return the port once all workers have been tried."""
        return int(self.greeting().split()[0])

    def marks(self, what: str = "") -> list[list[str]]:
        """Return the events of the workers in order: name, worker number, process id."""
        return [line.split() for line in self._marks.read_text().splitlines() if line.startswith(what)]

    def pid(self, number: int) -> int:
        """Return the process id of the last worker with this number that was ready."""
        return [int(pid) for _, which, pid in self.marks("ready") if which == str(number)][-1]

    def log(self) -> str:
        return self._log.read_text()

    def ends(self) -> int:
        """Return its exit code once it and all its workers have ended."""
        code = self.process.wait(PATIENCE)
        wait_until(lambda: not any(is_running(pid) for _, _, pid in self.marks()))
        return code

    def close(self) -> None:
        self.process.kill()
        self.ends()
        self._said.close()


Open = Callable[..., Supervised]


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[Open]:
    opened: list[Supervised] = []

    def start(size: int = 2, words: str = "") -> Supervised:
        opened.append(Supervised(tmp_path, size, words))
        return opened[-1]

    yield start
    for group in opened:
        group.close()


def answering_worker(port: int) -> tuple[str, int]:
    """Return the number and process id of the worker that accepts a connection."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
        number, pid = connection.makefile().read().split()
    return number, int(pid)


def test_every_worker_is_there_when_it_greets_once_and_all_of_them_are_asked(supervised: Open) -> None:
    supervised_group = supervised(3)
    port = supervised_group.listens()
    assert sorted(number for _, number, _ in supervised_group.marks("ready")) == ["0", "1", "2"]
    answered = {answering_worker(port)[0] for _ in range(200)}
    assert answered == {"0", "1", "2"}
    supervised_group.process.terminate()
    assert (supervised_group.greeting(), supervised_group.ends()) == ("", 0)


def test_the_first_worker_is_alone_until_it_is_ready_and_its_key_is_told(supervised: Open) -> None:
    supervised_group = supervised(3)
    assert supervised_group.greeting().endswith(" the key")
    deeds = [(deed, number) for deed, number, _ in supervised_group.marks()]
    assert deeds[:2] == [("begun", "0"), ("ready", "0")]
    assert len(deeds) == 6


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_asked_to_stop_it_stops_every_worker_and_ends_with_0(supervised: Open, number: signal.Signals) -> None:
    supervised_group = supervised()
    supervised_group.listens()
    supervised_group.process.send_signal(number)
    assert supervised_group.ends() == 0


def test_asked_to_stop_while_it_starts_it_stops(supervised: Open) -> None:
    supervised_group = supervised()
    wait_until(lambda: bool(supervised_group.marks("begun")))
    supervised_group.process.terminate()
    assert supervised_group.ends() == 0


def test_a_worker_that_does_not_stop_is_killed(supervised: Open) -> None:
    supervised_group = supervised(words="deaf")
    supervised_group.listens()
    supervised_group.process.terminate()
    assert supervised_group.ends() == 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_that_ends_is_replaced_and_the_others_go_on(supervised: Open, number: signal.Signals) -> None:
    supervised_group = supervised()
    port = supervised_group.listens()
    before = [supervised_group.pid(0), supervised_group.pid(1)]
    os.kill(before[0], number)
    wait_until(lambda: len(supervised_group.marks("ready")) == 3)
    assert {answering_worker(port) for _ in range(200)} == {("0", supervised_group.pid(0)), ("1", before[1])}
    assert supervised_group.pid(0) != before[0]
    assert '"event": "worker exited"' in supervised_group.log()


def test_when_the_supervisor_is_killed_the_workers_end_too(supervised: Open) -> None:
    supervised_group = supervised()
    supervised_group.listens()
    handles = [os.pidfd_open(supervised_group.pid(number)) for number in (0, 1)]
    supervised_group.process.kill()
    assert all(select.select([handle], [], [], PATIENCE)[0] for handle in handles)
    for handle in handles:
        os.close(handle)


def test_a_first_start_that_fails_ends_it_as_a_single_server_would(supervised: Open) -> None:
    supervised_group = supervised(words="refuse")
    assert (supervised_group.greeting(), supervised_group.ends()) == ("", 2)
    assert supervised_group.log() == "qwed: the reason\n"
    assert [deed for deed, _, _ in supervised_group.marks()] == ["begun"]


def test_a_worker_that_cannot_be_started_is_tried_again_at_a_pace_while_the_others_go_on(supervised: Open) -> None:
    supervised_group = supervised(words="refuse others")
    port = supervised_group.listens()
    wait_until(lambda: len(supervised_group.marks("begun")) >= 5)
    assert {answering_worker(port)[0] for _ in range(20)} == {"0"}
    supervised_group.words.write_text("")
    wait_until(lambda: len(supervised_group.marks("ready")) == 2)
    assert {answering_worker(port)[0] for _ in range(200)} == {"0", "1"}


def test_starts_that_failed_while_another_worker_was_up_do_not_count_against_the_next(supervised: Open) -> None:
    supervised_group = supervised(words="refuse others")
    supervised_group.listens()
    # Each start begins after the previous one was counted.
    wait_until(lambda: len(supervised_group.marks("begun 1")) > TRIES)
    os.kill(supervised_group.pid(0), signal.SIGKILL)
    supervised_group.words.write_text("")
    wait_until(lambda: len(supervised_group.marks("ready")) == 3 or supervised_group.process.poll() is not None)
    assert len(supervised_group.marks("ready 0")) == 2
    supervised_group.process.terminate()
    assert supervised_group.ends() == 0


def test_a_program_that_is_away_for_a_while_is_waited_for_while_the_others_go_on(supervised: Open) -> None:
    supervised_group = supervised()
    port, before = supervised_group.listens(), supervised_group.pid(1)
    away = supervised_group.program.rename(supervised_group.program.with_name("away"))
    os.kill(supervised_group.pid(0), signal.SIGKILL)
    wait_until(lambda: supervised_group.log().count('"event": "worker start failed"') >= 3)
    assert answering_worker(port) == ("1", before)
    away.rename(supervised_group.program)
    wait_until(lambda: len(supervised_group.marks("ready")) == 3)
    assert {answering_worker(port) for _ in range(200)} == {("0", supervised_group.pid(0)), ("1", before)}
    supervised_group.process.terminate()
    assert supervised_group.ends() == 0


def test_a_program_that_is_not_there_at_all_is_told_and_ends_it(supervised: Open) -> None:
    supervised_group = supervised(words="refuse others")
    supervised_group.listens()
    supervised_group.program.unlink()
    os.kill(supervised_group.pid(0), signal.SIGKILL)
    assert supervised_group.ends() == 1
    assert "worker start failed repeatedly" in supervised_group.log()
    assert "Traceback" not in supervised_group.log()


def test_where_none_can_be_started_any_more_it_gives_up_with_a_sentence(supervised: Open) -> None:
    supervised_group = supervised()
    supervised_group.listens()
    supervised_group.words.write_text("refuse")
    for number in (0, 1):
        os.kill(supervised_group.pid(number), signal.SIGKILL)
    assert supervised_group.ends() == 1
    assert "worker start failed repeatedly" in supervised_group.log()
    assert 5 <= len(supervised_group.marks("begun")) - 2 <= 6


def test_a_second_server_on_the_address_is_refused_though_workers_share_it(supervised: Open) -> None:
    port = supervised().listens()
    for take in (listen, reserve_address):
        with pytest.raises(OSError, match="in use"):
            take("127.0.0.1", port)


@pytest.mark.parametrize("take", [listen, reserve_address])
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_second_server_is_refused_before_the_first_worker_listens(take: Take, host: str) -> None:
    with reserve_address("127.0.0.1", 0) as reserved, pytest.raises(OSError, match="in use"):
        take(host, reserved.getsockname()[1])


@pytest.mark.parametrize("shared", [True, False])
def test_an_address_is_reserved_again_though_connections_of_an_earlier_server_linger(shared: bool) -> None:
    with bind_socket("127.0.0.1", 0, shared=shared) as earlier:
        earlier.listen()
        port = earlier.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
            # The side that closes first keeps the connection in TIME_WAIT for a minute.
            earlier.accept()[0].close()
            assert connection.recv(1) == b""
    with reserve_address("127.0.0.1", port), bind_socket("127.0.0.1", port, shared=True) as worker:
        worker.listen()


@pytest.mark.parametrize(
    ("engines", "workers", "per_worker"),
    [(2, 2, 2), (4, 2, 4), (16, 2, 16), (16, 8, 4), (16, 64, 2), (3, 2, 3), (64, 3, 44)],
)
def test_each_worker_has_room_for_twice_its_share_of_the_engines(engines: int, workers: int, per_worker: int) -> None:
    assert engines_per_worker(engines, workers) == per_worker
