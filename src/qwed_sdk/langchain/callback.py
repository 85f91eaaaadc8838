"""QWEDVerificationCallback: a LangChain callback that verifies each tool call before the tool runs."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, Unpack
from uuid import UUID

from qwed.model import CanonicalJsonError, Decision, canonical
from qwed_sdk.agent import QWEDAgentClient
from qwed_sdk.client import QWEDClient
from qwed_sdk.errors import ActionDenied
from qwed_sdk.langchain.run_registry import AnnouncedCall, RunRegistry
from qwed_sdk.langchain.tool_result import ToolOutcome, failure_of, outcome_of
from qwed_sdk.optional_import import import_or_stub
from qwed_sdk.permits import Permit, Refusal
from qwed_sdk.to_json import NotJsonSerializableError, to_plain_json
from qwed_sdk.tool_guard import Checkpoint, CheckpointRules

if TYPE_CHECKING:
    from langchain_core.agents import AgentAction
    from langchain_core.callbacks import BaseCallbackHandler
else:
    BaseCallbackHandler = import_or_stub("langchain_core.callbacks", "BaseCallbackHandler", "langchain-core")

P = ParamSpec("P")


def stop_on_error(hook: Callable[P, None]) -> Callable[P, None]:
    """Decorate a callback method so that every exception in it stops the tool."""

    @wraps(hook)
    def stopping(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            hook(*args, **kwargs)
        except NotImplementedError as error:
            # LangChain logs this exception and continues, whatever `raise_error` says.
            raise ActionDenied("a tool", "the verification itself failed") from error

    return stopping


class QWEDVerificationCallback(BaseCallbackHandler):
    """Raises ActionDenied or ActionPending before a tool that may not run; records the outcome of others."""

    def __init__(
        self,
        agent_id: str | None = None,
        agent_token: str | None = None,
        client: QWEDClient | QWEDAgentClient | None = None,
        **rules: Unpack[CheckpointRules],
    ) -> None:
        """The keywords are those of a Checkpoint."""
        super().__init__()
        self._checkpoint = Checkpoint(agent_id=agent_id, agent_token=agent_token, client=client, **rules)
        self._runs = RunRegistry()

    @property
    def raise_error(self) -> bool:
        """True: an exception here must reach LangChain, or the tool would run."""
        return True

    @raise_error.setter
    def raise_error(self, _value: bool) -> None:
        raise AttributeError("`raise_error` must stay true: without it LangChain runs denied tools")

    def on_chain_start(
        self,
        serialized: dict[str, Any],  # noqa: ARG002
        inputs: dict[str, Any],  # noqa: ARG002
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **_ignored: Any,
    ) -> None:
        self._runs.begin(run_id, parent_run_id, metadata)

    def on_chain_end(self, outputs: dict[str, Any], *, run_id: UUID, **_ignored: Any) -> None:  # noqa: ARG002
        self._runs.end(run_id)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **_ignored: Any) -> None:  # noqa: ARG002
        self._runs.end(run_id)

    @stop_on_error
    def on_agent_action(self, action: "AgentAction", *, run_id: UUID, **_ignored: Any) -> None:
        """Verify a call that an AgentExecutor announces; callbacks of its constructor receive no other event."""
        arguments = _arguments_of(action.tool_input)
        permit = self._request_permit(action.tool, arguments, self._runs.conversation(run_id))
        call = _announced_call(action.tool, arguments)
        if call is not None:
            self._runs.permit(run_id, call, permit)

    @stop_on_error
    def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        inputs: dict[str, Any] | None = None,
        **_ignored: Any,
    ) -> None:
        """Verify a call, unless the executor has just announced it."""
        tool, arguments = serialized["name"], _arguments_of(input_str if inputs is None else inputs)
        conversation = self._runs.conversation(parent_run_id, metadata)
        announced = self._runs.claim(parent_run_id, _announced_call(tool, arguments))
        permit = self._request_permit(tool, arguments, conversation) if announced is None else announced
        self._runs.start(run_id, permit, conversation)

    def on_tool_end(self, output: Any, *, run_id: UUID, **_ignored: Any) -> None:
        self._report(run_id, outcome_of(output))

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **_ignored: Any) -> None:
        self._report(run_id, failure_of(error))

    def _report(self, run: UUID, outcome: ToolOutcome | None) -> None:
        permit = self._runs.finish(run)
        if permit is not None and outcome is not None:
            self._checkpoint.after(permit, *outcome)

    def _request_permit(self, tool: str, arguments: dict[str, Any], conversation: str | None) -> Permit:
        decision = self._checkpoint.before(tool, arguments, conversation)
        if isinstance(decision, Refusal):
            raise decision.error()
        if decision.answer.decision == Decision.CORRECTED or _announced_call(
            tool, decision.arguments
        ) != _announced_call(tool, arguments):
            self._checkpoint.after(decision, False, "not run: only the corrected arguments are permitted")
            raise _corrected_error(tool, decision)
        return decision


def _arguments_of(tool_input: str | Mapping[str, Any]) -> dict[str, Any]:
    # LangChain names the single text argument of a tool `input`.
    return {"input": tool_input} if isinstance(tool_input, str) else dict(tool_input)


def _announced_call(tool: str, arguments: Mapping[str, Any]) -> AnnouncedCall | None:
    try:
        return AnnouncedCall(tool, canonical(to_plain_json(arguments, tool)))
    except (NotJsonSerializableError, CanonicalJsonError):
        return None


def _corrected_error(tool: str, permit: Permit) -> ActionDenied:
    return ActionDenied(
        tool,
        "a callback cannot change the arguments, and only these are permitted: "
        f"`{canonical(to_plain_json(permit.arguments, tool)).decode()}`",
        suggestion="call it with those, or use QWEDMiddleware, which runs the corrected call",
        decision=Decision.CORRECTED,
        answer=permit.answer,
    )
