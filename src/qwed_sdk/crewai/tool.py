"""Tool of a verified CrewAI agent: verifies the call, runs the permitted arguments, records the outcome."""

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

from qwed_sdk.crewai.settings import GuardSettings
from qwed_sdk.permits import Permit, Refusal
from qwed_sdk.tool_guard import Checkpoint

READ_ONLY_TOOLS = (LoadSkillTool, DeferredToolResultReader)
"""CrewAI's own tools that show the model attached skills or earlier results; they are not verified."""


def never_cached(_arguments: Any = None, _result: Any = None) -> bool:
    """Return False: a cached result was not verified."""
    return False


class VerifiedTool(BaseTool):  # type: ignore[misc] # CrewAI is not installed where types are checked
    """Wrapper that looks like the inner tool; without settings it refuses every call."""

    _inner: Any = PrivateAttr(default=None)
    _guard: GuardSettings | None = PrivateAttr(default=None)
    _conversation: str | None = PrivateAttr(default=None)

    def _run(self, **arguments: Any) -> Any:
        if self._guard is None:
            return self._not_run("it has no connection to qwed")
        checkpoint, attested = self._guard
        answer = checkpoint.before(sanitize_tool_name(self.name), arguments, self._conversation)
        if not isinstance(answer, Permit):
            return _failure_of(answer)
        if attested and not answer.attestation:
            checkpoint.after(answer, False)
            return self._not_run("its permit has no attestation")
        return self._run_permitted(checkpoint, answer)

    def _run_permitted(self, checkpoint: Checkpoint, permit: Permit) -> Any:
        result: Any = None
        succeeded = False
        try:
            # Corrected arguments are JSON that the tool's schema has not validated yet.
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
        """Return the inner tool's text for the model, or the text of a refusal."""
        formatter: Any = super() if isinstance(raw_result, ToolFailure) else self._inner
        text: str = formatter.format_output_for_agent(raw_result)
        return text


def wrap_tools(tools: Iterable[Any], guard: GuardSettings | None) -> list[Any]:
    """Return the tools of one run, wrapped; one run is one conversation."""
    conversation = uuid4().hex
    return [tool if type(tool) in READ_ONLY_TOOLS else _wrap_tool(tool, guard, conversation) for tool in tools]


def _wrap_tool(tool: Any, guard: GuardSettings | None, conversation: str) -> VerifiedTool:
    description = ("name", "description", "env_vars", "args_schema", "result_schema")
    limits = ("result_as_answer", "max_usage_count", "tool_failure_policy")
    wrapped = VerifiedTool(cache_function=never_cached, **{name: getattr(tool, name) for name in description + limits})
    wrapped._inner, wrapped._guard, wrapped._conversation = tool, guard, conversation
    return wrapped


def _failure_of(refusal: Refusal) -> ToolFailure:
    # Not as `code`, which CrewAI appends to a message that already contains it.
    details = {"code": refusal.code, "decision": refusal.decision}
    return ToolFailure(message=str(refusal), details=details)
