"""`Case`: the state of one request in the pipeline. Frozen; each stage returns a copy with more fields set."""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from qwed.domain.agent import Agent, Key
from qwed.domain.budget import NO_COST, RequestCost
from qwed.domain.conversation import ConversationStep
from qwed.domain.snapshot import NO_TOOLS, StoredAnswer
from qwed.domain.write_set import Reservation
from qwed.kernel.analysis.content_scan import EMPTY_SCAN, ContentScan
from qwed.kernel.answer import Answer, Factor, PolicyCheck
from qwed.kernel.request import NO_OPTIONS, Action, ActionOptions, Context
from qwed.kernel.tools import ResolvedAction
from qwed.model import NO_FACTS, Decision, Facts, Risk, Verdict

if TYPE_CHECKING:
    from qwed.kernel.a2a.message import InterceptedMessage
    from qwed.kernel.analysis.assessment import Assessment

_UNSET: Any = None
"""Value of a field that a stage sets; no stage reads a field that no earlier stage has set."""


class Credentials(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Credentials of the caller: an organisation's key, an agent's token, or none for the process itself."""

    api_key: str | None = None
    agent_token: str | None = None
    organisation_id: str | None = None
    """Set only by the in-process Gate, whose caller is always the owner."""
    proven_key: Key | None = None
    """The key behind `api_key`, where the API has verified it already."""
    proven_agent: Agent | None = None
    """The agent that the token belongs to, where the API has verified it already."""


class Case(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A Struct and not a dataclass: it is copied at every stage, and a Struct copies twenty times faster."""

    # from the request
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
    """Error in the body around the action; reported only after the caller is authenticated."""
    message: "InterceptedMessage | None" = None
    """The message between two agents, where the request is about one."""
    actor_id: str = ""
    """Id of the caller, where it is known from the start."""
    organisation_id: str | None = None
    """Organisation of the sender of a message, which may be no registered agent."""
    coalesced_refusals: int = 0
    """Number of earlier messages that were refused without a leaf of their own."""
    now: float
    started: float = msgspec.field(default_factory=time.perf_counter)

    # parse
    unparsed: Answer | None = None
    """Refusal of a malformed request; reported only after the caller is authenticated."""
    action: Action = _UNSET
    action_hash: str = ""
    context: Context = _UNSET
    options: ActionOptions = NO_OPTIONS
    step: ConversationStep = _UNSET
    conversation_id: str | None = None
    """Keyed name of the conversation."""
    chain_id: str | None = None
    """Keyed name of the chain of attestations."""
    body_hash: str = ""
    """Keyed hash of the body, where the request has an idempotency key."""
    # admit
    agent: Agent = _UNSET
    key: Key | None = None
    tools: Mapping[str, bytes] = NO_TOOLS
    remembered: StoredAnswer | None = None
    """Answer that is stored under the idempotency key."""
    charge: RequestCost = NO_COST
    checks_passed: tuple[str, ...] = ()
    """Names of the checks that ran and passed so far; each check adds its own."""
    # reserve
    reservation: Reservation | None = None
    # check_permissions
    resolved_action: ResolvedAction = _UNSET
    # run_engine
    content: ContentScan = EMPTY_SCAN
    verdict: Verdict | None = None
    facts: Facts = NO_FACTS
    """Facts of the verdict, and those that the action itself shows."""
    corrected: Mapping[str, Any] | None = None
    executable: Action | None = None
    """The repaired action, where a repair was offered and verified."""
    cacheable: bool = True
    """True if the same action would get the same verdict next time."""
    # assess_risk
    risk: Risk = Risk.CRITICAL
    factors: tuple[Factor, ...] = ()
    policies: tuple[PolicyCheck, ...] = ()
    # decide
    decision: Decision = Decision.DENIED
    # result of all stages since check_permissions, new or cached
    assessment: "Assessment | None" = None


replace = msgspec.structs.replace
"""Return a copy of a case with other field values."""
