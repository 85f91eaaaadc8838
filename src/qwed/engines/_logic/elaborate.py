"""Trees of any notation to typed terms: the statements of one request share their names."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

from qwed.engines._logic.operators import OPERATORS, WHOLE, Operator
from qwed.engines._logic.syntax import Atom, Form, Refusal, Tree
from qwed.engines._logic.types import DECLARABLE, Kind, Relation, Slot, Sort, Symbol, Term, type_error, unify
from qwed.engines._logic.walk import Step, each, walk

MAX_NAMES = 500
_TEXTBOOK = re.compile(r"[A-Z][a-z]{1,2}")
"""`Px` for `P(x)`: as one name it would mean something else."""
_KINDS = {"bool": Kind.TRUTH, "number": Kind.NUMBER}


@dataclass(slots=True)
class Elaborator:
    """Types the statements of one request; a name means the same in all of them."""

    symbols: dict[str, Symbol] = field(default_factory=dict)
    relations: dict[str, Relation] = field(default_factory=dict)
    bound: list[dict[str, Symbol]] = field(default_factory=list)

    def statements(self, trees: Sequence[Tree]) -> list[Term]:
        """The truth values among `trees`; declarations hold for all of them, wherever they stand."""
        for tree in trees:
            self._collect(tree)
        terms = [walk(self._statement(tree)) for tree in trees if not is_declaration(tree)]
        self._refuse_truth_as_argument()
        return terms

    def _refuse_truth_as_argument(self) -> None:
        # `Believes(ann, p)` is not about p's truth value: what is equally true need not be equally believed.
        for relation in self.relations.values():
            if any(slot.kind is Kind.TRUTH for slot in relation.arguments):
                raise type_error(f"`{relation.name}` is said of a statement, it can be said of things only", 0)
            if relation.name in self.symbols:
                raise type_error(f"`{relation.name}` stands with and without arguments", 0)

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
            raise type_error(f"`{name.text}` is declared as {symbol.declared} and as {wanted}", name.at)

    def _statement(self, tree: Tree) -> Step[Term]:
        term: Term = yield self._term(tree)
        self._need(term, Kind.TRUTH)
        return term

    def _term(self, tree: Tree) -> Step[Term]:
        if isinstance(tree, Atom):
            return self._atom(tree)
        if isinstance(tree.items[0] if tree.items else None, Atom) and tree.items[0].kind == "PREDICATE":  # type: ignore[union-attr]  # just tested
            return cast(Term, (yield self._application(tree)))
        operator = _operator_of(tree)
        if operator.takes == "special":
            return cast(Term, (yield _SPECIAL[operator.name](self, tree, operator)))
        arguments = tuple((yield each(self._term(item) for item in tree.items[1:])))
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
        if _TEXTBOOK.fullmatch(name) and any(set(name[1:]) & scope.keys() for scope in self.bound):
            raise Refusal("PARSE_ERROR", f"write `{name[0]}({', '.join(name[1:])})` instead of `{name}`", 0)
        if name not in self.symbols and len(self.symbols) >= MAX_NAMES:
            raise type_error(f"more than {MAX_NAMES} names", 0)
        return self.symbols.setdefault(name, Symbol(name))

    def _application(self, tree: Form) -> Step[Term]:
        head = tree.items[0]
        arguments = tuple((yield each(self._term(item) for item in tree.items[1:])))
        relation = self._relation(head.text, len(arguments), tree.at)  # type: ignore[union-attr]  # an Atom
        for slot, argument in zip(relation.arguments, arguments, strict=True):
            unify(argument.slot, slot, argument.at)
        return Term("APPLY", relation.result, tree.at, arguments, relation=relation)

    def _relation(self, name: str, arity: int, at: int) -> Relation:
        if any(name in scope for scope in self.bound):
            raise type_error(f"`{name}` is bound by a quantifier, only things can be", at)
        if name.upper() in OPERATORS:
            raise Refusal("PARSE_ERROR", f"`{name}` is an operator, write it as in (AND p q)", at)
        if name not in self.relations and len(self.relations) >= MAX_NAMES:
            raise type_error(f"more than {MAX_NAMES} predicates", at)
        made = Relation(name, tuple(Slot(thing=True) for _ in range(arity)), Slot(thing=True))
        relation = self.relations.setdefault(name, made)
        if len(relation.arguments) != arity:
            raise type_error(f"`{name}` stands with {len(relation.arguments)} and with {arity} arguments", at)
        return relation

    def _quantifier(self, tree: Form, operator: Operator) -> Step[Term]:
        names = tuple(_binding(item) for item in _bindings(tree.items[1]))
        if len({symbol.name for symbol in names}) < len(names):
            raise Refusal("PARSE_ERROR", "a quantifier binds the same name twice", tree.at)
        for symbol in names:
            symbol.slot.thing = tree.items[0].kind == "QUANTIFIER"  # type: ignore[union-attr]  # an Atom
        self.bound.append({symbol.name: symbol for symbol in names})
        body: Term = yield self._statement(tree.items[2])
        self.bound.pop()
        return Term(operator.name, Slot(Kind.TRUTH), tree.at, (body,), names=names)

    def _let(self, tree: Form, _operator: Operator) -> Step[Term]:
        for name, _sort in _declarations(tree):
            self._refuse_bound(name)
        return cast(Term, (yield self._term(tree.items[2])))

    def _var(self, tree: Form, _operator: Operator) -> Step[Term]:
        self._refuse_bound(tree.items[1])
        return cast(Term, (yield self._term(tree.items[1])))

    def _refuse_bound(self, name: Tree) -> None:
        """A declaration speaks of the free name; under a quantifier of that name it would mean two things."""
        if isinstance(name, Atom) and any(name.text in scope for scope in self.bound):
            raise type_error(f"`{name.text}` is bound here, give its type in the quantifier", name.at)

    def _slot(self, operator: Operator, arguments: tuple[Term, ...]) -> Slot:
        if operator.takes == "same":
            unify(arguments[0].slot, arguments[1].slot, arguments[1].at)
        elif operator.takes == "choice":
            self._need(arguments[0], Kind.TRUTH)
            unify(arguments[1].slot, arguments[2].slot, arguments[2].at)
            return arguments[1].slot
        else:
            for argument in arguments:
                self._need(argument, _KINDS[operator.takes])
        return Slot(_KINDS[operator.gives])

    def _need(self, term: Term, kind: Kind) -> None:
        unify(term.slot, Slot(kind), term.at)


def is_declaration(tree: Tree) -> bool:
    """Whether a statement only says what sort a name has."""
    return isinstance(tree, Form) and _head(tree) == "VAR" and len(tree.items) == 3


def _head(tree: Form) -> str:
    head = tree.items[0] if tree.items else None
    return head.text.upper() if isinstance(head, Atom) and head.kind != "PREDICATE" else ""


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
    operator = WHOLE if head == Atom("SYMBOL", WHOLE.name, head.at) else OPERATORS.get(head.text.upper())
    if operator is None:
        known = ", ".join(sorted({row.name for row in OPERATORS.values()}))
        raise Refusal("UNKNOWN_OPERATOR", f"unknown operator `{head.text[:40]}`, known are {known}", head.at)
    count = len(tree.items) - 1
    if count < operator.least or (operator.most is not None and count > operator.most):
        wanted = f"{operator.least}" if operator.most == operator.least else f"at least {operator.least}"
        raise type_error(f"`{head.text}` takes {wanted} arguments, not {count}", head.at)
    return operator


def _is_name(tree: Tree) -> bool:
    return isinstance(tree, Atom) and tree.kind == "NAME" and tree.text.upper() not in {*OPERATORS, "TRUE", "FALSE"}


def _sort_of(tree: Tree) -> Sort:
    sort = DECLARABLE.get(tree.text.lower()) if isinstance(tree, Atom) else None
    if sort is None:
        raise type_error(f"unknown type, known are {', '.join(Sort)}", tree.at)
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


_SPECIAL: dict[str, Callable[[Elaborator, Form, Operator], Step[Term]]] = {
    "FORALL": Elaborator._quantifier,
    "EXISTS": Elaborator._quantifier,
    "LET": Elaborator._let,
    "VAR": Elaborator._var,
}
