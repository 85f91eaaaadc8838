"""The named operations of the math engine; a claimed result is proven, without one the result is computed."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from qwed.engines._math.facts import Facts
from qwed.engines._math.judge import evaluated, judge
from qwed.engines._math.notation import plain
from qwed.engines._math.solve import solve
from qwed.engines._math.syntax import parse
from qwed.engines._math.tree import (
    CONSTANT_NAMES,
    INFINITY,
    SMALL,
    Claim,
    Node,
    Refused,
    call,
    clip,
    named,
    names_in,
    number,
    walk,
)
from qwed.words import Verdict

Parameters = Mapping[str, Any]


def operate(operation: str, query: str, parameters: Parameters, facts: Facts) -> Verdict:
    """The verdict on an operation, which must be one of `OPERATIONS`."""
    if operation == "solve":
        return _labelled("solve", solve(query, parameters, facts), parameters)
    node = _expression(query)
    claimed = _claimed(parameters)
    wrapped = OPERATIONS[operation](node, parameters, claimed)
    text = query if operation in ("simplify", "evaluate") else f"the {operation} of {query}"
    if claimed is None:
        return _labelled(operation, evaluated(Claim(text, wrapped, text), facts), parameters)
    right = _expression(claimed) if operation != "series" else _without_rest(claimed)
    claim = Claim(f"{text} = {claimed}", wrapped, text, "=", right, claimed)
    verdict = judge(claim, parameters.get("tolerance"), facts)
    return _labelled(operation, _told(verdict, wrapped, facts), parameters)


def _told(verdict: Verdict, wrapped: Node, facts: Facts) -> Verdict:
    """The verdict with the right result beside a wrong one, where that can be computed."""
    if "expected" in verdict.result:
        return verdict
    try:
        found = evaluated(Claim("", wrapped, ""), facts)
    except Refused:
        return verdict
    return replace(verdict, result={**verdict.result, "expected": found.result["value"]})


def _labelled(operation: str, verdict: Verdict, parameters: Parameters) -> Verdict:
    # A repair names the query, which is not what a claimed result would change.
    claimed = parameters.get("claimed_result")
    actual = {} if claimed is None else {"actual": claimed if isinstance(claimed, str) else repr(claimed)}
    return replace(verdict, corrected=None, result={**verdict.result, "operation": operation, **actual})


def _expression(text: str) -> Node:
    claim = parse(plain(text), SMALL)
    if claim.sign:
        raise Refused("syntax_valid", f"{clip(text)} is a claim: give an expression, and the claim in `claimed_result`")
    return claim.left


def _without_rest(claimed: str) -> Node:
    """The polynomial without the `+ O(x^n)` that may end it."""
    return _expression(
        re.sub(r"\+\s*(?:O|o|\\mathcal\{O\})\s*\([^()]*(?:\([^()]*\))?[^()]*\)\s*$|\+\s*\.\.\.\s*$", "", claimed)
    )


def _claimed(parameters: Parameters) -> str | None:
    claimed = parameters.get("claimed_result")
    if claimed is None or isinstance(claimed, str):
        return claimed
    if isinstance(claimed, list | tuple):
        return _written_list(claimed)
    if isinstance(claimed, bool) or not isinstance(claimed, int | float):
        raise Refused("parameters_valid", "`claimed_result` must be text or a number")
    return repr(claimed)


def _written_list(items: list[Any] | tuple[Any, ...]) -> str:
    parts = [_written_list(item) if isinstance(item, list | tuple) else str(item) for item in items]
    return f"[{', '.join(parts)}]"


def _variable(parameters: Parameters, node: Node, claimed: str | None) -> Node:
    variable = parameters.get("variable")
    names = names_in(node) or (names_in(_expression(claimed)) if claimed is not None else ())
    if variable is None and len(names) == 1:
        return named(names[0])
    if variable is None and not names:
        return named("x")
    if variable is None and "x" in names and claimed is None:
        variable = "x"
    if not isinstance(variable, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,31}", variable):
        raise Refused("parameters_valid", f"say which `variable` is meant: one of {', '.join(names) or 'the names'}")
    if variable in CONSTANT_NAMES:
        raise Refused("parameters_valid", f"`{variable}` is a constant, not a variable")
    return named(variable)


def _bound(parameters: Parameters, *keys: str) -> Node | None:
    for key in keys:
        value = parameters.get(key)
        if value is None:
            continue
        if isinstance(value, float) and value in (float("inf"), float("-inf")):
            return INFINITY if value > 0 else Node("negative", (INFINITY,))
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise Refused("parameters_valid", f"`{key}` must be a number or text")
        return _expression(value if isinstance(value, str) else repr(value))
    return None


def _is_form(node: Node, name: str) -> bool:
    """Whether the query already writes the operation out, as `limit(sin(x)/x, x, 0)` does."""
    return any(part.kind == "call" and part.name == name for part in walk(node))


def _derivative(node: Node, parameters: Parameters, claimed: str | None) -> Node:
    if _is_form(node, "diff"):
        return node
    order = parameters.get("order", 1)
    if isinstance(order, bool) or order not in range(1, 13):
        raise Refused("parameters_valid", "the `order` of a derivative is 1 to 12")
    return call("diff", node, _variable(parameters, node, claimed), number(int(order)))


def _integral(node: Node, parameters: Parameters, claimed: str | None) -> Node:
    if _is_form(node, "integrate"):
        return node
    variable = _variable(parameters, node, claimed)
    low = _bound(parameters, "lower", "lower_bound", "from", "a")
    high = _bound(parameters, "upper", "upper_bound", "to", "b")
    if (low is None) != (high is None):
        raise Refused("parameters_valid", "a definite integral needs both `lower` and `upper`")
    return call("integrate", node, variable, *(bound for bound in (low, high) if bound is not None))


def _limit(node: Node, parameters: Parameters, claimed: str | None) -> Node:
    if _is_form(node, "limit"):
        return node
    point = _bound(parameters, "point", "to", "at", "value")
    if point is None:
        raise Refused("parameters_valid", "say the `point` that the variable goes to")
    side = parameters.get("direction")
    known = {"+": "right", "right": "right", "-": "left", "left": "left"}
    if side is not None and side not in (*known, "+-", "both"):
        raise Refused("parameters_valid", "the `direction` of a limit is `+` or `-`")
    variable = _variable(parameters, node, claimed)
    return call("limit", node, variable, point, *((named(known[side]),) if side in known else ()))


def _total(name: str) -> Callable[[Node, Parameters, str | None], Node]:
    def wrapped(node: Node, parameters: Parameters, claimed: str | None) -> Node:
        low, high = _bound(parameters, "lower", "from", "start"), _bound(parameters, "upper", "to", "end")
        if _is_form(node, name) or (low is None and high is None):
            return node
        if low is None or high is None:
            raise Refused("parameters_valid", f"a {name} needs both `lower` and `upper`")
        return call(name, node, _variable(parameters, node, claimed), low, high)

    return wrapped


def _series(node: Node, parameters: Parameters, claimed: str | None) -> Node:
    variable = _variable(parameters, node, None)
    order = parameters.get("order", parameters.get("degree"))
    if order is None and claimed is not None:
        order = _degree(_without_rest(claimed))
    if isinstance(order, bool) or order not in range(21):
        raise Refused("parameters_valid", "say the `order` of the Taylor polynomial, from 0 to 20")
    point = _bound(parameters, "point", "at", "about") or number(0)
    return call("taylor", node, variable, point, number(int(order)))


def _degree(node: Node) -> int:
    """The largest literal power in the tree."""
    powers = [int(part.args[1].value) for part in walk(node) if part.kind == "power" and part.args[1].kind == "number"]
    return max(powers, default=1 if names_in(node) else 0)


def _evaluate(node: Node, _parameters: Parameters, _claimed: str | None) -> Node:
    if names := names_in(node):
        raise Refused("parameters_valid", f"`{names[0]}` has no value: evaluate needs an expression of numbers")
    return node


def _of_matrix(name: str) -> Callable[[Node, Parameters, str | None], Node]:
    return lambda node, _parameters, _claimed: node if _is_form(node, name) else call(name, node)


def _as_is(node: Node, _parameters: Parameters, _claimed: str | None) -> Node:
    return node


OPERATIONS: dict[str, Callable[[Node, Parameters, str | None], Node]] = {
    "derivative": _derivative,
    "integral": _integral,
    "simplify": _as_is,
    "solve": _as_is,
    "evaluate": _evaluate,
    "limit": _limit,
    "sum": _total("sum"),
    "product": _total("product"),
    "series": _series,
    "expand": _as_is,
    "factor": _as_is,
    "determinant": _of_matrix("det"),
    "inverse": _of_matrix("inv"),
    "transpose": _of_matrix("transpose"),
    "rank": _of_matrix("rank"),
    "trace": _of_matrix("trace"),
    "eigenvalues": _of_matrix("eigenvalues"),
}
OPERATION_ALIASES = {
    **dict.fromkeys(("differentiate", "diff", "differentiation"), "derivative"),
    **dict.fromkeys(("integrate", "integration", "antiderivative", "definite_integral"), "integral"),
    **dict.fromkeys(("taylor", "maclaurin"), "series"),
    "summation": "sum",
    "det": "determinant",
    "eval": "evaluate",
    "calculate": "evaluate",
    "equation": "solve",
}
