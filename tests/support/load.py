"""Callers that go on asking, each over a connection of its own, whatever happens to the servers; and what each heard.

What was refused because nobody could say, or was lost with its connection, is asked again as it was. So each step ends
told, or as a replay of what was committed and never told; a step with an idempotency key always ends told.
"""

import asyncio
import itertools
import threading
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

from tests.support.books import COMMITTED, Books
from tests.support.fleet import Fleet
from tests.support.racing import KEY_IN_USE, REPLAY, Place
from tests.support.wire import GONE, Heard, Line, dial, message

DOWN = "QWED-SYS-002"
_STEPS = 40
_PATIENCE = 60
_PAUSE = 0.05


class Wish(NamedTuple):
    """One step, which is asked for until somebody says what became of it."""

    place: Place
    action: dict[str, Any]
    key: str | None


class Said(NamedTuple):
    """One request for it: when it was sent and answered, and how; None where the connection was lost over it."""

    wish: Wish
    sent: float
    heard: float
    answer: Heard | None

    @property
    def code(self) -> str | None:
        """Why it was refused, if it was."""
        if self.answer is None:
            return None
        code: str | None = self.answer.json.get("error", {}).get("code")
        return code

    @property
    def is_final(self) -> bool:
        """Whether it says what became of the step.

        Not where the agent was changed meanwhile, which then is asked to send the step again: replays cost it trust.
        """
        if self.answer is None or self.code in (DOWN, KEY_IN_USE):
            return False
        return self.answer.json.get("error", {}).get("check") != "agent_unchanged"

    @property
    def permits(self) -> bool:
        return self.answer is not None and self.answer.json["decision"] in ("APPROVED", "CORRECTED")


class Load:
    """`with Load(...)` they ask; afterwards they have stopped."""

    def __init__(self, urls: Sequence[str], owner_key: str, agents: Sequence[str], callers: int) -> None:
        self._urls = urls
        self._shown = {"X-API-Key": owner_key}
        self._agents = agents
        self._callers = callers
        self._over = threading.Event()
        self._news = threading.Condition()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self._failure: BaseException | None = None
        self.said: list[Said] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()
        if self._failure is not None and value is None:
            raise self._failure

    def go_on(self, seconds: float) -> None:
        """Let them ask for so long."""
        assert not self._over.wait(seconds)

    def wait_for_approvals(self, count: int = 1, since: float | None = None) -> None:
        """Until so many requests that were sent from now on, or since then, are permitted."""
        begun, place, found = time.monotonic() if since is None else since, len(self.said), 0
        with self._news:
            while found < count:
                assert self._news.wait(_PATIENCE), "nothing is permitted any more"
                assert self._failure is None, self._failure
                found += sum(said.permits and said.sent >= begun for said in self.said[place:])
                place = len(self.said)

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
        dials, line = itertools.count(caller), None
        for wish in self._wishes(caller):
            while not self._over.is_set():
                url = "" if line else self._urls[next(dials) % len(self._urls)]
                said, line = await self._ask(wish, line, url)
                if said.is_final:
                    break
                await asyncio.sleep(_PAUSE)
            if self._over.is_set():
                break
        if line is not None:
            line.close()

    async def _ask(self, wish: Wish, line: Line | None, url: str) -> tuple[Said, Line | None]:
        sent, answer = time.monotonic(), None
        try:
            line = line or await dial(url)
            answer = await asyncio.wait_for(line.ask(self._message(wish)), _PATIENCE)
        except TimeoutError:
            raise AssertionError(f"no answer within {_PATIENCE} s") from None
        except GONE:
            if line is not None:
                line.close()
            line = None
        said = Said(wish, sent, time.monotonic(), answer)
        with self._news:
            self.said.append(said)
            self._news.notify_all()
        return said, line

    def _message(self, wish: Wish) -> bytes:
        place = {"conversation_id": wish.place.conversation, "step_number": wish.place.step}
        headers = self._shown if wish.key is None else {**self._shown, "Idempotency-Key": wish.key}
        return message(f"/agents/{wish.place.agent_id}/verify", {"action": wish.action, "context": place}, headers)

    def _wishes(self, caller: int) -> Iterator[Wish]:
        """Step after step of one conversation after the other; every second one says that it is one request."""
        agent_id = self._agents[caller % len(self._agents)]
        for number in itertools.count():
            conversation, step = divmod(number, _STEPS)
            place = Place(agent_id, f"conversation {conversation} of caller {caller}", step + 1)
            yield Wish(place, _action(caller, number), f"{caller} {number}" if number % 2 else None)

    # What came of it

    @property
    def told(self) -> dict[str, str]:
        """Every decision that somebody was told, by its id."""
        answers = (said.answer.json for said in self.said if said.answer is not None)
        return {answer["action_id"]: answer["decision"] for answer in answers if answer["decision"] in COMMITTED}

    @property
    def permitted(self) -> list[dict[str, Any]]:
        """The answers that let something happen."""
        return [said.answer.json for said in self.said if said.answer is not None and said.permits]

    def count(self, code: str | None) -> int:
        """How many were refused with this code; with None, how many were lost with their connection."""
        return sum(said.answer is None if code is None else said.code == code for said in self.said)

    def slowest(self) -> float:
        """Seconds of the request that took longest, lost or not."""
        return max(said.heard - said.sent for said in self.said)

    def recovery(self, since: float) -> float:
        """Seconds until a request that was sent after this moment was permitted."""
        return min(said.heard for said in self.said if said.permits and said.sent >= since) - since

    def require_kept(self, books: Books) -> None:
        """Each step that somebody got to the end of is committed once; nothing is committed that nobody asked for."""
        ended, open_ = self._ended()
        own = [one for one in books.committed() if one.agent_id in self._agents]
        kept = [Place(one.agent_id, one.conversation_id or "", one.step_number or 0) for one in own]
        assert len(kept) == len(set(kept))
        assert ended - set(kept) == set(), "lost"
        assert set(kept) - ended <= open_, "nobody asked for them"

    def _ended(self) -> tuple[set[Place], set[Place]]:
        """The steps that are told or replayed, and those that were still asked for at the end."""
        ended: set[Place] = set()
        tried: dict[Place, int] = {}
        for said in self.said:
            place = said.wish.place
            if not said.is_final:
                tried[place] = tried.get(place, 0) + 1
                continue
            assert said.answer is not None
            replayed = said.code == REPLAY and said.wish.key is None and place in tried
            assert said.answer.json["decision"] in COMMITTED or replayed, (said, tried.get(place))
            ended.add(place)
        return ended, set(tried) - ended


def load_on(fleet: Fleet, callers: int, agents: int) -> Load:
    """So many callers of so many agents, whom hardly anything stops."""
    fleet.keep_head()
    trusted = [fleet.register(type="trusted")["agent_id"] for _ in range(agents)]
    return Load(fleet.urls, fleet.owner_key, trusted, callers)


def _action(caller: int, number: int) -> dict[str, Any]:
    """Sums for the most part, and now and then what is of high risk, which is attested with a token."""
    if number % 8 == 5:
        return {"type": "file_delete", "target": f"notes-{caller}-{number}.txt"}
    return {"type": "calculate", "query": f"{number}+{caller}"}
