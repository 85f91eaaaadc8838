"""Decision backend with a Gate of its own, run on the event loop of the proxy."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from qwed.domain.agent import Agent
from qwed.futures import LoopRunner
from qwed.gate import Gate, GateError, open_gate
from qwed.gate.gate_result import unwrap
from qwed.kernel.agents.actions import action_view
from qwed.kernel.agents.execution import ExecutionRequest, log_execution, report_of
from qwed.kernel.answer import Problem
from qwed.kernel.case import Case, Credentials
from qwed.kernel.pipeline import verify_action
from qwed.ledger.subject_encryption import VaultError
from qwed.proxies.backend import Identity
from qwed.settings import SettingsError
from qwed.store.protocol import StoreError
from qwed_sdk.errors import QWEDError, UsageError
from qwed_sdk.models import Action, Answer

T = TypeVar("T")
DECISION_SECONDS = 15.0
GATE_DIRECTORY = "gate"


def open_proxy_gate(directory: Path, name: str) -> Gate:
    """Open the Gate of this proxy; raise UsageError if another process has it."""
    try:
        return open_gate(directory / GATE_DIRECTORY)
    except (OSError, SettingsError, RuntimeError, ValueError) as error:
        raise UsageError(
            f"{directory / GATE_DIRECTORY} cannot be opened: {error}; if another proxy named `{name}` runs, "
            "give this one another --name, or run `qwed serve` and set QWED_BASE_URL and QWED_API_KEY for both"
        ) from None


class LocalBackend:
    """Decision backend that asks the Gate with the agent's token, so the proxy has no more rights than that agent."""

    can_wait = False

    def __init__(self, gate: Gate, identity: Identity, directory: Path) -> None:
        self.agent_id = identity.agent_id
        self.location = str(directory / GATE_DIRECTORY)
        self.approval_hint = (
            "stop the proxy, run `qwed serve --data-dir " + self.location + "`, approve {approval} there, stop it "
            "and start the proxy again; with a server of its own (QWED_BASE_URL) nothing has to be stopped"
        )
        self._gate = gate
        self._credentials = Credentials(agent_token=identity.agent_token)
        self._driver = LoopRunner(asyncio.get_running_loop(), DECISION_SECONDS)

    async def verify_action(
        self, action: Mapping[str, Any], context: Mapping[str, Any], key: str | None = None
    ) -> Answer:
        """Return the decision of the Gate about an action."""
        services = self._gate.services
        case = Case(
            agent_id=self.agent_id,
            credentials=self._credentials,
            action_raw=action,
            context_raw=context,
            idempotency_key=key,
            now=services.clock.now(),
        )
        return Answer(_members(await self._driver.run(verify_action(case, services))))

    async def get_action(self, action_id: str, wait: float) -> Action:  # noqa: ARG002 - the protocol has it
        """Return the current state of the action; only this process has the Gate, so waiting would change nothing."""
        with store_errors_as_qwed_errors():
            return Action(_members(_value_or_raise(action_view(self._agent(), action_id, self._gate.services))))

    async def log_execution(
        self,
        action_id: str,
        success: bool,
        result_hash: str | None,
        attestation: str | dict[str, Any] | None,  # noqa: ARG002 - it is our own and proves nothing to us
    ) -> None:
        """Log the outcome of a permitted action."""
        report = _value_or_raise(report_of(ExecutionRequest(success=success, result_hash=result_hash)))
        with store_errors_as_qwed_errors():
            walk = log_execution(self._agent(), action_id, report, self.agent_id, self._gate.services)
            _value_or_raise(await self._driver.run(walk))

    def _agent(self) -> Agent:
        agent = self._gate.services.store.find_agent(self.agent_id)
        if agent is None:
            raise QWEDError("the agent is not registered")
        return agent

    async def close(self) -> None:
        """Flush the queued writes and release the directory."""
        await asyncio.get_running_loop().run_in_executor(None, self._gate.close)


@contextmanager
def store_errors_as_qwed_errors() -> Iterator[None]:
    """Raise the failures of the store as QWEDError."""
    try:
        yield
    except (StoreError, VaultError, TimeoutError) as error:
        raise QWEDError(f"the Gate could not read or write its store: {error}") from None


def _value_or_raise(result: T | Problem) -> T:
    try:
        return unwrap(result)
    except GateError as error:
        raise QWEDError(error.message, code=error.code) from None


def _members(struct: msgspec.Struct) -> dict[str, Any]:
    members: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(struct))
    return members
