"""The ASGI application: the route table behind Starlette, with the hot route taken first."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.requests import Request
from starlette.responses import Response as StarletteResponse
from starlette.routing import Route as StarletteRoute

import qwed
from qwed.api.body import Receive, Scope
from qwed.api.connection import Connections
from qwed.api.crew import Crew
from qwed.api.events import Listeners
from qwed.api.http import BODY, SURPRISE, Endpoint, Node, Reply, decided, refused
from qwed.api.metrics import Metrics
from qwed.api.neighbours import neighbours_for
from qwed.api.pressure import Pressure
from qwed.api.routes import ROUTES, Route
from qwed.api.straight import StraightConnections
from qwed.api.streaming import Send
from qwed.api.traced import TracedEndpoint, traced
from qwed.api.windows import windows_for
from qwed.kernel.answer import denied, problem
from qwed.kernel.inquiries.batches import Batches
from qwed.kernel.keeping.erasure import Sweeper
from qwed.kernel.services import Services
from qwed.kernel.wiring import close_services
from qwed.tracing.tracer import tracer_for
from qwed.waiting import LoopDriver
from qwed.webhooks.outbox import Postman
from qwed.webhooks.sender import Sender
from qwed.witness.witness import witness_for
from qwed.words import ErrorCode

_MARGIN = 5.0
ALWAYS_ANSWERED = frozenset({"/health", "/ready", "/metrics"})
"""However much is in flight; none of them has a body."""
HOT = ("POST", "/agents/{agent_id}/verify")


class App:
    """One application on one set of services. Closing it writes what is queued and ends the workers."""

    def __init__(self, services: Services, crew: Crew | None = None) -> None:
        tracer = tracer_for(services.settings, qwed.__version__, services.log)
        self.services = services = services if tracer is None else traced(services)
        self._driven = False
        self._node = _node_of(services)
        self._node.tracer = tracer
        self._node.crew = crew
        self.postman: Postman | None = None
        self._node.batches = Batches(services)
        self._node.listeners = Listeners(services.store)
        self._node.neighbours = neighbours_for(services, self._node.listeners, lambda: self.postman)
        services.store.on_commit = self._node.neighbours.committed
        self._node.witness = witness_for(services)
        self._node.metrics = Metrics(self._node, lambda: self.postman)
        made = {(row.method, row.path): self._endpoint(row) for row in ROUTES}
        self._straight = made[HOT].straight
        endpoints = {place: _guarded(endpoint) for place, endpoint in made.items()}
        self._verify = endpoints[HOT]
        self._starlette = Starlette(
            routes=[StarletteRoute(path, endpoint, methods=[method]) for (method, path), endpoint in endpoints.items()],
            exception_handlers={HTTPException: self._not_found},
            lifespan=self._lifespan,
        )
        self._starlette.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST":
            # The one route that is asked all day: two comparisons instead of a router.
            parts = scope["path"].split("/")
            if len(parts) == 4 and parts[1] == "agents" and parts[3] == "verify" and parts[2]:
                scope["path_params"] = {"agent_id": parts[2]}
                await self._verify(scope, receive, send)  # type: ignore[arg-type]  # the same ASGI, more narrowly typed
                return
        await self._starlette(scope, receive, send)  # type: ignore[arg-type]  # as above

    def decide(
        self, agent_id: str, headers: list[tuple[bytes, bytes]], body: bytes, since: float, reply: Reply
    ) -> None:
        """The hot route for a request that came whole: no task, no ASGI; `reply` is called with its answer."""
        scope: Scope = {"path_params": {"agent_id": agent_id}, "headers": headers, BODY: body}
        self._running().driver.begin(self._straight(scope, since, reply))

    def connections(self, most: int) -> Connections:
        """Those of a server. Decisions go straight where they need no task; a trace and a limiter elsewhere do."""
        if self._node.tracer is None and self._node.windows.kind in ("off", "memory"):
            return StraightConnections(most, self.decide)
        return Connections(most)

    def _endpoint(self, row: Route) -> Endpoint:
        meter, always = self._node.metrics.meter(row.method, row.path), row.path in ALWAYS_ANSWERED
        tracer = self._node.tracer
        # Whoever looks whether we live is not worth a trace.
        made = Endpoint if tracer is None or always else partial(TracedEndpoint, tracer)
        return made(
            row.handler,
            self._running,
            meter,
            decides=row.decides,
            always=always,
            query=row.query,
            uploads=row.uploads,
            carries=row.carries,
        )

    def _running(self) -> Node:
        if not self._driven:
            settings = self.services.settings
            patience = max(settings.engine_seconds, settings.step_lease_seconds) + _MARGIN
            self._node.driver = LoopDriver(asyncio.get_running_loop(), patience)
            self.services.store.soon = self._node.driver.soon
            self._driven = True
        return self._node

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        self.services.engines.warm()
        self._node.windows.start()
        self._node.neighbours.start()
        self.postman = self._new_postman()
        self.postman.start()
        self._node.batches.start()
        sweeper = Sweeper(self.services)
        sweeper.start()
        self._node.witness.start()
        if self._node.tracer is not None:
            self._node.tracer.start()
        together = self._node.metrics.together
        showing = None if together is None else asyncio.create_task(together.keep_showing())
        yield
        if together is not None and showing is not None:
            showing.cancel()
            together.show()
        self.let_go()
        self._node.streams.close()
        self._node.looking.close()
        self._node.walking.close()
        self._node.strolling.close()
        await self._node.neighbours.close()
        await self._node.windows.close()
        await asyncio.to_thread(self._node.batches.close)
        await asyncio.to_thread(sweeper.close)
        await asyncio.to_thread(self.postman.close)
        await asyncio.to_thread(self._node.witness.close)
        await asyncio.to_thread(close_services, self.services)
        if self._node.tracer is not None:
            await asyncio.to_thread(self._node.tracer.close)

    def let_go(self) -> None:
        """Tell whoever waits, and whoever follows the log, that the server stops. On the event loop."""
        self._node.listeners.close()
        self.services.doorbells.ring_all()

    def _new_postman(self) -> Postman:
        services = self.services
        sender = Sender(allow_private=services.settings.webhook_allow_private)
        postman = Postman(services.store, sender, services.clock, leads=services.store.leads)
        services.store.on_notice = self._node.neighbours.noticed
        return postman

    async def _not_found(self, request: Request, error: Exception) -> StarletteResponse:
        status = error.status_code if isinstance(error, HTTPException) else 500
        self._node.metrics.count_unrouted(request.method, status)
        code = ErrorCode.METHOD_NOT_ALLOWED if status == 405 else ErrorCode.NOT_FOUND
        headers = error.headers if isinstance(error, HTTPException) else None
        allowed = (headers or {}).get("Allow", "another method")
        message = f"use {allowed} here" if status == 405 else "no such route"
        response = refused(problem(code, message))
        return StarletteResponse(response.body, response.status, headers, media_type="application/json")


def _guarded(endpoint: Endpoint) -> ServerErrorMiddleware:
    """It answers what nobody expected, and raises it again for the server's log."""
    handler = _surprised if endpoint.decides else _failed
    return ServerErrorMiddleware(endpoint, handler)  # type: ignore[arg-type]  # the same ASGI, more narrowly typed


def _node_of(services: Services) -> Node:
    settings, monotonic = services.settings, services.clock.monotonic
    pressure = Pressure(settings.max_in_flight, settings.max_in_flight_mb << 20, monotonic)
    return Node(services, pressure, windows_for(services))


async def _surprised(_request: Request, _error: Exception) -> StarletteResponse:
    """A decision nobody could make is a refusal, and says no more than that."""
    return StarletteResponse(decided(denied(ErrorCode.SURPRISE)).body, SURPRISE, media_type="application/json")


async def _failed(_request: Request, _error: Exception) -> StarletteResponse:
    return StarletteResponse(refused(problem(ErrorCode.SURPRISE)).body, SURPRISE, media_type="application/json")
