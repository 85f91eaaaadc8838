"""The logic engine under its published name."""

from qwed.engines.logic import LogicResult, verify_logic_statement

__all__ = ["LogicResult", "verify_logic_statement"]
