"""What the stages work with. Tests build one with a still clock or a store that fails; nothing is global."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from qwed.engines.verdicts import Verdicts
from qwed.kernel.judging.judgement import Judgements
from qwed.kernel.keeping.vault import Vault
from qwed.kernel.messages.floods import Floods
from qwed.kernel.people.doorbell import Doorbells
from qwed.kernel.report.desk import ReportDesk
from qwed.kernel.tools import TOOLS, Tool
from qwed.ledger.attest import Signer
from qwed.ledger.sequencer import Sequencer
from qwed.settings import Settings
from qwed.store.agent import Agent, AgentStatus
from qwed.store.protocol import Store
from qwed.translate.provider import Translator
from qwed.words.clock import Clock


@dataclass(frozen=True, kw_only=True, slots=True)
class Services:
    """Store, engines, clock, signer and settings."""

    store: Store
    engines: Verdicts
    signer: Signer
    sequencer: Sequencer
    vault: Vault
    settings: Settings
    judgements: Judgements = field(default_factory=Judgements)
    doorbells: Doorbells = field(default_factory=Doorbells)
    reports: ReportDesk = field(default_factory=ReportDesk)
    floods: Floods = field(default_factory=Floods)
    translator: Translator | None = None
    """Sentences into formulas, where an operator has configured a provider."""
    clock: Clock = field(default_factory=Clock)
    log: logging.Logger = field(default_factory=lambda: logging.getLogger("qwed"))
    at_stage: Callable[[str], None] | None = None
    """Called with each stage's name before it runs. None in production; the fault tests end the process here."""

    @property
    def installation(self) -> str:
        """What all processes on this store have in common, and no others: the first organisation's id."""
        return self.store.first_organisation() or ""

    def stopped(self, agent: Agent) -> bool:
        """Whether the agent may do nothing: it is suspended, or its whole organisation is halted."""
        return agent.status is AgentStatus.SUSPENDED or self.store.halted(agent.organisation_id)

    def tool(self, organisation_id: str, name: str) -> Tool | None:
        """The registry's row: the organisation's own over the built-in one."""
        own = self.store.tool_rows(organisation_id).get(name)
        return TOOLS.get(name) if own is None else _tool.decode(own)


_tool = msgspec.json.Decoder(Tool)
