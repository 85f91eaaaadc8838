"""From the tree to exact symbolic values. Every power, factorial and literal is bounded before sympy computes it."""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import sympy as sp

from qwed.engines._math_answers import Shown, division_by_zero, show, zero_to_the_zero
from qwed.engines._math_syntax import Claim, Node, Refused

Expr = Any
"""A sympy expression; the library has no types of its own."""

MAX_BITS = 13_000
MAX_DEGREE = 1000
MAX_FACTORIAL = 1000
MAX_ARGUMENT = 10_000
MANY = 10**6
MAX_TERMS = 1000
MAX_EXPANDED = 300
MAX_OPERATIONS = 80
MAX_NESTING = 4

CONSTANTS: dict[str, Expr] = {"pi": sp.pi, "e": sp.E, "E": sp.E, "i": sp.I, "I": sp.I}


def names_in(*nodes: Node | None) -> tuple[str, ...]:
    """The variables of the trees, sorted."""
    found: set[str] = set()
    waiting = [node for node in nodes if node is not None]
    while waiting:
        node = waiting.pop()
        waiting.extend(node.args)
        if node.kind == "name" and node.name not in CONSTANTS:
            found.add(node.name)
    return tuple(sorted(found))


def variables_of(claim: Claim) -> tuple[str, ...]:
    """The variables of both sides, sorted."""
    return names_in(claim.left, claim.right)


class Reading:
    """One way to read a tree: `names` binds its variables; `nonzero` and `defined` say where it has a value."""

    def __init__(self, names: Mapping[str, Expr]) -> None:
        self.names = names
        self.nonzero: list[Expr] = []
        self.defined: list[Expr] = []

    def of(self, node: Node) -> Expr:
        """The value of the tree; Refused where it has none, or one too large."""
        return finite(_BUILD[node.kind](self, node))

    def number(self, node: Node) -> Expr:
        """An exact literal."""
        return sp.Rational(node.value.numerator, node.value.denominator)

    def name(self, node: Node) -> Expr:
        """A constant, or what the variable is bound to."""
        return CONSTANTS[node.name] if node.name in CONSTANTS else self.names[node.name]

    def inverse(self, node: Node) -> Expr:
        """One over the argument."""
        below = self.of(node.args[0])
        self._require_nonzero(below)
        return sp.Pow(below, -1)

    def power(self, node: Node) -> Expr:
        """The principal value of the power."""
        base, exponent = (self.of(arg) for arg in node.args)
        _bound_power(base, exponent)
        if exponent.is_zero and base.is_zero:
            raise zero_to_the_zero()
        if not exponent.is_positive:
            self._require_nonzero(base)
        if base.is_negative and exponent.is_Rational and exponent.q > 1 and exponent.q % 2:
            raise Refused(
                "unambiguous", "an odd root of a negative number has two readings: write `-(8^(1/3))` for `(-8)^(1/3)`"
            )
        return sp.Pow(base, exponent)

    def call(self, node: Node) -> Expr:
        """A function from the table, at its principal value."""
        args = [self.of(arg) for arg in node.args]
        if all(arg.is_number for arg in args):
            _bound_arguments(node.name, args)
        pole = _POLES.get(node.name)
        if pole is not None:
            self._require_nonzero(pole(args[0]), Refused("defined", f"`{node.name}` has no value there"))
        value = _FUNCTIONS[node.name](*args)
        if node.name in _FACTORIALS and value.free_symbols:
            self.defined.append(value)
        return value

    def _require_nonzero(self, expr: Expr, refusal: Refused | None = None) -> None:
        if expr.is_number:
            require_nonzero_number(expr, refusal)
        elif expr.is_zero:
            raise refusal or division_by_zero()
        elif not expr.is_nonzero:
            self.nonzero.append(expr)


_BUILD: dict[str, Callable[[Reading, Node], Expr]] = {
    "number": Reading.number,
    "name": Reading.name,
    "inverse": Reading.inverse,
    "power": Reading.power,
    "call": Reading.call,
    "negative": lambda reading, node: -reading.of(node.args[0]),
    "sum": lambda reading, node: sp.Add(*(reading.of(arg) for arg in node.args)),
    "product": lambda reading, node: _product([reading.of(arg) for arg in node.args]),
}


def _product(factors: list[Expr]) -> Expr:
    value = sp.S.One
    for factor in factors:
        value = finite(sp.Mul(value, factor))
    return value


