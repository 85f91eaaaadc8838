"""Gate methods for agents: registration, activity, reports, actions."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import date
from typing import Any

from qwed.gate.base import GateBase
from qwed.gate.gate_result import Reply, unwrap
from qwed.kernel.agents.actions import action_view, is_pending
from qwed.kernel.operations import agent_operations as agents
from qwed.kernel.reports import builder as report
from qwed.kernel.request_schema import parse_query

_PERIOD = {"since": "from", "until": "to"}


class AgentMethods(GateBase):
    """Agents, in process (spec 3, 6 and 7)."""

    def register_agent(self, **fields: Any) -> Reply:
        """Register an agent with name, principal_id, type, permissions, budget, trust_level, description, framework,
        model, labels, max_conversation_steps (spec 3)."""
        return self._call(agents.register_agent, **fields)

    def get_agent(self, agent_id: str) -> Reply:
        """Return an agent of this organisation."""
        return self._call(agents.get_agent, {"agent_id": agent_id})

    def list_agents(self, limit: int = 100, after: str = "", status: str | None = None) -> list[Reply]:
        """Return the agents of this organisation by id, those `after` an id; retired ones with `status="retired"`."""
        return self._list(agents.list_agents, "agents", limit=limit, cursor=after, status=status)

    def edit_agent(self, agent_id: str, changes: Mapping[str, Any], if_match: str | None = None) -> Reply:
        """Edit an agent by a JSON merge patch: None removes a field, a list is replaced (RFC 7396)."""
        return self._run(agents.edit_agent, {"agent_id": agent_id}, changes, if_match)

    def retire_agent(self, agent_id: str, if_match: str | None = None) -> Reply:
        """Retire an agent: its token is dead and its open approvals are closed; its record stays."""
        return self._run(agents.retire_agent, {"agent_id": agent_id}, {}, if_match)

    def get_agent_budget(self, agent_id: str) -> Reply:
        """Return the budget of an agent (spec 6.1)."""
        return self._call(agents.get_budget, {"agent_id": agent_id})

    def get_agent_activity(self, agent_id: str, limit: int = 100, **query: Any) -> list[Reply]:
        """Return the activity, newest first; filter with `decision`, `since`, `until` and `cursor` (spec 7)."""
        texts = {_PERIOD.get(name, name): str(value) for name, value in query.items()}
        return self._list(agents.get_activity, "activities", {"agent_id": agent_id}, limit=limit, **texts)

    def compliance_report(
        self,
        agent_id: str,
        format: str = "pdf",  # noqa: A002 - the interface calls it so
        since: date | str | None = None,
        until: date | str | None = None,
    ) -> bytes:
        """Return the compliance report as `pdf`, `json` or `csv`; by default of the last thirty days (spec 7.3)."""
        texts = {"format": format, "from": since, "to": until}
        query = unwrap(
            parse_query({name: str(text) for name, text in texts.items() if text is not None}, report.ReportRequest)
        )
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
        path = {"agent_id": agent_id, "action_id": action_id}
        return self._call(agents.report_execution, path, success=success, result=result, attestation=attestation)
