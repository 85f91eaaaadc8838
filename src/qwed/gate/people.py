"""The verbs of a Gate that are a person's: approvals, trust, stopping agents, the tool registry, erasure."""

from collections.abc import Coroutine
from typing import Any

from qwed.gate.holder import Holder
from qwed.gate.reply import Reply, told
from qwed.kernel.agents import elevation, standing, trust
from qwed.kernel.answer import Problem
from qwed.kernel.bodies import read_fields
from qwed.kernel.change import GATE
from qwed.kernel.keeping import erasure
from qwed.kernel.people import approvals, registry
from qwed.kernel.people.listing import Asked, approvals_page, changes_page
from qwed.kernel.views.agents import registered_view
from qwed.kernel.views.record import approval_view
from qwed.store.protocol import KeptApproval


class PeopleVerbs(Holder):
    """Rulings 4.2, 4.4 and 4.10, in process."""

    def list_approvals(self, state: str | None = None, agent_id: str | None = None, limit: int = 100) -> list[Reply]:
        """What waits for a person, and what became of it, newest first."""
        asked = Asked(limit=str(limit), state=state, agent_id=agent_id)
        page = told(approvals_page(self._owner.organisation_id, asked, self.services))
        return [Reply(approval) for approval in page.approvals]

    def get_approval(self, approval_id: str) -> Reply:
        """One approval."""
        found = approvals.find_approval(approval_id, self._owner.organisation_id, self.services)
        return Reply(approval_view(told(found), self.services))

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

    def list_tools(self) -> list[Reply]:
        """Spec 5.3: the tool registry."""
        return [Reply(row) for row in registry.tools_of(self._owner.organisation_id, self.services)]

    def put_tool(self, name: str, risk_level: str, **fields: Any) -> Reply:
        """A row of the registry, such as `requires_approval=True`; it makes the tool known."""
        row = told(registry.read_tool(name, {"risk_level": risk_level, **fields}))
        return Reply(self._act(registry.describe(row, self._owner, self.services)))

    def list_changes(self, limit: int = 100) -> list[Reply]:
        """What was changed in the organisation, by whom, newest first."""
        page = told(changes_page(self._owner.organisation_id, Asked(limit=str(limit)), self.services))
        return [Reply(change) for change in page.changes]

    def _said(self, reason: str, approver: str | None = None) -> approvals.Said:
        texts = told(read_fields({"reason": reason, "approver": approver}, ("reason",), ("approver",)))
        return approvals.Said(texts["reason"], texts.get("approver"))

    def _approval(self, walk: Coroutine[Any, None, KeptApproval | Problem]) -> Reply:
        return Reply(approval_view(self._act(walk), self.services))
