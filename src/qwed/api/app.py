"""ASGI application: the route table behind Starlette, with the fast-path route matched first."""

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
from qwed.api.handlers.event_stream import Listeners
from qwed.api.routes import ROUTES, Route, handler_of
from qwed.api.server.admission import AdmissionController
from qwed.api.server.body import Receive, Scope
from qwed.api.server.cluster_events import create_cluster_notifier
from qwed.api.server.endpoint import (
    BODY_KEY,
    INTERNAL_ERROR_STATUS,
    AppContext,
    Endpoint,
    Reply,
    decision_response,
    error_response,
)
from qwed.api.server.fast_path import FastPathConnections
from qwed.api.server.http_protocol import Connections
from qwed.api.server.metrics import Metrics
from qwed.api.server.rate_limit import create_rate_limiter
from qwed.api.server.streaming import Send
from qwed.api.server.traced_endpoint import TracedEndpoint, with_tracing
from qwed.api.server.worker_group import WorkerGroup
from qwed.futures import LoopRunner
from qwed.kernel.answer import denied, problem
from qwed.kernel.bootstrap import close_services
from qwed.kernel.privacy.erasure import RetentionJob
from qwed.kernel.services import Services
from qwed.kernel.verification.batch_runner import BatchRunner
from qwed.model import ErrorCode
from qwed.tracing import create_tracer
from qwed.webhooks.dispatcher import OutboxDispatcher
from qwed.webhooks.sender import Sender
from qwed.witness.witness import create_witness

_TIMEOUT_MARGIN = 5.0
EXEMPT_ROUTES = frozenset({"/health", "/ready", "/metrics"})
"""Routes exempt from load shedding; none of them has a body."""
FAST_PATH_ROUTE = ("POST", "/agents/{agent_id}/verify")


