"""Seed 004: a tool call from its arguments to its answer - decided, carried out, told."""

from typing import Any

import anyio
from anyio import to_thread
from mcp_types import CallToolResult, ContentBlock, TextContent

from qwed_mcp import texts
from qwed_mcp.decisions import log, log_decision
from qwed_mcp.jobs import OPEN, Full, Jobs, JobState
from qwed_mcp.sandbox.outcome import Chosen, Outcome, Sandbox, Unavailable
from qwed_mcp.security.gateway import EXECUTE, Decision, Refusal, RiskBasedExecutionGateway, held_back
from qwed_mcp.turns import Turns

_BUSY = "Error: too many runs of yours wait for their turn; try again when one has ended."
_SURPRISE = "Error: the call could not be carried out, and nothing was verified."


class Desk:
    """Answers the calls of every caller; another caller's job is a job that does not exist."""

    def __init__(self, gateway: RiskBasedExecutionGateway, chosen: Chosen, jobs: Jobs, turns: Turns) -> None:
        self._gateway, self._chosen, self._jobs, self._turns = gateway, chosen, jobs, turns

    async def answer(self, caller: str, tool: str, arguments: dict[str, Any] | None) -> CallToolResult:
        """What the tool says; a surprise is a no, and says nothing about itself."""
        try:
            return await self._answer(caller, tool, arguments)
        except Exception as surprise:  # noqa: BLE001 - MCP dispatch, a named boundary: whatever it was, it is refused
            log("surprise", caller=caller, kind=type(surprise).__name__)
            return answered(_SURPRISE, well=False)

    async def _answer(self, caller: str, tool: str, arguments: dict[str, Any] | None) -> CallToolResult:
        # A long program takes the guard a while; the others are answered meanwhile.
        decision = await to_thread.run_sync(self._gateway.evaluate_and_route, tool, arguments)
        sandbox = await self._sandbox(decision, tool)
        if isinstance(sandbox, Unavailable):
            decision = held_back(decision, sandbox.reason)
        log_decision(caller, tool, decision)
        if isinstance(decision, Refusal):
            return _refused(decision)
        if sandbox is None:
            return self._looked_up(caller, decision)
        assert not isinstance(sandbox, Unavailable)  # noqa: S101 - held back above
        if decision.normalized_arguments["background"]:
            return self._placed(caller, decision)
        return await self._run(caller, decision, sandbox)

    async def _sandbox(self, decision: Decision, tool: str) -> Sandbox | Unavailable | None:
        """Where the code would run; none for a call that runs nothing."""
        if not decision.verified or tool != EXECUTE:
            return None
        return await to_thread.run_sync(self._chosen)

    async def _run(self, caller: str, decision: Decision, sandbox: Sandbox) -> CallToolResult:
        if self._turns.full(caller):
            return answered(_BUSY, well=False, meta=_meta(decision))
        outcome = await self._turns.run(caller, sandbox, decision.normalized_arguments["code"])
        said = texts.told(outcome, self._turns.seconds)
        return answered(said.text, well=said.well, meta=_meta(decision, outcome))

    def _placed(self, caller: str, decision: Decision) -> CallToolResult:
        job_id = self._jobs.place(caller, decision.normalized_arguments["code"])
        if isinstance(job_id, Full):
            return answered(f"Error: {job_id.reason}.", well=False, meta=_meta(decision))
        text = (
            f"Verification order is being placed for the request {job_id} "
            "Check back using the 'verification_status' tool."
        )
        return answered(text, meta={**_meta(decision), "qwed/job_id": job_id}, structured={"job_id": job_id})

    def _looked_up(self, caller: str, decision: Decision) -> CallToolResult:
        job_id = decision.normalized_arguments["job_id"]
        seen = self._jobs.look(caller, job_id)
        if seen is None:
            return answered(f"Error: Job ID '{job_id}' not found or expired.", well=False, meta=_meta(decision))
        well = seen.state in OPEN or seen.state is JobState.SUCCESS
        structured = {"job_id": job_id, "status": seen.state.value}
        return answered(seen.text, well=well, meta=_meta(decision, seen.outcome), structured=structured)

    def cancel(self, caller: str, job_id: str) -> None:
        """End a background job of the caller."""
        self._jobs.cancel(caller, job_id)

    async def close(self) -> None:
        """End every job."""
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(self._jobs.close)


def _refused(refusal: Refusal) -> CallToolResult:
    told = {name: value for name, value in refusal.items() if name != "normalized_arguments"}
    return answered(refusal.text, well=False, meta=_meta(refusal), structured=told)


def answered(
    text: str, *, well: bool = True, meta: dict[str, Any] | None = None, structured: dict[str, Any] | None = None
) -> CallToolResult:
    """A result of a tool."""
    content: list[ContentBlock] = [TextContent(type="text", text=text)]
    return CallToolResult(content=content, is_error=not well, _meta=meta, structured_content=structured)


def _meta(decision: Decision, outcome: Outcome | None = None) -> dict[str, Any]:
    told: dict[str, Any] = {"qwed/verification_id": decision.verification_id}
    if "error_code" in decision:
        told["qwed/error_code"] = decision["error_code"]
    if outcome is not None:
        told |= {"qwed/sandbox": outcome.sandbox, "qwed/return_code": outcome.return_code, "qwed/ended": outcome.ended}
    return told
