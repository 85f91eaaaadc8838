"""Check of the examples in the API document: sends each one with the ids of this server instead of the printed ones."""

import re
from typing import Any

import httpx
import msgspec

from qwed.api.openapi.examples import Example
from qwed.api.routes import Route
from tests.support.polling import until
from tests.support.route_caller import answer_to

OWNER_KEY = "qwed_live_4f9d27c1a0b35e86_the-key-that-the-first-start-wrote-down"
"""Owner key as the examples print it."""

VOLATILE = re.compile(
    r"(?P<secret>qwed_(?:live|agent|hook)_[\w-]+)"
    r"|(?P<statement>eyJ[\w-]+\.[\w-]+\.[\w-]+)"
    r"|(?P<node>did:qwed:node:[\w-]+)"
    r"|(?P<id>\b[a-z][a-z0-9]*_[0-9a-f]{12,}\b)"
    r"|(?P<moment>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)"
    r'|(?P<measured>(?<="time_ms":)\d+|(?<="latency_us":)\d+)'
    r"|(?P<hash>\b[0-9a-f]{64}\b)"
    r"|(?P<point>(?<![\w-])[\w-]{43}(?![\w-]))"
)
"""Values that differ between two servers although both answers mean the same."""

_MEASURED = frozenset({"latency_ms", "average_latency_ms"})


class ExampleChecker:
    """Sends examples in order; learns the real id of a printed one from the first answer that contains it."""

    def __init__(self, client: httpx.Client, owner_key: str) -> None:
        self._client = client
        self.known = {OWNER_KEY: owner_key}

    def wait_until_ready(self) -> None:
        """Poll until every part of the server is ready."""
        until(lambda: self._client.get("/ready").status_code == 200)

    def send(self, route: Route, example: Example) -> httpx.Response:
        """Return this server's answer to the request of the example."""
        path = route.path
        for name, value in self._real(example.path).items():
            path = path.replace(f"{{{name}}}", value)
        headers = self._real(example.headers) | self._credential(route, example)
        content = {} if example.body is msgspec.UNSET else {"json": self._real(example.body)}
        query = self._real(example.query)
        return answer_to(self._client, route.method, path, params=query, headers=headers, **content)

    def _credential(self, route: Route, example: Example) -> dict[str, str]:
        if example.token is not None:
            return {"Authorization": f"Bearer {self.known[example.token]}"}
        return {} if route.open else {"X-API-Key": self.known[example.key or OWNER_KEY]}

    def _real(self, printed: Any) -> Any:
        """Return the printed value with this server's ids in it."""
        if isinstance(printed, dict):
            return {name: self._real(value) for name, value in printed.items()}
        if isinstance(printed, list):
            return [self._real(value) for value in printed]
        if isinstance(printed, str):
            return VOLATILE.sub(lambda found: self.known.get(found[0], found[0]), printed)
        return printed

    def wrong_claims(self, example: Example, response: httpx.Response) -> list[str]:
        """Return what the example states about its answer and the server contradicts."""
        if "json" not in response.headers.get("content-type", ""):
            return [] if example.answer is None else ["the answer is no JSON"]
        return self.differences(example.answer, response.json(), excerpt=example.excerpt)

    def differences(self, printed: Any, actual: Any, at: str = "answer", *, excerpt: bool = False) -> list[str]:
        """Return where the printed answer differs from the real one; learn the ids at equal positions."""
        if isinstance(printed, dict) and isinstance(actual, dict):
            alone = printed.keys() - actual.keys() if excerpt else printed.keys() ^ actual.keys()
            differences = [f"{at}.{name} is in one of the two only" for name in sorted(alone)]
            shared = [name for name in printed if name in actual and name not in _MEASURED]
            pairs = [(printed[name], actual[name], f"{at}.{name}") for name in shared]
        elif isinstance(printed, list) and isinstance(actual, list):
            short = not excerpt and len(printed) != len(actual)
            differences = [f"{at} has {len(actual)} entries, not {len(printed)}"] if short else []
            pairs = [(*both, f"{at}[{place}]") for place, both in enumerate(zip(printed, actual, strict=False))]
        elif isinstance(printed, str) and isinstance(actual, str):
            return self._compare(printed, actual, at)
        else:
            return [] if printed == actual else [f"{at} is {actual!r}, not {printed!r}"]
        for left, right, place in pairs:
            differences += self.differences(left, right, place, excerpt=excerpt)
        return differences

    def _compare(self, printed: str, actual: str, at: str) -> list[str]:
        if VOLATILE.sub(_kind, printed) != VOLATILE.sub(_kind, actual):
            return [f"{at} is {actual!r}, not {printed!r}"]
        differences = []
        for left, right in zip(VOLATILE.finditer(printed), VOLATILE.finditer(actual), strict=True):
            if left.lastgroup in ("moment", "measured"):
                continue
            if left.lastgroup == "statement":
                # All attestations are printed alike, so later requests use the last one seen.
                if at.endswith(".attestation"):
                    self.known[left[0]] = right[0]
                continue
            if self.known.setdefault(left[0], right[0]) != right[0]:
                differences.append(f"{at}: {left[0]!r} stood for {self.known[left[0]]!r} before, now for {right[0]!r}")
        return differences


def _kind(match: re.Match[str]) -> str:
    prefix = match[0].rpartition("_")[0] if match.lastgroup == "id" else ""
    return f"<{prefix or match.lastgroup}>"
