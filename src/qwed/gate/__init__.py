"""In-process API: `qwed.open(...)` returns a Gate with the methods of the client, without HTTP."""

from qwed.gate.gate import Gate, open_gate
from qwed.gate.gate_result import GateError, Reply

__all__ = ["Gate", "GateError", "Reply", "open_gate"]
