"""The verbs of a Gate that are about one agent: who it is, what it did, what became of it."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import date
from typing import Any

from qwed.gate.holder import Holder
from qwed.gate.reply import Reply, given, told
from qwed.kernel.agents.actions import action_view, waits
from qwed.kernel.agents.activity import Asked, activity_page
from qwed.kernel.agents.budget import budget_of
from qwed.kernel.agents.execution import log_execution, read_report
from qwed.kernel.agents.listing import agents_page
from qwed.kernel.agents.registration import register
from qwed.kernel.change import GATE
from qwed.kernel.report import gathering as report
from qwed.kernel.views.agents import registered_view


class AgentVerbs(Holder):
    """Spec 3, 6 and 7, in process."""

    def register_agent(self, **fields: Any) -> Reply:
        """Spec 3: name, principal_id, type, permissions, budget, trust_level, description, framework, model."""
        outcome = self._act(register(given(fields), self._owner, self.services))
        return Reply(registered_view(outcome.agent, outcome.token))

    def get_agent(self, agent_id: str) -> Reply:
        """An agent of this organisation."""
        return self._shown(self._agent(agent_id))

    def list_agents(self, limit: int = 100, after: str = "") -> list[Reply]:
        """The agents of this organisation by id, `after` the last one seen."""
        page = agents_page(self._owner.organisation_id, self.services, limit=str(limit), cursor=after)
        return [Reply(agent) for agent in told(page).agents]

    def get_agent_budget(self, agent_id: str) -> Reply:
        """Spec 6.1."""
        return Reply(self._act(budget_of(self._agent(agent_id), self.services)))

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
