"""Logic engine under its published import name."""

from qwed.engines.logic import LogicResult, verify_logic_statement

__all__ = ["LogicResult", "verify_logic_statement"]
