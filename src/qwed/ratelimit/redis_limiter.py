"""Sliding-window rate limiter shared by processes and machines, in Redis (spec 9.6). It fails closed.

The algorithm is that of `memory_limiter`: 60 counters of one second plus the running second. They are one hash per key,
600 bytes at most, which expires a minute after the last request. The clock is that of Redis. All requests of one tick
of the event loop are one command, counted by one script.
"""

import asyncio
import hashlib
import itertools
from functools import partial
from typing import Any

from redis.exceptions import NoScriptError

from qwed.ratelimit.limit_status import RateLimitStatus
from qwed.ratelimit.memory_limiter import WINDOW_SECONDS
from qwed.ratelimit.redis_connection import Command, RedisConnection, ReplyParser
from qwed.ratelimit.redis_url import REPLY_TIMEOUT_SECONDS, key_prefix

SERVER_SECOND = "redis.call('TIME')[1]"
"""Current second, as a Lua expression."""

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
MAX_LIMIT = 10**9
"""Highest limit."""
_MAX_BYTES_PER_RESULT = 40
"""Bytes of the reply for one request, or for the number of the command."""


class RedisSlidingWindow:
    """At most `limit` requests per key in any 60 seconds over all processes. On one event loop at a time."""

    def __init__(self, limit: int, url: str, installation: str, *, second: str = SERVER_SECOND) -> None:
        self.limit = limit
        self._prefix = f"{key_prefix(installation)}rate:"
        self._script = _SCRIPT % second
        # Redis names scripts by SHA-1; it protects nothing.
        self._name = hashlib.sha1(self._script.encode(), usedforsecurity=False).hexdigest()
        self._numbers = itertools.count(1)
        self._keys: list[str] = []
        """Keys of the requests of this tick."""
        self._batch: asyncio.Task[list[RateLimitStatus]]
        self._loop: asyncio.AbstractEventLoop | None = None
        self.connection = RedisConnection(url, "rate limits", (self._script_loaded(), self._probe()))

    def _script_loaded(self) -> tuple[Command, ReplyParser]:
        return ("SCRIPT", "LOAD", self._script), partial(_require_script_name, self._name.encode())

    def _probe(self) -> tuple[Command, ReplyParser]:
        """Return a counting command that is never refused: a Redis that refuses writes counts as down."""
        command = ("EVALSHA", self._name, 1, f"{self._prefix}probe", MAX_LIMIT, 0)
        return command, partial(_parse_statuses, MAX_LIMIT, 0, 1)

    async def hit(self, key: str) -> RateLimitStatus:
        """Count one request of `key`; a refused request is not counted. Raise RedisUnavailableError if it cannot be
        counted."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._keys = loop, []
        if not self._keys:
            self._batch = loop.create_task(self._count_batch(loop.time() + REPLY_TIMEOUT_SECONDS))
        place, batch = len(self._keys), self._batch
        self._keys.append(key)
        # Shielded: a caller that leaves early takes nothing from the others.
        return (await asyncio.shield(batch))[place]

    async def _count_batch(self, until: float) -> list[RateLimitStatus]:
        """Send one command for all requests of the tick before, and return its replies in their order."""
        keys, self._keys = self._keys, []
        number = next(self._numbers)
        rest: Command = (len(keys), *[self._prefix + key for key in keys], self.limit, number)
        read = partial(_parse_statuses, self.limit, number, len(keys))
        statuses: list[RateLimitStatus]
        try:
            statuses = await self.connection.ask(("EVALSHA", self._name, *rest), read, until)
        except NoScriptError:
            # The scripts of the Redis were flushed: EVAL loads this one again.
            statuses = await self.connection.ask(("EVAL", self._script, *rest), read, until)
        return statuses


def _require_script_name(name: bytes, answer: Any) -> None:
    if answer != name:
        raise ValueError("the reply is not the name of the script")


def _parse_statuses(limit: int, number: int, count: int, answer: Any) -> list[RateLimitStatus]:
    """Parse the reply of the script; raise ValueError if it is invalid."""
    if not isinstance(answer, bytes) or len(answer) > _MAX_BYTES_PER_RESULT * (count + 1):
        raise ValueError("the reply is not from the script")
    first, *parts = map(int, answer.split(b" "))
    if first != number or len(parts) != 3 * count:
        raise ValueError("the reply belongs to another command")
    return [_parse_status(limit, *parts[at : at + 3]) for at in range(0, len(parts), 3)]


def _parse_status(limit: int, allowed: int, remaining: int, seconds: int) -> RateLimitStatus:
    if allowed not in (0, 1) or not 0 <= remaining <= limit or not 1 <= seconds <= WINDOW_SECONDS + 1:
        raise ValueError("the counters are out of range")
    return RateLimitStatus(limit, remaining, seconds, allowed == 1)
