"""The rules over a syntax tree: each kind of node that can mean something has one function."""

import ast
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from qwed.guards import _python_scopes as scopes
from qwed.guards._python_report import PythonReport, rule_of
from qwed.guards._python_scopes import Program, Scope
from qwed.guards._python_tables import (
    ATTRIBUTE_CALLS,
    DANGEROUS_METHODS,
    METHODS_OF,
    REFLECTIVE_ATTRIBUTES,
    RULES,
    SAFE_DUNDERS,
    TEXT_CODE,
)
from qwed.guards._python_values import REROOTED, Values, canonical
from qwed.guards.code_words import Danger
from qwed.words import EffectKind

_REACHING_FORMAT = re.compile(r"\{[^{}]*[.\[]__")
_CODE_IN_ANNOTATION = re.compile(r"\(|__|lambda")
_PARENTS = {name.rpartition(".")[0] for name in RULES if "." in name}
_LIBRARIES = sys.stdlib_module_names - {"antigravity", "this", "test", "idlelib", "lib2to3"}
_MODULES = _PARENTS | (_LIBRARIES - RULES.keys())


def check(tree: ast.Module) -> PythonReport:
    """The findings of a whole module; TooComplex where its names cannot be followed."""
    program = scopes.read(tree)
    checker = _Checker(program, Values.of(program))
    for node, scope in program.visits:
        for rule in _RULES_OF.get(type(node), ()):
            rule(checker, node, scope)
    return checker.report


