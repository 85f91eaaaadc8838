"""What the rules over a syntax tree share: the program, what its names mean, the findings so far."""

import ast
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from qwed.guards._python.attributes import CLASS_FACTS, CODE_FACTS, INNER, WALKS
from qwed.guards._python.fold import Folder
from qwed.guards._python.report import PythonReport, rule_of
from qwed.guards._python.scopes import Binding, Program, Scope
from qwed.guards._python.tables import BUILTINS, PARENTS, RULES, words
from qwed.guards._python.values import POWERFUL, REROOTED, Values
from qwed.guards.code_words import ENVIRONMENT, Danger
from qwed.guards.path import resolve
from qwed.words import EffectKind

LIBRARIES = sys.stdlib_module_names - {"antigravity", "test", "idlelib", "lib2to3"}
_NO_MODULE = re.compile(r"(?:.*\.)?[A-Z_]\w*|.*\(\).*|loguru\.logger")
_MODULES = {name for name in PARENTS | (LIBRARIES - RULES.keys()) if not _NO_MODULE.fullmatch(name) or name == "PIL"}
_LITERALS = (ast.Constant, ast.JoinedStr, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.Lambda)
_LITERAL_LOOPS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
OBFUSCATORS = words(
    """chr bytes bytearray decode b64decode b32decode b16decode b85decode a85decode unhexlify a2b_hex a2b_base64 fromhex
    translate decompress input reversed from_bytes to_bytes urlsafe_b64decode raw_input"""
)


@dataclass(slots=True)
class Look:
    """One reading of one program."""

    program: Program
    values: Values
    folder: Folder
    report: PythonReport = field(default_factory=PythonReport)
    done: set[int] = field(default_factory=set)
    """Nodes that their parent has judged, by id."""
    renamed: set[int] = field(default_factory=set)
    """Nodes that only give a module another name, by id."""
    typed: set[int] = field(default_factory=set)
    """Nodes that only say which kind a value is, by id."""
    excused: set[int] = field(default_factory=set)
    """Nodes where a name from elsewhere is ordinary, by id."""
    callers: dict[int, ast.Call] = field(default_factory=dict)
    """The call of which a node is the function, by id."""
    spelled: set[int] = field(default_factory=set)
    """Calls such as `object.__setattr__(self, "x", 1)` whose attribute has been judged, by the id of the function."""
    computed: dict[int, str] = field(default_factory=dict)
    """Lines on which an attribute is looked up by a name nobody can tell, and by what."""
    hiding: set["Key"] | None = None
    """The names that hide a text, once somebody asked."""
    inner_texts: dict[str, int] = field(default_factory=dict)
    """Texts that name an inner attribute, and their lines."""
    said: dict[Callable[[ast.AST], bool], bool] = field(default_factory=dict)
    """What was asked about the whole program."""
    evaluated: dict[int, str] = field(default_factory=dict)
    """Lines on which annotations are evaluated, and by what."""
    annotations: dict[int, None] = field(default_factory=dict)
    """Lines on which annotations are put in that are written nowhere as such."""

    def use(self, path: str, node: ast.expr, scope: Scope) -> None:
        """Judge a library name that the code holds."""
        if id(node) in self.typed or (id(node) in self.renamed and path in _FOLLOWED):
            return
        if id(node) not in self.renamed and _whole(path):
            self.report.effect(EffectKind.SECRET, ENVIRONMENT, node.lineno)
            return
        if not self.is_module(path):
            self.mention(path, node, scope)
        elif id(node) not in self.renamed:
            self._handed_on(path, node.lineno)

    def listed(self, path: str) -> bool:
        """Whether a row speaks of `path` and says something grave."""
        rule = rule_of(path)
        return not rule.unknown and (rule.danger is not None or bool(rule.effects)) and not self.is_module(path)

    def is_module(self, path: str) -> bool:
        """Whether a dotted name is a module, as far as the program and the tables tell."""
        return path in self.program.modules or path in _MODULES

    def mention(self, path: str, node: ast.expr, scope: Scope) -> None:
        """Judge a library name that is no module."""
        rule = rule_of(path)
        if rule.danger is not None or rule.effects:
            self.report.judged(path, rule, node.lineno, self.targets(node, scope) if rule.effects else [])

    def _handed_on(self, path: str, line: int) -> None:
        """A module as a value: whoever gets it can use all of it."""
        rule = rule_of(path)
        if rule.danger is not None or path.partition(".")[0] in POWERFUL:
            self.report.danger(rule.danger or Danger.REFLECT, path, line)
            return
        # A harmless module leads to others only through an attribute that is called like one.
        told = self.program.attributes & REROOTED or self.says(_names_module)
        unknown = (EffectKind.UNRESOLVED,) if told else ()
        for kind in rule.effects or unknown:
            self.report.effect(kind, path, line)

    def says(self, test: Callable[[ast.AST], bool]) -> bool:
        """Whether some node of the program passes the test; looked for once."""
        if test not in self.said:
            self.said[test] = any(test(node) for node, _ in self.program.visits)
        return self.said[test]

    def targets(self, function: ast.expr, scope: Scope) -> list[str]:
        """What a call names: the path it is a method of, or its arguments."""
        call = self.callers.get(id(function))
        if call is None:
            return []
        named = [word.value for word in call.keywords if word.arg in _TARGET_WORDS]
        nodes = [*call.args[:3], *named]
        if isinstance(function, ast.Attribute) and "pathlib.Path()" in self.values.paths(function.value, scope):
            nodes.insert(0, function.value)
        return [self.target(node, scope) for node in nodes]

    def target(self, node: ast.expr, scope: Scope) -> str:
        """The text of `node` where it is known, or a guess where that is sensitive."""
        texts = [text for text in self.folder.possible(node, scope) if isinstance(text, str)]
        if texts:
            return " | ".join(sorted(texts)[:8]) if len(texts) > 1 else texts[0]
        guesses = self.folder.guesses(node, scope)
        return next((guess for guess in guesses if resolve(guess, None).sensitive), "")

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

    def attribute_name(self, name: str, base: ast.expr, scope: Scope, line: int) -> None:
        """Judge an attribute by its name alone, and by whether its owner is the program's own."""
        if name in INNER or (name in WALKS and self.foreign(base, scope)):
            self.report.danger(Danger.REFLECT, name, line)

    def foreign(self, node: ast.expr, scope: Scope) -> bool:
        """Whether a value is a literal, or belongs to the language or a library."""
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        if isinstance(node, _LITERALS + _LITERAL_LOOPS):
            return True
        if isinstance(node, ast.Call):
            paths = self.values.paths(node.func, scope)
            if "type" in paths and node.args:
                return self.foreign(node.args[0], scope)
            return bool(paths & BUILTINS - {"super", "type", "vars"})
        return isinstance(node, ast.Name) and self._language(node, scope)

    def _language(self, node: ast.Name, scope: Scope) -> bool:
        homes, _ = self.program.lookup(node.id, scope)
        paths = self.values.named(node.id, scope)
        return (not homes and bool(paths)) or any(path in self.program.modules for path in paths)

    def own_class(self, node: ast.expr, scope: Scope) -> bool:
        """Whether `node` is a class that the program defines, or the class of its own object."""
        if isinstance(node, ast.Name):
            own = node.id in ("cls", "klass") or node.id in self.program.classes
            return own and not self.values.named(node.id, scope)
        if isinstance(node, ast.Attribute):
            return node.attr == "__class__" and isinstance(node.value, ast.Name) and not self.foreign(node, scope)
        return isinstance(node, ast.Call) and "type" in self.values.paths(node.func, scope) and len(node.args) == 1

    def reads_fact(self, attributes: list[str], index: int) -> bool:
        """Whether `f.__code__` or `x.__class__` is only asked for a fact."""
        facts = _FACTS.get(attributes[index], frozenset())
        return bool(facts.intersection(attributes[index + 1 : index + 2]))

    def hidden(self, node: ast.expr, scope: Scope) -> bool:
        """Whether a text is put together in a way that hides it."""
        if not self.says(_hiding):
            return False
        if self.hiding is None:
            self.hiding = hiding_names(self.program)
        return _hides(node) or any((id(home), name) in self.hiding for home, name in _parts(self.program, node, scope))


