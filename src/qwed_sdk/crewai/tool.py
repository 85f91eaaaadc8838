"""A tool of a verified agent: asks, runs what was permitted, says how it went."""

import asyncio
import inspect
from collections.abc import Iterable
from typing import Any
from uuid import uuid4

from crewai.skills.tool import LoadSkillTool
from crewai.tools import BaseTool
from crewai.tools.agent_tools.deferred_tool_result_reader import DeferredToolResultReader
from crewai.tools.tool_failure import ToolFailure
from crewai.utilities.string_utils import sanitize_tool_name
from pydantic import PrivateAttr

from qwed_sdk.calls.checks import Permit, Refusal
from qwed_sdk.checkpoint import Checkpoint
from qwed_sdk.crewai.settings import Guard

READERS = (LoadSkillTool, DeferredToolResultReader)
"""The framework's own: they show the model what the developer attached, or a result it was already given."""


def never_cached(_arguments: Any = None, _result: Any = None) -> bool:
    """No: an answer out of a cache is one that nobody verified."""
    return False


class VerifiedTool(BaseTool):  # type: ignore[misc] # CrewAI is not installed where types are checked
    """Looks like the tool inside to CrewAI and to the model; without a guard it refuses everything."""

    _inner: Any = PrivateAttr(default=None)
    _guard: Guard | None = PrivateAttr(default=None)
    _conversation: str | None = PrivateAttr(default=None)

    def _run(self, **arguments: Any) -> Any:
        if self._guard is None:
            return self._not_run("it has lost its connection to qwed")
        checkpoint, attested = self._guard
        answer = checkpoint.before(sanitize_tool_name(self.name), arguments, self._conversation)
        if not isinstance(answer, Permit):
            return _told(answer)
        if attested and not answer.attestation:
            checkpoint.after(answer, False)
            return self._not_run("its permit has no attestation")
        return self._run_permitted(checkpoint, answer)

    def _run_permitted(self, checkpoint: Checkpoint, permit: Permit) -> Any:
        result: Any = None
        succeeded = False
        try:
            # What qwed corrected is JSON that the tool's schema has not seen yet.
            corrected = permit.answer.corrected is not None
            result = self._inner._run(**self._validate_kwargs(permit.arguments) if corrected else permit.arguments)
            if inspect.iscoroutine(result):
                result = asyncio.run(result)
            succeeded = not isinstance(result, ToolFailure)
        finally:
            checkpoint.after(permit, succeeded, result)
        return result

    def _not_run(self, why: str) -> ToolFailure:
        return ToolFailure(message=f"`{sanitize_tool_name(self.name)}` was not run: {why}")

    def format_output_for_agent(self, raw_result: Any) -> str:
        """What the tool inside would show the model, and a refusal as its sentence."""
        shower: Any = super() if isinstance(raw_result, ToolFailure) else self._inner
        shown: str = shower.format_output_for_agent(raw_result)
        return shown


def verified(tools: Iterable[Any], guard: Guard | None) -> list[Any]:
    """The tools of one run, each of which asks first; one run is one conversation."""
    conversation = uuid4().hex
    return [tool if type(tool) in READERS else _wrapped(tool, guard, conversation) for tool in tools]


def _wrapped(tool: Any, guard: Guard | None, conversation: str) -> VerifiedTool:
    shown = ("name", "description", "env_vars", "args_schema", "result_schema")
    rules = ("result_as_answer", "max_usage_count", "tool_failure_policy")
    wrapped = VerifiedTool(cache_function=never_cached, **{name: getattr(tool, name) for name in shown + rules})
    wrapped._inner, wrapped._guard, wrapped._conversation = tool, guard, conversation
    return wrapped


def _told(refusal: Refusal) -> ToolFailure:
    # Not as `code`, which CrewAI would write behind a sentence that names it already.
    details = {"code": refusal.code, "decision": refusal.decision}
    return ToolFailure(message=str(refusal), details=details)
