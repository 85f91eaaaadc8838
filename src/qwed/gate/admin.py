"""Gate methods for people: approvals, trust, suspension, tool registry, erasure."""

from typing import Any

from qwed.gate.base import GateBase
from qwed.gate.gate_result import Reply
from qwed.kernel.agents.trust import REDUCTION, RESTORATION
from qwed.kernel.operations import admin_operations as admin
from qwed.kernel.operations import agent_operations as agents
from qwed.kernel.operations import audit_operations as audit


class AdminMethods(GateBase):
    """Administration, in process (rulings 4.2, 4.4 and 4.10)."""

    def list_approvals(self, state: str | None = None, agent_id: str | None = None, limit: int = 100) -> list[Reply]:
        """Return approvals, newest first."""
        return self._list(admin.list_approvals, "approvals", state=state, agent_id=agent_id, limit=limit)

    def get_approval(self, approval_id: str) -> Reply:
        """Return one approval."""
        return self._call(admin.get_approval, {"approval_id": approval_id})

    def approve(self, approval_id: str, reason: str, approver: str | None = None) -> Reply:
        """Approve a pending action."""
        return self._call(admin.approve, {"approval_id": approval_id}, reason=reason, approver=approver)

    def reject(self, approval_id: str, reason: str, approver: str | None = None) -> Reply:
        """Reject a pending action and release the cost it reserved."""
        return self._call(admin.reject, {"approval_id": approval_id}, reason=reason, approver=approver)

    def request_trust_change(self, agent_id: str, to_level: int, justification: str = "") -> Reply:
        """Request one more level of trust; raise GateError with the evidence if it is not sufficient (spec 8.2)."""
        path = {"agent_id": agent_id}
        return self._call(agents.change_trust, path, to_level=to_level, justification=justification)

    def reduce_trust(self, agent_id: str, to_level: int, justification: str = "") -> Reply:
        """Reduce an agent's trust at once."""
        fields = {"request": REDUCTION, "to_level": to_level, "justification": justification}
        self._call(agents.change_trust, {"agent_id": agent_id}, **fields)
        return self._call(agents.get_agent, {"agent_id": agent_id})

    def restore_trust(self, agent_id: str, to_level: int, reason: str) -> Reply:
        """Give back trust that an agent lost automatically, at once."""
        fields = {"request": RESTORATION, "to_level": to_level, "reason": reason}
        self._call(agents.change_trust, {"agent_id": agent_id}, **fields)
        return self._call(agents.get_agent, {"agent_id": agent_id})

    def suspend_agent(self, agent_id: str, reason: str) -> Reply:
        """Suspend an agent."""
        return self._call(agents.suspend, {"agent_id": agent_id}, reason=reason)

    def file_complaint(self, agent_id: str, reason: str) -> Reply:
        """File a complaint, which suspends the agent (spec 8.3)."""
        return self._call(agents.file_complaint, {"agent_id": agent_id}, reason=reason)

    def reactivate_agent(self, agent_id: str, reason: str) -> Reply:
        """Reactivate a suspended agent."""
        return self._call(agents.reactivate, {"agent_id": agent_id}, reason=reason)

    def rotate_token(self, agent_id: str) -> Reply:
        """Return a new token for the agent; the old one becomes invalid."""
        return self._call(agents.rotate_token, {"agent_id": agent_id})

    def suspend_all(self, reason: str) -> None:
        """Suspend every agent at once (kill switch)."""
        self._call(agents.suspend_all, reason=reason)

    def reactivate_all(self, reason: str) -> None:
        """Release the kill switch."""
        self._call(agents.reactivate_all, reason=reason)

    def erase(self, subject: str) -> Reply:
        """Destroy the key of a subject, and with it all content about them (DESIGN 7)."""
        return self._call(audit.erase_subject, subject=subject)

    def list_tools(self) -> list[Reply]:
        """Return the registered tools (spec 5.3)."""
        return self._list(admin.list_tools, "tools")

    def put_tool(self, name: str, risk_level: str, **fields: Any) -> Reply:
        """Register a tool, e.g. with `requires_approval=True` or `dialect="postgres"`."""
        return self._call(admin.put_tool, {"name": name}, risk_level=risk_level, **fields)

    def delete_tool(self, name: str) -> None:
        """Delete the organisation's registration of a tool; a built-in one applies again."""
        self._call(admin.delete_tool, {"name": name})

    def list_changes(self, limit: int = 100) -> list[Reply]:
        """Return the changes of the organisation, newest first."""
        return self._list(admin.list_changes, "changes", limit=limit)
