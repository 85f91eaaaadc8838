"""Gate: decides in this process, with the methods of the client."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from qwed.futures import run_in_thread
from qwed.gate.a2a import A2AMethods
from qwed.gate.admin import AdminMethods
from qwed.gate.agents import AgentMethods
from qwed.gate.audit import AuditMethods
from qwed.gate.base import TIMEOUT_SECONDS
from qwed.gate.engines import EngineMethods
from qwed.gate.gate_result import Reply
from qwed.gate.policies import PolicyMethods
from qwed.kernel.audit_change import GATE, Actor
from qwed.kernel.bootstrap import OpenedServices, close_services, open_services
from qwed.kernel.case import Case, Credentials
from qwed.kernel.pipeline import verify_action
from qwed.kernel.privacy import erasure
from qwed.kernel.tools import TOOL_CALL
from qwed.model.clock import Clock
from qwed.settings import settings_from
from qwed.store.sqlite import MEMORY
from qwed.witness.publishers import require_publishers
from qwed.witness.witness import create_witness


class Gate(AgentMethods, AdminMethods, PolicyMethods, A2AMethods, EngineMethods, AuditMethods):
    """Decides in this process, acting as the owner of its first organisation."""

    def __init__(self, opened: OpenedServices) -> None:
        super().__init__(opened.services, Actor(GATE, opened.organisation_id, "owner"))
        self.organisation_id = opened.organisation_id
        self.owner_key = opened.owner_key
        self.witness = create_witness(opened.services)
        """Publishes the heads of its logs, and checks the logs against published heads."""
        self._as_owner = Credentials(organisation_id=opened.organisation_id)
        self._retention = erasure.RetentionJob(opened.services)

    def start(self) -> None:
        """Start the threads of the witness and of the retention job."""
        self.witness.start()
        self._retention.start()

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
        """Verify an action, as the agent if a token is given, otherwise as the owner (spec 4)."""
        case = Case(
            agent_id=self._agent_id(agent_id),
            credentials=self._as_owner if agent_token is None else Credentials(agent_token=agent_token),
            action_raw=action,
            context_raw=context,
            options_raw=options,
            idempotency_key=idempotency_key,
            justification=justification,
            context_required=context_required,
            now=self._services.clock.now(),
        )
        return Reply(run_in_thread(verify_action(case, self._services), TIMEOUT_SECONDS))

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
        """Verify a tool call; `effects` are declared in addition to the detected ones (spec 5)."""
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
        """Write queued data, stop the workers and release the data directory."""
        self._batches.close()
        self._retention.close()
        # Waiters in other threads are woken while the store is still open.
        self._services.waiters.close()
        self.witness.close()
        close_services(self._services)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_gate(path: str | Path = MEMORY, *, clock: Clock | None = None, **settings: Any) -> Gate:
    """Open a Gate on a data directory, or on `:memory:` without persistence."""
    in_memory = path == MEMORY
    if not in_memory:
        settings["data_dir"] = Path(path)
    loaded = settings_from(**settings)
    require_publishers(loaded)
    gate = Gate(open_services(loaded, in_memory=in_memory, clock=clock))
    gate.start()
    return gate
