"""Gate methods for agents: registration, activity, reports, actions."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import date
from typing import Any

from qwed.gate.base import GateBase
from qwed.gate.gate_result import Reply, unwrap, without_none
from qwed.kernel.agents.actions import action_view, is_pending
from qwed.kernel.agents.activity import ActivityPageQuery, activity_page
from qwed.kernel.agents.budget import budget_of
from qwed.kernel.agents.execution import log_execution, read_report
from qwed.kernel.agents.pages import agents_page
from qwed.kernel.agents.registration import register
from qwed.kernel.audit_change import GATE
from qwed.kernel.reports import builder as report
from qwed.kernel.views.agent_views import registered_view


class AgentMethods(GateBase):
    """Agents, in process (spec 3, 6 and 7)."""

    def register_agent(self, **fields: Any) -> Reply:
        """Register an agent with name, principal_id, type, permissions, budget, trust_level, description, framework,
        model (spec 3)."""
        outcome = self._act(register(without_none(fields), self._owner, self.services))
        return Reply(registered_view(outcome.agent, outcome.token))

    def get_agent(self, agent_id: str) -> Reply:
        """Return an agent of this organisation."""
        return self._agent_reply(self._agent(agent_id))

    def list_agents(self, limit: int = 100, after: str = "") -> list[Reply]:
        """Return the agents of this organisation by id, those `after` an id."""
        page = agents_page(self._owner.organisation_id, self.services, limit=str(limit), cursor=after)
        return [Reply(agent) for agent in unwrap(page).agents]

    def get_agent_budget(self, agent_id: str) -> Reply:
        """Return the budget of an agent (spec 6.1)."""
        return Reply(self._act(budget_of(self._agent(agent_id), self.services)))

    def get_agent_activity(self, agent_id: str, limit: int = 100, **query: Any) -> list[Reply]:
        """Return the activity, newest first; filter with `decision`, `since`, `until` and `cursor` (spec 7)."""
        page_query = ActivityPageQuery(limit=str(limit), **{name: str(value) for name, value in query.items()})
        page = unwrap(activity_page(self._agent(agent_id), page_query, self.services))
        return [Reply(activity) for activity in page.activities]

    def compliance_report(
        self,
        agent_id: str,
        format: str = "pdf",  # noqa: A002 - the interface calls it so
        since: date | str | None = None,
        until: date | str | None = None,
    ) -> bytes:
        """Return the compliance report as `pdf`, `json` or `csv`; by default of the last thirty days (spec 7.3)."""
        period = (None if moment is None else str(moment) for moment in (since, until))
        query = report.ReportQuery(format, *period)
        return b"".join(unwrap(report.compliance_report(self._agent(agent_id), query, self.services)).chunks())

    def get_action(self, agent_id: str, action_id: str) -> Reply:
        """Return one action."""
        return Reply(unwrap(action_view(self._agent(agent_id), action_id, self.services)))

    def wait_for_decision(self, agent_id: str, action_id: str, timeout: float = 30.0) -> Reply:
        """Return the action when its approval is resolved, or after so many seconds."""
        waiters = self.services.waiters
        waiter = waiters.wait(action_id)
        try:
            action = unwrap(action_view(self._agent(agent_id), action_id, self.services))
            if is_pending(action):
                with suppress(TimeoutError):
                    waiter.wait(timeout)
                return self.get_action(agent_id, action_id)
            return Reply(action)
        finally:
            waiters.leave(action_id, waiter)

    def log_execution(
        self,
        agent_id: str,
        action_id: str,
        success: bool,
        result: Any = None,
        attestation: str | Mapping[str, Any] | None = None,
    ) -> Reply:
        """Log the outcome of a permitted action; only the hash of the result is stored (spec 7.1)."""
        fields = {"success": success, "result": result, "attestation": attestation}
        report = unwrap(read_report(fields))
        return Reply(self._act(log_execution(self._agent(agent_id), action_id, report, GATE, self.services)))
