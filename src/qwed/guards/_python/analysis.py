"""Shared state of the rules over a Python syntax tree: the program, the meaning of its names, the report."""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from qwed.guards._python.ast_children import descendants
from qwed.guards._python.attributes import (
    ASSIGNED_EFFECTS,
    CLASS_FACTS,
    CODE_FACTS,
    FIELD_OBJECTS,
    INTERNALS,
    SETTINGS,
    TRAVERSALS,
)
from qwed.guards._python.constant_folding import ConstantFolder
from qwed.guards._python.library_rules import BUILTINS, PARENTS, words
from qwed.guards._python.module_names import MODULES, is_module
from qwed.guards._python.name_resolution import OWN_MODULE, POWERFUL_MODULES, REACHABLE_MODULES, NameResolver, Paths
from qwed.guards._python.report import PythonReport, rule_of
from qwed.guards._python.scopes import Binding, Program, Scope
from qwed.guards.code_findings import ENVIRONMENT, ViolationKind
from qwed.guards.path import resolve
from qwed.model import EffectKind

_NO_MODULE = re.compile(r"(?:.*\.)?[A-Z_]\w*|.*\(\).*|loguru\.logger|unittest\.mock\.patch")
_MODULES = {name for name in MODULES if is_module(name)} | {name for name in PARENTS if not _NO_MODULE.fullmatch(name)}
_LITERALS = (ast.Constant, ast.JoinedStr, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.Lambda)
_LITERAL_LOOPS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
OBFUSCATORS = words(
    """chr bytes bytearray decode b64decode b32decode b16decode b85decode a85decode unhexlify a2b_hex a2b_base64 fromhex
    translate decompress input reversed from_bytes to_bytes urlsafe_b64decode raw_input"""
)


