"""Gate methods for people: approvals, trust, suspension, tool registry, erasure."""

from collections.abc import Coroutine
from typing import Any

from qwed.gate.base import GateBase
from qwed.gate.gate_result import Reply, unwrap
from qwed.kernel.admin import approvals, tool_registry
from qwed.kernel.admin.pages import PageQuery, approvals_page, changes_page
from qwed.kernel.agents import elevation, lifecycle, trust
from qwed.kernel.answer import Problem
from qwed.kernel.audit_change import GATE
from qwed.kernel.body_parsing import read_fields
from qwed.kernel.privacy import erasure
from qwed.kernel.views.activity_views import approval_view
from qwed.kernel.views.agent_views import registered_view
from qwed.store.protocol import ApprovalRecord


class AdminMethods(GateBase):
    """Administration, in process (rulings 4.2, 4.4 and 4.10)."""

    def list_approvals(self, state: str | None = None, agent_id: str | None = None, limit: int = 100) -> list[Reply]:
        """Return approvals, newest first."""
        query = PageQuery(limit=str(limit), state=state, agent_id=agent_id)
        page = unwrap(approvals_page(self._owner.organisation_id, query, self.services))
        return [Reply(approval) for approval in page.approvals]

    def get_approval(self, approval_id: str) -> Reply:
        """Return one approval."""
        approval = approvals.find_approval(approval_id, self._owner.organisation_id, self.services)
        return Reply(approval_view(unwrap(approval), self.services))

    def approve(self, approval_id: str, reason: str, approver: str | None = None) -> Reply:
        """Approve a pending action."""
        comment = self._comment(reason, approver)
        return self._approval(approvals.approve(approval_id, comment, self._owner, self.services))

    def reject(self, approval_id: str, reason: str, approver: str | None = None) -> Reply:
        """Reject a pending action and release the cost it reserved."""
        comment = self._comment(reason, approver)
        return self._approval(approvals.reject(approval_id, comment, self._owner, self.services))

    def request_trust_change(self, agent_id: str, to_level: int, justification: str = "") -> Reply:
        """Request one more level of trust; raise GateError with the evidence if it is not sufficient (spec 8.2)."""
        agent = self._agent(agent_id)
        request = unwrap(trust.read_request({"to_level": to_level, "justification": justification}, agent))
        return Reply(self._act(elevation.request_elevation(agent, request, GATE, self.services)))

    def reduce_trust(self, agent_id: str, to_level: int, justification: str = "") -> Reply:
        """Reduce an agent's trust at once."""
        agent = self._agent(agent_id)
        comment = {"request": trust.REDUCTION, "to_level": to_level, "justification": justification}
        request = unwrap(trust.read_request(comment, agent))
        return self._agent_reply(self._act(trust.reduce_trust(agent, request, self._owner, self.services)))

    def suspend_agent(self, agent_id: str, reason: str) -> Reply:
        """Suspend an agent."""
        return self._agent_reply(
            self._act(
                lifecycle.suspend(self._agent(agent_id), self._comment(reason).reason, self._owner, self.services)
            )
        )

    def file_complaint(self, agent_id: str, reason: str) -> Reply:
        """File a complaint, which suspends the agent (spec 8.3)."""
        return self._agent_reply(
            self._act(
                lifecycle.complain(self._agent(agent_id), self._comment(reason).reason, self._owner, self.services)
            )
        )

    def reactivate_agent(self, agent_id: str, reason: str) -> Reply:
        """Reactivate a suspended agent."""
        return self._agent_reply(
            self._act(
                lifecycle.reactivate(self._agent(agent_id), self._comment(reason).reason, self._owner, self.services)
            )
        )

    def rotate_token(self, agent_id: str) -> Reply:
        """Return a new token for the agent; the old one becomes invalid."""
        outcome = self._act(lifecycle.rotate_token(self._agent(agent_id), self._owner, self.services))
        return Reply(registered_view(outcome.agent, outcome.token))

    def suspend_all(self, reason: str) -> None:
        """Suspend every agent at once (kill switch)."""
        self._act(lifecycle.set_halt(True, self._comment(reason).reason, self._owner, self.services))

    def reactivate_all(self, reason: str) -> None:
        """Release the kill switch."""
        self._act(lifecycle.set_halt(False, self._comment(reason).reason, self._owner, self.services))

    def erase(self, subject: str) -> Reply:
        """Destroy the key of a subject, and with it all content about them (DESIGN 7)."""
        return Reply(
            self._act(erasure.erase(unwrap(erasure.read_erasure({"subject": subject})), self._owner, self.services))
        )

    def list_tools(self) -> list[Reply]:
        """Return the registered tools (spec 5.3)."""
        return [Reply(row) for row in tool_registry.tools_of(self._owner.organisation_id, self.services)]

    def put_tool(self, name: str, risk_level: str, **fields: Any) -> Reply:
        """Register a tool, e.g. with `requires_approval=True` or `dialect="postgres"`."""
        row = unwrap(tool_registry.read_tool(name, {"risk_level": risk_level, **fields}))
        return Reply(self._act(tool_registry.register_tool(row, self._owner, self.services)))

    def list_changes(self, limit: int = 100) -> list[Reply]:
        """Return the changes of the organisation, newest first."""
        page = unwrap(changes_page(self._owner.organisation_id, PageQuery(limit=str(limit)), self.services))
        return [Reply(change) for change in page.changes]

    def _comment(self, reason: str, approver: str | None = None) -> approvals.ApprovalComment:
        texts = unwrap(read_fields({"reason": reason, "approver": approver}, ("reason",), ("approver",)))
        return approvals.ApprovalComment(texts["reason"], texts.get("approver"))

    def _approval(self, coro: Coroutine[Any, None, ApprovalRecord | Problem]) -> Reply:
        return Reply(approval_view(self._act(coro), self.services))
