"""Definitions of the two MCP tools (seed 004)."""

from mcp_types import Tool, ToolAnnotations

from qwed_mcp.security.gateway import EXECUTE, STATUS

TOOLS = (
    Tool(
        name=EXECUTE,
        title="Execute Python code",
        description=(
            "Run a Python verification script in a sandbox and return what it printed. The script may only compute: "
            "sympy, z3, decimal, fractions and the QWED packages (qwed_new.engines, qwed_new.guards, qwed_sdk.guards, "
            "qwed_legal, qwed_finance, qwed_ucp, qwed_tax) can be imported; files, processes, the network, eval and "
            "exec are refused. Print the result, assert what must hold: a failed assertion is an error. 30 seconds "
            "and 1 MB of output; for longer work set background to true and ask verification_status for the result. "
            "An answer that begins with BLOCKED was not run and says why."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "code": {"type": "string", "description": "Python code to execute in a subprocess", "minLength": 1},
                "background": {
                    "type": "boolean",
                    "default": False,
                    "description": "true returns a job_id at once; ask verification_status for the result",
                },
            },
            "required": ["code"],
            "additionalProperties": False,
        },
        # Code with effects is refused before it runs, so these hints are true.
        annotations=ToolAnnotations(read_only_hint=True, destructive_hint=False, open_world_hint=False),
    ),
    Tool(
        name=STATUS,
        title="Verification status",
        description=(
            "Tell the state of a background job of execute_python_code, and its output once it has ended: queued, "
            "running, success, failed, cancelled or timed_out. Results stay for an hour."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "job_id": {
                    "type": "string",
                    "format": "uuid",
                    "description": "the UUID that execute_python_code returned with background true",
                }
            },
            "required": ["job_id"],
            "additionalProperties": False,
        },
        annotations=ToolAnnotations(
            read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        ),
    ),
)
