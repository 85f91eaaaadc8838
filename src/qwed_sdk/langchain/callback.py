"""QWEDVerificationCallback: asks before each tool runs, wherever LangChain lets a callback listen."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, Unpack
from uuid import UUID

from qwed.words import Decision, NotCanonical, canonical
from qwed_sdk.agent import QWEDAgentClient
from qwed_sdk.calls.checks import Permit, Refusal
from qwed_sdk.checkpoint import Checkpoint, Ruled
from qwed_sdk.client import QWEDClient
from qwed_sdk.errors import ActionDenied
from qwed_sdk.framework import framework
from qwed_sdk.langchain.outcome import Outcome, failure_of, outcome_of
from qwed_sdk.langchain.runs import Call, Runs
from qwed_sdk.plain import NotPlain, plain

if TYPE_CHECKING:
    from langchain_core.agents import AgentAction
    from langchain_core.callbacks import BaseCallbackHandler
else:
    BaseCallbackHandler = framework("langchain_core.callbacks", "BaseCallbackHandler", "langchain-core")

P = ParamSpec("P")


def blocking(hook: Callable[P, None]) -> Callable[P, None]:
    """The hook, whose every exception stops the tool."""

    @wraps(hook)
    def stopping(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            hook(*args, **kwargs)
        except NotImplementedError as surprise:
            # The one exception LangChain logs and goes on from, whatever `raise_error` says.
            raise ActionDenied("a tool", "the verification itself failed") from surprise

    return stopping


class QWEDVerificationCallback(BaseCallbackHandler):
    """Raises ActionDenied or ActionPending before a tool that may not run; logs what became of one that may."""

    def __init__(
        self,
        agent_id: str | None = None,
        agent_token: str | None = None,
        client: QWEDClient | QWEDAgentClient | None = None,
        **rules: Unpack[Ruled],
    ) -> None:
        """The keywords are those of a Checkpoint."""
        super().__init__()
        self._checkpoint = Checkpoint(agent_id=agent_id, agent_token=agent_token, client=client, **rules)
        self._runs = Runs()

    @property
    def raise_error(self) -> bool:
        """True: an exception here must reach LangChain, or the tool would run."""
        return True

    @raise_error.setter
    def raise_error(self, _value: bool) -> None:
        raise AttributeError("`raise_error` stays true: without it LangChain runs the tool that was denied")

    def on_chain_start(
        self,
        serialized: dict[str, Any],  # noqa: ARG002
        inputs: dict[str, Any],  # noqa: ARG002
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **_told: Any,
    ) -> None:
        self._runs.begin(run_id, parent_run_id, metadata)

    def on_chain_end(self, outputs: dict[str, Any], *, run_id: UUID, **_told: Any) -> None:  # noqa: ARG002
        self._runs.end(run_id)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **_told: Any) -> None:  # noqa: ARG002
        self._runs.end(run_id)

    @blocking
    def on_agent_action(self, action: "AgentAction", *, run_id: UUID, **_told: Any) -> None:
        """An AgentExecutor announces a call: all that callbacks given to its constructor hear of it."""
        arguments = _arguments(action.tool_input)
        permit = self._ask(action.tool, arguments, self._runs.conversation(run_id))
        call = _call(action.tool, arguments)
        if call is not None:
            self._runs.permit(run_id, call, permit)

    @blocking
    def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        inputs: dict[str, Any] | None = None,
        **_told: Any,
    ) -> None:
        """A tool is about to run: asked about here unless the executor above it has just announced this very call."""
        tool, arguments = serialized["name"], _arguments(input_str if inputs is None else inputs)
        conversation = self._runs.conversation(parent_run_id, metadata)
        announced = self._runs.claim(parent_run_id, _call(tool, arguments))
        permit = self._ask(tool, arguments, conversation) if announced is None else announced
        self._runs.start(run_id, permit, conversation)

    def on_tool_end(self, output: Any, *, run_id: UUID, **_told: Any) -> None:
        self._report(run_id, outcome_of(output))

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **_told: Any) -> None:
        self._report(run_id, failure_of(error))

    def _report(self, run: UUID, outcome: Outcome | None) -> None:
        permit = self._runs.finish(run)
        if permit is not None and outcome is not None:
            self._checkpoint.after(permit, *outcome)

    def _ask(self, tool: str, arguments: dict[str, Any], conversation: str | None) -> Permit:
        said = self._checkpoint.before(tool, arguments, conversation)
        if isinstance(said, Refusal):
            raise said.error()
        if said.answer.decision == Decision.CORRECTED or _call(tool, said.arguments) != _call(tool, arguments):
            self._checkpoint.after(said, False, "not run: only the corrected arguments are permitted")
            raise _corrected(tool, said)
        return said


def _arguments(given: str | Mapping[str, Any]) -> dict[str, Any]:
    # What a tool of one argument is given as bare text is called `input`, as LangChain itself calls it.
    return {"input": given} if isinstance(given, str) else dict(given)


def _call(tool: str, arguments: Mapping[str, Any]) -> Call | None:
    try:
        return Call(tool, canonical(plain(arguments, tool)))
    except (NotPlain, NotCanonical):
        return None


def _corrected(tool: str, permit: Permit) -> ActionDenied:
    return ActionDenied(
        tool,
        "a callback cannot change the arguments, and only these are permitted: "
        f"`{canonical(plain(permit.arguments, tool)).decode()}`",
        suggestion="call it with those, or use QWEDMiddleware, which runs the corrected call",
        decision=Decision.CORRECTED,
        answer=permit.answer,
    )
