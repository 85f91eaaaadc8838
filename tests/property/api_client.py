"""HTTP application without a socket: one call at a time, so that a step of a campaign takes microseconds."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from qwed.api.app import App
from qwed.gate import Gate
from qwed.kernel.bootstrap import OpenedServices


class ApiAnswer(NamedTuple):
    """One answer."""

    status: int
    body: dict[str, Any]

    @property
    def code(self) -> str | None:
        """Error code of a refusal, or None; an action that is shown with an error is no refusal."""
        error = None if "first_decision" in self.body else self.body.get("error")
        return error["code"] if isinstance(error, dict) else None


class ApiHarness:
    """Application for requests and a Gate for reads, on the same services."""

    def __init__(self, opened: OpenedServices) -> None:
        self.look = Gate(opened)
        self._app = App(opened.services)
        self._loop = asyncio.new_event_loop()

    def ask(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None, query: str = ""
    ) -> ApiAnswer:
        """Return the answer to one request."""
        data = b"" if body is None else json.dumps(body).encode()
        sent: list[dict[str, Any]] = []

        messages = iter([{"type": "http.request", "body": data, "more_body": False}])

        async def receive() -> dict[str, Any]:
            return next(messages, {"type": "http.disconnect"})

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()],
        }
        self._loop.run_until_complete(self._app(scope, receive, send))
        return ApiAnswer(sent[0]["status"], json.loads(sent[1]["body"]))

    def close(self) -> None:
        """Write what is queued and release everything."""
        self.look.close()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()
