"""Gate methods for the engines: verification without an agent."""

from base64 import b64encode
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any

from qwed.engines.pool import MAX_SECONDS
from qwed.futures import run_in_thread
from qwed.gate.base import GateBase
from qwed.gate.gate_result import Reply, unwrap, without_none
from qwed.kernel.answer import Problem
from qwed.kernel.audit_change import Actor
from qwed.kernel.services import Services
from qwed.kernel.verification.batch_jobs import find_batch, read_batch
from qwed.kernel.verification.batch_runner import BatchRunner
from qwed.kernel.verification.response import VerificationResult
from qwed.kernel.verification.service import verify_detected, verify_with_engine
from qwed.model.json_encode import to_json_value

_TIMEOUT_MARGIN = 5.0


class EngineMethods(GateBase):
    """Engines, in process. The fields are those of the HTTP API (INTERFACES 2)."""

    def __init__(self, services: Services, owner: Actor) -> None:
        super().__init__(services, owner)
        self._batches = BatchRunner(services)

    def verify(self, query: str | None = None, **fields: Any) -> Reply:
        """Verify any input; the engine is taken from `type` or detected."""
        request = to_json_value(without_none({"query": query, **fields}))
        return self._result_of(verify_detected(request, self._owner, self.services))

    def verify_legal(
        self, operation: str, query: str | None = None, *, options: Mapping[str, Any] | None = None, **values: Any
    ) -> Reply:
        """Verify a deadline, citation, cap, choice of law, limitation or provenance, named by `operation`."""
        return self.verify(query, type="legal", operation=operation, params=values, options=options)

    def verify_finance(
        self, operation: str, query: str | None = None, *, options: Mapping[str, Any] | None = None, **values: Any
    ) -> Reply:
        """Verify interest, a loan, cash flows, a banking scenario or a payment message, named by `operation`."""
        return self.verify(query, type="finance", operation=operation, params=values, options=options)

    def verify_ucp(
        self, operation: str, query: str | None = None, *, options: Mapping[str, Any] | None = None, **values: Any
    ) -> Reply:
        """Verify a cart, checkout or order of the Universal Commerce Protocol, named by `operation`."""
        return self.verify(query, type="ucp", operation=operation, params=values, options=options)

    def verify_tax(
        self, operation: str, query: str | None = None, *, options: Mapping[str, Any] | None = None, **values: Any
    ) -> Reply:
        """Verify payroll, a sales tax, a GST or a tax on crypto, named by `operation`."""
        return self.verify(query, type="tax", operation=operation, params=values, options=options)

    def verify_math(self, expression: str, **fields: Any) -> Reply:
        """Verify a claim, or with `operation` and `claimed_result` a computation."""
        return self._ask("math", expression=expression, **fields)

    def verify_logic(self, query: str | None = None, **fields: Any) -> Reply:
        """Verify a formula, or `premises` and a `conclusion`."""
        return self._ask("logic", query=query, **fields)

    def verify_code(self, code: str, language: str = "python", **fields: Any) -> Reply:
        """Verify that code is pure computation."""
        return self._ask("code", code=code, language=language, **fields)

    def verify_sql(self, query: str, schema_ddl: str | None = None, dialect: str | None = None, **fields: Any) -> Reply:
        """Verify that a query only reads permitted data."""
        return self._ask("sql", query=query, schema_ddl=schema_ddl, dialect=dialect, **fields)

    def verify_fact(self, claim: str, context: str, **fields: Any) -> Reply:
        """Verify a claim against a text."""
        return self._ask("fact", claim=claim, context=context, **fields)

    def verify_stats(self, query: str, file: bytes, **fields: Any) -> Reply:
        """Verify a claim against the table in `file`."""
        return self._ask("stats", query=query, content_base64=b64encode(file).decode(), **fields)

    def verify_image(self, claim: str, file: bytes, **fields: Any) -> Reply:
        """Verify a claim against the image in `file`."""
        return self._ask("image", claim=claim, content_base64=b64encode(file).decode(), **fields)

    def verify_consensus(self, query: str, **fields: Any) -> Reply:
        """Verify a claim by independent methods; `verification_mode` and `min_confidence` as in the HTTP API."""
        return self._ask("consensus", query=query, **fields)

    def verify_batch(self, items: list[dict[str, Any]], options: Mapping[str, Any] | None = None) -> Reply:
        """Verify up to 100 items; return the job when it is finished or after a minute."""
        batch = unwrap(read_batch({"items": to_json_value(items), "options": options}, self._owner, self.services))
        waiters = self.services.waiters
        waiter = waiters.wait(batch.job.job_id)
        try:
            refusal = run_in_thread(self._batches.add(batch), MAX_SECONDS)
            if refusal is not None:
                unwrap(refusal)
            with suppress(TimeoutError):
                waiter.wait(MAX_SECONDS)
        finally:
            waiters.leave(batch.job.job_id, waiter)
        return self.get_batch_status(batch.job.job_id)

    def get_batch_status(self, job_id: str) -> Reply:
        """Return a batch job."""
        self._batches.start()
        return Reply(unwrap(find_batch(job_id, self._owner.organisation_id, self.services)))

    def _ask(self, engine: str, **fields: Any) -> Reply:
        return self._result_of(verify_with_engine(engine, without_none(fields), self._owner, self.services))

    def _result_of(self, coro: Coroutine[Any, None, VerificationResult | Problem]) -> Reply:
        return Reply(unwrap(run_in_thread(coro, MAX_SECONDS + _TIMEOUT_MARGIN)))