def finite(expr: Expr) -> Expr:
    """The expression itself; Refused where it is infinite or its numbers too large."""
    if expr.has(sp.nan, sp.zoo, sp.oo, sp.S.NegativeInfinity):
        raise Refused("defined", "the expression has no finite value")
    if any(_bits(number) > MAX_BITS for number in expr.atoms(sp.Rational)):
        raise too_large()
    return expr


def too_large() -> Refused:
    """The refusal of a value that would not fit."""
    return Refused("within_limits", "a value grows too large: use smaller numbers and powers")


def _bits(number: Expr) -> int:
    return max(int(number.p).bit_length(), int(number.q).bit_length())


def _bound_power(base: Expr, exponent: Expr) -> None:
    if not exponent.is_number:
        return
    if exponent.is_Rational and base.is_Rational:
        if _bits(base) * abs(exponent) > MAX_BITS and base not in (0, 1, -1):
            raise too_large()
    elif base.is_number:
        if abs(logarithm(base)) * abs(real_size(exponent)) > MAX_BITS:
            raise too_large()
    elif real_size(exponent) * degree(base) > MAX_DEGREE:
        raise too_large()


def real_size(number: Expr) -> float:
    """The absolute value of a number, exact where it is whole; too large is Refused."""
    if number.is_Integer and _bits(number) < 50:
        return abs(int(number))
    size = logarithm(number)
    if size > 500:
        raise too_large()
    return math.exp(size)


def logarithm(number: Expr) -> float:
    """The natural logarithm of its absolute value; of zero, as good as none."""
    size = abs(number.evalf(10))
    if not size.is_Float and not size.is_Rational:
        raise Refused("decidable", "could not tell how large a value is")
    return float(sp.log(size).evalf(10)) if size != 0 else -1.0


def degree(expr: Expr) -> int:
    """An upper bound of the polynomial degree, functions counting as variables."""
    if expr.is_Add:
        return max(degree(arg) for arg in expr.args)
    if expr.is_Mul:
        return sum(degree(arg) for arg in expr.args)
    if expr.is_Pow and expr.exp.is_Rational:
        return degree(expr.base) * max(1, int(abs(expr.exp)))
    return 0 if expr.is_number else 1


def is_tame(expr: Expr) -> bool:
    """Whether simplifying is cheap: its cost is steep in terms, and doubles with every function inside another."""
    small = terms(expr) <= MAX_TERMS and degree(expr) <= MAX_EXPANDED and sp.count_ops(expr) <= MAX_OPERATIONS
    return bool(small and _nesting(expr) <= MAX_NESTING)


def is_expandable(expr: Expr) -> bool:
    """Whether multiplying everything out is cheap."""
    return terms(expr) <= MAX_TERMS and degree(expr) <= MAX_EXPANDED


def _nesting(expr: Expr) -> int:
    inner = max((_nesting(arg) for arg in expr.args), default=0)
    return inner + (expr.is_Function or (expr.is_Pow and not expr.exp.is_Integer))


def terms(expr: Expr) -> int:
    """An upper bound of the terms over a common denominator, `MANY` standing for all above it."""
    above, below = _spread(expr)
    return min(MANY, above + below - 1)


def _spread(expr: Expr) -> tuple[int, int]:
    """Bounds for the terms of numerator and denominator, as if nothing cancelled."""
    if expr.is_Add or expr.is_Mul:
        above, below = _spread(expr.args[0])
        for more, under in map(_spread, expr.args[1:]):
            above = min(MANY, above * under + more * below if expr.is_Add else above * more)
            below = min(MANY, below * under)
        return above, below
    if expr.is_Pow and expr.exp.is_Integer:
        above, below = (_power_terms(count, abs(int(expr.exp))) for count in _spread(expr.base))
        return (above, below) if expr.exp > 0 else (below, above)
    return max((terms(arg) for arg in expr.args), default=1), 1


def _power_terms(count: int, power: int) -> int:
    """How many terms the power of a sum of `count` terms has."""
    total = 1
    for step in range(1, min(count, power + 1)):
        total = total * (power + count - step) // step
        if total > MANY:
            return MANY
    return total


