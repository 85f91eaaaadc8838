"""Gate: decides in this process, with the verbs of the client."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from qwed.gate.agents import AgentVerbs
from qwed.gate.attestations import AttestationVerbs
from qwed.gate.audit import AuditVerbs
from qwed.gate.engines import EngineVerbs
from qwed.gate.holder import PATIENCE
from qwed.gate.messages import MessageVerbs
from qwed.gate.people import PeopleVerbs
from qwed.gate.reply import Reply
from qwed.kernel.case import Case, Credentials
from qwed.kernel.change import GATE, Actor
from qwed.kernel.keeping import erasure
from qwed.kernel.pipeline import verify_action
from qwed.kernel.tools import TOOL_CALL
from qwed.kernel.wiring import Opened, close_services, open_services
from qwed.settings import settings_from
from qwed.store.sqlite import MEMORY
from qwed.waiting import in_thread
from qwed.witness.places import require_places
from qwed.witness.witness import witness_for
from qwed.words.clock import Clock


class Gate(AgentVerbs, PeopleVerbs, MessageVerbs, EngineVerbs, AuditVerbs, AttestationVerbs):
    """Decides in this process. Whoever holds a Gate is the owner of its first organisation."""

    def __init__(self, opened: Opened) -> None:
        super().__init__(opened.services, Actor(GATE, opened.organisation_id, "owner"))
        self.organisation_id = opened.organisation_id
        self.owner_key = opened.owner_key
        self.witness = witness_for(opened.services)
        """Where the heads of its logs are published, and whether the logs agree with what was."""
        self.witness.start()
        self._as_owner = Credentials(organisation_id=opened.organisation_id)
        self._sweeper = erasure.Sweeper(opened.services)
        self._sweeper.start()

    def verify_action(
        self,
        agent_id: str,
        action: Mapping[str, Any],
        context: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        agent_token: str | None = None,
        idempotency_key: str | None = None,
        *,
        justification: str | None = None,
        context_required: bool = True,
    ) -> Reply:
        """Spec 4: may this action happen? With a token it is asked as the agent, without as the owner."""
        case = Case(
            agent_id=agent_id,
            credentials=self._as_owner if agent_token is None else Credentials(agent_token=agent_token),
            action_raw=action,
            context_raw=context,
            options_raw=options,
            idempotency_key=idempotency_key,
            justification=justification,
            context_required=context_required,
            now=self._services.clock.now(),
        )
        return Reply(in_thread(verify_action(case, self._services), PATIENCE))

    def verify_tool_call(
        self,
        agent_id: str,
        tool_name: str,
        parameters: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        agent_token: str | None = None,
        idempotency_key: str | None = None,
        *,
        justification: str | None = None,
        effects: Sequence[str] | None = None,
    ) -> Reply:
        """Spec 5: the same walk for a tool; `effects` are what the asker says it does, beside what is found out."""
        action: dict[str, Any] = {"type": TOOL_CALL, "tool": tool_name, "parameters": parameters or {}}
        if effects is not None:
            action["effects"] = list(effects)
        required = self._services.settings.require_tool_context
        return self.verify_action(
            agent_id,
            action,
            context,
            options,
            agent_token,
            idempotency_key,
            justification=justification,
            context_required=required,
        )

    def close(self) -> None:
        """Write what is queued, end the workers, give the directory back."""
        self._batches.close()
        self._sweeper.close()
        # Whoever waits in another thread is told while there is still somebody to ask.
        self._services.doorbells.ring_all()
        self.witness.close()
        close_services(self._services)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_gate(place: str | Path = MEMORY, *, clock: Clock | None = None, **settings: Any) -> Gate:
    """A Gate on a data directory, or on `:memory:` where nothing outlives the process."""
    in_memory = place == MEMORY
    if not in_memory:
        settings["data_dir"] = Path(place)
    read = settings_from(**settings)
    require_places(read)
    return Gate(open_services(read, in_memory=in_memory, clock=clock))
