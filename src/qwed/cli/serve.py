"""`qwed serve`: check the environment, open the store, answer over HTTP until told to stop."""

import logging
import resource
import socket
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qwed.cli.opening import opening
from qwed.cli.options import DataDir
from qwed.cli.printing import print_json, say, sorry
from qwed.cli.serving.process import bound_to, on_stop

if TYPE_CHECKING:
    from qwed.cli.serving.worker import Membership
    from qwed.settings import Settings

_GRACE = 30
_SWITCH_SECONDS = 0.0005
_WAITING = 2_048
"""Connections that may wait to be taken up."""
_MOST_FILES = 65_536
_OWN_FILES = 128
"""Open files that are no connections: the database, the workers, what a webhook needs."""


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
    database: Annotated[
        str | None, typer.Option(metavar="URL", help="a database elsewhere: PostgreSQL (QWED_DATABASE_URL)")
    ] = None,
    redis: Annotated[str | None, typer.Option(metavar="URL", help="a Redis for rate limits and events")] = None,
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", help="server processes; more than one needs PostgreSQL (QWED_WORKERS, default 1)"),
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
        sorry(error)
    if settings.redis_url and find_spec("redis") is None:
        sorry("a Redis needs `redis`: pip install 'qwed[redis]'")
    _require_shareable(settings)
    if not settings.host:
        # To the system that is every address of the machine; to us it is a variable that was not set.
        sorry("no address is named: leave --host and QWED_HOST out for 127.0.0.1, or name one")
    several = settings.workers > 1
    try:
        listening = (_reserve if several else _listen)(settings.host, settings.port)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        sorry(f"cannot listen on {settings.host}:{settings.port}: {reason}; choose another --host or --port")
    with listening:
        return (_supervise if several else _serve)(settings, listening, as_json=as_json)


def _require_installed() -> None:
    try:
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as missing:
        sorry(f"a server needs `{missing.name}`: pip install 'qwed[server]'")


def _require_shareable(settings: "Settings") -> None:
    """What needs a store that several processes share is refused, never quietly done without."""
    if settings.workers > 1 and not settings.database_url:
        sorry("the embedded store belongs to one process: use PostgreSQL for more than one worker")


def _supervise(settings: "Settings", reserved: socket.socket, *, as_json: bool) -> int:
    from qwed.cli.serving.start import supervise

    greet = _tell_address if as_json else _welcome
    return supervise(settings, reserved, lambda owner_key: greet(settings, reserved, owner_key))


def _serve(
    settings: "Settings", listening: socket.socket, *, as_json: bool = False, membership: "Membership | None" = None
) -> int:
    # Imported here so that `qwed --help` answers at once.
    import uvicorn

    from qwed.api.app import App
    from qwed.api.logs import configure
    from qwed.api.server import Server
    from qwed.guards.startup_hooks import require_clean_environment
    from qwed.kernel.wiring import open_services
    from qwed.settings import unknown_variables
    from qwed.tracing.tracer import require_traceable
    from qwed.witness.places import require_places

    configure(settings.log_level, None if membership is None else membership.crew.number)
    log = logging.getLogger("qwed")
    for name in unknown_variables():
        log.warning("unknown setting is ignored", extra={"variable": name})
    # Spec 9.7: before the database is opened.
    require_clean_environment(settings.startup_hooks_allow)
    with opening(settings.data_dir):
        require_places(settings)
        require_traceable(settings)
        opened = open_services(settings, seat=None if membership is None else membership.seat)
    if not settings.redis_url:
        # Spec 9.6: a limiter that no other process shares is chosen openly.
        log.info("no Redis is configured: rate limits are counted in the memory of this process")
    app = App(opened.services, None if membership is None else membership.crew)
    config = uvicorn.Config(
        app,
        http=app.connections(_room_for_connections()),  # type: ignore[arg-type]  # it is called for a protocol, no more
        # No route speaks it, and it would be a way around the bounds of a connection.
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE,
    )
    server = Server(config, app.let_go)

    def stop(*_: object) -> None:
        # Also called when uvicorn has stopped and raises the signal again: being asked to stop is no failure.
        server.should_exit = True

    # From the greeting on, being asked to stop is answered with a graceful stop.
    on_stop(stop)
    # The writer needs the interpreter a few times per commit; it must not wait 5 ms for it each time.
    sys.setswitchinterval(_SWITCH_SECONDS)
    if membership is None:
        (_tell_address if as_json else _welcome)(settings, listening, opened.owner_key)
    else:
        listening.listen(_WAITING)
        membership.ready(opened.owner_key)
    server.run(sockets=[listening])
    return 0


def _room_for_connections() -> int:
    """How many this process may have, with as many open files as it is allowed."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return max(1, allowed - _OWN_FILES)


def _listen(host: str, port: int) -> socket.socket:
    listening = bound_to(host, port)
    listening.listen(_WAITING)
    return listening


def _reserve(host: str, port: int) -> socket.socket:
    """Keeps the address for those who will share it; OSError where anybody else has it."""
    # Sharing it would not collide with another server that shares it; this does, on any kernel once it listens.
    with _listen(host, port) as alone:
        port = alone.getsockname()[1]
    reserved = bound_to(host, port, shared=True)
    # What may be reused and does not listen is in nobody's way, and no worker listens yet. Not left out from the start:
    # connections that a server before us has closed would be in our way.
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    return reserved


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _tell_address(settings: "Settings", listening: socket.socket, _owner_key: str | None) -> None:
    directory = settings.directory
    print_json({"url": _address(listening), "data_dir": str(directory), "owner_key_file": str(directory / "owner.key")})
    sys.stdout.flush()


def _welcome(settings: "Settings", listening: socket.socket, owner_key: str | None) -> None:
    base = _address(listening)
    key_file = settings.directory / "owner.key"
    say(f"qwed listens on {base}  (data in {settings.data_dir}, API page at {base}/docs)")
    if owner_key is not None:
        say(f"first start: the owner's key is in {key_file}, readable by you alone")
        if sys.stdout.isatty():
            say(f"  {owner_key}")
    print("register an agent and ask for a decision:\n")
    print(f"  {_curl(base, key_file)}\n", flush=True)


def _curl(base: str, key_file: Path) -> str:
    """One line to paste: the inner call registers an agent, the outer one asks whether it may drop a table."""
    key = f'-H "X-API-Key: $(cat {key_file})"'
    register = f'curl -s {key} {base}/agents/register -d \'{{"name":"first","principal_id":"me"}}\''
    agent_id = f"""$({register} | sed 's/.*"agent_id":"\\([^"]*\\)".*/\\1/')"""
    action = '{"action":{"type":"execute_sql","query":"DROP TABLE users"},'
    context = '"context":{"conversation_id":"first","step_number":1}}'
    return f"curl -s {key} {base}/agents/{agent_id}/verify -d '{action}{context}'"
