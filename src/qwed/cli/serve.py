"""`qwed serve`: check the environment, open the store and serve HTTP until stopped."""

import gc
import logging
import resource
import socket
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qwed.cli.data_directory import exit_on_open_error
from qwed.cli.multiprocess.process import bind_socket, install_stop_handler
from qwed.cli.options import DataDir
from qwed.cli.output import echo, fail, print_json

if TYPE_CHECKING:
    from qwed.cli.multiprocess.worker import Membership
    from qwed.settings import Settings

_GRACE = 30
_SWITCH_SECONDS = 0.0005
_GARBAGE_THRESHOLD = 10_000
"""Objects that were created and not deleted since the last collection; by default 700."""
_LISTEN_BACKLOG = 2_048
"""Connections that may wait to be accepted."""
_MAX_FILES = 65_536
_OWN_FILES = 128
"""Open files that are not connections: the database, workers, webhook deliveries."""


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("serve", help="Start the server.")(_run)


def _run(
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="address to listen on (QWED_HOST, default 127.0.0.1)")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(metavar="PORT", help="port to listen on, 0 for any free one (QWED_PORT, default 8000)"),
    ] = None,
    data_dir: DataDir = None,
    database: Annotated[str | None, typer.Option(metavar="URL", help="PostgreSQL database (QWED_DATABASE_URL)")] = None,
    redis: Annotated[
        str | None, typer.Option(metavar="URL", help="Redis server for rate limits and events (QWED_REDIS_URL)")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="number of server processes; more than one needs PostgreSQL (QWED_WORKERS, default 1)"
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="print the address as one JSON value once it listens")
    ] = False,
) -> int:
    from qwed.settings import SettingsError, settings_from

    _require_installed()
    try:
        settings = settings_from(
            host=host, port=port, data_dir=data_dir, workers=workers, database_url=database, redis_url=redis
        )
    except SettingsError as error:
        fail(error)
    if settings.redis_url and find_spec("redis") is None:
        fail("--redis needs the `redis` package: pip install 'qwed[redis]'")
    _require_shareable(settings)
    if not settings.host:
        # The system would listen on every address; an empty value is more likely an unset variable.
        fail("the host is empty: leave out --host and QWED_HOST for 127.0.0.1, or give an address")
    several = settings.workers > 1
    try:
        listening = (reserve_address if several else listen)(settings.host, settings.port)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        fail(f"cannot listen on {settings.host}:{settings.port}: {reason}; choose another --host or --port")
    with listening:
        return (_supervise if several else _serve)(settings, listening, as_json=as_json)


def _require_installed() -> None:
    try:
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as missing:
        fail(f"the server needs `{missing.name}`: pip install 'qwed[server]'")


def _require_shareable(settings: "Settings") -> None:
    """Exit if several workers are configured without a shared database."""
    if settings.workers > 1 and not settings.database_url:
        fail("the embedded store supports one process: use PostgreSQL for more than one worker")


def _supervise(settings: "Settings", reserved: socket.socket, *, as_json: bool) -> int:
    from qwed.cli.multiprocess.plan import supervise

    on_ready = _print_address if as_json else _print_welcome
    return supervise(settings, reserved, lambda owner_key: on_ready(settings, reserved, owner_key))


