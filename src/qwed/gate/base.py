"""Base of the Gate: its services, the owner it acts as, and how coroutines are run."""

from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from qwed.domain.agent import Agent
from qwed.futures import run_in_thread
from qwed.gate.gate_result import GateError, Reply, unwrap, without_none
from qwed.kernel.agents.names import resolve_agent_id
from qwed.kernel.answer import Problem
from qwed.kernel.audit_change import Actor
from qwed.kernel.operations.operation import Access, AgentCall, Call, Operation, is_coroutine
from qwed.kernel.services import Services
from qwed.model import ErrorCode
from qwed.store.protocol import RefreshKeys

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
        if self._services.store.is_shared:
            refresh = self._services.store.refresh(RefreshKeys(organisation_id=self._owner.organisation_id))
            if refresh is not None:
                refresh.wait_result(TIMEOUT_SECONDS)
        return self._services

    @services.setter
    def services(self, services: Services) -> None:
        self._services = services

    def _act(self, coro: Coroutine[Any, None, T | Problem]) -> T:
        """Run a change and return its result, or raise GateError."""
        return unwrap(run_in_thread(coro, TIMEOUT_SECONDS))

    def _call(self, operation: Operation, path: Mapping[str, str] | None = None, **fields: Any) -> Reply:
        """Call an operation of the API as the owner, and return its answer, or raise GateError."""
        return self._run(operation, path or {}, without_none(fields))

    def _run(
        self, operation: Operation, path: Mapping[str, str], fields: Mapping[str, Any], if_match: str | None = None
    ) -> Reply:
        services = self.services
        call: Call | AgentCall = Call(self._owner, services, path, if_match)
        if operation.access in (Access.AGENT, Access.OWN_AGENT):
            call = AgentCall(self._owner, services, path, self._agent(path["agent_id"]), if_match)
        arguments: list[Any] = [call]
        if operation.request is not None:
            arguments.append(unwrap(operation.parse(fields)))
        if is_coroutine(operation):
            return Reply(self._act(operation.run(*arguments)))
        return Reply(unwrap(operation.run(*arguments)))

    def _list(
        self, operation: Operation, member: str, path: Mapping[str, str] | None = None, **query: Any
    ) -> list[Reply]:
        """Call an operation and return the entries of the page that it answers."""
        return [Reply(entry) for entry in getattr(self._call(operation, path, **query).struct, member)]

    def _agent_id(self, text: str) -> str:
        """Return the id of the agent that an id or a name means."""
        return unwrap(resolve_agent_id(text, self._owner.organisation_id, self._services.store))

    def _agent(self, agent_id: str) -> Agent:
        agent = self.services.store.find_agent(self._agent_id(agent_id))
        if agent is None or agent.organisation_id != self._owner.organisation_id:
            raise GateError(ErrorCode.AGENT_NOT_REGISTERED.code, ErrorCode.AGENT_NOT_REGISTERED.meaning)
        return agent
