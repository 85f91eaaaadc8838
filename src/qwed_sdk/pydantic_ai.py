"""Pydantic AI: every tool of an agent, or of one toolset, asks qwed before it runs and runs with what was permitted."""

import copy
import inspect
import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from qwed_sdk.calls.checks import Permit, Refusal
from qwed_sdk.checkpoint import Checkpoint
from qwed_sdk.pausing import Asked, Pauses, is_pending, note_of, report

INSTALL = "qwed_sdk.pydantic_ai needs Pydantic AI: pip install pydantic-ai-slim"


class _Absent:
    """In place of a class of the framework where it is not installed."""

    def __new__(cls, *_arguments: object, **_named: object) -> NoReturn:
        raise ImportError(INSTALL)

    def __class_getitem__(cls, _parameters: object) -> type:
        return cls


if TYPE_CHECKING:
    from pydantic_ai import RunContext
    from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.output import OutputContext
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

    from qwed_sdk.agent import QWEDAgentClient
    from qwed_sdk.client import QWEDClient
else:
    try:
        from pydantic_ai.capabilities import AbstractCapability
        from pydantic_ai.toolsets import WrapperToolset
    except ImportError:
        AbstractCapability = WrapperToolset = _Absent

UNSEEN = (
    "qwed cannot see what the tool `{name}` does: leave it out, or name it in `unverified` to let it run without qwed"
)


@dataclass(frozen=True)
class _Desk:
    """Whom to ask, and what to do where the answer is not yes."""

    checkpoint: Checkpoint
    pauses: Pauses
    pause: bool | None
    unverified: frozenset[str]

    def require_seen(self, names: Collection[str]) -> None:
        """Tools that run elsewhere are there only where the application named them."""
        for name in names:
            if name not in self.unverified:
                raise ValueError(UNSEEN.format(name=name))

    def refused(self, found: Refusal, ctx: "RunContext[Any]") -> Exception:
        """What to raise: the run pauses for a person where it can, otherwise the model is told."""
        from pydantic_ai import ApprovalRequired, ToolFailed

        if is_pending(found) and (_can_pause(ctx) if self.pause is None else self.pause):
            return ApprovalRequired(metadata={"qwed": note_of(found)})
        return ToolFailed(str(found))


def _desk(
    checkpoint: Checkpoint | None, pause: bool | None, unverified: Collection[str], **settings: Any
) -> _Desk:
    checkpoint = checkpoint or Checkpoint(**settings)
    return _Desk(checkpoint, Pauses(checkpoint), pause, frozenset(unverified))


class QWEDToolset(WrapperToolset[Any]):
    """A toolset whose tools run only with qwed's permission."""

    def __init__(
        self,
        wrapped: "AbstractToolset[Any]",
        checkpoint: Checkpoint | None = None,
        *,
        agent_id: str | None = None,
        agent_token: str | None = None,
        client: "QWEDClient | QWEDAgentClient | None" = None,
        actions: Mapping[str, Mapping[str, str]] | None = None,
        options: Mapping[str, Any] | None = None,
        wait: float = 0.0,
        pause: bool | None = None,
        unverified: Collection[str] = (),
    ) -> None:
        """`pause`: PENDING defers the call; by default where the agent's `output_type` has DeferredToolRequests."""
        super().__init__(wrapped)
        self._desk = _desk(
            checkpoint,
            pause,
            unverified,
            agent_id=agent_id,
            agent_token=agent_token,
            client=client,
            actions=actions,
            options=options,
            wait=wait,
        )
