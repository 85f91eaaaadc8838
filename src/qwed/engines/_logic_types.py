"""INTERFACES 3: which operators there are, what they take and give, and the sort of every name.

A name is Bool where a Bool is needed, a string where it is compared with one, else Real, unless it is declared.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from qwed.engines._logic_syntax import Atom, Form, Refusal, Tree

MAX_NAMES = 500


class Sort(StrEnum):
    """What a value can be."""

    BOOL = "Bool"
    INT = "Int"
    REAL = "Real"
    STRING = "String"


_SORTS = {sort.value.lower(): sort for sort in Sort}


class Kind(StrEnum):
    """What a sort is to the operators: Int and Real are both numbers."""

    TRUTH = "Bool"
    NUMBER = "a number"
    TEXT = "a string"


_KIND_OF = {Sort.BOOL: Kind.TRUTH, Sort.INT: Kind.NUMBER, Sort.REAL: Kind.NUMBER, Sort.STRING: Kind.TEXT}
_SORT_OF = {Kind.TRUTH: Sort.BOOL, Kind.NUMBER: Sort.REAL, Kind.TEXT: Sort.STRING}


@dataclass(eq=False, slots=True)
class Slot:
    """What is known so far about the kind of one expression; slots that must agree are merged."""

    kind: Kind | None = None
    merged: "Slot | None" = None

    def root(self) -> "Slot":
        """The slot that speaks for all merged ones."""
        here = self
        while here.merged is not None:
            here = here.merged
        return here


@dataclass(eq=False, slots=True)
class Symbol:
    """One variable."""

    name: str
    declared: Sort | None = None
    slot: Slot = field(default_factory=Slot)

    def __post_init__(self) -> None:
        if self.declared is not None:
            self.slot.kind = _KIND_OF[self.declared]

    @property
    def sort(self) -> Sort:
        """The sort it ends with; Real where nothing asked for another."""
        return self.declared or _SORT_OF[self.slot.root().kind or Kind.NUMBER]


@dataclass(frozen=True, slots=True)
class Term:
    """A typed tree: `operator` is canonical, `names` are those a quantifier binds."""

    operator: str
    slot: Slot
    at: int
    arguments: tuple["Term", ...] = ()
    text: str = ""
    names: tuple[Symbol, ...] = ()
    symbol: Symbol | None = None

    @property
    def kind(self) -> Kind:
        """What it is once every statement is typed."""
        return self.slot.root().kind or Kind.NUMBER


@dataclass(frozen=True, slots=True)
class Operator:
    """A row of the operator table: how many arguments, of what, giving what."""

    name: str
    least: int
    most: int | None
    takes: str
    gives: str


def _rows(takes: str, gives: str, least: int, most: int | None, *spellings: str) -> dict[str, Operator]:
    """Each spelling is `NAME` or `NAME|ALIAS|...`; the first is canonical."""
    table = {}
    for spelling in spellings:
        first, *aliases = spelling.split("|")
        table.update(dict.fromkeys([first, *aliases], Operator(first, least, most, takes, gives)))
    return table


OPERATORS: dict[str, Operator] = {
    **_rows("bool", "bool", 2, None, "AND", "OR"),
    **_rows("bool", "bool", 1, 1, "NOT"),
    **_rows("bool", "bool", 2, 2, "IMPLIES", "IFF", "XOR"),
    **_rows("same", "bool", 2, 2, "EQ|=|==", "NE|NEQ|!="),
    **_rows("number", "bool", 2, 2, "GT|>", "LT|<", "GE|GTE|>=", "LE|LTE|<="),
    **_rows("number", "number", 2, None, "PLUS|+", "TIMES|MULT|*"),
    **_rows("number", "number", 2, 2, "MINUS|-", "DIV|/", "POW"),
    **_rows("number", "number", 2, 2, "MOD"),
    **_rows("number", "number", 1, 1, "NEG", "ABS"),
    **_rows("choice", "choice", 3, 3, "IF"),
    **_rows("special", "special", 2, 2, "FORALL", "EXISTS", "LET", "VAR"),
}


def _type_error(message: str, at: int) -> Refusal:
    return Refusal("TYPE_ERROR", message, at)


@dataclass(slots=True)
class Elaborator:
    """Types the statements of one request; a name means the same in all of them."""

    symbols: dict[str, Symbol] = field(default_factory=dict)
    bound: list[dict[str, Symbol]] = field(default_factory=list)

    def statements(self, trees: Sequence[Tree]) -> list[Term]:
        """The truth values among `trees`; declarations hold for all of them, wherever they stand."""
        for tree in trees:
            self._collect(tree)
        return [self._statement(tree) for tree in trees if not is_declaration(tree)]

    def _collect(self, tree: Tree) -> None:
        pending = [tree]
        while pending:
            here = pending.pop()
            if isinstance(here, Form):
                pending.extend(here.items)
                for name, sort in _declarations(here):
                    self._declare(name, sort)

    def _declare(self, name: Tree, sort: Tree) -> None:
        if not isinstance(name, Atom) or not _is_name(name):
            raise Refusal("PARSE_ERROR", "a declaration needs a name and a type, as in (VAR x Int)", name.at)
        wanted = _sort_of(sort)
        symbol = self.symbols.setdefault(name.text, Symbol(name.text, wanted))
        if symbol.declared is not wanted:
            raise _type_error(f"`{name.text}` is declared as {symbol.declared} and as {wanted}", name.at)

    def _statement(self, tree: Tree) -> Term:
        term = self._term(tree)
        self._need(term, Kind.TRUTH)
        return term

    def _term(self, tree: Tree) -> Term:
        if isinstance(tree, Atom):
            return self._atom(tree)
        operator = _operator_of(tree)
        if operator.takes == "special":
            return _SPECIAL[operator.name](self, tree, operator)
        arguments = tuple(self._term(item) for item in tree.items[1:])
        return Term(operator.name, self._slot(operator, arguments), tree.at, arguments)

    def _atom(self, atom: Atom) -> Term:
        if atom.kind == "NUMBER":
            return Term("NUMBER", Slot(Kind.NUMBER), atom.at, text=atom.text)
        if atom.kind == "STRING":
            return Term("STRING", Slot(Kind.TEXT), atom.at, text=atom.text[1:-1])
        if atom.text.lower() in ("true", "false"):
            return Term("TRUTH", Slot(Kind.TRUTH), atom.at, text=atom.text.lower())
        if atom.text.upper() in OPERATORS:
            raise Refusal("PARSE_ERROR", f"operator `{atom.text}` needs its own parentheses", atom.at)
        symbol = self._lookup(atom.text)
        return Term("NAME", symbol.slot, atom.at, symbol=symbol)

    def _lookup(self, name: str) -> Symbol:
        for scope in reversed(self.bound):
            if name in scope:
                return scope[name]
        if name not in self.symbols and len(self.symbols) >= MAX_NAMES:
            raise _type_error(f"more than {MAX_NAMES} names", 0)
        return self.symbols.setdefault(name, Symbol(name))

    def _quantifier(self, tree: Form, operator: Operator) -> Term:
        names = tuple(_binding(item) for item in _bindings(tree.items[1]))
        if len({symbol.name for symbol in names}) < len(names):
            raise Refusal("PARSE_ERROR", "a quantifier binds the same name twice", tree.at)
        self.bound.append({symbol.name: symbol for symbol in names})
        body = self._statement(tree.items[2])
        self.bound.pop()
        return Term(operator.name, Slot(Kind.TRUTH), tree.at, (body,), names=names)

    def _let(self, tree: Form, _operator: Operator) -> Term:
        for name, _sort in _declarations(tree):
            self._refuse_bound(name)
        return self._term(tree.items[2])

    def _var(self, tree: Form, _operator: Operator) -> Term:
        self._refuse_bound(tree.items[1])
        return self._term(tree.items[1])

    def _refuse_bound(self, name: Tree) -> None:
        """A declaration speaks of the free name; under a quantifier of that name it would mean two things."""
        if isinstance(name, Atom) and any(name.text in scope for scope in self.bound):
            raise _type_error(f"`{name.text}` is bound here, give its type in the quantifier", name.at)

    def _slot(self, operator: Operator, arguments: tuple[Term, ...]) -> Slot:
        if operator.takes == "same":
            _unify(arguments[0].slot, arguments[1].slot, arguments[1].at)
        elif operator.takes == "choice":
            self._need(arguments[0], Kind.TRUTH)
            _unify(arguments[1].slot, arguments[2].slot, arguments[2].at)
            return arguments[1].slot
        else:
            for argument in arguments:
                self._need(argument, _KINDS[operator.takes])
        return Slot(_KINDS[operator.gives])

    def _need(self, term: Term, kind: Kind) -> None:
        _unify(term.slot, Slot(kind), term.at)


def _unify(one: Slot, other: Slot, at: int) -> None:
    """Both are of one kind from here on."""
    one, other = one.root(), other.root()
    if one is other:
        return
    if one.kind is not None and other.kind is not None and one.kind is not other.kind:
        raise _type_error(f"{one.kind} stands where {other.kind} is needed", at)
    other.kind = one.kind or other.kind
    one.merged = other


def is_declaration(tree: Tree) -> bool:
    """Whether a statement only says what sort a name has."""
    return isinstance(tree, Form) and _head(tree) == "VAR" and len(tree.items) == 3


def _head(tree: Form) -> str:
    head = tree.items[0] if tree.items else None
    return head.text.upper() if isinstance(head, Atom) else ""


def _declarations(tree: Form) -> list[tuple[Tree, Tree]]:
    """The names and types that `(VAR x Int)` or `(LET ((x Int)) body)` declares."""
    head = _head(tree)
    if head == "VAR" and len(tree.items) == 3:
        return [(tree.items[1], tree.items[2])]
    if head == "LET" and len(tree.items) == 3:
        return [_pair(item) for item in _bindings(tree.items[1])]
    return []


def _pair(tree: Tree) -> tuple[Tree, Tree]:
    if not isinstance(tree, Form) or len(tree.items) != 2:
        raise Refusal("PARSE_ERROR", "a name and a type are needed, as in (LET ((x Int)) body)", tree.at)
    return tree.items[0], tree.items[1]


def _operator_of(tree: Form) -> Operator:
    head = tree.items[0] if tree.items else None
    if not isinstance(head, Atom) or head.kind in ("NUMBER", "STRING"):
        raise Refusal("PARSE_ERROR", "an operator is needed after the parenthesis", tree.at)
    operator = OPERATORS.get(head.text.upper())
    if operator is None:
        known = ", ".join(sorted({row.name for row in OPERATORS.values()}))
        raise Refusal("UNKNOWN_OPERATOR", f"unknown operator `{head.text[:40]}`, known are {known}", head.at)
    count = len(tree.items) - 1
    if count < operator.least or (operator.most is not None and count > operator.most):
        wanted = f"{operator.least}" if operator.most == operator.least else f"at least {operator.least}"
        raise _type_error(f"`{head.text}` takes {wanted} arguments, not {count}", head.at)
    return operator


def _is_name(tree: Tree) -> bool:
    return isinstance(tree, Atom) and tree.kind == "NAME" and tree.text.upper() not in {*OPERATORS, "TRUE", "FALSE"}


def _sort_of(tree: Tree) -> Sort:
    sort = _SORTS.get(tree.text.lower()) if isinstance(tree, Atom) else None
    if sort is None:
        raise _type_error(f"unknown type, known are {', '.join(Sort)}", tree.at)
    return sort


def _bindings(tree: Tree) -> tuple[Tree, ...]:
    """`x`, `(x y)` or `((x Int) (y Real))`."""
    if isinstance(tree, Atom):
        return (tree,)
    if not tree.items:
        raise Refusal("PARSE_ERROR", "no name is bound", tree.at)
    return tree.items


def _binding(tree: Tree) -> Symbol:
    name, declared = (tree, None) if isinstance(tree, Atom) else (_pair(tree)[0], _sort_of(_pair(tree)[1]))
    if not isinstance(name, Atom) or not _is_name(name):
        raise Refusal("PARSE_ERROR", "a quantifier binds names, as in (FORALL (x y) body)", tree.at)
    return Symbol(name.text, declared)


_KINDS = {"bool": Kind.TRUTH, "number": Kind.NUMBER}
_SPECIAL: dict[str, Callable[[Elaborator, Form, Operator], Term]] = {
    "FORALL": Elaborator._quantifier,
    "EXISTS": Elaborator._quantifier,
    "LET": Elaborator._let,
    "VAR": Elaborator._var,
}
