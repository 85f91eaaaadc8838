"""Worker process of a multi-process server, started by the supervisor."""

import socket
import sys
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from qwed.api.server.worker_group import WorkerGroup
from qwed.cli.data_directory import exit_on_open_error
from qwed.cli.multiprocess.process import bind_socket, exit_with_parent
from qwed.cli.multiprocess.worker_args import WorkerArgs, WorkerReady
from qwed.cli.output import run_command
from qwed.cli.serve import _serve
from qwed.engines.global_concurrency import EngineShare
from qwed.settings import settings_from


class Membership(NamedTuple):
    """Engine share, worker group and ready callback of a worker."""

    engine_share: EngineShare
    worker_group: WorkerGroup
    ready: Callable[[str | None], None]
    """Called once the worker listens; at the very first start with the owner's key."""


def main(line: str) -> None:
    """Serve until stopped or until the supervisor is gone."""
    arguments = WorkerArgs.decode(line)
    exit_with_parent(arguments.supervisor)
    sys.exit(run_command(lambda: _run_worker(arguments)))


def _run_worker(arguments: WorkerArgs) -> int:
    settings = settings_from()
    ready_socket = socket.socket(fileno=arguments.ready_fd)

    def ready(owner_key: str | None) -> None:
        with ready_socket:
            ready_socket.sendall(msgspec.json.encode(WorkerReady(owner_key=owner_key)))

    engine_share = EngineShare(socket.socket(fileno=arguments.limiter_fd), arguments.engine_workers)
    membership = Membership(engine_share, WorkerGroup(arguments.number, arguments.cell_fds), ready)
    with exit_on_open_error(settings.data_dir):
        listening = bind_socket(arguments.host, arguments.port, shared=True)
    with listening:
        return _serve(settings, listening, membership=membership)
