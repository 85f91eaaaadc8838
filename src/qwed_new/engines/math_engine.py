"""`verify_math_expression`, as the published documents import it."""

from qwed.engines.math import verify_math_expression

__all__ = ["verify_math_expression"]
