"""Changes that the gate has no method for."""

from collections.abc import Coroutine
from typing import Any

from qwed.futures import run_in_thread
from qwed.gate import GateError
from qwed.kernel.answer import Problem


def run_change(change: Coroutine[Any, None, Any]) -> Any:
    """Run a change of the kernel and return its result; raise as the gate does if it is refused."""
    result = run_in_thread(change, 60)
    if isinstance(result, Problem):
        raise GateError(result.code, result.message)
    return result
