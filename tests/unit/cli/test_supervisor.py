"""`qwed serve --workers N`: how the workers are started, replaced and stopped. The workers are stand-ins."""

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

from qwed.cli.serve import _listen, _reserve
from qwed.cli.serving.process import bound_to
from qwed.cli.serving.start import engines_each
from qwed.cli.serving.supervisor import TRIES
from tests.support.supervised import HOUSE

PATIENCE = 60.0

Take = Callable[[str, int], socket.socket]


def once(so: Callable[[], bool]) -> None:
    """Come back when it is so."""
    ends, tick = time.monotonic() + PATIENCE, threading.Event()
    while not so():
        assert time.monotonic() < ends
        tick.wait(0.01)


def lives(pid: str) -> bool:
    """Whether the process runs; one that has ended may still be there for whoever is to collect it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Supervised:
    """A supervisor with workers that do as the words say."""

    def __init__(self, directory: Path, size: int = 2, words: str = "") -> None:
        self.words, self._marks, self._log = directory / "words", directory / "marks", directory / "log"
        self.words.write_text(words)
        self._marks.touch()
        self.program = directory / "program"
        self.program.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        self.program.chmod(0o700)
        given = (str(size), str(self.program), str(self.words), str(self._marks))
        command = [sys.executable, "-m", "tests.support.supervised", *given]
        with self._log.open("w") as log:
            self.process = subprocess.Popen(command, cwd=HOUSE, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout is not None
        self._said = self.process.stdout

    def greeting(self) -> str:
        """Its next line, once it says one; nothing when it ends without."""
        return self._said.readline().strip()

    def listens(self) -> int:
        """The port, when all workers have been tried."""
        return int(self.greeting().split()[0])

    def marks(self, what: str = "") -> list[list[str]]:
        """What the workers did, in order: the deed, the number, the process."""
        return [line.split() for line in self._marks.read_text().splitlines() if line.startswith(what)]

    def pid(self, number: int) -> int:
        """The process of the worker that came up last with this number."""
        return [int(pid) for _, which, pid in self.marks("ready") if which == str(number)][-1]

    def log(self) -> str:
        return self._log.read_text()

    def ends(self) -> int:
        """Its exit code, once it and every worker it ever had are gone."""
        code = self.process.wait(PATIENCE)
        once(lambda: not any(lives(pid) for _, _, pid in self.marks()))
        return code


Open = Callable[..., Supervised]


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[Open]:
    opened: list[Supervised] = []

    def start(size: int = 2, words: str = "") -> Supervised:
        opened.append(Supervised(tmp_path, size, words))
        return opened[-1]

    yield start
    for each in opened:
        each.process.kill()
        each.ends()
        each._said.close()


def asked(port: int) -> tuple[str, int]:
    """Which worker answers a connection, and its process."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
        number, pid = connection.makefile().read().split()
    return number, int(pid)


def test_every_worker_is_there_when_it_greets_once_and_all_of_them_are_asked(supervised: Open) -> None:
    found = supervised(3)
    port = found.listens()
    assert sorted(number for _, number, _ in found.marks("ready")) == ["0", "1", "2"]
    answered = {asked(port)[0] for _ in range(200)}
    assert answered == {"0", "1", "2"}
    found.process.terminate()
    assert (found.greeting(), found.ends()) == ("", 0)


def test_the_first_worker_is_alone_until_it_is_ready_and_its_key_is_told(supervised: Open) -> None:
    found = supervised(3)
    assert found.greeting().endswith(" the key")
    deeds = [(deed, number) for deed, number, _ in found.marks()]
    assert deeds[:2] == [("begun", "0"), ("ready", "0")]
    assert len(deeds) == 6


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_asked_to_stop_it_stops_every_worker_and_ends_with_0(supervised: Open, number: signal.Signals) -> None:
    found = supervised()
    found.listens()
    found.process.send_signal(number)
    assert found.ends() == 0


def test_asked_to_stop_while_it_starts_it_stops(supervised: Open) -> None:
    found = supervised()
    once(lambda: bool(found.marks("begun")))
    found.process.terminate()
    assert found.ends() == 0


def test_a_worker_that_does_not_stop_is_killed(supervised: Open) -> None:
    found = supervised(words="deaf")
    found.listens()
    found.process.terminate()
    assert found.ends() == 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_that_ends_is_replaced_and_the_others_go_on(supervised: Open, number: signal.Signals) -> None:
    found = supervised()
    port = found.listens()
    before = [found.pid(0), found.pid(1)]
    os.kill(before[0], number)
    once(lambda: len(found.marks("ready")) == 3)
    assert {asked(port) for _ in range(200)} == {("0", found.pid(0)), ("1", before[1])}
    assert found.pid(0) != before[0]
    assert '"event": "a worker ended"' in found.log()


