"""Request streams of agents whose actions are approved, one connection each."""

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from benchmarks.load import Load, drive, post

REQUESTS = 4000
CONNECTIONS = 32
STEPS = 50
ACTION: dict[str, str] = {"type": "execute_sql", "query": "SELECT id, name FROM customers WHERE status = 'active'"}
JWT = {"require_attestation": True}

Query = Callable[[int], str]
_numbers = itertools.count()
_runs = itertools.count()


def same(_number: int) -> str:
    """Return the same query every time."""
    return ACTION["query"]


def new_sql(number: int) -> str:
    """Return another query every time."""
    return f"{ACTION['query']} AND id > {number}"


def decide(
    place: tuple[str, int],
    agents: Sequence[dict[str, Any]],
    options: dict[str, Any],
    query: Query = same,
    *,
    connections: int = CONNECTIONS,
    count: int = REQUESTS,
    steps: int = STEPS,
) -> Load:
    """Send decisions for these agents in turn, all APPROVED."""
    run = next(_runs)
    dealt = [agents[n % len(agents) :: connections] or agents for n in range(connections)]
    streams = [_requests(dealt[n], f"c{run}_{n}", options, query, steps) for n in range(connections)]
    return drive(*place, streams, count=count, expect=b'"APPROVED"')


def echo(place: tuple[str, int], agent: dict[str, Any], *, connections: int = CONNECTIONS) -> Load:
    """Send the same bytes to the echo server."""
    streams = [_requests([agent], "c", {}, same, STEPS) for _ in range(connections)]
    return drive(*place, streams, count=REQUESTS, expect=b"execute_sql")


def _requests(
    agents: Sequence[dict[str, Any]], talk: str, options: dict[str, Any], query: Query, steps: int
) -> Iterator[bytes]:
    """Yield requests, some steps per conversation; every third action differs to avoid loop detection."""
    for n in itertools.count():
        agent = agents[n // steps % len(agents)]
        action = {**ACTION, "query": query(next(_numbers))}
        if n % 3 == 2:
            action["target"] = "replica"
        context = {"conversation_id": f"{talk}_{n // steps}", "step_number": n % steps + 1}
        body = json.dumps({"action": action, "context": context, "options": options}).encode()
        headers = {"Authorization": f"Bearer {agent['agent_token']}"}
        yield post(f"/agents/{agent['agent_id']}/verify", body, headers)
