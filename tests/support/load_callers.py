"""Load generator: callers that keep sending requests over their own connections, whatever happens to the servers.

A request that was refused for an outage, or lost with its connection, is sent again unchanged. So each step ends with
an answer, or as a replay of what was committed without an answer; a step with an idempotency key always ends with one.
"""

import asyncio
import itertools
import threading
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

from tests.support.data_directory_check import COMMITTED, DataDirectoryCheck
from tests.support.raw_http import CONNECTION_ERRORS, RawConnection, RawResponse, connect, message
from tests.support.server_cluster import ServerCluster
from tests.support.step_races import KEY_IN_USE, REPLAY, StepKey

DOWN = "QWED-SYS-002"
_STEPS = 40
_PATIENCE = 60
_PAUSE = 0.05


class StepRequest(NamedTuple):
    """One step, sent until its outcome is known."""

    place: StepKey
    action: dict[str, Any]
    key: str | None


class RequestOutcome(NamedTuple):
    """One attempt of a step: when it was sent and answered, and the answer; None if the connection was lost."""

    wish: StepRequest
    sent: float
    heard: float
    answer: RawResponse | None

    @property
    def code(self) -> str | None:
        """Error code of a refusal, or None."""
        if self.answer is None:
            return None
        code: str | None = self.answer.json.get("error", {}).get("code")
        return code

    @property
    def is_final(self) -> bool:
        """Return True if the answer settles the outcome of the step.

        It does not if the server could not decide: the caller is then asked to send the step again.
        """
        return self.answer is not None and self.code not in (DOWN, KEY_IN_USE)

    @property
    def permits(self) -> bool:
        return self.answer is not None and self.answer.json["decision"] in ("APPROVED", "CORRECTED")


