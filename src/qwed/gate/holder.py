"""What every verb of a Gate needs: the services, the owner it acts as, and how a walk becomes an answer."""

from collections.abc import Coroutine
from typing import Any, TypeVar

from qwed.gate.reply import GateError, Reply, told
from qwed.kernel.answer import Problem
from qwed.kernel.change import Actor
from qwed.kernel.services import Services
from qwed.kernel.views.agents import agent_view
from qwed.store.agent import Agent
from qwed.store.protocol import Wanted
from qwed.waiting import in_thread
from qwed.words import ErrorCode

PATIENCE = 60.0
T = TypeVar("T")


class Holder:
    """Whoever holds a Gate: the owner of its first organisation."""

    def __init__(self, services: Services, owner: Actor) -> None:
        self._services = services
        self._owner = owner

    @property
    def services(self) -> Services:
        """What every verb works with; where others write as well, as it stands now."""
        freshen = self._services.store.freshen
        if freshen is not None:
            ticket = freshen(Wanted(organisation_id=self._owner.organisation_id))
            if ticket is not None:
                ticket.block(PATIENCE)
        return self._services

    @services.setter
    def services(self, services: Services) -> None:
        self._services = services

    def _act(self, walk: Coroutine[Any, None, T | Problem]) -> T:
        """What came of a change, or GateError."""
        return told(in_thread(walk, PATIENCE))

    def _shown(self, agent: Agent) -> Reply:
        return Reply(agent_view(agent, halted=self.services.store.halted(self._owner.organisation_id)))

    def _agent(self, agent_id: str) -> Agent:
        agent = self.services.store.find_agent(agent_id)
        if agent is None or agent.organisation_id != self._owner.organisation_id:
            raise GateError(ErrorCode.AGENT_NOT_REGISTERED.code, ErrorCode.AGENT_NOT_REGISTERED.meaning)
        return agent
