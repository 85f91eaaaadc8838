"""A kernel of the proxy's own: a Gate in its directory, driven by the event loop of the proxy."""

import asyncio
from pathlib import Path

import msgspec

from qwed.gate import Gate, GateError
from qwed.gate.reply import told
from qwed.kernel.answer import Problem
from qwed.kernel.case import Credentials
from qwed.kernel.change import GATE, Actor
from qwed.kernel.people.organisations import add_key
from qwed.kernel.stages.authenticate import find_key
from qwed.ledger.vault import VaultError
from qwed.proxies.own import FOLDER, PATIENCE
from qwed.proxies.place import read_object, write_object
from qwed.store.protocol import StoreError
from qwed.waiting import LoopDriver, in_thread
from qwed_a2a.desk import Delivered, Desk
from qwed_a2a.message import AgentMessage
from qwed_a2a.proxy.beside import LARGE, Beside
from qwed_a2a.proxy.kernel import Party
from qwed_a2a.verdict import VerificationVerdict
from qwed_sdk.errors import QWEDAuthError, QWEDError
from qwed_sdk.hook.call import Unusable

FILE = "member.json"
_KEY_NAME = "a2a proxy"
_ROLE = "member"
_UNPROVEN = "QWED-AUTH-002"
_encode = msgspec.json.Encoder().encode


class Own:
    """Sends in the name of whoever proves to be it; a name alone is asked about with a key that proves nobody."""

    def __init__(self, gate: Gate, place: Path, client: Party, upstream: Party, member: str) -> None:
        self.place = str(place / FOLDER)
        self.client = client
        self.upstream = upstream
        self._gate = gate
        self._desk = Desk(gate.services)
        # The process itself would be the owner, who can prove any name.
        self._nobody = Credentials(api_key=member)
        self._driver = LoopDriver(asyncio.get_running_loop(), PATIENCE)
        self._beside = Beside()

    async def intercept(self, message: AgentMessage, sender: Party) -> VerificationVerdict:
        """The verdict on one message, signed and in the log."""
        shown = Credentials(agent_token=sender.token) if sender.token else self._nobody
        size = len(_encode(message.payload))
        try:
            if size < LARGE:
                outcome = await self._driver.drive(self._desk.intercept(message, shown))
            else:
                outcome = await self._beside.run(message.sender_agent_id, size, self._in_thread, message, shown)
        except (StoreError, VaultError, TimeoutError) as error:
            raise QWEDError(f"the Gate could not read or keep it: {error}") from None
        if isinstance(outcome, Problem):
            kind = QWEDAuthError if outcome.code == _UNPROVEN else QWEDError
            raise kind(outcome.message, code=outcome.code, suggestion=outcome.suggestion)
        return outcome.verdict

    def _in_thread(self, message: AgentMessage, shown: Credentials) -> Delivered | Problem:
        return in_thread(self._desk.intercept(message, shown), PATIENCE)

    async def close(self) -> None:
        """Write what is queued and give the directory back."""
        self._beside.close()
        await asyncio.get_running_loop().run_in_executor(None, self._gate.close)


async def member_key(gate: Gate, place: Path, organisation_id: str) -> str:
    """A key of the Gate that proves nobody: made once, and kept; Unusable where it cannot be."""
    kept = (read_object(place / FILE) or {}).get("key")
    services = gate.services
    if isinstance(kept, str) and _is_member(find_key(kept, services.store)):
        return kept
    driver = LoopDriver(asyncio.get_running_loop(), PATIENCE)
    try:
        made = told(await driver.drive(add_key(_KEY_NAME, _ROLE, Actor(GATE, organisation_id, "owner"), services)))
    except (GateError, StoreError, VaultError, TimeoutError) as error:
        raise Unusable(f"no key could be made in {place / FOLDER}: {error}") from None
    write_object(place / FILE, {"key": made.text})
    return made.text


def _is_member(key: object) -> bool:
    return getattr(key, "role", None) == _ROLE
