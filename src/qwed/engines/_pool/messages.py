"""What the pool, its zygote and its workers say to each other.

Requests and answers are JSON: a verdict may hold JSON values only, and whole numbers keep all their digits.
"""

import struct
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import msgspec

from qwed.engines.protocol import EngineRequest
from qwed.engines.table import EngineRow
from qwed.words import Status, Verdict

TIMEOUT = "timeout"
MEMORY = "memory"
DIED = "died"

UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)
"""Everything that decoding bytes of unknown origin raises."""

UNSENDABLE = (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)
"""Everything that encoding values of unknown origin raises."""

TypeName = Annotated[str, msgspec.Meta(pattern=r"\A\w{1,80}\Z")]


READY = b"r"
FORK = b"\xff"
"""Any other order is the number of the row to load."""
HELLO = struct.Struct("!Q")
"""A worker's first words are its process id, beside a descriptor of the process."""


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """What the pool tells the zygote on its command line."""

    path: list[str]
    rows: tuple[EngineRow, ...]
    load: tuple[str, ...]
    """The engines to load before anything else; the others are loaded when that is ordered."""
    memory_mb: int
    control: int

    def written(self) -> str:
        """As a word of the command line."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def read(cls, word: str) -> "Orders":
        """Orders that were `written`."""
        return msgspec.json.decode(word, type=cls)


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """One request for a worker; `seconds` is what is left of its time."""

    number: int
    engine: str
    seconds: float
    request: EngineRequest


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's answer to the request of that number: a verdict, or the type of the exception that ended it."""

    number: int
    verdict: Verdict | None = None
    error: TypeName = "Exception"
    retire: bool = False
    """Whether this worker has served long enough to be replaced."""
    declined: bool = False
    """Whether it was not begun, because those before it took too long: it is then another worker's."""


def encode(message: Ask | Reply) -> bytes:
    """The bytes of `message`; one of UNSENDABLE is raised if it has none."""
    return _ENCODER.encode(message)


def together(asks: Iterable[bytes]) -> bytes:
    """Several encoded requests as one payload."""
    return b"[%b]" % b",".join(asks)


def decode_asks(payload: bytes) -> list[Ask]:
    """The requests in what `together` gave; one of UNREADABLE is raised if there are none."""
    return _ASKS.decode(payload)


def decode_reply(payload: bytes) -> Reply:
    """The answer in `payload`; one of UNREADABLE is raised if there is none."""
    return _REPLIES.decode(payload)


def _as_dict(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} is not a JSON value")


_ENCODER = msgspec.json.Encoder(enc_hook=_as_dict)
_ASKS = msgspec.json.Decoder(list[Ask])
_REPLIES = msgspec.json.Decoder(Reply)

_UNDECIDED = {
    TIMEOUT: ("the engine did not answer in time", "within_time"),
    MEMORY: ("the engine needed more memory than it may have", "within_memory"),
    DIED: ("the engine stopped before it answered", "engine_answered"),
}


def undecided(engine: str, why: str) -> Verdict:
    """INCONCLUSIVE, because the worker ran out of time or memory or died."""
    message, check = _UNDECIDED[why]
    return Verdict(
        status=Status.INCONCLUSIVE, engine=engine, message=message, checks_failed=(check,), result={"error": why}
    )


def broken(engine: str, message: str, error: str) -> Verdict:
    """ERROR, because something is wrong on our side."""
    return Verdict(
        status=Status.ERROR, engine=engine, message=message, checks_failed=("engine_answered",), result={"error": error}
    )


def verdict_of(reply: Reply, engine: str) -> Verdict:
    """What the caller is told: the verdict if it is of the engine that was asked, otherwise why there is none."""
    if reply.verdict is None:
        if reply.error == MemoryError.__name__:
            return undecided(engine, MEMORY)
        return broken(engine, f"the engine `{engine}` failed", reply.error)
    if reply.verdict.engine != engine:
        return broken(engine, f"the engine `{engine}` was asked and another one answered", "mismatch")
    return reply.verdict
