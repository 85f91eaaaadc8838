"""One proxy from its start to its end: the kernel, the server behind it, the client before it."""

import logging
import signal
import sys
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path

import anyio
from anyio.abc import TaskGroup
from mcp import MCPError
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.server import NotificationOptions, Server
from mcp_types import ToolListChangedNotification

from qwed import __version__
from qwed.proxies.guard import unreadable
from qwed.proxies.kernel import Kernel
from qwed.proxies.place import directory
from qwed.proxies.releases import Releases
from qwed.proxies.waiting import Waiting
from qwed_mcp.command import PROGRAM, say, sorry
from qwed_mcp.definitions.book import Book
from qwed_mcp.definitions.held import Screened
from qwed_mcp.definitions.pages import BookError
from qwed_mcp.proxy.asking import Asker
from qwed_mcp.proxy.audience import Audience
from qwed_mcp.proxy.beyond import Beyond
from qwed_mcp.proxy.catalogue import Catalogue
from qwed_mcp.proxy.front import Front
from qwed_mcp.proxy.identity import PROTOCOL, RELEASE, kernel_for
from qwed_mcp.proxy.input import Asked, Inputs
from qwed_mcp.proxy.options import Options
from qwed_mcp.proxy.outcomes import Outcomes
from qwed_mcp.proxy.relay import Relay
from qwed_mcp.proxy.stdio import standard_streams
from qwed_mcp.proxy.upstream import Hears, Unanswered, Upstream, connected
from qwed_sdk.hook.call import Unusable

log = logging.getLogger(__name__)
DONE, GONE = 0, 1
"""How it ends: the client left, or the server behind it died."""
_FINISHING = 20.0
"""Seconds for what is left to be logged when the client is gone."""
_SWITCH_SECONDS = 0.0005
_AGAIN = 5.0


def run(options: Options) -> int:
    """Stand before the server until the client leaves; the exit code."""
    unreadable()
    # A decision is handed from thread to thread, and the usual turn is longer than it takes.
    sys.setswitchinterval(_SWITCH_SECONDS)
    for name in ("mcp", "httpx", "httpx2"):
        # Their lines would hold what a request said.
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        return anyio.run(_served, options, backend_options={"use_uvloop": find_spec("uvloop") is not None})
    except Unusable as error:
        sorry(error)
    except BaseExceptionGroup as group:
        found, rest = group.split(Unusable)
        if rest is not None or found is None:
            raise
        sorry(_first(found))


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _served(options: Options) -> int:
    place = directory(PROTOCOL, options.name)
    async with AsyncExitStack() as stack:
        kernel = await kernel_for(options, place, stack)
        audience, news = Audience(), News()
        asked = Asked(options.passes, audience)
        hears = Hears(news.hear, asked.sampling, asked.elicitation, asked.roots)
        upstream = await stack.enter_async_context(connected(options, hears))
        async with anyio.create_task_group() as watching:
            session = Session(options, place, kernel, upstream, audience, news, watching)
            died = await session.served()
            watching.cancel_scope.cancel()
    return GONE if died else DONE


class News:
    """What the server says unasked: that its tools changed."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    async def hear(self, message: object) -> None:
        """Take note; whoever waits lists the tools anew, for here nothing can be asked."""
        if isinstance(message, ToolListChangedNotification):
            self.came()

    def came(self) -> None:
        """Wake whoever waits."""
        self._event.set()

    async def wait(self) -> None:
        """Until there is something new."""
        await self._event.wait()
        self._event = anyio.Event()


class Session:
    """Everything that belongs to one client."""

    def __init__(
        self,
        options: Options,
        place: Path,
        kernel: Kernel,
        upstream: Upstream,
        audience: Audience,
        news: News,
        watching: TaskGroup,
    ) -> None:
        waiting = Waiting(PROTOCOL, kernel.place, kernel.agent_id)
        book = _book(place, options.name)
        self._options = options
        self._upstream = upstream
        self._audience = audience
        self._news = news
        self._watching = watching
        self._shown: frozenset[str] | None = None
        self.outcomes = Outcomes(kernel)
        self.asker = Asker(kernel, waiting, options.wait, options.max_calls)
        self.catalogue = Catalogue(upstream, book, options.relist, self._changed)
        self.releases = Releases(kernel, waiting, watching, self.catalogue.release, RELEASE)

    async def served(self) -> bool:
        """Serve the client until it leaves, and log what is left; whether the server had died by then."""
        self._watching.start_soon(self._keep_listed)
        self._watching.start_soon(self._listen)
        self._watching.start_soon(self.outcomes.keep_logged)
        await self._serve(self._relay())
        died = self._upstream.died
        with anyio.move_on_after(_FINISHING):
            await self.outcomes.finish()
        return died

    def _relay(self) -> Relay:
        return Relay(
            self._options.name,
            self._upstream,
            self.catalogue,
            self.releases,
            self.asker,
            self._audience,
            Inputs(self._upstream, self._options.passes),
            self.outcomes,
        )

    def _server(self, relay: Relay) -> Server:
        options = self._options
        beyond = Beyond(options.name, self._upstream, options.passes, self.asker, self.outcomes)
        server = Server(
            options.name,
            version=__version__,
            on_list_tools=relay.list_tools,
            on_call_tool=relay.call_tool,
            on_subscriptions_listen=self._audience.listen,
            **beyond.handlers(),
        )
        # Spans that nobody collects, on the way of every call.
        server.middleware.clear()
        return server

    async def _serve(self, relay: Relay) -> None:
        server = self._server(relay)
        told = server.create_initialization_options(NotificationOptions(tools_changed=True))
        async with anyio.create_task_group() as group, AsyncExitStack() as stack:
            group.start_soon(_until_told, group.cancel_scope)
            streams = await standard_streams()
            if not self._options.passes.questions:
                # Whoever may be asked back has to be known from the very call.
                front = Front(streams, server, relay.decided)
                self._audience.learn = front.learn
                stack.push_async_callback(front.finish)
            await server.run(streams.read, streams.write, told)
            group.cancel_scope.cancel()

    async def _changed(self, screened: Screened) -> None:
        """See to what is held, and tell the client where it is shown something else now."""
        self.releases.see(screened.held)
        shown = frozenset(tool.model_dump_json() for tool in screened.passed)
        before, self._shown = self._shown, shown
        if before is not None and before != shown:
            await self._audience.tools_changed()

    async def _keep_listed(self) -> None:
        """List anew whenever the server says that its tools changed."""
        while True:
            await self._news.wait()
            self.catalogue.stale()
            try:
                await self.catalogue.refresh()
            except Unanswered as error:
                say(f"{PROGRAM}: the tools could not be listed anew: {error}")

    async def _listen(self) -> None:
        """Hear of changes from a server that tells only those who subscribe."""
        tools = self._upstream.capabilities.tools
        while tools is not None and tools.list_changed and not self._upstream.died:
            try:
                async with self._upstream.client.listen(tools_list_changed=True) as changes:
                    # Whatever changed while nobody listened is found out now.
                    self._news.came()
                    async for _ in changes:
                        self._news.came()
            except ListenNotSupportedError:
                return
            except (MCPError, SubscriptionLost, TimeoutError) as error:
                log.debug("nobody tells of changes: %s", error)
            await anyio.sleep(_AGAIN)


def _book(place: Path, name: str) -> Book:
    # Beside those of the other servers: a name that looks like one of theirs is held.
    try:
        return Book.open(place.parent / "pins", name)
    except BookError as error:
        raise Unusable(f"what the tools of `{name}` were cannot be read: {error}") from None


async def _until_told(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()
            return