@dataclass(slots=True)
class PythonAnalysis:
    """State of the analysis of one program."""

    program: Program
    values: NameResolver
    folder: ConstantFolder
    report: PythonReport = field(default_factory=PythonReport)
    handled: set[int] = field(default_factory=set)
    """Ids of nodes that were checked with their parent."""
    aliased: set[int] = field(default_factory=set)
    """Ids of nodes that only give a module another name."""
    type_only: set[int] = field(default_factory=set)
    """Ids of nodes that only name a type."""
    shown: set[int] = field(default_factory=set)
    """Ids of nodes that are only turned into text."""
    excused: set[int] = field(default_factory=set)
    """Ids of nodes where an undefined name is acceptable."""
    callers: dict[int, ast.Call] = field(default_factory=dict)
    """Calls by the id of their function node."""
    checked_attribute_calls: set[int] = field(default_factory=set)
    """Ids of the functions of calls such as `object.__setattr__(self, "x", 1)` whose attribute was checked."""
    computed_lookups: dict[int, str] = field(default_factory=dict)
    """Lines with an attribute lookup by an unknown name, and the function that does it."""
    derived: dict[Callable[[ast.AST], bool], set["Key"]] = field(default_factory=dict)
    """Names whose value derives from a node that passes the test."""
    inner_texts: dict[str, int] = field(default_factory=dict)
    """Texts that name an interpreter attribute, and their lines."""
    node_tests: dict[Callable[[ast.AST], bool], bool] = field(default_factory=dict)
    """Cached results of tests on the whole program."""
    type_texts: list[ast.expr] = field(default_factory=list)
    """Parsed texts of annotations, kept because their meanings are cached by id."""
    base_roots: set[str] = field(default_factory=set)
    """Libraries whose classes the program extends."""
    uses_fields: bool = False
    """True if the program gets the fields of a class as values."""
    renamed: dict[int, None] = field(default_factory=dict)
    """Lines on which something may get another name."""
    class_patterns: dict[int, None] = field(default_factory=dict)
    """Lines of class patterns that look attributes up by position."""
    composed_fields: dict[int, str] = field(default_factory=dict)
    """Lines that name fields by texts that are composed while the program runs."""
    evaluated: dict[int, str] = field(default_factory=dict)
    """Lines on which annotations are evaluated, and the function that does it."""
    annotations: dict[int, None] = field(default_factory=dict)
    """Lines on which annotations are added at run time."""

    def report_use(self, path: str, node: ast.expr, scope: Scope) -> None:
        """Report a library name that the code refers to."""
        self.uses_fields = self.uses_fields or path in FIELD_OBJECTS
        if id(node) in self.type_only or (id(node) in self.aliased and path in _ALIASED_BUILTINS):
            return
        if id(node) not in self.aliased and _is_whole_environment(path):
            self.report.add_effect(EffectKind.SECRET, ENVIRONMENT, node.lineno)
            return
        if path == OWN_MODULE:
            if id(node) not in self.aliased:
                self.report_names(self.program.module, node.lineno)
        elif not self.is_module(path):
            self.report_path(path, node, scope)
        elif id(node) not in self.aliased:
            self.report_module_value(path, node.lineno)

    def has_effect(self, path: str) -> bool:
        """Return True if a rule gives `path` an effect or a violation."""
        rule = rule_of(path)
        return not rule.unknown and (rule.violation is not None or bool(rule.effects)) and not self.is_module(path)

    def is_module(self, path: str) -> bool:
        """Return True if a dotted name is a module, according to the program and the tables."""
        return path in self.program.modules or path in _MODULES

    def report_path(self, path: str, node: ast.expr, scope: Scope) -> None:
        """Report a library name that is not a module."""
        rule = rule_of(path)
        if rule.violation is not None or rule.effects:
            self.report.add_rule(path, rule, node.lineno, self.targets(node, scope) if rule.effects else [])

    def report_module_value(self, path: str, line: int) -> None:
        """Report a module used as a value: code that receives it can use all of it."""
        rule = rule_of(path)
        if rule.violation is not None or path.partition(".")[0] in POWERFUL_MODULES:
            self.report.add_violation(rule.violation or ViolationKind.REFLECT, path, line)
            return
        # A module holds every module that it imports.
        for kind in rule.effects:
            self.report.add_effect(kind, path, line)
        if not rule.effects:
            self.report.add_lookup(path, line)

    def report_names(self, home: Scope, line: int) -> None:
        """Report the library names in a namespace: code that gets the namespace can use all of them."""
        for name in home.names:
            for path in sorted(self.values.paths_of_name(name, home)):
                if "()" not in path and (self.is_module(path) or self.has_effect(path)):
                    self.report.add_lookup(path, line)

    def is_certain(self, function: ast.expr, scope: Scope) -> bool:
        """Return True if a call is certain to call the function that its name says, and no other."""
        return len(self.values.paths(function, scope)) == 1 and self.values.is_certain(function, scope)

    def check_assigned(self, owners: Paths, name: str, line: int) -> None:
        """Report an attribute that the program assigns and libraries rely on: a name of a module, or a setting."""
        if name == "name":
            self.renamed[line] = None
        if name in _FUNCTION_DATA:
            self.report.add_lookup(name, line)
        for root in sorted(self.program.roots & ASSIGNED_EFFECTS.keys()):
            if name in ASSIGNED_EFFECTS[root]:
                self.report.add_effect(ASSIGNED_EFFECTS[root][name], f"{root}.{name}", line)
        for owner in sorted(owners):
            is_library = owner == OWN_MODULE or (self.is_module(owner) and owner != "__main__")
            if is_library and f"{owner}.{name}" not in SETTINGS and not name.isupper():
                self.report.add_lookup(f"{owner}.{name} replaced", line)

    def has_node(self, test: Callable[[ast.AST], bool], *kinds: type[ast.AST]) -> bool:
        """Return True if some node of these kinds passes the test; the result is cached."""
        if test not in self.node_tests:
            self.node_tests[test] = any(test(node) for node, _ in self.program.visits if type(node) in kinds)
        return self.node_tests[test]

    def targets(self, function: ast.expr, scope: Scope) -> list[str]:
        """Return the targets of a call: the path it is a method of, and its arguments."""
        call = self.callers.get(id(function))
        if call is None:
            return []
        keywords = [word.value for word in call.keywords if word.arg in _TARGET_WORDS]
        nodes = [*call.args[:3], *keywords]
        if isinstance(function, ast.Attribute) and "pathlib.Path()" in self.values.paths(function.value, scope):
            nodes.insert(0, function.value)
        return [self.target(node, scope) for node in nodes]

    def target(self, node: ast.expr, scope: Scope) -> str:
        """Return the text of `node` if it is known, otherwise a sensitive guess or ""."""
        values = self.folder.possible(node, scope)
        texts = [text for text in values if isinstance(text, str)]
        if texts:
            self.report.has_unknown_targets |= len(values) > 1
            return " | ".join(sorted(texts)[:8]) if len(texts) > 1 else texts[0]
        guesses = self.folder.guesses(node, scope)
        guess = next((guess for guess in guesses if resolve(guess, None).sensitive), "")
        self.report.has_unknown_targets |= bool(guess)
        return guess

    def allow_module(self, node: ast.expr | None) -> None:
        """Allow `node` to be a module, because it is bound to a name that is followed."""
        pending = [node]
        while pending:
            current = pending.pop()
            if current is None:
                continue
            self.aliased.add(id(current))
            if isinstance(current, ast.IfExp):
                pending += [current.body, current.orelse]
            elif isinstance(current, ast.BoolOp):
                pending += current.values
            elif isinstance(current, ast.NamedExpr):
                pending.append(current.value)

    def attribute_name(self, name: str, base: ast.expr, scope: Scope, line: int) -> None:
        """Check an attribute by its name, and by the owner if it belongs to the program."""
        if name in INTERNALS or (name in TRAVERSALS and self.is_foreign(base, scope)):
            self.report.add_violation(ViolationKind.REFLECT, name, line)

    def is_foreign(self, node: ast.expr, scope: Scope) -> bool:
        """Return True if a value is a literal, or belongs to the language or a library."""
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        if isinstance(node, _LITERALS + _LITERAL_LOOPS):
            return True
        if isinstance(node, ast.Call):
            paths = self.values.paths(node.func, scope)
            if "type" in paths and node.args:
                return self.is_foreign(node.args[0], scope)
            return bool(paths & BUILTINS - {"super", "type", "vars"})
        return isinstance(node, ast.Name) and self._language(node, scope)

    def lists_foreign_class(self, node: ast.expr, scope: Scope) -> bool:
        """Return True for `type(value)` of a value that is no object of the program: its class holds descriptors."""
        is_type = isinstance(node, ast.Call) and "type" in self.values.paths(node.func, scope) and len(node.args) == 1
        return is_type and isinstance(node, ast.Call) and not self._is_own_instance(node.args[0])

    def _is_own_instance(self, node: ast.expr) -> bool:
        """Return True if a value may be an object of a class of the program, and not a function or a result."""
        return isinstance(node, ast.Name) and node.id not in self.program.functions and bool(self.program.classes)

    def _language(self, node: ast.Name, scope: Scope) -> bool:
        homes, _ = self.program.lookup(node.id, scope)
        paths = self.values.paths_of_name(node.id, scope)
        return (not homes and bool(paths)) or any(path in self.program.modules for path in paths)

    def is_own_class(self, node: ast.expr, scope: Scope) -> bool:
        """Return True if `node` is a class that the program defines, or the class of its own object."""
        if isinstance(node, ast.Name):
            own = node.id in ("cls", "klass") or node.id in self.program.classes
            return own and not self.values.paths_of_name(node.id, scope)
        if isinstance(node, ast.Attribute):
            return node.attr == "__class__" and isinstance(node.value, ast.Name) and not self.is_foreign(node, scope)
        return isinstance(node, ast.Call) and "type" in self.values.paths(node.func, scope) and len(node.args) == 1

    def reads_fact(self, attributes: list[str], index: int) -> bool:
        """Return True if `f.__code__` or `x.__class__` is only read for a harmless fact."""
        facts = _FACTS.get(attributes[index], frozenset())
        return bool(facts.intersection(attributes[index + 1 : index + 2]))

    def is_obfuscated(self, node: ast.expr, scope: Scope) -> bool:
        """Return True if a text is composed in a way that hides it."""
        return self._derives_from(_is_obfuscation, node, scope)

    def is_composed(self, node: ast.expr, scope: Scope) -> bool:
        """Return True if a text is composed while the program runs, so that its parts do not say what it names."""
        sliced = any(isinstance(part, ast.Slice) for part in descendants(node))
        return sliced or self._derives_from(_is_composition, node, scope)

    def _derives_from(self, test: Callable[[ast.AST], bool], node: ast.expr, scope: Scope) -> bool:
        if not self.has_node(test, ast.Call, ast.Slice, ast.BinOp, ast.JoinedStr):
            return False
        if test not in self.derived:
            self.derived[test] = _derived_names(self.program, test)
        return any(map(test, descendants(node))) or any(
            (id(home), name) in self.derived[test] for home, name in _names_in(self.program, node, scope)
        )


