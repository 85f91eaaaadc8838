"""A kernel of the proxy's own: a Gate in its directory, driven by the event loop of the proxy."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from qwed.gate import Gate, GateError, open_gate
from qwed.gate.reply import told
from qwed.kernel.agents.actions import action_view
from qwed.kernel.agents.execution import log_execution, read_report
from qwed.kernel.answer import Problem
from qwed.kernel.case import Case, Credentials
from qwed.kernel.pipeline import verify_action
from qwed.ledger.vault import VaultError
from qwed.proxies.kernel import Identity
from qwed.settings import SettingsError
from qwed.store.agent import Agent
from qwed.store.protocol import StoreError
from qwed.waiting import LoopDriver
from qwed_sdk.errors import QWEDError
from qwed_sdk.hook.call import Unusable
from qwed_sdk.records import Action, Answer

T = TypeVar("T")
PATIENCE = 15.0
FOLDER = "gate"


def opened(place: Path, name: str) -> Gate:
    """The Gate of this server; Unusable where another process has it."""
    try:
        return open_gate(place / FOLDER)
    except (OSError, SettingsError, RuntimeError, ValueError) as error:
        raise Unusable(
            f"{place / FOLDER} cannot be opened: {error}; where another proxy named `{name}` runs, give this one "
            "another --name, or run `qwed serve` and set QWED_BASE_URL and QWED_API_KEY for both"
        ) from None


class Own:
    """Asks the Gate as the agent, with the agent's token: what the proxy may do, it may do as that agent alone."""

    waits = False

    def __init__(self, gate: Gate, identity: Identity, place: Path) -> None:
        self.agent_id = identity.agent_id
        self.place = str(place / FOLDER)
        self.approving = (
            "stop the proxy, run `qwed serve --data-dir " + self.place + "`, approve {approval} there, stop it "
            "and start the proxy again; with a server of its own (QWED_BASE_URL) nothing has to be stopped"
        )
        self._gate = gate
        self._credentials = Credentials(agent_token=identity.agent_token)
        self._driver = LoopDriver(asyncio.get_running_loop(), PATIENCE)

    async def ask(self, action: Mapping[str, Any], context: Mapping[str, Any], key: str | None = None) -> Answer:
        """May this happen?"""
        services = self._gate.services
        case = Case(
            agent_id=self.agent_id,
            credentials=self._credentials,
            action_raw=action,
            context_raw=context,
            idempotency_key=key,
            now=services.clock.now(),
        )
        return Answer(_members(await self._driver.drive(verify_action(case, services))))

    async def look(self, action_id: str, wait: float) -> Action:  # noqa: ARG002 - the one of the protocol
        """The action as it stands: nobody but us has the Gate, so waiting would change nothing."""
        with _failures_told():
            return Action(_members(_answered(action_view(self._agent(), action_id, self._gate.services))))

    async def log(
        self,
        action_id: str,
        success: bool,
        result_hash: str | None,
        attestation: str | dict[str, Any] | None,  # noqa: ARG002 - our own, which proves nothing to ourselves
    ) -> None:
        """What became of what was permitted."""
        said = {"success": success} | ({} if result_hash is None else {"result_hash": result_hash})
        report = _answered(read_report(said))
        with _failures_told():
            walk = log_execution(self._agent(), action_id, report, self.agent_id, self._gate.services)
            _answered(await self._driver.drive(walk))

    def _agent(self) -> Agent:
        agent = self._gate.services.store.find_agent(self.agent_id)
        if agent is None:
            raise QWEDError("the agent is not registered")
        return agent

    async def close(self) -> None:
        """Write what is queued and give the directory back."""
        await asyncio.get_running_loop().run_in_executor(None, self._gate.close)


@contextmanager
def _failures_told() -> Iterator[None]:
    """What a store can fail with is an answer that did not come."""
    try:
        yield
    except (StoreError, VaultError, TimeoutError) as error:
        raise QWEDError(f"the Gate could not read or keep it: {error}") from None


def _answered(outcome: T | Problem) -> T:
    try:
        return told(outcome)
    except GateError as error:
        raise QWEDError(error.message, code=error.code) from None


def _members(struct: msgspec.Struct) -> dict[str, Any]:
    members: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(struct))
    return members
