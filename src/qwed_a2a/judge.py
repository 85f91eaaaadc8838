"""Judgement of a message's content: the guard of its type, and the guards of what it is besides that."""

import logging
import threading
from typing import Any

from qwed.engines.pool import EnginePool
from qwed.engines.registry import ENGINES
from qwed.engines.verdict_cache import OwnedVerdictSource, VerdictCache
from qwed.kernel.a2a.message import EngineName, MessageVerdict
from qwed_a2a.config import InterceptorConfig
from qwed_a2a.guards import GUARDS, load_guard
from qwed_a2a.message import AgentMessage, PayloadType
from qwed_a2a.parsing import DataPart, Payload, UnparsableMessage, read_parts

ENGINE_SECONDS = 10.0
"""Time limit of an engine in seconds, including the wait for a worker (DESIGN 4.6)."""
_WORKERS = 2
_PARSER = "payload_parser"
log = logging.getLogger(__name__)


class ContentJudge:
    """Judge of payloads, which knows nothing of who sends them. Safe to use from any thread."""

    def __init__(self, config: InterceptorConfig, engines: VerdictCache | None = None) -> None:
        self.config = config
        self._engines, self._owns_engines = engines, engines is None
        self._closed = False
        self._lock = threading.Lock()

    async def judge(self, message: AgentMessage, owner: str = "") -> MessageVerdict:
        """Return the verdict on the content of a message.

        Engines are shared fairly between owners. It awaits futures of `qwed.futures` only, so an event loop or a
        thread may run it.
        """
        declared = await self._run_guard(message.payload_type, message.payload, owner)
        if not declared.forwarded or not self.config.verify_untyped:
            return declared
        return await self._judge_untyped(message, owner, declared)

    def start(self) -> None:
        """Load the engines in the background, so that the first message does not wait for them."""
        self._ensure_engines().start()

    def close(self) -> None:
        """Stop the engine workers that it started; workers passed in keep running."""
        with self._lock:
            engines, self._closed = self._engines, True
        if engines is not None and self._owns_engines:
            engines.close()

    def require_open(self) -> None:
        """Raise RuntimeError after `close`."""
        if self._closed:
            raise RuntimeError("the interceptor is closed")

    async def _judge_untyped(self, message: AgentMessage, owner: str, declared: MessageVerdict) -> MessageVerdict:
        """Return the verdict on what the payload is, whatever its type says; the declared one if it is nothing else."""
        try:
            contents = read_parts([DataPart(message.payload)])
        except Exception as error:  # noqa: BLE001  # like a guard, the parser may fail in any way
            return self._failure(_PARSER, type(error).__name__)
        if isinstance(contents, UnparsableMessage):
            return self._failure(_PARSER, "MessageParseError", contents.reason)
        verdict = declared
        for payload in contents.payloads:
            if payload.kind in GUARDS and not _is_declared(payload, message):
                verdict = await self._run_guard(payload.kind, payload.payload, owner)
                if not verdict.forwarded:
                    break
        return verdict

    async def _run_guard(self, kind: PayloadType, payload: dict[str, Any], owner: str) -> MessageVerdict:
        entry = GUARDS.get(kind)
        if entry is None or not getattr(self.config, entry.switch):
            reason = f"payloads of the type `{kind}` are not verified"
            return MessageVerdict(True, EngineName.PASSTHROUGH, reason)
        try:
            return await load_guard(entry)(payload, OwnedVerdictSource(self._ensure_engines(), owner))
        except Exception as error:  # noqa: BLE001  # the one broad catch of this package: an engine may fail in any way
            return self._failure(str(entry.engine), type(error).__name__)

    def _failure(self, part: str, kind: str, reason: str = "") -> MessageVerdict:
        """Return the verdict on a message that could not be read or judged: `block_on_error` decides.

        Of an error only its type is reported, because its text may quote the payload.
        """
        details = {"error": kind, "engine": part}
        if self.config.block_on_error:
            return MessageVerdict(False, EngineName.ERROR_HANDLER, reason or f"the {part} failed: {kind}", details)
        log.error("a2a %s failed, message forwarded unverified: %s", part, kind)
        reason = f"the {part} failed, and errors do not block: {kind}"
        return MessageVerdict(True, EngineName.ERROR_HANDLER, reason, details)

    def _ensure_engines(self) -> VerdictCache:
        with self._lock:
            if self._engines is None:
                self._engines = VerdictCache(EnginePool(ENGINES.values(), size=_WORKERS), ENGINE_SECONDS)
            return self._engines


def _is_declared(payload: Payload, message: AgentMessage) -> bool:
    """Return True if the guard of the declared type has judged this payload already."""
    if payload.kind is not message.payload_type:
        return False
    return payload.kind is not PayloadType.CODE_EXECUTION or payload.payload.get("code") == message.payload.get("code")
