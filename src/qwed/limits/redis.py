"""Spec 9.6: the sliding window that several processes and machines share, in a Redis. It fails closed.

It keeps the promises of `memory.py` in the same way: 60 counts of a second and the running one. They are one hash of a
key, 600 bytes at most however much is asked, and gone a minute after the last request. The Redis says what second it
is. All that is asked in one turn of the event loop is one command, and one script counts it.
"""

import asyncio
import hashlib
import itertools
from functools import partial
from typing import Any

from redis.exceptions import NoScriptError

from qwed.limits.address import ANSWER_SECONDS, prefix_of
from qwed.limits.allowance import Allowance
from qwed.limits.line import Away, Command, Line, Read
from qwed.limits.memory import WINDOW

SECOND = "redis.call('TIME')[1]"
"""What second it is, in the language of the script."""

_SCRIPT = """
local second, limit = tonumber(%s), tonumber(ARGV[1])
local place, found = second %% 61, {ARGV[2]}
for number, key in ipairs(KEYS) do
  local kept = redis.call('HMGET', key, 'used', 'oldest', 'newest', place)
  local used, newest = tonumber(kept[1] or 0), tonumber(kept[3] or 0)
  local oldest = math.max(tonumber(kept[2] or second), newest - 60)
  local before, count = used, 0
  if newest == second then
    count = tonumber(kept[4] or 0)
  elseif newest > second or second - newest > 60 then
    redis.call('DEL', key)
    -- A clock that went back: all of it counts as of now. No minute holds too many, and after one it is over.
    used = newest > second and used or 0
    before, count, oldest, newest = 0, used, second, 0
  end
  while newest ~= 0 and oldest < second and used > 0 do
    local gone = tonumber(redis.call('HGET', key, oldest %% 61) or 0)
    if gone > 0 and oldest >= second - 60 then break end
    if gone > 0 then redis.call('HDEL', key, oldest %% 61) end
    used, oldest = used - gone, oldest + 1
  end
  if used == 0 then oldest = second end
  local allowed = used < limit
  if allowed then used, count = used + 1, count + 1 end
  if allowed and newest == second then
    redis.call('HSET', key, 'used', used, place, count)
  elseif allowed or newest == 0 and used > 0 then
    redis.call('HSET', key, 'used', used, 'oldest', oldest, 'newest', second, place, count)
    redis.call('EXPIRE', key, 62)
  elseif used ~= before then
    redis.call('HSET', key, 'used', used, 'oldest', oldest)
  end
  found[number + 1] = (allowed and 1 or 0) .. ' ' .. math.max(0, limit - used) .. ' ' .. oldest + 61 - second
end
return table.concat(found, ' ')
"""
MOST = 10**9
"""The highest limit there is."""
_LONGEST = 40
"""Bytes that are said of one request, or name the question."""


class RedisLimiter:
    """At most `limit` requests of one key in any 60 seconds, whichever process asks. On one event loop at a time."""

    def __init__(self, limit: int, url: str, installation: str, *, second: str = SECOND) -> None:
        self.limit = limit
        self._prefix = f"{prefix_of(installation)}rate:"
        self._script = _SCRIPT % second
        # How a script is named, and no secret of ours.
        self._name = hashlib.sha1(self._script.encode(), usedforsecurity=False).hexdigest()
        self._numbers = itertools.count(1)
        self._hits: list[tuple[str, asyncio.Future[Allowance]]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self.line = Line(url, "rate limits", (self._script_loaded(), self._probe()))

    def _script_loaded(self) -> tuple[Command, Read]:
        return ("SCRIPT", "LOAD", self._script), partial(_require_name, self._name.encode())

    def _probe(self) -> tuple[Command, Read]:
        """Counted like anybody else, and never refused: a Redis that takes no writes is none that answers."""
        command = ("EVALSHA", self._name, 1, f"{self._prefix}probe", MOST, 0)
        return command, partial(_allowances, MOST, 0, 1)

    async def hit(self, key: str) -> Allowance:
        """Count one request of `key`; one that is refused is not counted. Away where nobody could count it."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._hits = loop, []
        if not self._hits:
            loop.call_soon(self._ask)
        found: asyncio.Future[Allowance] = loop.create_future()
        self._hits.append((key, found))
        return await found

    def _ask(self) -> None:
        """One question for all that were asked in this turn of the loop."""
        hits, self._hits = self._hits, []
        number = next(self._numbers)
        until = asyncio.get_running_loop().time() + ANSWER_SECONDS
        self._send("EVALSHA", self._name, hits, number, until)

    def _send(
        self, verb: str, script: str, hits: list[tuple[str, "asyncio.Future[Allowance]"]], number: int, until: float
    ) -> None:
        keys = [self._prefix + key for key, _found in hits]
        command: Command = (verb, script, len(keys), *keys, self.limit, number)
        read = partial(_allowances, self.limit, number, len(hits))
        try:
            asked = self.line.ask(command, read, until)
        except Away as away:
            _fail(hits, away)
        else:
            asked.add_done_callback(partial(self._share, hits, number, until))

    def _share(
        self,
        hits: list[tuple[str, "asyncio.Future[Allowance]"]],
        number: int,
        until: float,
        asked: "asyncio.Future[list[Allowance]]",
    ) -> None:
        failure = asked.exception()
        if isinstance(failure, NoScriptError):
            # Somebody had the Redis forget its scripts: this one is sent along, and is known from then on.
            self._send("EVAL", self._script, hits, number, until)
        elif failure is not None:
            _fail(hits, failure)
        else:
            for (_key, found), allowance in zip(hits, asked.result(), strict=True):
                if not found.done():
                    found.set_result(allowance)


def _fail(hits: list[tuple[str, "asyncio.Future[Allowance]"]], failure: BaseException) -> None:
    for _key, found in hits:
        if not found.done():
            found.set_exception(Away(*failure.args))


def _require_name(name: bytes, answer: Any) -> None:
    if answer != name:
        raise ValueError("no name of the script")


def _allowances(limit: int, number: int, count: int, answer: Any) -> list[Allowance]:
    """What the script said of so many requests; ValueError where it is not what it would say."""
    if not isinstance(answer, bytes) or len(answer) > _LONGEST * (count + 1):
        raise ValueError("no answer of the script")
    first, *parts = map(int, answer.split(b" "))
    if first != number or len(parts) != 3 * count:
        raise ValueError("the answer to another question")
    return [_allowance(limit, *parts[at : at + 3]) for at in range(0, len(parts), 3)]


def _allowance(limit: int, allowed: int, remaining: int, seconds: int) -> Allowance:
    if allowed not in (0, 1) or not 0 <= remaining <= limit or not 1 <= seconds <= WINDOW + 1:
        raise ValueError("no count of ours")
    return Allowance(limit, remaining, seconds, allowed == 1)
