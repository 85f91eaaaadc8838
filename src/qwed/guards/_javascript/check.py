"""Rules over a JavaScript program with resolved values, one for each relevant kind of node."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from qwed.guards._javascript import sinks
from qwed.guards._javascript.abstract_values import ANY, NO_VALUE, Const, Func, Path, Value, paths, texts
from qwed.guards._javascript.calls import arguments_of, callee_of
from qwed.guards._javascript.effect_targets import targets_of
from qwed.guards._javascript.fixpoint import ValueResolver
from qwed.guards._javascript.module_paths import (
    UNKNOWN_FUNCTION,
    UNKNOWN_PACKAGE,
    UNKNOWN_PROPERTIES,
    display_path,
    is_asset,
    is_global,
    is_namespace,
    is_remote,
    module_path,
    rule_of,
)
from qwed.guards._javascript.node_context import (
    descendants,
    is_assigned,
    is_called,
    is_inherited,
    is_passed_to_call,
    is_plain_call,
    is_read,
    is_tested,
    outermost,
    unwrap,
)
from qwed.guards._javascript.rules import UNKNOWN, Rule, words
from qwed.guards._javascript.syntax_tree import ParsedScript, SyntaxNode
from qwed.guards._javascript.tables import METHODS, RULES
from qwed.guards.code_findings import CodeReport, ViolationKind
from qwed.model import EffectKind

_POLLUTION = re.compile(
    r"""["']__proto__["']\s*:|\[__proto__\]|\A__proto__[.\[]|\A(?:\w+\.)?constructor\.prototype\b|["']constructor["']\s*:\s*\{\s*["']prototype["']"""
)
_RENAMING = words("""
variable_declarator assignment_expression assignment_pattern pair array return_statement arrow_function
ternary_expression expression_statement export_statement field_definition public_field_definition object
object_assignment_pattern sequence_expression required_parameter optional_parameter augmented_assignment_expression
""")
_HOLDING = words("pair array export_statement")
_PROPERTY_NODES = words("member_expression subscript_expression")


def check(source: ParsedScript, values: ValueResolver, report: CodeReport) -> None:
    """Report what the program would do."""
    checker = Checker(values, report)
    for node in source.nodes:
        rule = _RULES_OF.get(node.kind)
        if rule is not None:
            rule(checker, node)


@dataclass(slots=True)
class Checker:
    """Report of one program, and the values it is based on."""

    values: ValueResolver
    report: CodeReport
    seen: set[tuple[int, str]] = field(default_factory=set)

    def reference(self, node: SyntaxNode) -> None:
        """Check a name that is read."""
        if not is_read(node):
            return
        if node.variable is None and not is_global(node.text) and not is_tested(node):
            self.report.add_effect(EffectKind.UNRESOLVED, node.text, node.line)
        self.report_use(node)

    def property_access(self, node: SyntaxNode) -> None:
        """Check a property access."""
        names = self.values.property_names(node)
        if "__proto__" in names and not is_tested(node) and not is_inherited(node):
            self.report.add_violation(ViolationKind.REFLECT, "__proto__", node.line)
        self.report_use(node)
        self._literal(node)
        if not paths(node.value or NO_VALUE):
            for name in names:
                self._method(node, name)

    def _literal(self, node: SyntaxNode) -> None:
        """Report `[][x]` with a computed name: no legitimate code looks up a property of an empty literal."""
        target, index = node.get("object"), node.get("index")
        if target is None or index is None or all(isinstance(atom, Const) for atom in index.value or ()):
            return
        target_node, owner = unwrap(target), index.get("object")
        if owner is not None and owner.text == "Symbol":
            return
        if _is_function(target) and (node.role == "function" or is_plain_call(node)):
            self.report.add_lookup("property of a function with a computed name", node.line)
        empty = target_node.kind in ("array", "object", "string", "template_string") and not target_node.children
        if empty or target_node.kind in ("function_expression", "arrow_function", "true", "false", "number", "regex"):
            self.report.add_violation(ViolationKind.REFLECT, "property with a computed name", node.line)

    def _method(self, node: SyntaxNode, name: str) -> None:
        rule = METHODS.get(name)
        if rule is None or any(isinstance(atom, Func) for atom in self.values.fields.get(name, NO_VALUE)):
            return
        if is_tested(node) or is_assigned(node):
            return
        self._apply(rule, name, node)

    def report_use(self, node: SyntaxNode) -> None:
        """Report the library names that `node` may be, depending on how they are used."""
        target = node.get("object")
        several = sum(map(is_namespace, paths(target.value or NO_VALUE))) > 1 if target is not None else False
        for path in paths(node.value or NO_VALUE):
            # If a name may stand for several libraries, only those with the property count.
            if not (
                several and path not in RULES and rule_of(path) == UNKNOWN and not path.startswith(UNKNOWN_PACKAGE)
            ):
                self._report_path(path, node)

    def _report_path(self, path: str, node: SyntaxNode) -> None:
        outer = outermost(node)
        parent = outer.parent
        if parent is None or (parent.kind in _PROPERTY_NODES and outer.role == "object") or is_tested(outer):
            return
        if path in UNKNOWN_PROPERTIES:
            self._unknown_property(path, outer, parent)
            return
        self._passed_constructor(path, outer, parent)
        if is_assigned(outer):
            self._check_assignment_target(path, node)
        elif outer.role in ("function", "constructor") and parent.kind in ("call_expression", "new_expression"):
            called_path = "?.constructor()" if path == "?.constructor" and is_plain_call(parent) else path
            self._apply(rule_of(called_path), called_path, node)
        elif not is_namespace(path) or not self._is_only_aliased(path, outer, parent):
            self._apply(rule_of(path), path, node)

    def _unknown_property(self, path: str, outer: SyntaxNode, parent: SyntaxNode) -> None:
        if path == UNKNOWN_FUNCTION and is_called(outer, parent):
            self.report.add_lookup("call of a property with an unknown name", outer.line)

    def _passed_constructor(self, path: str, outer: SyntaxNode, parent: SyntaxNode) -> None:
        """Report the constructor of an unknown value that is stored, or passed to a function that calls it."""
        if path == "?.constructor" and (parent.kind in ("pair", "array") or is_passed_to_call(outer, parent)):
            self.report.add_lookup("constructor as a value", outer.line)

    def _is_only_aliased(self, path: str, outer: SyntaxNode, parent: SyntaxNode) -> bool:
        """Return True if a module, or a name without effect until it is called, only gets another name."""
        # Stored in an object or array, the whole environment is passed on with it.
        if path == "Function" and parent.kind in ("pair", "array") and outer.kind != "identifier":
            return False
        if path == "process.env" and (parent.kind in _HOLDING or outer.kind == "shorthand_property_identifier"):
            return False
        if parent.kind in _RENAMING or outer.kind == "shorthand_property_identifier":
            return path != "Function" or not (parent.kind in _RETURNING or _is_mixed(parent))
        if parent.kind == "binary_expression":
            return any(word in ("||", "&&", "??") for word in parent.words)
        call = parent.parent
        if parent.kind != "arguments" or call is None:
            # A subclass of Function creates functions from text.
            inherits = parent.kind in ("extends_clause", "class_heritage") and path != "Function"
            return inherits or parent.kind.startswith("jsx_") or parent.kind == "export_specifier"
        callee = callee_of(call)
        callee_value: Value = callee.value if callee is not None and callee.value else NO_VALUE
        method = callee.get("property") if callee is not None else None
        if path == "Function" and method is not None and method.text in _TYPE_TESTS:
            return True
        if any(isinstance(atom, Func) for atom in callee_value):
            return True
        harmless = [
            callee_path
            for callee_path in paths(callee_value)
            if rule_of(callee_path) == Rule() and not callee_path.startswith("Reflect.")
        ]
        return bool(harmless) and path in _PASSED

    def _check_assignment_target(self, path: str, node: SyntaxNode) -> None:
        rule = rule_of(path)
        reported = rule.effect in (EffectKind.SECRET, EffectKind.UNRESOLVED) or rule.violation is ViolationKind.REFLECT
        if reported or path.startswith("Image()"):
            self._apply(rule, path, node)

    def _apply(self, rule: Rule, path: str, node: SyntaxNode) -> None:
        self.report.subject = display_path(path)
        self._apply_rule(rule, path, node)
        self.report.subject = ""

    def _apply_rule(self, rule: Rule, path: str, node: SyntaxNode) -> None:
        if rule.violation is not None:
            self.report.add_violation(rule.violation, display_path(path), node.line)
        if rule.violation is ViolationKind.PROCESS:
            for kind, target in targets_of(EffectKind.EXECUTE, path, node):
                self.report.add_effect(kind, target or display_path(path), node.line)
        if rule.effect is EffectKind.UNRESOLVED:
            self.report.add_effect(rule.effect, display_path(path), node.line)
        elif rule.effect is not None:
            for kind, target in targets_of(rule.effect, path, node):
                self.report.add_effect(kind, target or display_path(path), node.line)

    def call(self, node: SyntaxNode) -> None:
        """Check a call or `new`."""
        callee = callee_of(node)
        if callee is None:
            return
        arguments = arguments_of(node)
        callee_paths = paths(callee.value or NO_VALUE)
        method = callee.get("property")
        if callee.kind == "import" or any(
            path.removesuffix(".call").removesuffix(".apply") == "require" for path in callee_paths
        ):
            self._check_import_call(
                node, arguments[1:] if any(path.endswith(("call", "apply")) for path in callee_paths) else arguments
            )
        elif method is not None and method.text == "require":
            for module in texts(arguments[0].value or NO_VALUE) if arguments else ():
                self._check_module(module, node.line)
        sinks.check_call(self.values, self.report, node)
        for path in paths(node.value or NO_VALUE):
            if path == UNKNOWN_FUNCTION:
                self._report_path(path, node)
            imported = path.startswith(UNKNOWN_PACKAGE) or (is_namespace(path) and path not in ("Function", "require"))
            if imported or path.endswith(".*") or rule_of(path).violation is not None:
                self._report_path(path, node)

    def _check_import_call(self, node: SyntaxNode, arguments: list[SyntaxNode]) -> None:
        """Check `require` and `import()`."""
        value: Value = arguments[0].value if arguments and arguments[0].value else frozenset({ANY})
        if any(not isinstance(atom, Const) for atom in value):
            self.report.add_violation(ViolationKind.DYNAMIC, "import with a computed name", node.line)
        for module in texts(value):
            if is_remote(module):
                self.report.add_violation(ViolationKind.DYNAMIC, "import from an address", node.line)
            else:
                self._check_module(module, node.line)

    def _check_module(self, module: str, line: int) -> None:
        self.report.imports[module.removeprefix("node:")] = None
        if is_asset(module):
            return
        if module.endswith(".json"):
            self.report.add_effect(EffectKind.READ, module, line)
            return
        if module.endswith((".node", ".wasm")):
            self.report.add_violation(ViolationKind.DYNAMIC, module, line)
        path = module_path(module)
        rule = rule_of(path)
        if rule.violation is not None:
            self.report.add_violation(rule.violation, display_path(path), line)
        elif path.startswith(UNKNOWN_PACKAGE):
            self.report.add_effect(EffectKind.UNRESOLVED, module, line)

    def imports(self, node: SyntaxNode) -> None:
        """Check `import` and `export ... from`."""
        clause = next((child for child in node.children if child.get("source") is not None), None)
        source = node.get("source") or (clause.get("source") if clause is not None else None)
        if source is None or "type" in node.words:
            return
        module = "".join(child.text for child in source.children)
        self._check_module(module, node.line)
        if len(node.children) == 1 and rule_of(module_path(module)).effect is EffectKind.SECRET:
            self.report.add_effect(EffectKind.SECRET, module, node.line)
        for child in descendants(node):
            if child.kind in ("import_specifier", "export_specifier"):
                name = child.get("name")
                for path in (
                    paths(self.values.member(frozenset({Path(module_path(module))}), name.text)) if name else ()
                ):
                    if rule_of(path).violation is not None and not is_namespace(path):
                        self._apply(rule_of(path), path, child)

    def text(self, node: SyntaxNode) -> None:
        """Report a string that contains a prototype-polluting object."""
        for text in texts(node.value or NO_VALUE):
            if "proto" in text and _POLLUTION.search(text):
                self.report.add_violation(ViolationKind.REFLECT, "__proto__ in text", node.line)

    def pair(self, node: SyntaxNode) -> None:
        """Check an entry of an object."""
        key = node.get("key")
        names = self.values.key_names(key)
        if key is not None and key.kind == "computed_property_name" and "__proto__" in names:
            self.report.add_violation(ViolationKind.REFLECT, "__proto__", node.line)
        value = node.get("value")
        if "__html" in names and value is not None:
            sinks.check_html(self.report, value, "dangerouslySetInnerHTML")

    def with_statement(self, node: SyntaxNode) -> None:
        """Report `with`, inside which every name may be a property."""
        self.report.add_violation(ViolationKind.REFLECT, "with", node.line)

    def assignment(self, node: SyntaxNode) -> None:
        """Check the target of an assignment."""
        sinks.check_assignment(self.values, self.report, node)

    def attribute(self, node: SyntaxNode) -> None:
        """Check an attribute of an element."""
        sinks.check_attribute(self.report, node)


def _is_function(node: SyntaxNode) -> bool:
    """Return True if a value can only be a function of the program."""
    value: Value = node.value or NO_VALUE
    return bool(value) and all(isinstance(atom, Func) and "function" in atom.node.kind for atom in value)


def _is_mixed(array: SyntaxNode) -> bool:
    """Return True if an array holds more than types; `[String, Function]` only names types."""
    return array.kind == "array" and not all(child.text[:1].isupper() for child in array.children)


_RETURNING = words("return_statement arrow_function ternary_expression")
_TYPE_TESTS = words("any a an instanceOf instanceof isInstanceOf toBeInstanceOf")
_PASSED = words("Function require globalThis document console")


_RULES_OF: dict[str, Callable[[Checker, SyntaxNode], None]] = {
    "identifier": Checker.reference,
    "shorthand_property_identifier": Checker.reference,
    "member_expression": Checker.property_access,
    "subscript_expression": Checker.property_access,
    "call_expression": Checker.call,
    "new_expression": Checker.call,
    "import_statement": Checker.imports,
    "export_statement": Checker.imports,
    "string": Checker.text,
    "template_string": Checker.text,
    "pair": Checker.pair,
    "with_statement": Checker.with_statement,
    "assignment_expression": Checker.assignment,
    "augmented_assignment_expression": Checker.assignment,
    "jsx_attribute": Checker.attribute,
}
