"""Dependencies of the pipeline stages. Tests build one with a manual clock or a failing store; nothing is global."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from qwed.domain.agent import Agent, AgentStatus
from qwed.engines.verdict_cache import VerdictCache
from qwed.kernel.a2a.refusal_coalescing import RefusalCoalescer
from qwed.kernel.admin.approval_waiters import Waiters
from qwed.kernel.analysis.assessment import AssessmentCache
from qwed.kernel.privacy.subject_keys import Vault
from qwed.kernel.reports.concurrency import ReportLimiter
from qwed.ledger.attest import Signer
from qwed.ledger.sequencer import Sequencer
from qwed.model.clock import Clock
from qwed.settings import Settings
from qwed.store.protocol import Store
from qwed.translate.provider import Translator


@dataclass(frozen=True, kw_only=True, slots=True)
class Services:
    """Store, engines, clock, signer and settings."""

    store: Store
    engines: VerdictCache
    signer: Signer
    sequencer: Sequencer
    vault: Vault
    settings: Settings
    assessments: AssessmentCache = field(default_factory=AssessmentCache)
    waiters: Waiters = field(default_factory=Waiters)
    reports: ReportLimiter = field(default_factory=ReportLimiter)
    refusal_coalescer: RefusalCoalescer = field(default_factory=RefusalCoalescer)
    translator: Translator | None = None
    """Translates sentences into formulas, where the operator has configured a provider."""
    clock: Clock = field(default_factory=Clock)
    log: logging.Logger = field(default_factory=lambda: logging.getLogger("qwed"))
    at_stage: Callable[[str], None] | None = None
    """Called with the name of each stage before it runs. None in production; the fault tests kill the process here."""

    @property
    def installation(self) -> str:
        """Id shared by all processes on this store: the id of the first organisation."""
        return self.store.first_organisation() or ""

    def stopped(self, agent: Agent) -> bool:
        """Return True if the agent is not active or its whole organisation is halted."""
        return agent.status is not AgentStatus.ACTIVE or self.store.halted(agent.organisation_id)
