"""Dispatch of a tool call: decide it, run it, and describe the result (seed 004)."""

from typing import Any

import anyio
from anyio import to_thread
from mcp_types import CallToolResult, ContentBlock, TextContent

from qwed_mcp import response_texts
from qwed_mcp.decision_log import log, log_decision
from qwed_mcp.jobs import OPEN, BackgroundJobs, JobState, QueueFull
from qwed_mcp.run_queue import RunQueue
from qwed_mcp.sandbox.job import JobOutcome, Sandbox, SandboxProvider, SandboxUnavailable
from qwed_mcp.security.gateway import EXECUTE, BlockedDecision, Decision, RiskBasedExecutionGateway, block_by_policy

_BUSY = "Error: too many of your runs are queued; try again when one has ended."
_INTERNAL_ERROR = "Error: the call could not be carried out, and nothing was verified."


class ToolDispatcher:
    """Answers the tool calls of all callers; a job of another caller is treated as missing."""

    def __init__(
        self, gateway: RiskBasedExecutionGateway, sandboxes: SandboxProvider, jobs: BackgroundJobs, runs: RunQueue
    ) -> None:
        self._gateway, self._sandboxes, self._jobs, self._runs = gateway, sandboxes, jobs, runs

    async def answer(self, caller: str, tool: str, arguments: dict[str, Any] | None) -> CallToolResult:
        """Return the tool's result; an unexpected error refuses the call and reveals no details."""
        try:
            return await self._answer(caller, tool, arguments)
        except Exception as error:  # noqa: BLE001 - MCP dispatch, a named boundary: any error refuses the call
            log("tool call failed", caller=caller, kind=type(error).__name__)
            return tool_result(_INTERNAL_ERROR, success=False)

    async def _answer(self, caller: str, tool: str, arguments: dict[str, Any] | None) -> CallToolResult:
        # The guard needs time for a long program; other callers are answered meanwhile.
        decision = await to_thread.run_sync(self._gateway.evaluate_and_route, tool, arguments)
        sandbox = await self._choose_sandbox(decision, tool)
        if isinstance(sandbox, SandboxUnavailable):
            decision = block_by_policy(decision, sandbox.reason)
        log_decision(caller, tool, decision)
        if isinstance(decision, BlockedDecision):
            return _refusal_result(decision)
        if sandbox is None:
            return self._job_status(caller, decision)
        assert not isinstance(sandbox, SandboxUnavailable)  # noqa: S101 - blocked above
        if decision.normalized_arguments["background"]:
            return self._submit_job(caller, decision)
        return await self._run(caller, decision, sandbox)

    async def _choose_sandbox(self, decision: Decision, tool: str) -> Sandbox | SandboxUnavailable | None:
        """Return the sandbox that would run the code, or None if the call runs nothing."""
        if not decision.verified or tool != EXECUTE:
            return None
        return await to_thread.run_sync(self._sandboxes)

    async def _run(self, caller: str, decision: Decision, sandbox: Sandbox) -> CallToolResult:
        if self._runs.is_full(caller):
            return tool_result(_BUSY, success=False, meta=_result_meta(decision))
        outcome = await self._runs.run(caller, sandbox, decision.normalized_arguments["code"])
        summary = response_texts.describe_run(outcome, self._runs.seconds)
        return tool_result(summary.text, success=summary.success, meta=_result_meta(decision, outcome))

    def _submit_job(self, caller: str, decision: Decision) -> CallToolResult:
        job_id = self._jobs.submit(caller, decision.normalized_arguments["code"])
        if isinstance(job_id, QueueFull):
            return tool_result(f"Error: {job_id.reason}.", success=False, meta=_result_meta(decision))
        text = (
            f"Verification order is being placed for the request {job_id} "
            "Check back using the 'verification_status' tool."
        )
        return tool_result(text, meta={**_result_meta(decision), "qwed/job_id": job_id}, structured={"job_id": job_id})

    def _job_status(self, caller: str, decision: Decision) -> CallToolResult:
        job_id = decision.normalized_arguments["job_id"]
        job = self._jobs.get(caller, job_id)
        if job is None:
            return tool_result(
                f"Error: Job ID '{job_id}' not found or expired.", success=False, meta=_result_meta(decision)
            )
        success = job.state in OPEN or job.state is JobState.SUCCESS
        structured = {"job_id": job_id, "status": job.state.value}
        return tool_result(job.text, success=success, meta=_result_meta(decision, job.outcome), structured=structured)

    def cancel(self, caller: str, job_id: str) -> None:
        """Cancel a background job of the caller."""
        self._jobs.cancel(caller, job_id)

    async def close(self) -> None:
        """Cancel all jobs."""
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(self._jobs.close)


def _refusal_result(refusal: BlockedDecision) -> CallToolResult:
    fields = {name: value for name, value in refusal.items() if name != "normalized_arguments"}
    return tool_result(refusal.text, success=False, meta=_result_meta(refusal), structured=fields)


def tool_result(
    text: str, *, success: bool = True, meta: dict[str, Any] | None = None, structured: dict[str, Any] | None = None
) -> CallToolResult:
    """Return a tool result with one text."""
    content: list[ContentBlock] = [TextContent(type="text", text=text)]
    return CallToolResult(content=content, is_error=not success, _meta=meta, structured_content=structured)


def _result_meta(decision: Decision, outcome: JobOutcome | None = None) -> dict[str, Any]:
    meta: dict[str, Any] = {"qwed/verification_id": decision.verification_id}
    if "error_code" in decision:
        meta["qwed/error_code"] = decision["error_code"]
    if outcome is not None:
        meta |= {"qwed/sandbox": outcome.sandbox, "qwed/return_code": outcome.return_code, "qwed/ended": outcome.ended}
    return meta