@dataclass(slots=True)
class _Checker:
    program: Program
    values: Values
    report: PythonReport = field(default_factory=PythonReport)
    done: set[int] = field(default_factory=set)
    """Nodes that their parent has judged, by id."""
    renamed: set[int] = field(default_factory=set)
    """Nodes that only give a module another name, by id."""
    targets: dict[int, str] = field(default_factory=dict)
    """What a call names first, by the id of its function."""
    spelled: set[int] = field(default_factory=set)
    """Calls such as `object.__setattr__(self, "x", 1)` whose attribute is written out, by the id of the function."""

    def name(self, node: ast.Name, scope: Scope) -> None:
        if not isinstance(node.ctx, ast.Load) or id(node) in self.done:
            return
        if not self.values.defined(node.id, scope):
            self.report.effect(EffectKind.UNRESOLVED, node.id)
        for path in sorted(self.values.named(node.id, scope)):
            self._use(path, node)

    def attribute(self, node: ast.Attribute, scope: Scope) -> None:
        if id(node) in self.done:
            return
        base, attributes = self._chain(node)
        self._names(node, base, attributes)
        self.rename(base)
        paths = self.values.paths(base, scope)
        for path in sorted(paths):
            self._use(canonical(".".join([path, *attributes])), node)
        if isinstance(base, ast.Name) and not self.values.defined(base.id, scope):
            self.report.effect(EffectKind.UNRESOLVED, base.id)
        if not paths or any(path.partition(".")[0] in METHODS_OF for path in paths):
            self._method(node)

    def _chain(self, node: ast.Attribute) -> tuple[ast.expr, list[str]]:
        """`a.b.c` as a and [b, c]; the inner links are judged with it."""
        attributes, here = [node.attr], node.value
        while isinstance(here, ast.Attribute):
            self.done.add(id(here))
            attributes.append(here.attr)
            here = here.value
        if isinstance(here, ast.Name):
            self.done.add(id(here))
        return here, attributes[::-1]

    def _names(self, node: ast.Attribute, base: ast.expr, attributes: list[str]) -> None:
        for index, attribute in enumerate(attributes):
            last = index == len(attributes) - 1
            own_class = attribute == "__class__" and isinstance(base, ast.Name) and isinstance(node.ctx, ast.Load)
            if not own_class and not (last and id(node) in self.spelled):
                self._attribute_name(attribute, node.lineno)

    def _attribute_name(self, attribute: str, line: int) -> None:
        dunder = attribute.startswith("__") and attribute.endswith("__") and attribute not in SAFE_DUNDERS
        if dunder or attribute in REFLECTIVE_ATTRIBUTES:
            self.report.danger(Danger.REFLECT, attribute, line)
        if attribute in DANGEROUS_METHODS:
            self.report.danger(DANGEROUS_METHODS[attribute], attribute, line)

    def _use(self, path: str, node: ast.expr) -> None:
        if not self._is_module(path):
            self.report.mention(path, node.lineno, self.targets.get(id(node), ""))
        elif id(node) not in self.renamed:
            self._handed_on(path, node.lineno)

    def _is_module(self, path: str) -> bool:
        return path in self.program.modules or path in _MODULES

    def _handed_on(self, path: str, line: int) -> None:
        """A module as a value: whoever gets it can use all of it."""
        rule = rule_of(path)
        if rule.danger is not None or path.partition(".")[0] in REROOTED:
            self.report.danger(rule.danger or Danger.REFLECT, path, line)
        else:
            self.report.effect(rule.effect or EffectKind.UNRESOLVED, path)

    def _method(self, node: ast.Attribute) -> None:
        """A method of a value that may be a path, a data frame or the like."""
        target = self.targets.get(id(node), "")
        if node.attr in TEXT_CODE and target and "@" not in target and "__" not in target:
            return
        for root in sorted(self.program.roots & METHODS_OF.keys()):
            kind = METHODS_OF[root].get(node.attr)
            if kind is not None:
                self.report.effect(kind, node.attr if kind is EffectKind.UNRESOLVED else target or node.attr)

    def rename(self, node: ast.expr | None) -> None:
        """Allow `node` to be a module: what takes it gives it a name we follow."""
        pending = [node]
        while pending:
            here = pending.pop()
            if here is None:
                continue
            self.renamed.add(id(here))
            if isinstance(here, ast.IfExp):
                pending += [here.body, here.orelse]
            elif isinstance(here, ast.BoolOp):
                pending += here.values
            elif isinstance(here, ast.NamedExpr):
                pending.append(here.value)

    def assign(self, node: ast.Assign | ast.AnnAssign, scope: Scope) -> None:
        # A class attribute is reached as `A.name`, which we do not follow, so there a module is handed on.
        if scope.kind == "class":
            return
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            for _, value in scopes.pairs(target, node.value):
                self.rename(value)

    def defaults(self, node: ast.arguments, _scope: Scope) -> None:
        for default in (*node.defaults, *node.kw_defaults):
            self.rename(default)

    def comparison(self, node: ast.Compare, _scope: Scope) -> None:
        nothing = [isinstance(other, ast.Constant) and other.value is None for other in node.comparators]
        if all(nothing) and all(isinstance(operator, ast.Is | ast.IsNot) for operator in node.ops):
            self.rename(node.left)

    def imports(self, node: ast.Import, _scope: Scope) -> None:
        for alias in node.names:
            self._imported(alias.name, node.lineno)

    def imports_from(self, node: ast.ImportFrom, _scope: Scope) -> None:
        module = "." * node.level + (node.module or "")
        self._imported(module, node.lineno)
        for alias in node.names:
            path = canonical(f"{module}.{alias.name}")
            if rule_of(path).danger is not None and path not in _CALLS:
                self.report.mention(path, node.lineno)

    def _imported(self, module: str, line: int) -> None:
        path = canonical(module)
        rule, root = rule_of(path), path.partition(".")[0]
        if rule.danger is not None:
            self.report.danger(rule.danger, path, line)
        elif root not in _LIBRARIES and root not in RULES:
            self.report.effect(EffectKind.UNRESOLVED, module)

    def text(self, node: ast.Constant, _scope: Scope) -> None:
        if isinstance(node.value, str) and _REACHING_FORMAT.search(node.value):
            self.report.danger(Danger.REFLECT, "attribute lookup in a format string", node.lineno)

    def annotation(self, node: ast.arg | ast.AnnAssign, _scope: Scope) -> None:
        self._annotated(node.annotation)

    def returns(self, node: ast.FunctionDef | ast.AsyncFunctionDef, _scope: Scope) -> None:
        self._annotated(node.returns)

    def _annotated(self, node: ast.expr | None) -> None:
        """Libraries evaluate the text of an annotation, so it must not hold a call."""
        for part in ast.walk(node) if node is not None else ():
            text = part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else ""
            if "__" in text or (part is node and _CODE_IN_ANNOTATION.search(text)):
                self.report.danger(Danger.DYNAMIC, "code in an annotation", node.lineno if node else 0)

    def pattern(self, node: ast.MatchClass, _scope: Scope) -> None:
        for attribute in node.kwd_attrs:
            self._attribute_name(attribute, node.lineno)

    def call(self, node: ast.Call, scope: Scope) -> None:
        self._target(node, scope)
        self._spelled(node, scope)
        paths = self.values.paths(node.func, scope) if isinstance(node.func, ast.Name | ast.Attribute) else frozenset()
        for path in sorted(paths & _CALLS.keys()):
            _CALLS[path](self, node, scope)
        if paths and paths <= _CALLS.keys():
            self.done.add(id(node.func))
            if isinstance(node.func, ast.Attribute):
                self._chain(node.func)

    def _target(self, node: ast.Call, scope: Scope) -> None:
        found = self.values.constants(node.args[0], scope) if node.args else None
        texts = sorted(each for each in found or () if isinstance(each, str))
        self.targets[id(node.func)] = " | ".join(texts)
        # `str.replace` takes two arguments, `Path.replace` one.
        replaces = isinstance(node.func, ast.Attribute) and node.func.attr == "replace" and len(node.args) == 1
        if replaces and "pathlib" in self.program.roots:
            self.report.effect(EffectKind.WRITE, self.targets[id(node.func)] or "replace")

    def _spelled(self, node: ast.Call, scope: Scope) -> None:
        func = node.func
        if not isinstance(func, ast.Attribute) or func.attr not in ATTRIBUTE_CALLS:
            return
        on_super = isinstance(func.value, ast.Call) and "super" in self.values.paths(func.value.func, scope)
        names = self.values.constants(node.args[not on_super], scope) if len(node.args) > (not on_super) else None
        plain = names is not None and not any(str(name).startswith("__") for name in names)
        if plain or (on_super and func.attr in ("__setattr__", "__delattr__")):
            self.spelled.add(id(func))

    def reflect(self, node: ast.Call, scope: Scope) -> None:
        """getattr, setattr and delattr: fine with a plain name that is written out."""
        names = self.values.constants(node.args[1], scope) if len(node.args) > 1 else None
        builtin = ast.unparse(node.func)
        if names is None or any(isinstance(argument, ast.Starred) for argument in node.args):
            self.report.danger(Danger.REFLECT, f"{builtin} with a computed name", node.lineno)
            return
        self.rename(node.args[0])
        for name in sorted(map(str, names)):
            if name.startswith("__"):
                self.report.danger(Danger.REFLECT, name, node.lineno)
            self._attribute_name(name, node.lineno)
            for path in self.values.paths(node.args[0], scope):
                self._use(canonical(f"{path}.{name}"), node)

    def look(self, node: ast.Call, _scope: Scope) -> None:
        """hasattr answers yes or no."""
        self.rename(node.args[0] if node.args else None)

    def namespace(self, node: ast.Call, _scope: Scope) -> None:
        if not node.args:
            self.report.danger(Danger.REFLECT, "vars()", node.lineno)

    def fetch(self, node: ast.Call, scope: Scope) -> None:
        """operator.attrgetter and methodcaller: attributes named by text."""
        for argument in node.args[:1] if "methodcaller" in ast.unparse(node.func) else node.args:
            names = self.values.constants(argument, scope)
            if names is None:
                self.report.danger(Danger.REFLECT, "attribute with a computed name", node.lineno)
            for name in sorted(map(str, names or ())):
                for part in name.split("."):
                    self._attribute_name(part, node.lineno)

    def opens(self, node: ast.Call, scope: Scope) -> None:
        mode = next((word.value for word in node.keywords if word.arg == "mode"), None)
        spread = any(word.arg is None for word in node.keywords) or any(isinstance(a, ast.Starred) for a in node.args)
        mode = node.args[1] if len(node.args) > 1 else mode
        modes = frozenset({"r"}) if mode is None else self.values.constants(mode, scope)
        reads = not spread and modes is not None and all(set(str(each)) <= set("rbtU") for each in modes)
        target = self.targets.get(id(node.func), "") or "open"
        self.report.effect(EffectKind.READ if reads else EffectKind.WRITE, target)

    def loads_yaml(self, node: ast.Call, scope: Scope) -> None:
        loader = next((word.value for word in node.keywords if word.arg == "Loader"), None)
        loader = node.args[1] if len(node.args) > 1 else loader
        paths = self.values.paths(loader, scope) if loader is not None else frozenset()
        if not paths or not paths <= {"yaml.SafeLoader", "yaml.CSafeLoader"}:
            self.report.mention("yaml.load", node.lineno)

    def loads_array(self, node: ast.Call, _scope: Scope) -> None:
        if len(node.args) > 2 or any(word.arg in ("allow_pickle", None) for word in node.keywords):
            self.report.danger(Danger.DESERIALISE, "numpy.load with allow_pickle", node.lineno)
        self.report.effect(EffectKind.READ, self.targets.get(id(node.func), "") or "numpy.load")

    def logs(self, node: ast.Call, scope: Scope) -> None:
        for word in node.keywords:
            if word.arg in ("filename", None):
                names = self.values.constants(word.value, scope) or {"logging.basicConfig"}
                self.report.effect(EffectKind.WRITE, " | ".join(sorted(map(str, names))))


