"""Overhead of the SDK client over plain httpx for the same request."""

import itertools
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import httpx

from benchmarks.measure import interleaved, ratio
from benchmarks.report import Row, Say, absolute, at_most
from benchmarks.servers import qwed_server
from benchmarks.traffic import ACTION
from qwed_sdk import QWEDClient

CALLS = 300
_conversations = itertools.count()


class Took(NamedTuple):
    """Milliseconds of one call: wall time and CPU time of this process."""

    waited: float
    worked: float


def rows(rounds: int, _say: Say) -> list[Row]:
    """Compare both clients by wall time and CPU time."""
    with contenders() as running:
        for run in running.values():
            run()  # warm up caches and connections
        seen = interleaved(running, rounds)
    (ours, mine), (theirs, plain) = seen.items()
    waited = ratio([took.waited for took in mine], [took.waited for took in plain])
    worked = ratio([took.worked for took in mine], [took.worked for took in plain])
    return [
        Row(f"{ours} / {theirs}", waited, at_most(1.10)),
        Row(f"{ours} / {theirs}, CPU of the client process", worked),
        *(absolute(f"{name}, ms", [took.waited for took in all_of_it]) for name, all_of_it in seen.items()),
        absolute("import qwed_sdk, ms", [import_ms() for _ in range(rounds)], at_most(250)),
    ]


@contextmanager
def contenders() -> Iterator[dict[str, Callable[[], Took]]]:
    """Yield functions that time a call with each client."""
    with TemporaryDirectory() as folder, qwed_server(Path(folder) / "data") as server:
        base, key = server.base, server.owner_key
        with QWEDClient(key, base) as client, httpx.Client(base_url=base, headers={"X-API-Key": key}) as raw:
            agent = str(client.register_agent("asks", principal_id="bench").agent_id)

            def through_client() -> Took:
                return _timed(lambda action, context: _approved(client.verify_action(agent, action, context).decision))

            def through_httpx() -> Took:
                def ask(action: dict[str, str], context: dict[str, object]) -> None:
                    body, key = {"action": action, "context": context}, {"Idempotency-Key": secrets.token_hex(16)}
                    answer = raw.post(f"/agents/{agent}/verify", json=body, headers=key).json()
                    _approved(answer["decision"])

                return _timed(ask)

            yield {"a decision through the client": through_client, "the same through httpx": through_httpx}


def _timed(ask: Callable[[dict[str, str], dict[str, object]], None]) -> Took:
    waited, worked = time.perf_counter(), time.process_time()
    for n in range(CALLS):
        if n % 50 == 0:
            conversation = f"c{next(_conversations)}"
        action = ACTION if n % 3 else {**ACTION, "target": "replica"}
        ask(action, {"conversation_id": conversation, "step_number": n % 50 + 1})
    each = 1000 / CALLS
    return Took((time.perf_counter() - waited) * each, (time.process_time() - worked) * each)


def _approved(decision: str) -> None:
    if decision != "APPROVED":
        raise RuntimeError(f"the benchmark was refused: {decision}")


def import_ms() -> float:
    """Return the milliseconds of `import qwed_sdk` in a fresh process."""
    program = "import time; t = time.perf_counter(); import qwed_sdk; print((time.perf_counter() - t) * 1000)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return float(done.stdout)
