"""Math engine under its published import name."""

from qwed.engines.math import verify_math_expression

__all__ = ["verify_math_expression"]
