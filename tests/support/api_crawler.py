"""Crawler of every GET route of an organisation."""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

import httpx

from qwed.api.routes import ROUTES, Route

_IN_PATH = re.compile(r"{(\w+)}")
_ALL = {"limit": "1000", "kind": "all", "from_index": "0", "index": "0", "from": "1"}
"""Query parameters: the largest pages, and proofs of the first leaf."""
_FORMATS = ("json", "csv", "pdf")
EVENTS = "/events"


def crawl(client: httpx.Client, ids: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the text of every answer by URL; `ids` fills the path parameters."""
    answers: dict[str, str] = {}
    for route in ROUTES:
        if route.method != "GET" or route.path == EVENTS:
            continue
        for url, query in _asked(route, ids):
            answers[f"{url} {query.get('format', '')}".strip()] = client.get(url, params=query).text
    answers[EVENTS] = _events(client)
    return answers


def _asked(route: Route, ids: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, dict[str, str]]]:
    names = _IN_PATH.findall(route.path)
    report = "format" in route.query
    query = {} if report else {name: _ALL[name] for name in route.query if name in _ALL}
    if "kind" in route.query:
        query.pop("from", None)
    for values in itertools.product(*(ids[name] for name in names)):
        url = route.path
        for name, value in zip(names, values, strict=True):
            url = url.replace(f"{{{name}}}", value)
        for form in _FORMATS if report else ("",):
            yield url, {**query, "format": form} if form else query


def _events(client: httpx.Client) -> str:
    """Return the event stream up to the current end of the log."""
    last = client.get("/audit/head").json()["size"] - 1
    text = ""
    with client.stream("GET", EVENTS, headers={"Last-Event-ID": "-1"}) as response:
        for piece in response.iter_text():
            text += piece
            if f"id: {last}\n" in text and text.endswith("\n\n"):
                return text
    return text