_FUNCTION_DATA = words("__defaults__ __kwdefaults__ fromkeys fromfile_prefix_chars")
"""Attributes that change what a function of a library does."""
_HIDDEN_MODULE = re.compile(rf"(?<!\w)_(?:{'|'.join(sorted(REACHABLE_MODULES))})(?!\w)")
ENVIRONS = frozenset({"os.environ", "os.environb"})
_ONE_VARIABLE = words("get pop setdefault update clear keys __getitem__ __setitem__ __delitem__ __contains__ __len__")


def _is_whole_environment(path: str) -> bool:
    """Return True if `path` is the environment and not one variable of it."""
    owner, _, method = path.rpartition(".")
    return path in ENVIRONS or (owner in ENVIRONS and method not in _ONE_VARIABLE)


def has_module_name(text: str) -> bool:
    """Return True if a text contains the name of a module as a private attribute."""
    return _HIDDEN_MODULE.search(text) is not None


_FACTS = {"__code__": CODE_FACTS, "__class__": CLASS_FACTS}
_ALIASED_BUILTINS = frozenset({"getattr", "setattr", "delattr"})
"""Builtins that may get another name, because calls by that name are checked the same way."""
_TARGET_WORDS = words("path file filename name url src dst fname file_path filepath filepath_or_buffer")


