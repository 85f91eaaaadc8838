"""Gate methods for the A2A block and trust lists."""

from qwed.gate.base import GateBase
from qwed.gate.gate_result import Reply
from qwed.kernel.operations import admin_operations as admin


class A2AMethods(GateBase):
    """A2A lists, in process (ruling 4.14)."""

    def block_agent(self, agent_id: str) -> None:
        """Block an agent from sending and receiving, however its name is spelled."""
        self._call(admin.block_agent, agent_id=agent_id)

    def unblock_agent(self, agent_id: str) -> None:
        """Remove an agent from the blocklist."""
        self._call(admin.unblock_agent, agent_id=agent_id)

    def block_pair(self, sender: str, receiver: str) -> None:
        """Block a sender from sending to a receiver."""
        self._call(admin.block_pair, sender=sender, receiver=receiver)

    def unblock_pair(self, sender: str, receiver: str) -> None:
        """Allow a sender to send to a receiver again."""
        self._call(admin.unblock_pair, sender=sender, receiver=receiver)

    def trust_agent(self, agent_id: str) -> None:
        """Skip the verification of an agent's messages, once the sender is authenticated."""
        self._call(admin.trust_agent, agent_id=agent_id)

    def revoke_agent(self, agent_id: str) -> None:
        """Verify an agent's messages again."""
        self._call(admin.revoke_agent, agent_id=agent_id)

    def a2a_lists(self) -> Reply:
        """Return the blocked agents, the blocked pairs and the trusted agents."""
        return self._call(admin.a2a_lists)