class LoadGenerator:
    """Callers that send requests inside the `with` block."""

    def __init__(self, urls: Sequence[str], owner_key: str, agents: Sequence[str], callers: int) -> None:
        self._urls = urls
        self._shown = {"X-API-Key": owner_key}
        self._agents = agents
        self._callers = callers
        self._over = threading.Event()
        self._news = threading.Condition()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self._failure: BaseException | None = None
        self.said: list[RequestOutcome] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()
        if self._failure is not None and value is None:
            raise self._failure

    def go_on(self, seconds: float) -> None:
        """Keep sending for this many seconds."""
        assert not self._over.wait(seconds)

    def wait_for_approvals(self, count: int = 1, since: float | None = None) -> None:
        """Wait until `count` requests sent at or after `since` (default: now) are permitted."""
        begun, seen, permitted = time.monotonic() if since is None else since, len(self.said), 0
        with self._news:
            while permitted < count:
                assert self._news.wait(_PATIENCE), "nothing is permitted any more"
                assert self._failure is None, self._failure
                permitted += sum(outcome.permits and outcome.sent >= begun for outcome in self.said[seen:])
                seen = len(self.said)

    # The callers

    async def _run(self) -> None:
        try:
            await asyncio.gather(*map(self._call, range(self._callers)))
        except BaseException as failure:
            self._failure = failure
            raise
        finally:
            with self._news:
                self._news.notify_all()

    async def _call(self, caller: int) -> None:
        attempts, connection = itertools.count(caller), None
        for wish in self._wishes(caller):
            while not self._over.is_set():
                url = "" if connection else self._urls[next(attempts) % len(self._urls)]
                outcome, connection = await self._ask(wish, connection, url)
                if outcome.is_final:
                    break
                await asyncio.sleep(_PAUSE)
            if self._over.is_set():
                break
        if connection is not None:
            connection.close()

    async def _ask(
        self, wish: StepRequest, connection: RawConnection | None, url: str
    ) -> tuple[RequestOutcome, RawConnection | None]:
        sent, answer = time.monotonic(), None
        try:
            connection = connection or await connect(url)
            answer = await asyncio.wait_for(connection.ask(self._message(wish)), _PATIENCE)
        except TimeoutError:
            raise AssertionError(f"no answer within {_PATIENCE} s") from None
        except CONNECTION_ERRORS:
            if connection is not None:
                connection.close()
            connection = None
        outcome = RequestOutcome(wish, sent, time.monotonic(), answer)
        with self._news:
            self.said.append(outcome)
            self._news.notify_all()
        return outcome, connection

    def _message(self, wish: StepRequest) -> bytes:
        place = {"conversation_id": wish.place.conversation, "step_number": wish.place.step}
        headers = self._shown if wish.key is None else {**self._shown, "Idempotency-Key": wish.key}
        return message(f"/agents/{wish.place.agent_id}/verify", {"action": wish.action, "context": place}, headers)

    def _wishes(self, caller: int) -> Iterator[StepRequest]:
        """Yield the steps of one conversation after another; every second one has an idempotency key."""
        agent_id = self._agents[caller % len(self._agents)]
        for number in itertools.count():
            conversation, step = divmod(number, _STEPS)
            place = StepKey(agent_id, f"conversation {conversation} of caller {caller}", step + 1)
            yield StepRequest(place, _action(caller, number), f"{caller} {number}" if number % 2 else None)

    # What came of it

    @property
    def told(self) -> dict[str, str]:
        """Return every decision that a caller received, by its id."""
        answers = (outcome.answer.json for outcome in self.said if outcome.answer is not None)
        return {answer["action_id"]: answer["decision"] for answer in answers if answer["decision"] in COMMITTED}

    @property
    def permitted(self) -> list[dict[str, Any]]:
        """Return the answers that permit an action."""
        return [outcome.answer.json for outcome in self.said if outcome.answer is not None and outcome.permits]

    def count(self, code: str | None) -> int:
        """Return how many were refused with this code; with None, how many were lost with their connection."""
        return sum(outcome.answer is None if code is None else outcome.code == code for outcome in self.said)

    def slowest(self) -> float:
        """Return the seconds of the slowest request, lost or not."""
        return max(outcome.heard - outcome.sent for outcome in self.said)

    def seconds_to_recover(self, since: float) -> float:
        """Return the seconds until a request sent after this moment was permitted."""
        return min(outcome.heard for outcome in self.said if outcome.permits and outcome.sent >= since) - since

    def require_kept(self, books: DataDirectoryCheck) -> None:
        """Require that each completed step is committed once, and that nothing else is committed."""
        ended, open_ = self._ended()
        own = [one for one in books.committed() if one.agent_id in self._agents]
        committed = [StepKey(one.agent_id, one.conversation_id or "", one.step_number or 0) for one in own]
        assert len(committed) == len(set(committed))
        assert ended - set(committed) == set(), "lost"
        assert set(committed) - ended <= open_, "nobody asked for them"

    def _ended(self) -> tuple[set[StepKey], set[StepKey]]:
        """Return the steps that ended, and those still open at the end."""
        ended: set[StepKey] = set()
        tried: dict[StepKey, int] = {}
        for outcome in self.said:
            place = outcome.wish.place
            if not outcome.is_final:
                tried[place] = tried.get(place, 0) + 1
                continue
            assert outcome.answer is not None
            replayed = outcome.code == REPLAY and outcome.wish.key is None and place in tried
            assert outcome.answer.json["decision"] in COMMITTED or replayed, (outcome, tried.get(place))
            ended.add(place)
        return ended, set(tried) - ended


def create_load(cluster: ServerCluster, callers: int, agents: int) -> LoadGenerator:
    """Create `callers` callers for `agents` agents with high limits."""
    cluster.keep_head()
    trusted = [cluster.register(type="trusted")["agent_id"] for _ in range(agents)]
    return LoadGenerator(cluster.urls, cluster.owner_key, trusted, callers)


def _action(caller: int, number: int) -> dict[str, Any]:
    """Return a calculation, or now and then a high-risk action, which is attested with a token."""
    if number % 8 == 5:
        return {"type": "file_delete", "target": f"notes-{caller}-{number}.txt"}
    return {"type": "calculate", "query": f"{number}+{caller}"}