_HIDDEN_MODULE = re.compile(rf"(?<!\w)_(?:{'|'.join(sorted(REROOTED))})(?!\w)")
ENVIRONS = frozenset({"os.environ", "os.environb"})
_ONE_VARIABLE = words("get pop setdefault update clear keys __getitem__ __setitem__ __delitem__ __contains__ __len__")


def _whole(path: str) -> bool:
    """Whether what is held is the environment and not one variable of it."""
    held, _, method = path.rpartition(".")
    return path in ENVIRONS or (held in ENVIRONS and method not in _ONE_VARIABLE)


def _names_module(node: ast.AST) -> bool:
    """A text names a module as a private attribute: `"_os"`, `"_os.system"`."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and names_module(node.value)


def names_module(text: str) -> bool:
    """Whether a text holds the name of a module as a private attribute."""
    return _HIDDEN_MODULE.search(text) is not None


def lists_names(node: ast.AST) -> bool:
    """It goes through the names of something: a module's own imports are among them."""
    return isinstance(node, ast.Name) and node.id == "dir"


_FACTS = {"__code__": CODE_FACTS, "__class__": CLASS_FACTS}
_FOLLOWED = frozenset({"getattr", "setattr", "delattr"})
"""Builtins that may be given another name, since calls of that name are judged alike."""
_TARGET_WORDS = words("path file filename name url src dst fname file_path filepath filepath_or_buffer")


Key = tuple[int, str]


def hiding_names(program: Program) -> set[Key]:
    """Every name whose value is put together in a way that hides it, or comes from one that is."""
    found: list[Key] = []
    users: dict[Key, list[Key]] = {}
    for scope in program.scopes:
        for name, bindings in scope.names.items():
            key = (id(scope), name)
            if any(_hides(node) for binding in bindings for node in _sources(binding)):
                found.append(key)
            for used in _used(program, bindings):
                users.setdefault(used, []).append(key)
    hiding: set[Key] = set()
    while found:
        key = found.pop()
        if key not in hiding:
            hiding.add(key)
            found += users.get(key, [])
    return hiding


def _used(program: Program, bindings: list[Binding]) -> Iterator[Key]:
    for binding in bindings:
        yield from ((id(program.handed), key) for key in binding.handed)
        for node in _sources(binding):
            scope = binding.scope or program.module
            yield from ((id(home), name) for home, name in _parts(program, node, scope))


def _parts(program: Program, node: ast.expr, scope: Scope) -> Iterator[tuple[Scope, str]]:
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield from ((home, part.id) for home in program.lookup(part.id, scope)[0])
            yield program.results, part.id
        elif isinstance(part, ast.Attribute):
            yield program.results, part.attr
            yield program.fields, part.attr


def _sources(binding: Binding) -> list[ast.expr]:
    grown = binding.grows.value if binding.grows is not None else None
    return [node for node in (binding.value, binding.each, grown) if node is not None]


def _hides(node: ast.expr) -> bool:
    return any(_hiding(part) for part in ast.walk(node))


def _hiding(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        func = node.func
        name = func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""
        return name in OBFUSCATORS
    if isinstance(node, ast.Slice):
        return isinstance(node.step, ast.UnaryOp)
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitXor)
