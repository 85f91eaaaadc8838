"""Agent identity of a proxy: registered once and stored in a file readable by its owner only."""

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from qwed.model import ErrorCode
from qwed.proxies.backend import Identity
from qwed.proxies.state_directory import read_json_object, write_json_object
from qwed_sdk.errors import QWEDAuthError, QWEDConflictError, QWEDError, QWEDNotFoundError, UsageError

if TYPE_CHECKING:
    from qwed.gate import Gate, Reply
    from qwed_sdk.client import QWEDAsyncClient

SERVER_VARIABLES = ("QWED_BASE_URL", "QWED_API_KEY", "QWED_AGENT_ID", "QWED_AGENT_TOKEN")
"""Environment variables that select a server, and an agent registered there."""
PrintLine = Callable[[str], None]
"""Prints one line for the operator."""


def uses_server(environment: Mapping[str, str]) -> bool:
    """Return True if the environment names a server; otherwise the proxy decides with a Gate of its own."""
    return any(environment.get(name, "").strip() for name in SERVER_VARIABLES)


@contextmanager
def registration_errors(base_url: str) -> Iterator[None]:
    """Raise UsageError for an address that is none, and for a server that registers no agent."""
    try:
        yield
    except ValueError as error:
        raise UsageError(f"the server cannot be asked: {error}") from None
    except QWEDError as error:
        raise UsageError(f"no agent could be registered at {base_url}: {error.message}") from None


class AgentRegistration(NamedTuple):
    """Registration data of one agent, and the file that stores its identity."""

    file: Path
    fields: dict[str, Any]
    print_line: PrintLine

    async def ensure_at_server(
        self, client: "QWEDAsyncClient", base_url: str, *, may_register: bool = True
    ) -> Identity:
        """Return the stored agent if the server still knows it, else register one; raise QWEDError if neither works."""
        stored = self._load(base_url)
        if stored is not None and await self._is_known(client, stored):
            return stored
        if not may_register:
            raise UsageError("set QWED_API_KEY to register an agent with")
        try:
            agent = await client.register_agent(**self.fields)
        except QWEDConflictError:
            agent = await client.register_agent(**self._with_free_name())
        return self._store(base_url, Identity(agent.agent_id, str(agent.agent_token)), agent.name)

    def ensure_in_gate(self, gate: "Gate") -> Identity:
        """Return the stored agent if this Gate knows it, else register one; raise UsageError if that fails."""
        # Imported here: a proxy with a server has no Gate.
        from qwed.gate import GateError

        stored = self._load("")
        try:
            if stored is None or gate.services.store.find_agent(stored.agent_id) is None:
                agent = self._register_in(gate)
                stored = self._store("", Identity(agent.agent_id, agent.agent_token), agent.name)
        except (GateError, UsageError) as error:
            raise UsageError(f"no agent could be registered: {error}") from None
        return stored

    def _register_in(self, gate: "Gate") -> "Reply":
        from qwed.gate import GateError

        try:
            return gate.register_agent(**self.fields)
        except GateError as error:
            if error.code != ErrorCode.CONFLICT.code:
                raise
            return gate.register_agent(**self._with_free_name())

    def _with_free_name(self) -> dict[str, Any]:
        """Return the fields with a name that no agent has: an earlier agent of this proxy keeps its own."""
        return {**self.fields, "name": f"{self.fields['name']} {secrets.token_hex(3)}"}

    async def _is_known(self, client: "QWEDAsyncClient", stored: Identity) -> bool:
        """Return True if the server still knows the agent, or does not answer.

        Without an answer the agent is used anyway: each request then reports the failure.
        """
        try:
            await client.get_agent(stored.agent_id, stored.agent_token)
        except (QWEDAuthError, QWEDNotFoundError):
            return False
        except QWEDError as error:
            self.print_line(f"the server did not answer: {error.message}; every call is refused until it does")
        return True

    def _load(self, base_url: str) -> Identity | None:
        """Return the stored agent if it was registered at this server with the same fields."""
        members = read_json_object(self.file) or {}
        agent_id, token = members.get("agent_id"), members.get("agent_token")
        if (members.get("base_url"), members.get("fields")) != (base_url, self.fields):
            return None
        return Identity(agent_id, token) if isinstance(agent_id, str) and isinstance(token, str) else None

    def _store(self, base_url: str, identity: Identity, name: str) -> Identity:
        suffix = " again, because its options or its server changed" if self.file.exists() else ""
        write_json_object(self.file, {"base_url": base_url, "fields": self.fields, **identity._asdict()})
        self.print_line(f"registered the agent {identity.agent_id} (`{name}`){suffix}")
        return identity