class App:
    """Application on one set of services. Closing it writes queued data and stops the workers."""

    def __init__(self, services: Services, worker_group: WorkerGroup | None = None) -> None:
        tracer = create_tracer(services.settings, qwed.__version__, services.log)
        self.services = services = services if tracer is None else with_tracing(services)
        self._has_driver = False
        self.context = _create_context(services)
        self.context.tracer = tracer
        self.context.worker_group = worker_group
        self.dispatcher: OutboxDispatcher | None = None
        self.context.batches = BatchRunner(services)
        self.context.listeners = Listeners(services.store)
        self.context.cluster = create_cluster_notifier(services, self.context.listeners, lambda: self.dispatcher)
        services.store.on_commit = self.context.cluster.committed
        self.context.witness = create_witness(services)
        self.context.metrics = Metrics(self.context, lambda: self.dispatcher)
        plain = {(row.method, row.path): self._endpoint(row) for row in ROUTES}
        self._answer_inline = plain[FAST_PATH_ROUTE].answer_inline
        endpoints = {route: _with_error_handler(endpoint) for route, endpoint in plain.items()}
        self._verify = endpoints[FAST_PATH_ROUTE]
        self._starlette = Starlette(
            routes=[StarletteRoute(path, endpoint, methods=[method]) for (method, path), endpoint in endpoints.items()],
            exception_handlers={HTTPException: self._not_found},
            lifespan=self._lifespan,
        )
        self._starlette.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST":
            # The busiest route: two comparisons instead of a router.
            parts = scope["path"].split("/")
            if len(parts) == 4 and parts[1] == "agents" and parts[3] == "verify" and parts[2]:
                scope["path_params"] = {"agent_id": parts[2]}
                await self._verify(scope, receive, send)  # type: ignore[arg-type]  # the same ASGI, more narrowly typed
                return
        await self._starlette(scope, receive, send)  # type: ignore[arg-type]  # as above

    def decide(
        self, agent_id: str, headers: list[tuple[bytes, bytes]], body: bytes, since: float, reply: Reply
    ) -> None:
        """Answer a complete request of the fast-path route without a task and without ASGI; `reply` receives the
        response."""
        scope: Scope = {"path_params": {"agent_id": agent_id}, "headers": headers, BODY_KEY: body}
        self._running().driver.start_inline(self._answer_inline(scope, since, reply))

    def connections(self, most: int) -> Connections:
        """Return the protocol factory; tracing and a remote rate limiter need a task and exclude the fast path."""
        if self.context.tracer is None and self.context.rate_limiter.kind in ("off", "memory"):
            return FastPathConnections(most, self.decide)
        return Connections(most)

    def _endpoint(self, row: Route) -> Endpoint:
        meter, exempt = self.context.metrics.meter(row.method, row.path), row.path in EXEMPT_ROUTES
        tracer = self.context.tracer
        # Health checks are not traced.
        create = Endpoint if tracer is None or exempt else partial(TracedEndpoint, tracer)
        return create(
            handler_of(row),
            self._running,
            meter,
            is_decision=row.is_decision,
            exempt=exempt,
            query=row.query,
            uploads=row.uploads,
            large_message=row.large_message,
        )

    def _running(self) -> AppContext:
        if not self._has_driver:
            settings = self.services.settings
            timeout = max(settings.engine_seconds, settings.step_lease_seconds) + _TIMEOUT_MARGIN
            self.context.driver = LoopRunner(asyncio.get_running_loop(), timeout)
            self.services.store.schedule_with(self.context.driver.call_at_end_of_tick)
            self._has_driver = True
        return self.context

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        self.services.engines.warm()
        self.context.rate_limiter.start()
        self.context.cluster.start()
        self.dispatcher = self._create_dispatcher()
        self.dispatcher.start()
        self.context.batches.start()
        retention = RetentionJob(self.services)
        retention.start()
        self.context.witness.start()
        merged = self.context.metrics.merged
        publishing = None if merged is None else asyncio.create_task(merged.publish_forever())
        yield
        if merged is not None and publishing is not None:
            publishing.cancel()
            merged.publish()
        self.release_waiters()
        self.context.streams.close()
        self.context.read_pool.close()
        self.context.large_body_pool.close()
        self.context.medium_body_pool.close()
        await self.context.cluster.close()
        await self.context.rate_limiter.close()
        await asyncio.to_thread(self.context.batches.close)
        await asyncio.to_thread(retention.close)
        await asyncio.to_thread(self.dispatcher.close)
        await asyncio.to_thread(self.context.witness.close)
        await asyncio.to_thread(close_services, self.services)
        if self.context.tracer is not None:
            await asyncio.to_thread(self.context.tracer.close)

    def release_waiters(self) -> None:
        """End long polls and event streams before the server stops. On the event loop."""
        self.context.listeners.close()
        self.services.waiters.close()

    def _create_dispatcher(self) -> OutboxDispatcher:
        services = self.services
        sender = Sender(allow_private=services.settings.webhook_allow_private)
        dispatcher = OutboxDispatcher(services.store, sender, services.clock, is_leader=services.store.is_leader)
        services.store.on_notice = self.context.cluster.on_delivery
        return dispatcher

    async def _not_found(self, request: Request, error: Exception) -> StarletteResponse:
        status = error.status_code if isinstance(error, HTTPException) else 500
        self.context.metrics.count_unrouted(request.method, status)
        code = ErrorCode.METHOD_NOT_ALLOWED if status == 405 else ErrorCode.NOT_FOUND
        headers = error.headers if isinstance(error, HTTPException) else None
        allowed = (headers or {}).get("Allow", "another method")
        message = f"use {allowed} here" if status == 405 else "no such route"
        response = error_response(problem(code, message))
        return StarletteResponse(response.body, response.status, headers, media_type="application/json")


def _with_error_handler(endpoint: Endpoint) -> ServerErrorMiddleware:
    """Wrap an endpoint to answer unexpected exceptions, and raise them again for the server's log."""
    handler = _answer_denied if endpoint.is_decision else _answer_error
    return ServerErrorMiddleware(endpoint, handler)  # type: ignore[arg-type]  # the same ASGI, more narrowly typed


def _create_context(services: Services) -> AppContext:
    settings, monotonic = services.settings, services.clock.monotonic
    pressure = AdmissionController(settings.max_in_flight, settings.max_in_flight_mb << 20, monotonic)
    return AppContext(services, pressure, create_rate_limiter(services))


async def _answer_denied(_request: Request, _error: Exception) -> StarletteResponse:
    """Deny the decision without details."""
    return StarletteResponse(
        decision_response(denied(ErrorCode.SERVER_ERROR)).body, INTERNAL_ERROR_STATUS, media_type="application/json"
    )


async def _answer_error(_request: Request, _error: Exception) -> StarletteResponse:
    return StarletteResponse(
        error_response(problem(ErrorCode.SERVER_ERROR)).body, INTERNAL_ERROR_STATUS, media_type="application/json"
    )
