"""Gate: decides in this process, with the verbs of the client."""

from collections.abc import Coroutine, Mapping
from contextlib import suppress
from datetime import date
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from qwed.gate.attestations import AttestationVerbs
from qwed.gate.audit import AuditVerbs
from qwed.gate.engines import EngineVerbs
from qwed.gate.reply import GateError, Reply, given, told
from qwed.kernel.agents import elevation, standing, trust
from qwed.kernel.agents.actions import action_view, waits
from qwed.kernel.agents.activity import Asked, activity_page
from qwed.kernel.agents.execution import log_execution, read_report
from qwed.kernel.agents.registration import register
from qwed.kernel.answer import Problem
from qwed.kernel.bodies import read_fields
from qwed.kernel.case import Case, Credentials
from qwed.kernel.change import GATE, Actor
from qwed.kernel.keeping import erasure
from qwed.kernel.people import approvals
from qwed.kernel.people.approvals import expire_of
from qwed.kernel.pipeline import verify_action
from qwed.kernel.report import gathering as report
from qwed.kernel.tools import TOOL_CALL
from qwed.kernel.views.agents import agent_view, budget_view, registered_view
from qwed.kernel.views.record import approval_view
from qwed.kernel.wiring import Opened, close_services, open_services
from qwed.settings import settings_from
from qwed.store.agent import Agent
from qwed.store.protocol import ApprovalQuery, KeptApproval
from qwed.store.sqlite import MEMORY
from qwed.waiting import in_thread
from qwed.witness.places import require_places
from qwed.witness.witness import witness_for
from qwed.words import ErrorCode
from qwed.words.clock import Clock

_PATIENCE = 60.0
T = TypeVar("T")


