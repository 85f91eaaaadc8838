"""Messages between the pool, its zygote and its workers.

Requests and replies are JSON: a verdict contains JSON values only, and integers keep all their digits.
"""

import struct
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import msgspec

from qwed.engines.protocol import EngineRequest
from qwed.engines.registry import EngineRow
from qwed.model import Status, Verdict
from qwed.model.json_value import is_deeper_than

TIMEOUT = "timeout"
MEMORY = "memory"
DIED = "died"

DECODE_ERRORS = (msgspec.MsgspecError, ValueError, RecursionError)
"""Exceptions raised when decoding untrusted bytes."""

ENCODE_ERRORS = (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)
"""Exceptions raised when encoding arbitrary values."""

MAX_DEPTH = 500
"""Counted here, because the limit of recursion differs between versions of Python."""

TypeName = Annotated[str, msgspec.Meta(pattern=r"\A\w{1,80}\Z")]


READY = b"r"
FORK = b"\xff"
"""Any other control byte is the number of the row to load."""
HELLO = struct.Struct("!Q")
"""First message of a worker: its process id, with a pidfd attached."""


class ZygoteArguments(msgspec.Struct, frozen=True, kw_only=True):
    """Command-line arguments of the zygote."""

    path: list[str]
    rows: tuple[EngineRow, ...]
    load: tuple[str, ...]
    """Engines to load at start; the others are loaded on request."""
    memory_mb: int
    control: int

    def written(self) -> str:
        """Encode as one command-line argument."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def read(cls, word: str) -> "ZygoteArguments":
        """Decode a command-line argument."""
        return msgspec.json.decode(word, type=cls)


class WorkerRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request for a worker; `seconds` is its remaining time."""

    number: int
    engine: str
    seconds: float
    request: EngineRequest


class WorkerReply(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to the request with this number: a verdict, or the type of the exception that ended the worker."""

    number: int
    verdict: Verdict | None = None
    error: TypeName = "Exception"
    retire: bool = False
    """True if the worker has served long enough to be replaced."""
    declined: bool = False
    """True if the request was not started because earlier ones took too long."""


def encode(message: WorkerRequest | WorkerReply) -> bytes:
    """Encode `message`; raise one of ENCODE_ERRORS if that is not possible."""
    if isinstance(message, WorkerRequest) and is_deeper_than(message.request.parameters, MAX_DEPTH):
        raise ValueError(f"the parameters are nested deeper than {MAX_DEPTH}")
    return _ENCODER.encode(message)


def join_requests(asks: Iterable[bytes]) -> bytes:
    """Join encoded requests into one payload."""
    return b"[%b]" % b",".join(asks)


def decode_requests(payload: bytes) -> list[WorkerRequest]:
    """Decode the payload made by `join_requests`; raise one of DECODE_ERRORS."""
    return _ASKS.decode(payload)


def decode_reply(payload: bytes) -> WorkerReply:
    """Decode a reply; raise one of DECODE_ERRORS."""
    return _REPLIES.decode(payload)


def _as_dict(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} is not a JSON value")


_ENCODER = msgspec.json.Encoder(enc_hook=_as_dict)
_ASKS = msgspec.json.Decoder(list[WorkerRequest])
_REPLIES = msgspec.json.Decoder(WorkerReply)

_INCONCLUSIVE = {
    TIMEOUT: ("the engine did not answer in time", "within_time"),
    MEMORY: ("the engine needed more memory than it may have", "within_memory"),
    DIED: ("the engine stopped before it answered", "engine_answered"),
}


def inconclusive_verdict(engine: str, why: str) -> Verdict:
    """Return INCONCLUSIVE for a worker that timed out, ran out of memory or died."""
    message, check = _INCONCLUSIVE[why]
    return Verdict(
        status=Status.INCONCLUSIVE, engine=engine, message=message, checks_failed=(check,), result={"error": why}
    )


def error_verdict(engine: str, message: str, error: str) -> Verdict:
    """Return ERROR for a failure on our side."""
    return Verdict(
        status=Status.ERROR, engine=engine, message=message, checks_failed=("engine_answered",), result={"error": error}
    )


def verdict_of(reply: WorkerReply, engine: str) -> Verdict:
    """Return the verdict of the requested engine, or a verdict that says why there is none."""
    if reply.verdict is None:
        if reply.error == MemoryError.__name__:
            return inconclusive_verdict(engine, MEMORY)
        return error_verdict(engine, f"the engine `{engine}` failed", reply.error)
    if reply.verdict.engine != engine:
        return error_verdict(engine, f"the verdict of another engine arrived for the engine `{engine}`", "mismatch")
    return reply.verdict
