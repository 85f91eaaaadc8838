"""`Case`: one request on its way through the stages. Frozen; each stage returns it with more known."""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from qwed.kernel.answer import Factor, PolicyCheck
from qwed.kernel.judging.content import NOTHING_SAID, Content
from qwed.kernel.request import NO_OPTIONS, Action, Context, Options
from qwed.kernel.tools import Subject
from qwed.store.agent import Agent, Key
from qwed.store.conversation import Step
from qwed.store.protocol import Remembered, Reservation
from qwed.store.usage import NOTHING, Charge
from qwed.words import Decision, Risk, Verdict

if TYPE_CHECKING:
    from qwed.kernel.judging.judgement import Judgement
    from qwed.kernel.messages.message import Message

_LATER: Any = None
"""A field some stage fills; no stage reads one that an earlier stage has not filled."""


class Credentials(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the caller showed: a key of an organisation, a token of an agent, or the process itself is the owner."""

    api_key: str | None = None
    agent_token: str | None = None
    organisation_id: str | None = None
    """Set by the in-process Gate alone, which has no strangers."""
    proven_key: Key | None = None
    """The key behind `api_key`, where the door has proven it already."""
    proven_agent: Agent | None = None
    """The agent whose token this is, where the door has proven it already."""


class Case(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A Struct and not a dataclass: it is copied at every stage, and this copies twenty times faster."""

    # as it came in
    agent_id: str
    credentials: Credentials
    action_raw: Any
    context_raw: Any = None
    options_raw: Any = None
    stated_agent_id: str | None = None
    justification: str | None = None
    idempotency_key: str | None = None
    context_required: bool = True
    malformed: str | None = None
    """What is wrong with the body around the action; said once it is known who asks."""
    message: "Message | None" = None
    """What one agent tells another, where that is what is asked about."""
    by: str = ""
    """Who asks, where it is known from the start."""
    unsaid: int = 0
    """How many messages before this one were refused without a leaf of their own."""
    now: float
    started: float = msgspec.field(default_factory=time.perf_counter)

    # authenticate
    agent: Agent = _LATER
    key: Key | None = None
    # require_context
    action: Action = _LATER
    action_hash: str = ""
    context: Context = _LATER
    options: Options = NO_OPTIONS
    step: Step = _LATER
    # recall
    body_hash: str = ""
    remembered: Remembered | None = None
    # reserve_step
    reservation: Reservation | None = None
    # check_budget
    charge: Charge = NOTHING
    # check_permissions
    subject: Subject = _LATER
    # run_engine
    content: Content = NOTHING_SAID
    verdict: Verdict | None = None
    corrected: Mapping[str, Any] | None = None
    executable: Action | None = None
    """The repaired action, where one was offered and verified."""
    lasting: bool = True
    """Whether the verdict would be the same next time."""
    # assess_risk
    risk: Risk = Risk.CRITICAL
    factors: tuple[Factor, ...] = ()
    policies: tuple[PolicyCheck, ...] = ()
    # decide
    decision: Decision = Decision.DENIED
    # everything since check_permissions, concluded or remembered
    judgement: "Judgement | None" = None


replace = msgspec.structs.replace
"""A case with more known."""