def _bound_arguments(name: str, args: list[Expr]) -> None:
    if name in _FACTORIALS:
        if any(real_size(arg) > MAX_FACTORIAL for arg in args):
            raise too_large()
    elif name in _GROWING and real_size(args[0]) > MAX_ARGUMENT:
        raise too_large()


def require_nonzero_number(number: Expr, refusal: Refused | None = None) -> None:
    """Refused for zero, as a division by it unless said otherwise, or as undecided where that cannot be told."""
    zero = is_zero(number)
    if zero:
        raise refusal or division_by_zero()
    if zero is None:
        raise Refused("decidable", "could not tell whether a divisor is zero")


def is_zero(number: Expr, thorough: bool = True) -> bool | None:
    """Whether a constant is zero, proven either way; None where it could not be, sooner unless `thorough`."""
    if number.is_Rational:
        return bool(number == 0)
    if _is_clearly_nonzero(number):
        return False
    if thorough and terms(number) <= 200 and (sp.expand(number) == 0 or (is_tame(number) and sp.simplify(number) == 0)):
        return True
    return None


def _is_clearly_nonzero(number: Expr) -> bool:
    # sympy keeps track of the digits it is sure of and says precision 1 where there are none;
    # two precisions that agree guard against a slip in that bookkeeping.
    coarse, fine = number.evalf(15), number.evalf(45)
    for part, again in zip(coarse.as_real_imag(), fine.as_real_imag(), strict=True):
        sure = part.is_Float and again.is_Float and min(part._prec, again._prec) > 1
        if sure and again != 0 and abs(part / again - 1) < 1e-9:
            return True
    return False


def _whole(function: Callable[..., Expr]) -> Callable[..., Expr]:
    def of_whole_numbers(*args: Expr) -> Expr:
        if not all(arg.is_Integer for arg in args):
            raise Refused("decidable", "gcd and lcm are only decided for whole numbers")
        return function(*args)

    return of_whole_numbers


def _modulo(number: Expr, modulus: Expr) -> Expr:
    if not (number.is_Rational and modulus.is_Rational):
        raise Refused("decidable", "`mod` is only decided for numbers")
    require_nonzero_number(modulus)
    return number - modulus * sp.floor(number / modulus)


def _logarithm(number: Expr, base: Expr = sp.E) -> Expr:
    if base is sp.E:
        return sp.log(number)
    if base.is_number:
        require_nonzero_number(base)
        require_nonzero_number(sp.log(base))
        return sp.log(number, base)
    raise Refused("decidable", "the base of a logarithm must be a number")


_FACTORIALS = frozenset({"factorial", "gamma", "binomial"})
_GROWING = frozenset({"sin", "cos", "tan", "sec", "csc", "cot", "sinh", "cosh", "tanh", "exp"})
_FUNCTIONS: dict[str, Callable[..., Expr]] = {
    **{f.__name__: f for f in (sp.sin, sp.cos, sp.tan, sp.sec, sp.csc, sp.cot, sp.asin, sp.acos, sp.atan)},
    **{f.__name__: f for f in (sp.sinh, sp.cosh, sp.tanh, sp.exp, sp.sqrt, sp.sign, sp.floor, sp.ceiling)},
    **{f.__name__: f for f in (sp.factorial, sp.gamma, sp.binomial)},
    "ln": sp.log,
    "log": _logarithm,
    "log2": lambda number: sp.log(number, 2),
    "log10": lambda number: sp.log(number, 10),
    "abs": sp.Abs,
    "ceil": sp.ceiling,
    "min": sp.Min,
    "max": sp.Max,
    "gcd": _whole(lambda *args: sp.Integer(math.gcd(*map(int, args)))),
    "lcm": _whole(lambda *args: sp.Integer(math.lcm(*map(int, args)))),
    "mod": _modulo,
}
_POLES: dict[str, Callable[[Expr], Expr]] = {
    **dict.fromkeys(("tan", "sec"), sp.cos),
    **dict.fromkeys(("cot", "csc"), sp.sin),
    **dict.fromkeys(("ln", "log", "log2", "log10"), lambda number: number),
}
"""What must not be zero for the function to have a value."""


def shown(expr: Expr) -> Shown:
    """The value as text, exact, with fifteen digits where the exact form is no plain number."""
    if expr.is_Rational:
        return show(Fraction(int(expr.p), int(expr.q)))
    return Shown(str(expr), str(expr.evalf(15)) if expr.is_number else "")
