"""Type inference: trees of any notation to typed terms; the statements of one request share their names."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

from qwed.engines._logic.operators import OPERATORS, WHOLE, Operator
from qwed.engines._logic.sexpr import Atom, ListNode, LogicRefusalError, Tree
from qwed.engines._logic.trampoline import Step, run, run_all
from qwed.engines._logic.types import DECLARABLE, Relation, Slot, Sort, Symbol, Term, TermKind, type_error, unify

MAX_NAMES = 500
_TEXTBOOK_PREDICATE = re.compile(r"[A-Z][a-z]{1,2}")
"""Names such as `Px`, which textbooks write for `P(x)`; as one name it would mean something else."""
_KINDS = {"bool": TermKind.TRUTH, "number": TermKind.NUMBER}


@dataclass(slots=True)
class TypeInference:
    """Type inference for the statements of one request; a name means the same in all of them."""

    symbols: dict[str, Symbol] = field(default_factory=dict)
    relations: dict[str, Relation] = field(default_factory=dict)
    bound: list[dict[str, Symbol]] = field(default_factory=list)

    def statements(self, trees: Sequence[Tree]) -> list[Term]:
        """Return the typed statements among `trees`; declarations apply to all of them, in any position."""
        for tree in trees:
            self._collect(tree)
        terms = [run(self._statement(tree)) for tree in trees if not is_declaration(tree)]
        self._refuse_truth_as_argument()
        return terms

    def _refuse_truth_as_argument(self) -> None:
        # `Believes(ann, p)` is not about the truth value of p: two true statements need not both be believed.
        for relation in self.relations.values():
            if any(slot.kind is TermKind.TRUTH for slot in relation.arguments):
                raise type_error(f"`{relation.name}` takes a statement as an argument, only things are allowed", 0)
            if relation.name in self.symbols:
                raise type_error(f"`{relation.name}` is used with and without arguments", 0)

    def _collect(self, tree: Tree) -> None:
        pending = [tree]
        while pending:
            node = pending.pop()
            if isinstance(node, ListNode):
                pending.extend(node.items)
                for name, sort in _declarations(node):
                    self._declare(name, sort)

    def _declare(self, name: Tree, sort: Tree) -> None:
        if not isinstance(name, Atom) or not _is_name(name):
            raise LogicRefusalError("PARSE_ERROR", "a declaration needs a name and a type, as in (VAR x Int)", name.at)
        declared = _sort_of(sort)
        symbol = self.symbols.setdefault(name.text, Symbol(name.text, declared))
        if symbol.declared is not declared:
            raise type_error(f"`{name.text}` is declared as {symbol.declared} and as {declared}", name.at)

    def _statement(self, tree: Tree) -> Step[Term]:
        term: Term = yield self._term(tree)
        self._need(term, TermKind.TRUTH)
        return term

    def _term(self, tree: Tree) -> Step[Term]:
        if isinstance(tree, Atom):
            return self._atom(tree)
        if isinstance(tree.items[0] if tree.items else None, Atom) and tree.items[0].kind == "PREDICATE":  # type: ignore[union-attr]  # just tested
            return cast(Term, (yield self._application(tree)))
        operator = _operator_of(tree)
        if operator.takes == "special":
            return cast(Term, (yield _SPECIAL[operator.name](self, tree, operator)))
        arguments = tuple((yield run_all(self._term(item) for item in tree.items[1:])))
        return Term(operator.name, self._slot(operator, arguments), tree.at, arguments)

    def _atom(self, atom: Atom) -> Term:
        if atom.kind == "NUMBER":
            return Term("NUMBER", Slot(TermKind.NUMBER), atom.at, text=atom.text)
        if atom.kind == "STRING":
            return Term("STRING", Slot(TermKind.TEXT), atom.at, text=atom.text[1:-1])
        if atom.text.lower() in ("true", "false"):
            return Term("TRUTH", Slot(TermKind.TRUTH), atom.at, text=atom.text.lower())
        if atom.text.upper() in OPERATORS:
            raise LogicRefusalError("PARSE_ERROR", f"operator `{atom.text}` needs its own parentheses", atom.at)
        symbol = self._lookup(atom.text)
        return Term("NAME", symbol.slot, atom.at, symbol=symbol)

    def _lookup(self, name: str) -> Symbol:
        for scope in reversed(self.bound):
            if name in scope:
                return scope[name]
        if _TEXTBOOK_PREDICATE.fullmatch(name) and any(set(name[1:]) & scope.keys() for scope in self.bound):
            raise LogicRefusalError("PARSE_ERROR", f"write `{name[0]}({', '.join(name[1:])})` instead of `{name}`", 0)
        if name not in self.symbols and len(self.symbols) >= MAX_NAMES:
            raise type_error(f"more than {MAX_NAMES} names", 0)
        return self.symbols.setdefault(name, Symbol(name))

    def _application(self, tree: ListNode) -> Step[Term]:
        head = tree.items[0]
        arguments = tuple((yield run_all(self._term(item) for item in tree.items[1:])))
        relation = self._relation(head.text, len(arguments), tree.at)  # type: ignore[union-attr]  # an Atom
        for slot, argument in zip(relation.arguments, arguments, strict=True):
            unify(argument.slot, slot, argument.at)
        return Term("APPLY", relation.result, tree.at, arguments, relation=relation)

    def _relation(self, name: str, arity: int, at: int) -> Relation:
        if any(name in scope for scope in self.bound):
            raise type_error(f"`{name}` is bound by a quantifier, only things can be", at)
        if name.upper() in OPERATORS:
            raise LogicRefusalError("PARSE_ERROR", f"`{name}` is an operator, write it as in (AND p q)", at)
        if name not in self.relations and len(self.relations) >= MAX_NAMES:
            raise type_error(f"more than {MAX_NAMES} predicates", at)
        new_relation = Relation(name, tuple(Slot(thing=True) for _ in range(arity)), Slot(thing=True))
        relation = self.relations.setdefault(name, new_relation)
        if len(relation.arguments) != arity:
            raise type_error(f"`{name}` is used with {len(relation.arguments)} and with {arity} arguments", at)
        return relation

    def _quantifier(self, tree: ListNode, operator: Operator) -> Step[Term]:
        names = tuple(_binding(item) for item in _bindings(tree.items[1]))
        if len({symbol.name for symbol in names}) < len(names):
            raise LogicRefusalError("PARSE_ERROR", "a quantifier binds the same name twice", tree.at)
        for symbol in names:
            symbol.slot.thing = tree.items[0].kind == "QUANTIFIER"  # type: ignore[union-attr]  # an Atom
        self.bound.append({symbol.name: symbol for symbol in names})
        body: Term = yield self._statement(tree.items[2])
        self.bound.pop()
        return Term(operator.name, Slot(TermKind.TRUTH), tree.at, (body,), names=names)

    def _let(self, tree: ListNode, _operator: Operator) -> Step[Term]:
        for name, _sort in _declarations(tree):
            self._refuse_bound(name)
        return cast(Term, (yield self._term(tree.items[2])))

    def _var(self, tree: ListNode, _operator: Operator) -> Step[Term]:
        self._refuse_bound(tree.items[1])
        return cast(Term, (yield self._term(tree.items[1])))

    def _refuse_bound(self, name: Tree) -> None:
        """Refuse a declaration under a quantifier of the same name, which would make the name ambiguous."""
        if isinstance(name, Atom) and any(name.text in scope for scope in self.bound):
            raise type_error(f"`{name.text}` is bound here, give its type in the quantifier", name.at)

    def _slot(self, operator: Operator, arguments: tuple[Term, ...]) -> Slot:
        if operator.takes == "same":
            unify(arguments[0].slot, arguments[1].slot, arguments[1].at)
        elif operator.takes == "choice":
            self._need(arguments[0], TermKind.TRUTH)
            unify(arguments[1].slot, arguments[2].slot, arguments[2].at)
            return arguments[1].slot
        else:
            for argument in arguments:
                self._need(argument, _KINDS[operator.takes])
        return Slot(_KINDS[operator.gives])

    def _need(self, term: Term, kind: TermKind) -> None:
        unify(term.slot, Slot(kind), term.at)


def is_declaration(tree: Tree) -> bool:
    """Return True if a statement only declares the sort of a name."""
    return isinstance(tree, ListNode) and _head(tree) == "VAR" and len(tree.items) == 3


def _head(tree: ListNode) -> str:
    head = tree.items[0] if tree.items else None
    return head.text.upper() if isinstance(head, Atom) and head.kind != "PREDICATE" else ""


def _declarations(tree: ListNode) -> list[tuple[Tree, Tree]]:
    """Return the names and types that `(VAR x Int)` or `(LET ((x Int)) body)` declares."""
    head = _head(tree)
    if head == "VAR" and len(tree.items) == 3:
        return [(tree.items[1], tree.items[2])]
    if head == "LET" and len(tree.items) == 3:
        return [_pair(item) for item in _bindings(tree.items[1])]
    return []


def _pair(tree: Tree) -> tuple[Tree, Tree]:
    if not isinstance(tree, ListNode) or len(tree.items) != 2:
        raise LogicRefusalError("PARSE_ERROR", "a name and a type are needed, as in (LET ((x Int)) body)", tree.at)
    return tree.items[0], tree.items[1]


def _operator_of(tree: ListNode) -> Operator:
    head = tree.items[0] if tree.items else None
    if not isinstance(head, Atom) or head.kind in ("NUMBER", "STRING"):
        raise LogicRefusalError("PARSE_ERROR", "an operator is needed after the parenthesis", tree.at)
    operator = WHOLE if head == Atom("SYMBOL", WHOLE.name, head.at) else OPERATORS.get(head.text.upper())
    if operator is None:
        names = ", ".join(sorted({row.name for row in OPERATORS.values()}))
        raise LogicRefusalError("UNKNOWN_OPERATOR", f"unknown operator `{head.text[:40]}`, known are {names}", head.at)
    count = len(tree.items) - 1
    if count < operator.least or (operator.most is not None and count > operator.most):
        arity = f"{operator.least}" if operator.most == operator.least else f"at least {operator.least}"
        raise type_error(f"`{head.text}` takes {arity} arguments, not {count}", head.at)
    return operator


def _is_name(tree: Tree) -> bool:
    return isinstance(tree, Atom) and tree.kind == "NAME" and tree.text.upper() not in {*OPERATORS, "TRUE", "FALSE"}


def _sort_of(tree: Tree) -> Sort:
    sort = DECLARABLE.get(tree.text.lower()) if isinstance(tree, Atom) else None
    if sort is None:
        raise type_error(f"unknown type, known are {', '.join(Sort)}", tree.at)
    return sort


def _bindings(tree: Tree) -> tuple[Tree, ...]:
    """Return the items of `x`, `(x y)` or `((x Int) (y Real))`."""
    if isinstance(tree, Atom):
        return (tree,)
    if not tree.items:
        raise LogicRefusalError("PARSE_ERROR", "no name is bound", tree.at)
    return tree.items


def _binding(tree: Tree) -> Symbol:
    name, declared = (tree, None) if isinstance(tree, Atom) else (_pair(tree)[0], _sort_of(_pair(tree)[1]))
    if not isinstance(name, Atom) or not _is_name(name):
        raise LogicRefusalError("PARSE_ERROR", "a quantifier binds names, as in (FORALL (x y) body)", tree.at)
    return Symbol(name.text, declared)


_SPECIAL: dict[str, Callable[[TypeInference, ListNode, Operator], Step[Term]]] = {
    "FORALL": TypeInference._quantifier,
    "EXISTS": TypeInference._quantifier,
    "LET": TypeInference._let,
    "VAR": TypeInference._var,
}