_CALLS: dict[str, Callable[[_Checker, ast.Call, Scope], None]] = {
    "getattr": _Checker.reflect,
    "setattr": _Checker.reflect,
    "delattr": _Checker.reflect,
    "hasattr": _Checker.look,
    "vars": _Checker.namespace,
    "open": _Checker.opens,
    "io.open": _Checker.opens,
    "yaml.load": _Checker.loads_yaml,
    "numpy.load": _Checker.loads_array,
    "logging.basicConfig": _Checker.logs,
    "operator.attrgetter": _Checker.fetch,
    "operator.methodcaller": _Checker.fetch,
}
_RULES_OF: dict[type[ast.AST], tuple[Callable[..., None], ...]] = {
    ast.Name: (_Checker.name,),
    ast.Attribute: (_Checker.attribute,),
    ast.Assign: (_Checker.assign,),
    ast.AnnAssign: (_Checker.assign, _Checker.annotation),
    ast.arguments: (_Checker.defaults,),
    ast.arg: (_Checker.annotation,),
    ast.FunctionDef: (_Checker.returns,),
    ast.AsyncFunctionDef: (_Checker.returns,),
    ast.Compare: (_Checker.comparison,),
    ast.Import: (_Checker.imports,),
    ast.ImportFrom: (_Checker.imports_from,),
    ast.Constant: (_Checker.text,),
    ast.MatchClass: (_Checker.pattern,),
    ast.Call: (_Checker.call,),
}
