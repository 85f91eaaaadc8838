"""Named operations of the math engine; a claimed result is proven, and without one the result is computed."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from qwed.engines._math.assumptions import Facts
from qwed.engines._math.notation import normalize_notation
from qwed.engines._math.parser import parse
from qwed.engines._math.solve import solve
from qwed.engines._math.syntax_tree import (
    CONSTANT_NAMES,
    INFINITY,
    SMALL_LIMITS,
    Claim,
    MathNode,
    MathRefusalError,
    call,
    clip,
    free_names,
    iter_nodes,
    name_node,
    number,
)
from qwed.engines._math.verify_claim import evaluate, verify_claim
from qwed.model import Verdict

Parameters = Mapping[str, Any]


def run_operation(operation: str, query: str, parameters: Parameters, facts: Facts) -> Verdict:
    """Return the verdict on an operation, which must be one of `OPERATIONS`."""
    if operation == "solve":
        return _with_operation("solve", solve(query, parameters, facts), parameters)
    node = _parse_expression(query)
    claimed = _claimed_text(parameters)
    wrapped = OPERATIONS[operation](node, parameters, claimed)
    text = query if operation in ("simplify", "evaluate") else f"the {operation} of {query}"
    if claimed is None:
        return _with_operation(operation, evaluate(Claim(text, wrapped, text), facts), parameters)
    right = _parse_expression(claimed) if operation != "series" else _parse_without_remainder(claimed)
    claim = Claim(f"{text} = {claimed}", wrapped, text, "=", right, claimed)
    verdict = verify_claim(claim, parameters.get("tolerance"), facts)
    return _with_operation(operation, _with_expected(verdict, wrapped, facts), parameters)


def _with_expected(verdict: Verdict, wrapped: MathNode, facts: Facts) -> Verdict:
    """Return the verdict with the expected result, if that can be computed."""
    if "expected" in verdict.result:
        return verdict
    try:
        computation = evaluate(Claim("", wrapped, ""), facts)
    except MathRefusalError:
        return verdict
    return replace(verdict, result={**verdict.result, "expected": computation.result["value"]})


def _with_operation(operation: str, verdict: Verdict, parameters: Parameters) -> Verdict:
    # A repair would replace the query, but here the wrong part is `claimed_result`.
    claimed = parameters.get("claimed_result")
    actual = {} if claimed is None else {"actual": claimed if isinstance(claimed, str) else repr(claimed)}
    return replace(verdict, corrected=None, result={**verdict.result, "operation": operation, **actual})


def _parse_expression(text: str) -> MathNode:
    claim = parse(normalize_notation(text), SMALL_LIMITS)
    if claim.sign:
        raise MathRefusalError(
            "syntax_valid", f"{clip(text)} is a claim: give an expression, and the claim in `claimed_result`"
        )
    return claim.left


def _parse_without_remainder(claimed: str) -> MathNode:
    """Parse the polynomial without a trailing `+ O(x^n)`."""
    return _parse_expression(
        re.sub(r"\+\s*(?:O|o|\\mathcal\{O\})\s*\([^()]*(?:\([^()]*\))?[^()]*\)\s*$|\+\s*\.\.\.\s*$", "", claimed)
    )


def _claimed_text(parameters: Parameters) -> str | None:
    claimed = parameters.get("claimed_result")
    if claimed is None or isinstance(claimed, str):
        return claimed
    if isinstance(claimed, list | tuple):
        return _format_list(claimed)
    if isinstance(claimed, bool) or not isinstance(claimed, int | float):
        raise MathRefusalError("parameters_valid", "`claimed_result` must be text or a number")
    return repr(claimed)


def _format_list(items: list[Any] | tuple[Any, ...]) -> str:
    parts = [_format_list(item) if isinstance(item, list | tuple) else str(item) for item in items]
    return f"[{', '.join(parts)}]"


def _variable(parameters: Parameters, node: MathNode, claimed: str | None) -> MathNode:
    variable = parameters.get("variable")
    names = free_names(node) or (free_names(_parse_expression(claimed)) if claimed is not None else ())
    if variable is None and len(names) == 1:
        return name_node(names[0])
    if variable is None and not names:
        return name_node("x")
    if variable is None and "x" in names and claimed is None:
        variable = "x"
    if not isinstance(variable, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,31}", variable):
        raise MathRefusalError(
            "parameters_valid", f"say which `variable` is meant: one of {', '.join(names) or 'the names'}"
        )
    if variable in CONSTANT_NAMES:
        raise MathRefusalError("parameters_valid", f"`{variable}` is a constant, not a variable")
    return name_node(variable)


def _bound(parameters: Parameters, *keys: str) -> MathNode | None:
    for key in keys:
        value = parameters.get(key)
        if value is None:
            continue
        if isinstance(value, float) and value in (float("inf"), float("-inf")):
            return INFINITY if value > 0 else MathNode("negative", (INFINITY,))
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise MathRefusalError("parameters_valid", f"`{key}` must be a number or text")
        return _parse_expression(value if isinstance(value, str) else repr(value))
    return None


def _contains_call(node: MathNode, name: str) -> bool:
    """Return True if the query already contains the operation, as `limit(sin(x)/x, x, 0)` does."""
    return any(part.kind == "call" and part.name == name for part in iter_nodes(node))


def _derivative(node: MathNode, parameters: Parameters, claimed: str | None) -> MathNode:
    if _contains_call(node, "diff"):
        return node
    order = parameters.get("order", 1)
    if isinstance(order, bool) or order not in range(1, 13):
        raise MathRefusalError("parameters_valid", "the `order` of a derivative is 1 to 12")
    return call("diff", node, _variable(parameters, node, claimed), number(int(order)))


def _integral(node: MathNode, parameters: Parameters, claimed: str | None) -> MathNode:
    if _contains_call(node, "integrate"):
        return node
    variable = _variable(parameters, node, claimed)
    low = _bound(parameters, "lower", "lower_bound", "from", "a")
    high = _bound(parameters, "upper", "upper_bound", "to", "b")
    if (low is None) != (high is None):
        raise MathRefusalError("parameters_valid", "a definite integral needs both `lower` and `upper`")
    return call("integrate", node, variable, *(bound for bound in (low, high) if bound is not None))


def _limit(node: MathNode, parameters: Parameters, claimed: str | None) -> MathNode:
    if _contains_call(node, "limit"):
        return node
    point = _bound(parameters, "point", "to", "at", "value")
    if point is None:
        raise MathRefusalError("parameters_valid", "say the `point` that the variable goes to")
    side = parameters.get("direction")
    sides = {"+": "right", "right": "right", "-": "left", "left": "left"}
    if side is not None and side not in (*sides, "+-", "both"):
        raise MathRefusalError("parameters_valid", "the `direction` of a limit is `+` or `-`")
    variable = _variable(parameters, node, claimed)
    return call("limit", node, variable, point, *((name_node(sides[side]),) if side in sides else ()))


def _sum_or_product(name: str) -> Callable[[MathNode, Parameters, str | None], MathNode]:
    def wrapped(node: MathNode, parameters: Parameters, claimed: str | None) -> MathNode:
        low, high = _bound(parameters, "lower", "from", "start"), _bound(parameters, "upper", "to", "end")
        if _contains_call(node, name) or (low is None and high is None):
            return node
        if low is None or high is None:
            raise MathRefusalError("parameters_valid", f"a {name} needs both `lower` and `upper`")
        return call(name, node, _variable(parameters, node, claimed), low, high)

    return wrapped


def _series(node: MathNode, parameters: Parameters, claimed: str | None) -> MathNode:
    variable = _variable(parameters, node, None)
    order = parameters.get("order", parameters.get("degree"))
    if order is None and claimed is not None:
        order = _degree(_parse_without_remainder(claimed))
    if isinstance(order, bool) or order not in range(21):
        raise MathRefusalError("parameters_valid", "say the `order` of the Taylor polynomial, from 0 to 20")
    point = _bound(parameters, "point", "at", "about") or number(0)
    return call("taylor", node, variable, point, number(int(order)))


def _degree(node: MathNode) -> int:
    """Return the largest literal power in the tree."""
    powers = [
        int(part.args[1].value) for part in iter_nodes(node) if part.kind == "power" and part.args[1].kind == "number"
    ]
    return max(powers, default=1 if free_names(node) else 0)


def _evaluate(node: MathNode, _parameters: Parameters, _claimed: str | None) -> MathNode:
    if names := free_names(node):
        raise MathRefusalError(
            "parameters_valid", f"`{names[0]}` has no value: evaluate needs an expression of numbers"
        )
    return node


def _matrix_operation(name: str) -> Callable[[MathNode, Parameters, str | None], MathNode]:
    return lambda node, _parameters, _claimed: node if _contains_call(node, name) else call(name, node)


def _unchanged(node: MathNode, _parameters: Parameters, _claimed: str | None) -> MathNode:
    return node


OPERATIONS: dict[str, Callable[[MathNode, Parameters, str | None], MathNode]] = {
    "derivative": _derivative,
    "integral": _integral,
    "simplify": _unchanged,
    "solve": _unchanged,
    "evaluate": _evaluate,
    "limit": _limit,
    "sum": _sum_or_product("sum"),
    "product": _sum_or_product("product"),
    "series": _series,
    "expand": _unchanged,
    "factor": _unchanged,
    "determinant": _matrix_operation("det"),
    "inverse": _matrix_operation("inv"),
    "transpose": _matrix_operation("transpose"),
    "rank": _matrix_operation("rank"),
    "trace": _matrix_operation("trace"),
    "eigenvalues": _matrix_operation("eigenvalues"),
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
