"""Base of the Gate: its services, the owner it acts as, and how coroutines are run."""

from collections.abc import Coroutine
from typing import Any, TypeVar

from qwed.futures import run_in_thread
from qwed.gate.gate_result import GateError, Reply, unwrap
from qwed.kernel.answer import Problem
from qwed.kernel.audit_change import Actor
from qwed.kernel.services import Services
from qwed.kernel.views.agent_views import agent_view
from qwed.model import ErrorCode
from qwed.store.agent import Agent
from qwed.store.protocol import PrefetchKeys

TIMEOUT_SECONDS = 60.0
T = TypeVar("T")


class GateBase:
    """Acts as the owner of the first organisation."""

    def __init__(self, services: Services, owner: Actor) -> None:
        self._services = services
        self._owner = owner

    @property
    def services(self) -> Services:
        """Services with a refreshed cache if other processes share the store."""
        prefetch = self._services.store.prefetch
        if prefetch is not None:
            refresh = prefetch(PrefetchKeys(organisation_id=self._owner.organisation_id))
            if refresh is not None:
                refresh.wait_result(TIMEOUT_SECONDS)
        return self._services

    @services.setter
    def services(self, services: Services) -> None:
        self._services = services

    def _act(self, coro: Coroutine[Any, None, T | Problem]) -> T:
        """Run a change and return its result, or raise GateError."""
        return unwrap(run_in_thread(coro, TIMEOUT_SECONDS))

    def _agent_reply(self, agent: Agent) -> Reply:
        return Reply(agent_view(agent, halted=self.services.store.halted(self._owner.organisation_id)))

    def _agent(self, agent_id: str) -> Agent:
        agent = self.services.store.find_agent(agent_id)
        if agent is None or agent.organisation_id != self._owner.organisation_id:
            raise GateError(ErrorCode.AGENT_NOT_REGISTERED.code, ErrorCode.AGENT_NOT_REGISTERED.meaning)
        return agent