class Gate(EngineVerbs, AuditVerbs, AttestationVerbs):
    """Decides in this process. Whoever holds a Gate is the owner of its first organisation."""

    def __init__(self, opened: Opened) -> None:
        super().__init__(opened.services, Actor(GATE, opened.organisation_id, "owner"))
        self.organisation_id = opened.organisation_id
        self.owner_key = opened.owner_key
        self.witness = witness_for(opened.services)
        """Where the heads of its logs are published, and whether the logs agree with what was."""
        self.witness.start()
        self._as_owner = Credentials(organisation_id=opened.organisation_id)
        self._sweeper = erasure.Sweeper(opened.services)
        self._sweeper.start()

    def register_agent(self, **fields: Any) -> Reply:
        """Spec 3: name, principal_id, type, permissions, budget, trust_level, description, framework, model."""
        outcome = self._act(register(given(fields), self._owner, self.services))
        return Reply(registered_view(outcome.agent, outcome.token))

    def verify_action(
        self,
        agent_id: str,
        action: Mapping[str, Any],
        context: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        agent_token: str | None = None,
        idempotency_key: str | None = None,
        *,
        justification: str | None = None,
        context_required: bool = True,
    ) -> Reply:
        """Spec 4: may this action happen? With a token it is asked as the agent, without as the owner."""
        case = Case(
            agent_id=agent_id,
            credentials=self._as_owner if agent_token is None else Credentials(agent_token=agent_token),
            action_raw=action,
            context_raw=context,
            options_raw=options,
            idempotency_key=idempotency_key,
            justification=justification,
            context_required=context_required,
            now=self.services.clock.now(),
        )
        return Reply(in_thread(verify_action(case, self.services), _PATIENCE))

    def verify_tool_call(
        self,
        agent_id: str,
        tool_name: str,
        parameters: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        agent_token: str | None = None,
        idempotency_key: str | None = None,
        *,
        justification: str | None = None,
    ) -> Reply:
        """Spec 5: the same walk for a tool."""
        action = {"type": TOOL_CALL, "tool": tool_name, "parameters": parameters or {}}
        required = self.services.settings.require_tool_context
        return self.verify_action(
            agent_id,
            action,
            context,
            options,
            agent_token,
            idempotency_key,
            justification=justification,
            context_required=required,
        )

    def get_agent(self, agent_id: str) -> Reply:
        """An agent of this organisation."""
        return self._shown(self._agent(agent_id))

    def list_agents(self, limit: int = 100, after: str = "") -> list[Reply]:
        """The agents of this organisation by id, `after` the last one seen."""
        return [self._shown(agent) for agent in self.services.store.list_agents(self.organisation_id, limit, after)]

    def get_agent_budget(self, agent_id: str) -> Reply:
        """Spec 6.1."""
        agent = self._agent(agent_id)
        expire_of(agent, self.services, self.services.clock.now())
        return Reply(budget_view(agent, self.services.store.spent(agent_id, self.services.clock.now())))

    def get_agent_activity(self, agent_id: str, limit: int = 100, **query: Any) -> list[Reply]:
        """Spec 7: newest first; `decision`, `since`, `until` and `cursor` narrow it."""
        asked = Asked(limit=str(limit), **{name: str(value) for name, value in query.items()})
        page = told(activity_page(self._agent(agent_id), asked, self.services))
        return [Reply(activity) for activity in page.activities]

    def compliance_report(
        self,
        agent_id: str,
        format: str = "pdf",  # noqa: A002 - the interface calls it so
        since: date | str | None = None,
        until: date | str | None = None,
    ) -> bytes:
        """Spec 7.3: what an auditor is handed about an agent, as `pdf`, `json` or `csv`; the last thirty days."""
        period = (None if moment is None else str(moment) for moment in (since, until))
        asked = report.Asked(format, *period)
        return b"".join(told(report.compliance_report(self._agent(agent_id), asked, self.services)).chunks())

    def get_action(self, agent_id: str, action_id: str) -> Reply:
        """One action as it stands now."""
        return Reply(told(action_view(self._agent(agent_id), action_id, self.services)))

    def wait_for_decision(self, agent_id: str, action_id: str, timeout: float = 30.0) -> Reply:
        """The action once a person has decided, or as it stands after so many seconds."""
        bells = self.services.doorbells
        bell = bells.wait(action_id)
        try:
            found = told(action_view(self._agent(agent_id), action_id, self.services))
            if waits(found):
                with suppress(TimeoutError):
                    bell.wait(timeout)
                return self.get_action(agent_id, action_id)
            return Reply(found)
        finally:
            bells.leave(action_id, bell)

    def log_execution(
        self,
        agent_id: str,
        action_id: str,
        success: bool,
        result: Any = None,
        attestation: str | Mapping[str, Any] | None = None,
    ) -> Reply:
        """Spec 7.1: what became of a permitted action; of the result only its hash is kept."""
        said = {"success": success, "result": result, "attestation": attestation}
        report = told(read_report(said))
        return Reply(self._act(log_execution(self._agent(agent_id), action_id, report, GATE, self.services)))

    def list_approvals(self, state: str | None = None, agent_id: str | None = None, limit: int = 100) -> list[Reply]:
        """What waits for a person, and what became of it, newest first."""
        now = self.services.clock.now()
        query = ApprovalQuery(self.organisation_id, limit, None, state, agent_id, now)
        return [Reply(approval_view(found, self.services)) for found in self.services.store.list_approvals(query)]

    def approve(self, approval_id: str, reason: str, approver: str | None = None) -> Reply:
        """Permit what waits."""
        said = self._said(reason, approver)
        return self._approval(approvals.approve(approval_id, said, self._owner, self.services))

    def reject(self, approval_id: str, reason: str, approver: str | None = None) -> Reply:
        """Refuse what waits, and free what it holds."""
        said = self._said(reason, approver)
        return self._approval(approvals.reject(approval_id, said, self._owner, self.services))

    def request_trust_change(self, agent_id: str, to_level: int, justification: str = "") -> Reply:
        """Spec 8.2: ask a person for one level more; GateError with the evidence where that is not enough."""
        agent = self._agent(agent_id)
        wanted = told(trust.read_request({"to_level": to_level, "justification": justification}, agent))
        return Reply(self._act(elevation.request_elevation(agent, wanted, GATE, self.services)))

    def reduce_trust(self, agent_id: str, to_level: int, justification: str = "") -> Reply:
        """Lower an agent's trust at once."""
        agent = self._agent(agent_id)
        said = {"request": trust.REDUCTION, "to_level": to_level, "justification": justification}
        wanted = told(trust.read_request(said, agent))
        return self._shown(self._act(trust.reduce_trust(agent, wanted, self._owner, self.services)))

    def suspend_agent(self, agent_id: str, reason: str) -> Reply:
        """Stop an agent."""
        return self._shown(
            self._act(standing.suspend(self._agent(agent_id), self._said(reason).reason, self._owner, self.services))
        )

    def file_complaint(self, agent_id: str, reason: str) -> Reply:
        """Spec 8.3: a complaint stops the agent."""
        return self._shown(
            self._act(standing.complain(self._agent(agent_id), self._said(reason).reason, self._owner, self.services))
        )

    def reactivate_agent(self, agent_id: str, reason: str) -> Reply:
        """Let a stopped agent go on."""
        return self._shown(
            self._act(standing.reactivate(self._agent(agent_id), self._said(reason).reason, self._owner, self.services))
        )

    def rotate_token(self, agent_id: str) -> Reply:
        """A new token for the agent; the old one opens nothing any more."""
        outcome = self._act(standing.rotate_token(self._agent(agent_id), self._owner, self.services))
        return Reply(registered_view(outcome.agent, outcome.token))

    def suspend_all(self, reason: str) -> None:
        """The kill switch: stop every agent at once."""
        self._act(standing.set_halt(True, self._said(reason).reason, self._owner, self.services))

    def reactivate_all(self, reason: str) -> None:
        """Put the kill switch back."""
        self._act(standing.set_halt(False, self._said(reason).reason, self._owner, self.services))

    def erase(self, subject: str) -> Reply:
        """DESIGN 7: destroy the key of a subject, and with it all content about them."""
        return Reply(
            self._act(erasure.erase(told(erasure.read_erasure({"subject": subject})), self._owner, self.services))
        )

    def close(self) -> None:
        """Write what is queued, end the workers, give the directory back."""
        self._batches.close()
        self._sweeper.close()
        # Whoever waits in another thread is told while there is still somebody to ask.
        self.services.doorbells.ring_all()
        self.witness.close()
        close_services(self.services)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _act(self, walk: Coroutine[Any, None, T | Problem]) -> T:
        """What came of a change, or GateError."""
        return told(in_thread(walk, _PATIENCE))

    def _said(self, reason: str, approver: str | None = None) -> approvals.Said:
        texts = told(read_fields({"reason": reason, "approver": approver}, ("reason",), ("approver",)))
        return approvals.Said(texts["reason"], texts.get("approver"))

    def _approval(self, walk: Coroutine[Any, None, KeptApproval | Problem]) -> Reply:
        return Reply(approval_view(self._act(walk), self.services))

    def _shown(self, agent: Agent) -> Reply:
        return Reply(agent_view(agent, halted=self.services.store.halted(self.organisation_id)))

    def _agent(self, agent_id: str) -> Agent:
        agent = self.services.store.find_agent(agent_id)
        if agent is None or agent.organisation_id != self.organisation_id:
            raise GateError(ErrorCode.AGENT_NOT_REGISTERED.code, ErrorCode.AGENT_NOT_REGISTERED.meaning)
        return agent


def open_gate(place: str | Path = MEMORY, *, clock: Clock | None = None, **settings: Any) -> Gate:
    """A Gate on a data directory, or on `:memory:` where nothing outlives the process."""
    in_memory = place == MEMORY
    if not in_memory:
        settings["data_dir"] = Path(place)
    read = settings_from(**settings)
    require_places(read)
    return Gate(open_services(read, in_memory=in_memory, clock=clock))
