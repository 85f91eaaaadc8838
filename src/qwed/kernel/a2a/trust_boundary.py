"""Trust boundary of an organisation: its lists and rate limits in the store (ruling 4.14)."""

import math

from qwed.guards.tool_approval import fold_name
from qwed.kernel.a2a.message import Sender
from qwed.kernel.services import Services
from qwed.model import canonical


class StoreBoundary:
    """Trust boundary for one message; evaluated once."""

    def __init__(self, sender: Sender, services: Services) -> None:
        self._sender = sender
        self._services = services
        self.over_rate = False
        """True if the pair exceeds its rate, as the cause of the refusal or in addition to it."""
        self.wait = 0.0
        """Seconds until the message may be sent again, where only the rate refused it."""

    def trusts(self, agent_id: str) -> bool:
        """Return True if the owner exempts messages of this agent from inspection."""
        return self._services.store.access_lists(self._sender.organisation_id).trusts(agent_id)

    def evaluate(self, sender: str, receiver: str, _payload_type: str) -> tuple[bool, str]:
        """Return whether the message may go on to its guard, and the reason."""
        refusal = self._listed(sender, receiver)
        # A listed sender is counted too, so that a flood of refusals does not write a flood of leaves.
        wait = wait_of(self._sender.organisation_id, sender, receiver, self._services)
        self.over_rate = wait > 0
        if refusal is not None:
            return False, refusal
        if not self.over_rate:
            return True, "within the trust boundary"
        self.wait = wait
        limit = f"{self._services.settings.a2a_messages_per_minute} messages per minute"
        seconds = math.ceil(self.wait)
        return False, f"more than {limit} from this sender to this receiver: try again in {seconds} seconds"

    def _listed(self, sender: str, receiver: str) -> str | None:
        lists = self._services.store.access_lists(self._sender.organisation_id)
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
    """Count the message and return 0.0 if the pair is within its rate, else the seconds until it is again.

    All spellings of a name share one rate, otherwise a sender could multiply its rate by varying its name.
    """
    per_minute = services.settings.a2a_messages_per_minute
    if per_minute == 0:
        return 0.0
    # Under a keyed name: the names of agents may contain personal data.
    pair = services.vault.fingerprint(canonical([fold_name(sender), fold_name(receiver)]).decode())
    return services.store.take_token(organisation_id, pair, per_minute, services.clock.now())