def test_when_the_supervisor_is_killed_the_workers_end_too(supervised: Open) -> None:
    found = supervised()
    found.listens()
    handles = [os.pidfd_open(found.pid(number)) for number in (0, 1)]
    found.process.kill()
    assert all(select.select([handle], [], [], PATIENCE)[0] for handle in handles)
    for handle in handles:
        os.close(handle)


def test_a_first_start_that_fails_ends_it_as_a_single_server_would(supervised: Open) -> None:
    found = supervised(words="refuse")
    assert (found.greeting(), found.ends()) == ("", 2)
    assert found.log() == "qwed: the reason\n"
    assert [deed for deed, _, _ in found.marks()] == ["begun"]


def test_a_worker_that_cannot_be_started_is_tried_again_at_a_pace_while_the_others_go_on(supervised: Open) -> None:
    found = supervised(words="refuse others")
    port = found.listens()
    once(lambda: len(found.marks("begun")) >= 5)
    assert {asked(port)[0] for _ in range(20)} == {"0"}
    found.words.write_text("")
    once(lambda: len(found.marks("ready")) == 2)
    assert {asked(port)[0] for _ in range(200)} == {"0", "1"}


def test_starts_that_failed_while_another_worker_was_up_do_not_count_against_the_next(supervised: Open) -> None:
    found = supervised(words="refuse others")
    found.listens()
    # Each begins after the one before it was counted.
    once(lambda: len(found.marks("begun 1")) > TRIES)
    os.kill(found.pid(0), signal.SIGKILL)
    found.words.write_text("")
    once(lambda: len(found.marks("ready")) == 3 or found.process.poll() is not None)
    assert len(found.marks("ready 0")) == 2
    found.process.terminate()
    assert found.ends() == 0


def test_a_program_that_is_away_for_a_while_is_waited_for_while_the_others_go_on(supervised: Open) -> None:
    found = supervised()
    port, before = found.listens(), found.pid(1)
    away = found.program.rename(found.program.with_name("away"))
    os.kill(found.pid(0), signal.SIGKILL)
    once(lambda: found.log().count('"event": "a worker cannot be started"') >= 3)
    assert asked(port) == ("1", before)
    away.rename(found.program)
    once(lambda: len(found.marks("ready")) == 3)
    assert {asked(port) for _ in range(200)} == {("0", found.pid(0)), ("1", before)}
    found.process.terminate()
    assert found.ends() == 0


def test_a_program_that_is_not_there_at_all_is_told_and_ends_it(supervised: Open) -> None:
    found = supervised(words="refuse others")
    found.listens()
    found.program.unlink()
    os.kill(found.pid(0), signal.SIGKILL)
    assert found.ends() == 1
    assert "no worker can be started any more" in found.log()
    assert "Traceback" not in found.log()


def test_where_none_can_be_started_any_more_it_gives_up_with_a_sentence(supervised: Open) -> None:
    found = supervised()
    found.listens()
    found.words.write_text("refuse")
    for number in (0, 1):
        os.kill(found.pid(number), signal.SIGKILL)
    assert found.ends() == 1
    assert "no worker can be started any more" in found.log()
    assert 5 <= len(found.marks("begun")) - 2 <= 6


def test_a_second_server_on_the_address_is_refused_though_workers_share_it(supervised: Open) -> None:
    port = supervised().listens()
    for take in (_listen, _reserve):
        with pytest.raises(OSError, match="in use"):
            take("127.0.0.1", port)


@pytest.mark.parametrize("take", [_listen, _reserve])
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_second_server_is_refused_before_the_first_worker_listens(take: Take, host: str) -> None:
    with _reserve("127.0.0.1", 0) as reserved, pytest.raises(OSError, match="in use"):
        take(host, reserved.getsockname()[1])


@pytest.mark.parametrize("shared", [True, False])
def test_an_address_is_reserved_again_though_connections_of_an_earlier_server_linger(shared: bool) -> None:
    with bound_to("127.0.0.1", 0, shared=shared) as earlier:
        earlier.listen()
        port = earlier.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
            # Who closes first keeps the connection for a minute.
            earlier.accept()[0].close()
            assert connection.recv(1) == b""
    with _reserve("127.0.0.1", port), bound_to("127.0.0.1", port, shared=True) as worker:
        worker.listen()


@pytest.mark.parametrize(
    ("engines", "workers", "each"), [(2, 2, 2), (4, 2, 4), (16, 2, 16), (16, 8, 4), (16, 64, 2), (3, 2, 3), (64, 3, 44)]
)
def test_each_worker_has_room_for_twice_its_share_of_the_engines(engines: int, workers: int, each: int) -> None:
    assert engines_each(engines, workers) == each