def _serve(
    settings: "Settings", listening: socket.socket, *, as_json: bool = False, membership: "Membership | None" = None
) -> int:
    # Imported here to keep `qwed --help` fast.
    import uvicorn

    from qwed.api.app import App
    from qwed.api.server.http_protocol import Server
    from qwed.api.server.log_format import configure
    from qwed.guards.startup_hooks import require_clean_environment
    from qwed.kernel.bootstrap import open_services
    from qwed.settings import unknown_variables
    from qwed.tracing import require_tracing_package
    from qwed.witness.publishers import require_publishers

    configure(settings.log_level, None if membership is None else membership.worker_group.number)
    log = logging.getLogger("qwed")
    for name in unknown_variables():
        log.warning("unknown setting is ignored", extra={"variable": name})
    # Spec 9.7: before the database is opened.
    require_clean_environment(settings.startup_hooks_allow)
    with exit_on_open_error(settings.data_dir):
        require_publishers(settings)
        require_tracing_package(settings)
        opened = open_services(settings, seat=None if membership is None else membership.engine_share)
    if not settings.redis_url:
        # Spec 9.6: a limiter that is not shared with other processes is announced.
        log.info("no Redis is configured: rate limits are counted in the memory of this process")
    app = App(opened.services, None if membership is None else membership.worker_group)
    config = uvicorn.Config(
        app,
        http=app.connections(_connection_limit()),  # type: ignore[arg-type]  # uvicorn only calls it to create a protocol
        # No route uses WebSockets, and they would bypass the limits of a connection.
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE,
    )
    server = Server(config, app.release_waiters)

    def stop(*_: object) -> None:
        # Also called when uvicorn has stopped and raises the signal again: a requested stop is not a failure.
        server.should_exit = True

    # Installed before the address is printed: from then on a stop signal must cause a graceful stop.
    install_stop_handler(stop)
    # The writer takes the GIL a few times per commit; the default of 5 ms per switch would delay it.
    sys.setswitchinterval(_SWITCH_SECONDS)
    _tune_garbage_collection()
    if membership is None:
        (_print_address if as_json else _print_welcome)(settings, listening, opened.owner_key)
    else:
        listening.listen(_LISTEN_BACKLOG)
        membership.ready(opened.owner_key)
    server.run(sockets=[listening])
    return 0


def _tune_garbage_collection() -> None:
    """Exclude what is loaded so far from garbage collection, and collect less often."""
    gc.collect()
    gc.freeze()
    # Requests in flight have a few thousand objects, which a collection would go through without finding garbage.
    gc.set_threshold(_GARBAGE_THRESHOLD)


def _connection_limit() -> int:
    """Raise the limit of open files and return how many connections this process may have."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = _MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return max(1, allowed - _OWN_FILES)


def listen(host: str, port: int) -> socket.socket:
    listening = bind_socket(host, port)
    listening.listen(_LISTEN_BACKLOG)
    return listening


def reserve_address(host: str, port: int) -> socket.socket:
    """Return a socket that reserves the address for the workers; raise OSError if another process has it."""
    # SO_REUSEPORT would not collide with another server that uses it; listening without it does.
    with listen(host, port) as probe:
        port = probe.getsockname()[1]
    reserved = bind_socket(host, port, shared=True)
    # Cleared so that no other process can take the address before the workers listen. It must be set while binding:
    # closed connections of an earlier server would block the address otherwise.
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    return reserved


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _print_address(settings: "Settings", listening: socket.socket, _owner_key: str | None) -> None:
    directory = settings.directory
    print_json({"url": _address(listening), "data_dir": str(directory), "owner_key_file": str(directory / "owner.key")})
    sys.stdout.flush()


def _print_welcome(settings: "Settings", listening: socket.socket, owner_key: str | None) -> None:
    base = _address(listening)
    key_file = settings.directory / "owner.key"
    echo(f"qwed listens on {base}  (data in {settings.data_dir}, API reference at {base}/docs)")
    if owner_key is not None:
        echo(f"first start: the owner's API key is in {key_file}, readable only by you")
        if sys.stdout.isatty():
            echo(f"  {owner_key}")
    print("register an agent and verify an action:\n")
    print(f"  {_curl(base, key_file)}\n", flush=True)


def _curl(base: str, key_file: Path) -> str:
    """Return a command to paste: the inner call registers an agent, the outer one verifies a DROP TABLE."""
    key = f'-H "X-API-Key: $(cat {key_file})"'
    register = f'curl -s {key} {base}/agents/register -d \'{{"name":"first","principal_id":"me"}}\''
    agent_id = f"""$({register} | sed 's/.*"agent_id":"\\([^"]*\\)".*/\\1/')"""
    action = '{"action":{"type":"execute_sql","query":"DROP TABLE users"},'
    context = '"context":{"conversation_id":"first","step_number":1}}'
    return f"curl -s {key} {base}/agents/{agent_id}/verify -d '{action}{context}'"
