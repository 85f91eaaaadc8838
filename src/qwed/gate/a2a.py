"""Gate methods for the A2A block and trust lists."""

from qwed.gate.base import GateBase
from qwed.gate.gate_result import Reply, unwrap
from qwed.kernel.a2a.access_lists import lists_of, put_entry, read_entry, remove_entry
from qwed.store.access_lists import ListName


class A2AMethods(GateBase):
    """A2A lists, in process (ruling 4.14)."""

    def block_agent(self, agent_id: str) -> None:
        """Block an agent from sending and receiving, however its name is spelled."""
        self._put(ListName.BLOCKS, agent_id=agent_id)

    def unblock_agent(self, agent_id: str) -> None:
        """Remove an agent from the blocklist."""
        self._remove(ListName.BLOCKS, agent_id=agent_id)

    def block_pair(self, sender: str, receiver: str) -> None:
        """Block a sender from sending to a receiver."""
        self._put(ListName.PAIRS, sender=sender, receiver=receiver)

    def unblock_pair(self, sender: str, receiver: str) -> None:
        """Allow a sender to send to a receiver again."""
        self._remove(ListName.PAIRS, sender=sender, receiver=receiver)

    def trust_agent(self, agent_id: str) -> None:
        """Skip the verification of an agent's messages, once the sender is authenticated."""
        self._put(ListName.TRUSTED, agent_id=agent_id)

    def revoke_agent(self, agent_id: str) -> None:
        """Verify an agent's messages again."""
        self._remove(ListName.TRUSTED, agent_id=agent_id)

    def a2a_lists(self) -> Reply:
        """Return the blocked agents, the blocked pairs and the trusted agents."""
        return Reply(lists_of(self._owner.organisation_id, self.services))

    def _put(self, name: ListName, **fields: str) -> None:
        self._act(put_entry(unwrap(read_entry(name, fields)), self._owner, self.services))

    def _remove(self, name: ListName, **fields: str) -> None:
        self._act(remove_entry(unwrap(read_entry(name, fields)), self._owner, self.services))
