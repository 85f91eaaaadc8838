"""Calls as they are written, brought into one shape: the variable second, its bounds after it."""

from collections.abc import Callable

from qwed.engines._math.tokens import Token
from qwed.engines._math.tree import (
    BINDERS,
    CONSTANT_NAMES,
    INFINITY,
    ONE,
    Node,
    Refused,
    added,
    call,
    named,
    names_in,
    number,
    over,
    replaced,
    times,
    walk,
)

MAX_ORDER = 12


def built_call(function: str, args: list[Node], token: Token) -> Node:
    """The tree of the call; Refused where an argument is not of the kind the function needs."""
    if function in BINDERS:
        return _binder(function, args, token)
    if function in _REWRITTEN:
        return _REWRITTEN[function](*args)
    if any(node == INFINITY for arg in args for node in walk(arg)):
        raise Refused("defined", f"`{function}` of infinity is no number (position {token.start + 1})", token.start + 1)
    return call(function, *args)


def _binder(function: str, args: list[Node], token: Token) -> Node:
    if function in ("sum", "product") and args[0].kind == "list":
        return added(*args[0].args) if function == "sum" else times(*args[0].args)
    flat = [args[0]]
    for arg in args[1:]:
        flat.extend(arg.args if arg.kind == "tuple" else (arg,))
    if len(flat) == 1:
        flat.extend(_only_variable(function, flat[0], token))
    if function in ("sum", "product") and flat[1] in (named("i"), named("I")):
        # As an index it is no imaginary unit.
        flat[0], flat[1] = replaced(flat[0], flat[1].name, named("index_i")), named("index_i")
    if flat[1].kind != "name" or flat[1].name in CONSTANT_NAMES or len(flat) not in _COUNTS[function]:
        problem = f"`{function}` is written {_USAGE[function]} (position {token.start + 1})"
        raise Refused("syntax_valid", problem, token.start + 1)
    if function == "diff":
        return call("diff", flat[0], flat[1], _order(flat[2:], token))
    return call(function, *flat)


def _only_variable(function: str, body: Node, token: Token) -> list[Node]:
    names = names_in(body)
    if function not in ("diff", "integrate") or len(names) != 1:
        problem = f"`{function}` is written {_USAGE[function]} (position {token.start + 1})"
        raise Refused("syntax_valid", problem, token.start + 1)
    return [Node("name", name=names[0])]


def _order(rest: list[Node], token: Token) -> Node:
    if not rest:
        return ONE
    if rest[0].kind != "number" or rest[0].value not in range(1, MAX_ORDER + 1):
        problem = f"a derivative is of order 1 to {MAX_ORDER} (position {token.start + 1})"
        raise Refused("within_limits", problem, token.start + 1)
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


def _mean(*args: Node) -> Node:
    items = args[0].args if len(args) == 1 and args[0].kind == "list" else args
    return times(added(*items), over(number(len(items))))


def _listed(function: str) -> Callable[..., Node]:
    return lambda *args: call(function, *(args[0].args if len(args) == 1 and args[0].kind == "list" else args))


_REWRITTEN: dict[str, Callable[..., Node]] = {
    "mean": _mean,
    "median": _listed("median"),
    "min": _listed("min"),
    "max": _listed("max"),
    "gcd": _listed("gcd"),
    "lcm": _listed("lcm"),
    "cbrt": lambda arg: call("root", arg, number(3)),
    "degrees": lambda arg: times(arg, number(180), over(Node("name", name="pi"))),
    "radians": lambda arg: times(arg, Node("name", name="pi"), over(number(180))),
    "permutations": lambda n, k: times(call("factorial", n), over(call("factorial", added(n, Node("negative", (k,)))))),
}
"""Functions that are only another way to write something."""
