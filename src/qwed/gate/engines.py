"""The verbs of a Gate that ask an engine: a claim and its verdict, no agent."""

from base64 import b64encode
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any

from qwed.engines.pool import LONGEST_SECONDS
from qwed.gate.holder import Holder
from qwed.gate.reply import Reply, given, told
from qwed.kernel.answer import Problem
from qwed.kernel.change import Actor
from qwed.kernel.inquiries.asking import ask_any, ask_engine
from qwed.kernel.inquiries.batches import Batches
from qwed.kernel.inquiries.finding import Finding
from qwed.kernel.inquiries.jobs import find_batch, read_batch
from qwed.kernel.services import Services
from qwed.waiting import in_thread
from qwed.words.written import written

_MARGIN = 5.0


class EngineVerbs(Holder):
    """INTERFACES 2, in process. The fields are those of the wire."""

    def __init__(self, services: Services, owner: Actor) -> None:
        super().__init__(services, owner)
        self._batches = Batches(services)

    def verify(self, query: str | None = None, **fields: Any) -> Reply:
        """INTERFACES 2: verify any input; `type`, or else its shape, says which engine reads it."""
        asked = written(given({"query": query, **fields}))
        return self._found(ask_any(asked, self._owner, self.services))

    def verify_legal(
        self, operation: str, query: str | None = None, *, options: Mapping[str, Any] | None = None, **values: Any
    ) -> Reply:
        """A deadline, a citation, a cap, a choice of law, a limitation or a provenance; `operation` says which."""
        return self.verify(query, type="legal", operation=operation, params=values, options=options)

    def verify_finance(
        self, operation: str, query: str | None = None, *, options: Mapping[str, Any] | None = None, **values: Any
    ) -> Reply:
        """Interest, a loan, cash flows, a banking scenario or a payment message; `operation` says which."""
        return self.verify(query, type="finance", operation=operation, params=values, options=options)

    def verify_ucp(
        self, operation: str, query: str | None = None, *, options: Mapping[str, Any] | None = None, **values: Any
    ) -> Reply:
        """A cart, a checkout or an order of the Universal Commerce Protocol; `operation` says which."""
        return self.verify(query, type="ucp", operation=operation, params=values, options=options)

    def verify_tax(
        self, operation: str, query: str | None = None, *, options: Mapping[str, Any] | None = None, **values: Any
    ) -> Reply:
        """Payroll, a sales tax, a GST or a tax on crypto; `operation` says which."""
        return self.verify(query, type="tax", operation=operation, params=values, options=options)

    def verify_math(self, expression: str, **fields: Any) -> Reply:
        """A claim, or with `operation` and `claimed_result` a computation; `params` and `options` as on the wire."""
        return self._ask("math", expression=expression, **fields)

    def verify_logic(self, query: str | None = None, **fields: Any) -> Reply:
        """A formula, or `premises` and a `conclusion`."""
        return self._ask("logic", query=query, **fields)

    def verify_code(self, code: str, language: str = "python", **fields: Any) -> Reply:
        """Whether the code is pure computation."""
        return self._ask("code", code=code, language=language, **fields)

    def verify_sql(self, query: str, schema_ddl: str | None = None, dialect: str | None = None, **fields: Any) -> Reply:
        """Whether the query only reads, and nothing it should not."""
        return self._ask("sql", query=query, schema_ddl=schema_ddl, dialect=dialect, **fields)

    def verify_fact(self, claim: str, context: str, **fields: Any) -> Reply:
        """Whether the context says so."""
        return self._ask("fact", claim=claim, context=context, **fields)

    def verify_stats(self, query: str, file: bytes, **fields: Any) -> Reply:
        """Whether the table in `file` bears out the claim."""
        return self._ask("stats", query=query, content_base64=b64encode(file).decode(), **fields)

    def verify_image(self, claim: str, file: bytes, **fields: Any) -> Reply:
        """Whether the image in `file` bears out the claim."""
        return self._ask("image", claim=claim, content_base64=b64encode(file).decode(), **fields)

    def verify_consensus(self, query: str, **fields: Any) -> Reply:
        """Whether independent methods agree on it; `verification_mode` and `min_confidence` as on the wire."""
        return self._ask("consensus", query=query, **fields)

    def verify_batch(self, items: list[dict[str, Any]], options: Mapping[str, Any] | None = None) -> Reply:
        """A job of up to 100 items, as it stands when it is over or after a minute."""
        batch = told(read_batch({"items": written(items), "options": options}, self._owner, self.services))
        bells = self.services.doorbells
        bell = bells.wait(batch.job.job_id)
        try:
            full = in_thread(self._batches.add(batch), LONGEST_SECONDS)
            if full is not None:
                told(full)
            with suppress(TimeoutError):
                bell.wait(LONGEST_SECONDS)
        finally:
            bells.leave(batch.job.job_id, bell)
        return self.get_batch_status(batch.job.job_id)

    def get_batch_status(self, job_id: str) -> Reply:
        """The job as it stands now."""
        self._batches.start()
        return Reply(told(find_batch(job_id, self._owner.organisation_id, self.services)))

    def _ask(self, engine: str, **fields: Any) -> Reply:
        return self._found(ask_engine(engine, given(fields), self._owner, self.services))

    def _found(self, walk: Coroutine[Any, None, Finding | Problem]) -> Reply:
        return Reply(told(in_thread(walk, LONGEST_SECONDS + _MARGIN)))
