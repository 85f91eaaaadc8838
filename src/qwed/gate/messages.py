"""The verbs of a Gate about messages between agents: whom the owner blocks, and whom the owner trusts."""

from qwed.gate.holder import Holder
from qwed.gate.reply import Reply, told
from qwed.kernel.messages.lists import lists_of, put_entry, read_entry, remove_entry
from qwed.store.boundary import ListName


class MessageVerbs(Holder):
    """Ruling 4.14, in process."""

    def block_agent(self, agent_id: str) -> None:
        """Let this agent neither send nor receive, however it spells its name."""
        self._put(ListName.BLOCKS, agent_id=agent_id)

    def unblock_agent(self, agent_id: str) -> None:
        """Take an agent off the list of those that are blocked."""
        self._remove(ListName.BLOCKS, agent_id=agent_id)

    def block_pair(self, sender: str, receiver: str) -> None:
        """Let this sender not write to this receiver."""
        self._put(ListName.PAIRS, sender=sender, receiver=receiver)

    def unblock_pair(self, sender: str, receiver: str) -> None:
        """Let this sender write to this receiver again."""
        self._remove(ListName.PAIRS, sender=sender, receiver=receiver)

    def trust_agent(self, agent_id: str) -> None:
        """Do not look into messages of this agent, once it is proven who sends them."""
        self._put(ListName.TRUSTED, agent_id=agent_id)

    def revoke_agent(self, agent_id: str) -> None:
        """Look into the messages of an agent again."""
        self._remove(ListName.TRUSTED, agent_id=agent_id)

    def a2a_lists(self) -> Reply:
        """Who may not write to whom, and who is trusted."""
        return Reply(lists_of(self._owner.organisation_id, self.services))

    def _put(self, name: ListName, **fields: str) -> None:
        self._act(put_entry(told(read_entry(name, fields)), self._owner, self.services))

    def _remove(self, name: ListName, **fields: str) -> None:
        self._act(remove_entry(told(read_entry(name, fields)), self._owner, self.services))
