"""Function calls normalised to one form: the variable second, its bounds after it."""

from collections.abc import Callable

from qwed.engines._math.syntax_tree import (
    BINDERS,
    CONSTANT_NAMES,
    INFINITY,
    ONE,
    MathNode,
    MathRefusalError,
    add,
    call,
    free_names,
    iter_nodes,
    multiply,
    name_node,
    number,
    reciprocal,
    substitute,
)
from qwed.engines._math.tokens import MathToken

MAX_ORDER = 12


def build_call(function: str, args: list[MathNode], token: MathToken) -> MathNode:
    """Return the tree of the call; raise MathRefusalError if an argument is of the wrong kind."""
    if function in BINDERS:
        return _binder(function, args, token)
    if function in _REWRITES:
        return _REWRITES[function](*args)
    if any(node == INFINITY for arg in args for node in iter_nodes(arg)):
        raise MathRefusalError(
            "defined", f"`{function}` of infinity is not a number (position {token.start + 1})", token.start + 1
        )
    return call(function, *args)


def _binder(function: str, args: list[MathNode], token: MathToken) -> MathNode:
    if function in ("sum", "product") and args[0].kind == "list":
        return add(*args[0].args) if function == "sum" else multiply(*args[0].args)
    flat = [args[0]]
    for arg in args[1:]:
        flat.extend(arg.args if arg.kind == "tuple" else (arg,))
    if len(flat) == 1:
        flat.extend(_only_variable(function, flat[0], token))
    if function in ("sum", "product") and flat[1] in (name_node("i"), name_node("I")):
        # As an index, `i` is not the imaginary unit.
        flat[0], flat[1] = substitute(flat[0], flat[1].name, name_node("index_i")), name_node("index_i")
    if flat[1].kind != "name" or flat[1].name in CONSTANT_NAMES or len(flat) not in _COUNTS[function]:
        problem = f"`{function}` is written {_USAGE[function]} (position {token.start + 1})"
        raise MathRefusalError("syntax_valid", problem, token.start + 1)
    if function == "diff":
        return call("diff", flat[0], flat[1], _order(flat[2:], token))
    return call(function, *flat)


def _only_variable(function: str, body: MathNode, token: MathToken) -> list[MathNode]:
    names = free_names(body)
    if function not in ("diff", "integrate") or len(names) != 1:
        problem = f"`{function}` is written {_USAGE[function]} (position {token.start + 1})"
        raise MathRefusalError("syntax_valid", problem, token.start + 1)
    return [MathNode("name", name=names[0])]


def _order(rest: list[MathNode], token: MathToken) -> MathNode:
    if not rest:
        return ONE
    if rest[0].kind != "number" or rest[0].value not in range(1, MAX_ORDER + 1):
        problem = f"a derivative is of order 1 to {MAX_ORDER} (position {token.start + 1})"
        raise MathRefusalError("within_limits", problem, token.start + 1)
    return rest[0]


_COUNTS = {
    "diff": (2, 3),
    "integrate": (2, 4),
    "limit": (3, 4),
    "sum": (4,),
    "product": (4,),
    "taylor": (4,),
}
_USAGE = {
    "diff": "`diff(f, x)` or `diff(f, x, 2)`",
    "integrate": "`integrate(f, x)` or `integrate(f, x, 0, 1)`",
    "limit": "`limit(f, x, 0)`",
    "sum": "`sum(k^2, k, 1, n)`",
    "product": "`product(k, k, 1, n)`",
    "taylor": "`taylor(f, x, 0, 3)`",
}


def _mean(*args: MathNode) -> MathNode:
    items = args[0].args if len(args) == 1 and args[0].kind == "list" else args
    return multiply(add(*items), reciprocal(number(len(items))))


def _variadic(function: str) -> Callable[..., MathNode]:
    return lambda *args: call(function, *(args[0].args if len(args) == 1 and args[0].kind == "list" else args))


_REWRITES: dict[str, Callable[..., MathNode]] = {
    "mean": _mean,
    "median": _variadic("median"),
    "min": _variadic("min"),
    "max": _variadic("max"),
    "gcd": _variadic("gcd"),
    "lcm": _variadic("lcm"),
    "cbrt": lambda arg: call("root", arg, number(3)),
    "degrees": lambda arg: multiply(arg, number(180), reciprocal(MathNode("name", name="pi"))),
    "radians": lambda arg: multiply(arg, MathNode("name", name="pi"), reciprocal(number(180))),
    "permutations": lambda n, k: multiply(
        call("factorial", n), reciprocal(call("factorial", add(n, MathNode("negative", (k,)))))
    ),
}
"""Functions that are rewritten in terms of other functions."""
