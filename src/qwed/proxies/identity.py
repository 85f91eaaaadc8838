"""As whom a proxy asks: an agent that it registers once, and keeps in a file that its owner alone can read."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from qwed.gate import Gate, GateError
from qwed.proxies.kernel import Identity
from qwed.proxies.place import read_object, write_object
from qwed_sdk.errors import QWEDAuthError, QWEDError, QWEDNotFoundError
from qwed_sdk.hook.call import Unusable

if TYPE_CHECKING:
    from qwed_sdk.client import QWEDAsyncClient

SERVER = ("QWED_BASE_URL", "QWED_API_KEY", "QWED_AGENT_ID", "QWED_AGENT_TOKEN")
"""What names a server, and somebody it knows."""
Say = Callable[[str], None]
"""Says a line where people read it."""


def is_served(environment: Mapping[str, str]) -> bool:
    """Whether the environment names a server; else a proxy decides with a Gate of its own."""
    return any(environment.get(name, "").strip() for name in SERVER)


class Papers(NamedTuple):
    """What one agent is registered with, and the file that says as whom it was."""

    file: Path
    fields: dict[str, Any]
    say: Say

    async def shown_to(self, client: "QWEDAsyncClient", base_url: str, *, may_register: bool = True) -> Identity:
        """The agent at this server: the one that is kept, or one that is registered now; QWEDError where neither."""
        kept = self._kept(base_url)
        if kept is not None and await self._is_known(client, kept):
            return kept
        if not may_register:
            raise Unusable("set QWED_API_KEY to register an agent with")
        agent = await client.register_agent(**self.fields)
        return self._keep(base_url, Identity(agent.agent_id, str(agent.agent_token)))

    def shown_in(self, gate: Gate) -> Identity:
        """The agent in this Gate, likewise; Unusable where it cannot be registered."""
        kept = self._kept("")
        try:
            if kept is None or gate.services.store.find_agent(kept.agent_id) is None:
                agent = gate.register_agent(**self.fields)
                kept = self._keep("", Identity(agent.agent_id, agent.agent_token))
        except (GateError, Unusable) as error:
            raise Unusable(f"no agent could be registered: {error}") from None
        return kept

    async def _is_known(self, client: "QWEDAsyncClient", kept: Identity) -> bool:
        """Whether the server still knows the agent; where it does not say, whoever asks it will hear it."""
        try:
            await client.get_agent(kept.agent_id, kept.agent_token)
        except (QWEDAuthError, QWEDNotFoundError):
            return False
        except QWEDError as error:
            self.say(f"{error.message}: until the server answers, every call is refused")
        return True

    def _kept(self, base_url: str) -> Identity | None:
        """The agent that was registered with these very words."""
        found = read_object(self.file) or {}
        agent_id, token = found.get("agent_id"), found.get("agent_token")
        if (found.get("base_url"), found.get("fields")) != (base_url, self.fields):
            return None
        return Identity(agent_id, token) if isinstance(agent_id, str) and isinstance(token, str) else None

    def _keep(self, base_url: str, identity: Identity) -> Identity:
        again = " anew, because its options or its server changed" if self.file.exists() else ""
        write_object(self.file, {"base_url": base_url, "fields": self.fields, **identity._asdict()})
        self.say(f"registered the agent {identity.agent_id} (`{self.fields['name']}`){again}")
        return identity
