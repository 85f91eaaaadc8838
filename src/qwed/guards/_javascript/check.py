"""The rules over a JavaScript program whose values are known: each kind of node that can mean something has one."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from qwed.guards._javascript import sinks
from qwed.guards._javascript.atoms import ANY, NOTHING, Const, Func, Path, Value, paths, texts
from qwed.guards._javascript.calls import arguments_of, callee_of
from qwed.guards._javascript.names import (
    STRANGE,
    is_asset,
    is_global,
    is_namespace,
    is_remote,
    module_path,
    rule_of,
    shown,
)
from qwed.guards._javascript.positions import (
    descendants,
    is_assigned,
    is_inherited,
    is_plain_call,
    is_read,
    is_tested,
    topmost,
    unwrapped,
)
from qwed.guards._javascript.rules import UNKNOWN, Rule, words
from qwed.guards._javascript.tables import METHODS, RULES
from qwed.guards._javascript.targets import targets_of
from qwed.guards._javascript.tree import Node, Source
from qwed.guards._javascript.values import Values
from qwed.guards.code_words import Danger, Report
from qwed.words import EffectKind

_POLLUTION = re.compile(
    r"""["']__proto__["']\s*:|\[__proto__\]|\A__proto__[.\[]|\A(?:\w+\.)?constructor\.prototype\b|["']constructor["']\s*:\s*\{\s*["']prototype["']"""
)
_RENAMING = words("""
variable_declarator assignment_expression assignment_pattern pair array return_statement arrow_function
ternary_expression expression_statement export_statement field_definition public_field_definition object
object_assignment_pattern sequence_expression required_parameter optional_parameter augmented_assignment_expression
""")
_HOLDING = words("pair array export_statement")
_PLACES = words("member_expression subscript_expression")


def check(source: Source, values: Values, report: Report) -> None:
    """Report what the program would do."""
    checker = Checker(values, report)
    for node in source.nodes:
        rule = _RULES_OF.get(node.kind)
        if rule is not None:
            rule(checker, node)


@dataclass(slots=True)
class Checker:
    """The report and what it is read off."""

    values: Values
    report: Report
    seen: set[tuple[int, str]] = field(default_factory=set)

    def reference(self, node: Node) -> None:
        """A name that is read."""
        if not is_read(node):
            return
        if node.variable is None and not is_global(node.text) and not is_tested(node):
            self.report.effect(EffectKind.UNRESOLVED, node.text, node.line)
        self.use(node)

    def place(self, node: Node) -> None:
        """A property."""
        names = self.values.property_names(node)
        if "__proto__" in names and not is_tested(node) and not is_inherited(node):
            self.report.danger(Danger.REFLECT, "__proto__", node.line)
        self.use(node)
        self._literal(node)
        if not paths(node.value or NOTHING):
            for name in names:
                self._method(node, name)

    def _literal(self, node: Node) -> None:
        """`[][x]` with a hidden name: nobody looks up a property of an empty literal."""
        target, index = node.get("object"), node.get("index")
        if target is None or index is None or all(isinstance(atom, Const) for atom in index.value or ()):
            return
        here, owner = unwrapped(target), index.get("object")
        if owner is not None and owner.text == "Symbol":
            return
        empty = here.kind in ("array", "object", "string", "template_string") and not here.children
        if empty or here.kind in ("function_expression", "arrow_function", "true", "false", "number", "regex"):
            self.report.danger(Danger.REFLECT, "property with a computed name", node.line)

    def _method(self, node: Node, name: str) -> None:
        rule = METHODS.get(name)
        if rule is None or any(isinstance(atom, Func) for atom in self.values.fields.get(name, NOTHING)):
            return
        if is_tested(node) or is_assigned(node):
            return
        self._apply(rule, name, node)

    def use(self, node: Node) -> None:
        """Judge the library names that `node` may be, by what is done with them."""
        target = node.get("object")
        several = sum(map(is_namespace, paths(target.value or NOTHING))) > 1 if target is not None else False
        for path in paths(node.value or NOTHING):
            # Of several libraries a name may stand for, only those that have the property are meant.
            if not (several and path not in RULES and rule_of(path) == UNKNOWN and not path.startswith(STRANGE)):
                self._use(path, node)

    def _use(self, path: str, node: Node) -> None:
        here = topmost(node)
        parent = here.parent
        if parent is None or (parent.kind in _PLACES and here.role == "object") or is_tested(here):
            return
        if is_assigned(here):
            self._assigned(path, node)
        elif here.role in ("function", "constructor") and parent.kind in ("call_expression", "new_expression"):
            called = "?.constructor()" if path == "?.constructor" and is_plain_call(parent) else path
            self._apply(rule_of(called), called, node)
        elif not is_namespace(path) or not self._is_renamed(path, here, parent):
            self._apply(rule_of(path), path, node)

    def _is_renamed(self, path: str, here: Node, parent: Node) -> bool:
        """Whether a module, or a name that does nothing until it is called, is only given another name."""
        # Inside of something else the whole environment goes where that goes.
        if path == "process.env" and (parent.kind in _HOLDING or here.kind == "shorthand_property_identifier"):
            return False
        if parent.kind in _RENAMING or here.kind == "shorthand_property_identifier":
            return path != "Function" or not (parent.kind in _GIVING or _is_mixed(parent))
        if parent.kind == "binary_expression":
            return any(word in ("||", "&&", "??") for word in parent.words)
        call = parent.parent
        if parent.kind != "arguments" or call is None:
            # A child of Function is a function made of text.
            inherits = parent.kind in ("extends_clause", "class_heritage") and path != "Function"
            return inherits or parent.kind.startswith("jsx_") or parent.kind == "export_specifier"
        callee = callee_of(call)
        known: Value = callee.value if callee is not None and callee.value else NOTHING
        method = callee.get("property") if callee is not None else None
        if path == "Function" and method is not None and method.text in _TYPE_TESTS:
            return True
        if any(isinstance(atom, Func) for atom in known):
            return True
        harmless = [each for each in paths(known) if rule_of(each) == Rule() and not each.startswith("Reflect.")]
        return bool(harmless) and path in _PASSED

    def _assigned(self, path: str, node: Node) -> None:
        rule = rule_of(path)
        told = rule.effect in (EffectKind.SECRET, EffectKind.UNRESOLVED) or rule.danger is Danger.REFLECT
        if told or path.startswith("Image()"):
            self._apply(rule, path, node)

    def _apply(self, rule: Rule, path: str, node: Node) -> None:
        if rule.danger is not None:
            self.report.danger(rule.danger, shown(path), node.line)
        if rule.danger is Danger.PROCESS:
            for kind, target in targets_of(EffectKind.EXECUTE, path, node):
                self.report.effect(kind, target or shown(path), node.line)
        if rule.effect is EffectKind.UNRESOLVED:
            self.report.effect(rule.effect, shown(path), node.line)
        elif rule.effect is not None:
            for kind, target in targets_of(rule.effect, path, node):
                self.report.effect(kind, target or shown(path), node.line)

    def call(self, node: Node) -> None:
        """A call or `new`."""
        callee = callee_of(node)
        if callee is None:
            return
        arguments = arguments_of(node)
        known = paths(callee.value or NOTHING)
        method = callee.get("property")
        if callee.kind == "import" or any(
            path.removesuffix(".call").removesuffix(".apply") == "require" for path in known
        ):
            self._loads(node, arguments[1:] if any(path.endswith(("call", "apply")) for path in known) else arguments)
        elif method is not None and method.text == "require":
            for module in texts(arguments[0].value or NOTHING) if arguments else ():
                self._imported(module, node.line)
        sinks.judge_call(self.values, self.report, node)
        for path in paths(node.value or NOTHING):
            imported = path.startswith(STRANGE) or (is_namespace(path) and path not in ("Function", "require"))
            if imported or path.endswith(".*") or rule_of(path).danger is not None:
                self._use(path, node)

    def _loads(self, node: Node, arguments: list[Node]) -> None:
        """`require` and `import()`."""
        value: Value = arguments[0].value if arguments and arguments[0].value else frozenset({ANY})
        if any(not isinstance(atom, Const) for atom in value):
            self.report.danger(Danger.DYNAMIC, "import with a computed name", node.line)
        for module in texts(value):
            if is_remote(module):
                self.report.danger(Danger.DYNAMIC, "import from an address", node.line)
            else:
                self._imported(module, node.line)

    def _imported(self, module: str, line: int) -> None:
        if is_asset(module):
            return
        if module.endswith(".json"):
            self.report.effect(EffectKind.READ, module, line)
            return
        if module.endswith((".node", ".wasm")):
            self.report.danger(Danger.DYNAMIC, module, line)
        path = module_path(module)
        rule = rule_of(path)
        if rule.danger is not None:
            self.report.danger(rule.danger, shown(path), line)
        elif path.startswith(STRANGE):
            self.report.effect(EffectKind.UNRESOLVED, module, line)

    def imports(self, node: Node) -> None:
        """`import` and `export ... from`."""
        clause = next((child for child in node.children if child.get("source") is not None), None)
        source = node.get("source") or (clause.get("source") if clause is not None else None)
        if source is None or "type" in node.words:
            return
        module = "".join(child.text for child in source.children)
        self._imported(module, node.line)
        if len(node.children) == 1 and rule_of(module_path(module)).effect is EffectKind.SECRET:
            self.report.effect(EffectKind.SECRET, module, node.line)
        for child in descendants(node):
            if child.kind in ("import_specifier", "export_specifier"):
                name = child.get("name")
                for path in (
                    paths(self.values.member(frozenset({Path(module_path(module))}), name.text)) if name else ()
                ):
                    if rule_of(path).danger is not None and not is_namespace(path):
                        self._apply(rule_of(path), path, child)

    def text(self, node: Node) -> None:
        """A string that carries a polluting object."""
        for text in texts(node.value or NOTHING):
            if "proto" in text and _POLLUTION.search(text):
                self.report.danger(Danger.REFLECT, "__proto__ in text", node.line)

    def pair(self, node: Node) -> None:
        """An entry of an object."""
        key = node.get("key")
        names = self.values.key_names(key)
        if key is not None and key.kind == "computed_property_name" and "__proto__" in names:
            self.report.danger(Danger.REFLECT, "__proto__", node.line)
        value = node.get("value")
        if "__html" in names and value is not None:
            sinks.judge_html(self.report, value, "dangerouslySetInnerHTML")

    def scoped(self, node: Node) -> None:
        """`with`: every name inside may be a property."""
        self.report.danger(Danger.REFLECT, "with", node.line)

    def assignment(self, node: Node) -> None:
        """What is written to."""
        sinks.judge_assignment(self.values, self.report, node)

    def attribute(self, node: Node) -> None:
        """An attribute of an element."""
        sinks.judge_attribute(self.report, node)


def _is_mixed(array: Node) -> bool:
    """Whether an array holds more than types: `[String, Function]` only names them."""
    return array.kind == "array" and not all(child.text[:1].isupper() for child in array.children)


_GIVING = words("return_statement arrow_function ternary_expression")
_TYPE_TESTS = words("any a an instanceOf instanceof isInstanceOf toBeInstanceOf")
_PASSED = words("Function require globalThis document console")


_RULES_OF: dict[str, Callable[[Checker, Node], None]] = {
    "identifier": Checker.reference,
    "shorthand_property_identifier": Checker.reference,
    "member_expression": Checker.place,
    "subscript_expression": Checker.place,
    "call_expression": Checker.call,
    "new_expression": Checker.call,
    "import_statement": Checker.imports,
    "export_statement": Checker.imports,
    "string": Checker.text,
    "template_string": Checker.text,
    "pair": Checker.pair,
    "with_statement": Checker.scoped,
    "assignment_expression": Checker.assignment,
    "augmented_assignment_expression": Checker.assignment,
    "jsx_attribute": Checker.attribute,
}
