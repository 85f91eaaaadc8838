"""Everything a server has to say about an organisation: every route that is read, asked for everything there is."""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

import httpx

from qwed.api.routes import ROUTES, Route

_IN_PATH = re.compile(r"{(\w+)}")
_ALL = {"limit": "1000", "kind": "all", "from_index": "0", "index": "0", "from": "1"}
"""For pages as much as they hold; for proofs, the first leaf."""
_FORMATS = ("json", "csv", "pdf")
EVENTS = "/events"


def crawl(client: httpx.Client, ids: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The text of every answer, by the address that was asked; `ids` are those to put into the paths."""
    said: dict[str, str] = {}
    for route in ROUTES:
        if route.method != "GET" or route.path == EVENTS:
            continue
        for url, query in _asked(route, ids):
            said[f"{url} {query.get('format', '')}".strip()] = client.get(url, params=query).text
    said[EVENTS] = _events(client)
    return said


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
    """The whole log as a listener is told of it, up to what stands in it now."""
    last = client.get("/audit/head").json()["size"] - 1
    told = ""
    with client.stream("GET", EVENTS, headers={"Last-Event-ID": "-1"}) as response:
        for piece in response.iter_text():
            told += piece
            if f"id: {last}\n" in told and told.endswith("\n\n"):
                return told
    return told
