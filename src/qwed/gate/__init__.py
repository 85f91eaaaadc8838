"""The in-process front door: `qwed.open(...)` gives a Gate with the verbs of the client, without HTTP."""

from qwed.gate.door import Gate, open_gate
from qwed.gate.reply import GateError, Reply

__all__ = ["Gate", "GateError", "Reply", "open_gate"]
