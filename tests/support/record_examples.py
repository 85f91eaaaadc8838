"""Recorder of the answers in the API examples: `python -m tests.support.record_examples`.

To add an example, write its request into examples.json; its answer is then recorded from a real server. An answer that
is still correct is not changed.
"""

import hashlib
import re
import tempfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import msgspec

from qwed.api.openapi.examples import EXAMPLES, Example, OperationExamples
from qwed.api.routes import ROUTES, Route
from tests.support.document_examples import VOLATILE, ExampleChecker
from tests.support.server import Server

FILE = Path(__file__).resolve().parents[2] / "src" / "qwed" / "api" / "openapi" / "static" / "examples.json"
_DAY = datetime(2026, 1, 15, tzinfo=UTC).date()
_PREFIX = re.compile(r"(?:qwed_[a-z]+_|did:qwed:node:|[a-z][a-z0-9]*_(?=[0-9a-f]+$))?")
_STATEMENT = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJzaGEyNTY6Li4uIn0.c2lnbmF0dXJl"


class ExampleRecorder:
    """Replaces this server's ids by made-up ones, the same one at every occurrence."""

    def __init__(self, sampler: ExampleChecker) -> None:
        self._sampler = sampler
        self._counts: Counter[str] = Counter()
        answered = [each.answer for said in EXAMPLES.values() for each in said.examples]
        self._taken = {found[0] for found in VOLATILE.finditer(msgspec.json.encode(answered).decode())}
        self._today = datetime.now(UTC).date()

    def record_answer(self, route: Route, example: Example) -> Example:
        """Return the example with a correct answer."""
        response = self._sampler.send(route, example)
        # A printed id keeps its meaning, so that later examples that use it need no change.
        true = not self._sampler.wrong_claims(example, response)
        if true and response.status_code == example.status:
            return example
        said = response.json()
        shown = self._printed(_cut(said) if example.excerpt else said)
        self._sampler.differences(shown, said, excerpt=example.excerpt)
        return msgspec.structs.replace(example, status=response.status_code, answer=shown)

    def _printed(self, said: Any) -> Any:
        if isinstance(said, dict):
            return {name: self._printed(value) for name, value in said.items()}
        if isinstance(said, list):
            return [self._printed(value) for value in said]
        return VOLATILE.sub(self._placeholder, said) if isinstance(said, str) else said

    def _placeholder(self, found: re.Match[str]) -> str:
        if found.lastgroup == "moment":
            days = datetime.fromisoformat(found[0]).date() - self._today
            return f"{_DAY + days}{found[0][10:]}"
        if found.lastgroup == "measured":
            return found[0]
        if found.lastgroup == "statement":
            return _STATEMENT
        for printed, real in self._sampler.known.items():
            if real == found[0]:
                return printed
        printed = self._new(found)
        while printed in self._taken:
            printed = self._new(found)
        self._sampler.known[printed] = found[0]
        return printed

    def _new(self, found: re.Match[str]) -> str:
        prefix = _PREFIX.match(found[0])[0]  # type: ignore[index]  # it matches everything, if only with nothing
        self._counts[prefix] += 1
        if found.lastgroup == "secret":
            return f"{prefix}example_{self._counts[prefix]}"
        digest = hashlib.sha256(f"{prefix}{self._counts[prefix]}".encode()).hexdigest()
        return prefix + digest[: len(found[0]) - len(prefix)]


def _cut(said: dict[str, Any]) -> dict[str, Any]:
    return {name: value[:3] if isinstance(value, list) else value for name, value in said.items()}


def record() -> None:
    """Send every example to a new server and store the answers."""
    routes = {route.name: route for route in ROUTES}
    with tempfile.TemporaryDirectory() as place:
        server = Server(Path(place) / "data")
        with httpx.Client(base_url=server.base_url, timeout=30) as client:
            sampler = ExampleChecker(client, server.owner_key)
            sampler.wait_until_ready()
            recorder = ExampleRecorder(sampler)
            kept = {name: _record_operation(recorder, routes[name], said) for name, said in EXAMPLES.items()}
        server.stop()
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(kept), indent=2) + b"\n")


def _record_operation(recorder: ExampleRecorder, route: Route, said: OperationExamples) -> OperationExamples:
    return msgspec.structs.replace(
        said, examples=tuple(recorder.record_answer(route, example) for example in said.examples)
    )


if __name__ == "__main__":
    record()