Key = tuple[int, str]


def _derived_names(program: Program, test: Callable[[ast.AST], bool]) -> set[Key]:
    """Return every name whose value contains a node that passes the test, or derives from such a name."""
    pending: list[Key] = []
    users: dict[Key, list[Key]] = {}
    for scope in program.scopes:
        for name, bindings in scope.names.items():
            key = (id(scope), name)
            if any(test(part) for binding in bindings for node in _sources(binding) for part in descendants(node)):
                pending.append(key)
            for used in _used_names(program, bindings):
                users.setdefault(used, []).append(key)
    derived: set[Key] = set()
    while pending:
        key = pending.pop()
        if key not in derived:
            derived.add(key)
            pending += users.get(key, [])
    return derived


def _used_names(program: Program, bindings: list[Binding]) -> Iterator[Key]:
    for binding in bindings:
        yield from ((id(program.call_arguments), key) for key in binding.call_arguments)
        for node in _sources(binding):
            scope = binding.scope or program.module
            yield from ((id(home), name) for home, name in _names_in(program, node, scope))


def _names_in(program: Program, node: ast.expr, scope: Scope) -> Iterator[tuple[Scope, str]]:
    for part in descendants(node):
        if isinstance(part, ast.Name):
            yield from ((home, part.id) for home in program.lookup(part.id, scope)[0])
            yield program.results, part.id
        elif isinstance(part, ast.Attribute):
            yield program.results, part.attr
            yield program.fields, part.attr


def _sources(binding: Binding) -> list[ast.expr]:
    augmented = binding.augments.value if binding.augments is not None else None
    return [node for node in (binding.value, binding.iterates, augmented) if node is not None]


def _is_obfuscation(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        func = node.func
        name = func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""
        return name in OBFUSCATORS
    if isinstance(node, ast.Slice):
        return isinstance(node.step, ast.UnaryOp)
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitXor)


_COMPOSING = OBFUSCATORS | words("""
join format format_map replace lower upper title capitalize swapcase casefold strip lstrip rstrip removeprefix
removesuffix center ljust rjust zfill partition rpartition split rsplit expandtabs sub dir
""")
_PREFIX = "_"


def _is_composition(node: ast.AST) -> bool:
    """Return True for an operation that makes a text of others; `"_" + name` only marks a name as private."""
    if isinstance(node, ast.Call):
        func = node.func
        return (func.id if isinstance(func, ast.Name) else getattr(func, "attr", "")) in _COMPOSING
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod | ast.Mult):
        return not (isinstance(node.left, ast.Constant) and node.left.value == _PREFIX)
    if isinstance(node, ast.JoinedStr):
        return not (
            len(node.values) == 2 and isinstance(node.values[0], ast.Constant) and node.values[0].value == _PREFIX
        )
    return False
