"""Are the examples of the API document true? Sends each, with the ids of this server in place of the printed ones."""

import re
from typing import Any

import httpx
import msgspec

from qwed.api.examples import Example
from qwed.api.routes import Route
from tests.support.answers import answer_to
from tests.support.patience import until

OWNER_KEY = "qwed_live_4f9d27c1a0b35e86_the-key-that-the-first-start-wrote-down"
"""What the examples print where the owner's key stands."""

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
"""What two servers say differently where they say the same."""

_MEASURED = frozenset({"latency_ms", "average_latency_ms"})


class Sampler:
    """Sends examples in their order; what a printed id stands for is learnt from the answer that first has it."""

    def __init__(self, client: httpx.Client, owner_key: str) -> None:
        self._client = client
        self.known = {OWNER_KEY: owner_key}

    def wait_until_ready(self) -> None:
        """Return when every part of the server is there; it has no other way to say so than to be asked."""
        until(lambda: self._client.get("/ready").status_code == 200)

    def send(self, route: Route, example: Example) -> httpx.Response:
        """The answer this server gives to the example's request."""
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
        """The printed value with this server's ids in it."""
        if isinstance(printed, dict):
            return {name: self._real(value) for name, value in printed.items()}
        if isinstance(printed, list):
            return [self._real(value) for value in printed]
        if isinstance(printed, str):
            return VOLATILE.sub(lambda found: self.known.get(found[0], found[0]), printed)
        return printed

    def untrue(self, example: Example, response: httpx.Response) -> list[str]:
        """What the example says of its answer and the server does not."""
        if "json" not in response.headers.get("content-type", ""):
            return [] if example.answer is None else ["the answer is no JSON"]
        return self.differences(example.answer, response.json(), excerpt=example.excerpt)

    def differences(self, printed: Any, said: Any, at: str = "answer", *, excerpt: bool = False) -> list[str]:
        """Where the printed answer is not what was said; learns the ids that both have in the same place."""
        if isinstance(printed, dict) and isinstance(said, dict):
            alone = printed.keys() - said.keys() if excerpt else printed.keys() ^ said.keys()
            wrong = [f"{at}.{name} is in one of the two only" for name in sorted(alone)]
            shared = [name for name in printed if name in said and name not in _MEASURED]
            pairs = [(printed[name], said[name], f"{at}.{name}") for name in shared]
        elif isinstance(printed, list) and isinstance(said, list):
            short = not excerpt and len(printed) != len(said)
            wrong = [f"{at} has {len(said)} entries, not {len(printed)}"] if short else []
            pairs = [(*both, f"{at}[{place}]") for place, both in enumerate(zip(printed, said, strict=False))]
        elif isinstance(printed, str) and isinstance(said, str):
            return self._compare(printed, said, at)
        else:
            return [] if printed == said else [f"{at} is {said!r}, not {printed!r}"]
        for left, right, place in pairs:
            wrong += self.differences(left, right, place, excerpt=excerpt)
        return wrong

    def _compare(self, printed: str, said: str, at: str) -> list[str]:
        if VOLATILE.sub(_kind, printed) != VOLATILE.sub(_kind, said):
            return [f"{at} is {said!r}, not {printed!r}"]
        wrong = []
        for left, right in zip(VOLATILE.finditer(printed), VOLATILE.finditer(said), strict=True):
            if left.lastgroup in ("moment", "measured"):
                continue
            if left.lastgroup == "statement":
                # All are printed alike: what is sent later is the attestation that was seen last.
                if at.endswith(".attestation"):
                    self.known[left[0]] = right[0]
                continue
            if self.known.setdefault(left[0], right[0]) != right[0]:
                wrong.append(f"{at}: {left[0]!r} stood for {self.known[left[0]]!r} before, now for {right[0]!r}")
        return wrong


def _kind(found: re.Match[str]) -> str:
    prefix = found[0].rpartition("_")[0] if found.lastgroup == "id" else ""
    return f"<{prefix or found.lastgroup}>"
