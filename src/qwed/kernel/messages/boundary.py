"""Ruling 4.14: the trust boundary of an organisation, over its lists and buckets in the store."""

import math

from qwed.guards.tool_approval import folded
from qwed.kernel.messages.message import Sender
from qwed.kernel.services import Services
from qwed.words import canonical


class StoreBoundary:
    """Whether one message may pass at all; made for that message and asked once."""

    def __init__(self, sender: Sender, services: Services) -> None:
        self._sender = sender
        self._services = services
        self.flood = False
        """Whether the pair is over its rate, which may be why the message was refused, or come on top of it."""
        self.wait = 0.0
        """The seconds until the message may be sent again, where the rate is all that refused it."""

    def trusts(self, agent_id: str) -> bool:
        """Whether the owner has said that messages of this agent are not looked into."""
        return self._services.store.boundary(self._sender.organisation_id).trusts(agent_id)

    def evaluate(self, sender: str, receiver: str, _payload_type: str) -> tuple[bool, str]:
        """Whether the message may go on to its guard, and why not."""
        refusal = self._listed(sender, receiver)
        # What is refused in any case is counted too: a flood of it is to leave no flood of leaves.
        wait = wait_of(self._sender.organisation_id, sender, receiver, self._services)
        self.flood = wait > 0
        if refusal is not None:
            return False, refusal
        if not self.flood:
            return True, "within the trust boundary"
        self.wait = wait
        limit = f"{self._services.settings.a2a_messages_per_minute} messages per minute"
        seconds = math.ceil(self.wait)
        return False, f"more than {limit} from this sender to this receiver: try again in {seconds} seconds"

    def _listed(self, sender: str, receiver: str) -> str | None:
        lists = self._services.store.boundary(self._sender.organisation_id)
        if lists.blocks(sender):
            return "the sender is blocked"
        if lists.blocks(receiver):
            return "the receiver is blocked"
        if lists.blocks_pair(sender, receiver):
            return "the sender is blocked for this receiver"
        if self._services.settings.a2a_strict and self._sender.agent is None and not lists.trusts(sender):
            return "only registered and trusted agents may send here"
        return None


def wait_of(organisation_id: str, sender: str, receiver: str, services: Services) -> float:
    """0.0 where the pair is within its rate, and then counted; else the seconds until it is again.

    All spellings of a name are one: whoever may choose among them would have a rate for each.
    """
    per_minute = services.settings.a2a_messages_per_minute
    if per_minute == 0:
        return 0.0
    # Under a keyed name: what agents call themselves may name people.
    pair = services.vault.fingerprint(canonical([folded(sender), folded(receiver)]).decode())
    return services.store.take_token(organisation_id, pair, per_minute, services.clock.now())
