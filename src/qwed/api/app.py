"""The ASGI application: the route table behind Starlette, with the hot routes taken first."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response as StarletteResponse
from starlette.routing import Route as StarletteRoute

from qwed.api import agents
from qwed.api.http import Call, Endpoint, Receive, Response, Scope, Send, ok, refused
from qwed.api.openapi import document
from qwed.api.routes import ROUTES
from qwed.kernel.answer import problem
from qwed.kernel.services import Services
from qwed.kernel.wiring import close_services
from qwed.waiting import LoopDriver
from qwed.words import ErrorCode

_MARGIN = 5.0


class App:
    """One application on one set of services. Closing it writes what is queued and ends the workers."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._driver: LoopDriver | None = None
        self._verify = self._endpoint(agents.verify, decides=True)
        self._document = document()
        self._starlette = Starlette(
            routes=[
                *[
                    StarletteRoute(row.path, self._endpoint(row.handler, decides=row.decides), methods=[row.method])
                    for row in ROUTES
                ],
                StarletteRoute("/openapi.json", self._endpoint(self._openapi), methods=["GET"]),
            ],
            exception_handlers={HTTPException: _not_found},
            lifespan=self._lifespan,
        )
        self._starlette.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST":
            # The one route that is asked all day: two comparisons instead of a router.
            parts = scope["path"].split("/")
            if len(parts) == 4 and parts[1] == "agents" and parts[3] == "verify" and parts[2]:
                scope["path_params"] = {"agent_id": parts[2]}
                await self._verify(scope, receive, send)
                return
        await self._starlette(scope, receive, send)  # type: ignore[arg-type]  # the same ASGI, more narrowly typed

    def _endpoint(self, handler: Any, *, decides: bool = False) -> Endpoint:
        return Endpoint(handler, lambda: self.services, self._loop_driver, decides=decides)

    def _loop_driver(self) -> LoopDriver:
        if self._driver is None:
            patience = max(self.services.settings.engine_seconds, self.services.settings.step_lease_seconds) + _MARGIN
            self._driver = LoopDriver(asyncio.get_running_loop(), patience)
        return self._driver

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        self.services.engines.start()
        yield
        await asyncio.to_thread(close_services, self.services)

    async def _openapi(self, _call: Call) -> Response:
        return ok(self._document)


async def _not_found(_request: Request, error: Exception) -> StarletteResponse:
    status = error.status_code if isinstance(error, HTTPException) else 500
    code = ErrorCode.METHOD_NOT_ALLOWED if status == 405 else ErrorCode.NOT_FOUND
    response = refused(problem(code, "" if status == 405 else "no such route: GET /openapi.json lists them"))
    headers = error.headers if isinstance(error, HTTPException) else None
    return StarletteResponse(response.body, response.status, headers, media_type="application/json")
