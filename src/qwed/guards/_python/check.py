"""Rules over a Python syntax tree, one function for each relevant kind of node."""

import ast
from collections.abc import Callable

from qwed.guards._python import argument_rules, calls, methods, scope_builder, string_eval_calls
from qwed.guards._python.analysis import PythonAnalysis
from qwed.guards._python.annotations import TYPES, check_annotation, excuse, is_data_type, mark_type_only, mark_types
from qwed.guards._python.attributes import (
    ATTRIBUTE_CALLS,
    INTERNALS,
    PLAIN_PRIVATE,
    REACHING,
    SETTINGS,
)
from qwed.guards._python.class_fields import check_field_name, note_class_pattern, report_field_names
from qwed.guards._python.constant_folding import ConstantFolder
from qwed.guards._python.formats import check_formatted_text, check_text, note_formatted
from qwed.guards._python.library_rules import ASSUMED, BUILTINS, KNOWN_PREFIXES, RULES, words
from qwed.guards._python.module_names import PLAIN_MODULES
from qwed.guards._python.name_resolution import NO_PATHS, REACHABLE_MODULES, NameResolver, canonical_path
from qwed.guards._python.report import PythonReport, rule_of
from qwed.guards._python.scopes import Program, Scope
from qwed.guards._python.syntax import dotted_name
from qwed.guards.code_findings import ViolationKind
from qwed.model import EffectKind

_FUNCTIONS = {name for name in ASSUMED.values() if name.rpartition(".")[2].islower() and "." in name}


def check(program: Program) -> PythonReport:
    """Return the report on a whole module; raise TooComplexError if its names cannot be followed."""
    values = NameResolver(program)
    folder = ConstantFolder(program, values)
    values.texts = folder.texts
    values.resolve_all()
    analysis = PythonAnalysis(program, values, folder)
    rules_of = _RULES_OF.get
    for node, scope in program.visits:
        for rule in rules_of(type(node), ()):
            rule(analysis, node, scope)
    _report_computed_lookups(analysis)
    report_field_names(analysis)
    for line, what in analysis.evaluated.items() if analysis.annotations else ():
        analysis.report.add_violation(ViolationKind.DYNAMIC, f"{what} of annotations put in later", line)
    # Libraries compose code of annotations: dataclasses, attrs and pydantic among them.
    for line in analysis.annotations:
        analysis.report.add_lookup("__annotations__", line)
    del values.texts
    return analysis.report


def _report_computed_lookups(analysis: PythonAnalysis) -> None:
    """Report lookups by an unknown name if some text of the program names an interpreter attribute."""
    for line, what in analysis.computed_lookups.items() if analysis.inner_texts else ():
        analysis.report.add_violation(ViolationKind.REFLECT, f"{what} with a computed name", line)
        for text, where in analysis.inner_texts.items():
            analysis.report.add_violation(ViolationKind.REFLECT, text, where)


def _name(analysis: PythonAnalysis, node: ast.Name, scope: Scope) -> None:
    if not isinstance(node.ctx, ast.Load) or id(node) in analysis.handled:
        return
    if id(node) in analysis.callers:
        _undefined(analysis, node, scope)
    paths = analysis.values.paths_of_name(node.id, scope)
    # An assumed name counts as a module only if its attributes are used, and as a function only if it is called.
    assumed = bool(paths) and analysis.values.is_assumed(node.id, scope)
    for path in sorted(paths):
        if not assumed or (id(node) in analysis.callers and not analysis.is_module(path)):
            analysis.report_use(path, node, scope)


def _undefined(analysis: PythonAnalysis, node: ast.Name, scope: Scope) -> None:
    """Report an undefined name that is called, or whose attribute is, at module level; inside a function it may belong
    to another part of the program."""
    if id(node) in analysis.excused or analysis.values.is_defined(node.id, scope):
        return
    current: Scope | None = scope
    while current is not None and current.kind not in ("function", "class"):
        current = current.parent
    if current is None:
        analysis.report.add_effect(EffectKind.UNRESOLVED, node.id, node.lineno)


def _attribute(analysis: PythonAnalysis, node: ast.Attribute, scope: Scope) -> None:
    if id(node) in analysis.handled:
        return
    base, attributes = _chain(analysis, node)
    if "__annotations__" in attributes and (attributes[-1] in _CHANGING or not isinstance(node.ctx, ast.Load)):
        analysis.annotations[node.lineno] = None
    _check_attribute_names(analysis, node, base, attributes, scope)
    analysis.allow_module(base)
    paths = analysis.values.paths(node, scope)
    paths -= _assigned_settings(analysis, node, scope)
    _check_class_attribute(analysis, node, scope)
    assumed = isinstance(base, ast.Name) and analysis.values.is_assumed(base.id, scope)
    _check_inner_results(analysis, node, scope)
    for path in sorted(paths):
        if not assumed or _acts_as_assumed(analysis, path):
            analysis.report_use(path, node, scope)
    if isinstance(base, ast.Name) and id(node) in analysis.callers:
        _undefined(analysis, base, scope)
    if not paths:
        _method(analysis, node, attributes, scope)
    elif all(path.endswith("()") for path in paths):
        methods.report_method_of_result(analysis, node, scope)


_CHANGING = words("update setdefault __setitem__ __ior__")


def _acts_as_assumed(analysis: PythonAnalysis, path: str) -> bool:
    return analysis.has_effect(path) and path.rpartition(".")[0] not in _FUNCTIONS


def _assigned_settings(analysis: PythonAnalysis, node: ast.Attribute, scope: Scope) -> frozenset[str]:
    """Check an attribute that is assigned, and return the names that a program may set."""
    if isinstance(node.ctx, ast.Load):
        return NO_PATHS
    if not _is_own_object(node.value):
        analysis.check_assigned(analysis.values.paths(node.value, scope), node.attr, node.lineno)
    return SETTINGS


def _check_inner_results(analysis: PythonAnalysis, node: ast.Attribute, scope: Scope) -> None:
    """Check `result.attribute` within `result.attribute.method`."""
    inner = node.value
    while isinstance(inner, ast.Attribute):
        for path in sorted(analysis.values.paths(inner, scope)):
            if "()." in path and path in RULES:
                analysis.report_use(path, inner, scope)
        inner = inner.value


def _is_text(analysis: PythonAnalysis, node: ast.Attribute, scope: Scope) -> bool:
    return "str" in analysis.values.paths(node.value, scope)


def _check_class_attribute(analysis: PythonAnalysis, node: ast.Attribute, scope: Scope) -> None:
    if node.attr in ("format", "format_map") and id(node) not in analysis.callers and _is_text(analysis, node, scope):
        analysis.report.add_lookup("str.format", node.lineno)
    if node.attr == "__dict__" and analysis.lists_foreign_class(node.value, scope):
        analysis.report.add_lookup("__dict__ of a class", node.lineno)
    _check_initialiser(analysis, node, scope)


def _check_initialiser(analysis: PythonAnalysis, node: ast.Attribute, scope: Scope) -> None:
    """Report `value.__init__`, which makes a library's object anew; `Class.__init__` and `super().__init__` pass."""
    if node.attr != "__init__" or _is_own_object(node.value):
        return
    owner = node.value
    inherited = isinstance(owner, ast.Call) and "super" in analysis.values.paths(owner.func, scope)
    own = dotted_name(owner).rpartition(".")[2] in analysis.program.classes
    paths = analysis.values.paths(owner, scope)
    is_class = bool(paths) and all("(" not in path and path.rpartition(".")[2][:1].isupper() for path in paths)
    if not (inherited or own or is_class or paths & BUILTINS):
        analysis.report.add_lookup("__init__", node.lineno)


def _chain(analysis: PythonAnalysis, node: ast.Attribute) -> tuple[ast.expr, list[str]]:
    """Return `a.b.c` as a and [b, c], and mark the inner attributes as handled."""
    attributes, current = [node.attr], node.value
    while isinstance(current, ast.Attribute):
        analysis.handled.add(id(current))
        attributes.append(current.attr)
        current = current.value
    if isinstance(current, ast.Name):
        analysis.handled.add(id(current))
    return current, attributes[::-1]


def _check_attribute_names(
    analysis: PythonAnalysis, node: ast.Attribute, base: ast.expr, attributes: list[str], scope: Scope
) -> None:
    if REACHING.isdisjoint(attributes) and not any(attribute.startswith("_") for attribute in attributes):
        return
    for index, attribute in enumerate(attributes):
        last = index == len(attributes) - 1
        if last and (id(node) in analysis.checked_attribute_calls or _own_subclasses(analysis, node, scope)):
            continue
        if last and attribute == "__class__" and not isinstance(node.ctx, ast.Load) and not _is_own_object(node.value):
            analysis.report.add_violation(ViolationKind.REFLECT, attribute, node.lineno)
        elif not analysis.reads_fact(attributes, index):
            analysis.attribute_name(attribute, base, scope, node.lineno)
            if not (last and id(node) in analysis.shown):
                _check_private(analysis, attribute, base, index, node.lineno)


def _check_private(analysis: PythonAnalysis, name: str, base: ast.expr, index: int, line: int) -> None:
    """Report the owner of a method, and a private attribute that no object of the program has: it is a library's."""
    if index == 0 and _is_own_object(base):
        return
    private = name.startswith("_") and not name.startswith("__") and name not in PLAIN_PRIVATE
    foreign = private and name not in analysis.program.fields.names and name not in analysis.program.methods
    if foreign or name in ("__self__", "__get__"):
        analysis.report.add_lookup(name, line)


def _own_subclasses(analysis: PythonAnalysis, node: ast.Attribute, scope: Scope) -> bool:
    return node.attr == "__subclasses__" and analysis.is_own_class(node.value, scope)


def _method(analysis: PythonAnalysis, node: ast.Attribute, attributes: list[str], scope: Scope) -> None:
    """Report a method of an unknown value by its name."""
    _check_reachable_module(analysis, node, attributes, scope)
    name = node.attr
    if not isinstance(node.ctx, ast.Load):
        return
    methods.report_inherited(analysis, node)
    own = name in analysis.program.methods and not methods.is_library_method(analysis, node)
    if not (own or _is_own_method(analysis, node)):
        methods.report_method(analysis, node, scope)


def _is_own_method(analysis: PythonAnalysis, node: ast.Attribute) -> bool:
    """Return True for a method of the program's own object, which may be defined in another part of the program."""
    return _is_own_object(node.value) and "pathlib" not in analysis.program.roots


def _is_own_object(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _check_reachable_module(analysis: PythonAnalysis, node: ast.Attribute, attributes: list[str], scope: Scope) -> None:
    """Check `anything.os.system` like `os.system`."""
    for index, attribute in enumerate(attributes[:-1]):
        if attribute.lstrip("_") in REACHABLE_MODULES:
            path = canonical_path(".".join(["_", *attributes[index:]]))
            rule = rule_of(path)
            if rule.violation is not None or (path in RULES and rule.effects and not rule.unknown):
                analysis.report_path(path, node, scope)


def _annotations_of(node: ast.expr | None) -> bool:
    """Return True if the node is `__annotations__` itself."""
    if isinstance(node, ast.Name):
        return node.id == "__annotations__"
    return isinstance(node, ast.Attribute) and node.attr == "__annotations__"


def _assign(analysis: PythonAnalysis, node: ast.Assign | ast.AnnAssign, scope: Scope) -> None:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    owners = [target.value for target in targets if isinstance(target, ast.Subscript)]
    if any(map(_annotations_of, [*targets, *owners, node.value])):
        if all(map(_annotations_of, [*targets, node.value])):
            # Annotations copied from another function were checked there.
            analysis.handled.update(map(id, targets))
        else:
            analysis.annotations[node.lineno] = None
    for target in targets:
        check_field_name(analysis, target, scope, stated=isinstance(node, ast.AnnAssign))
        if isinstance(target, ast.Name) and target.id == "__match_args__":
            _match_names(analysis, node.value, scope)
    # A class attribute is accessible as `A.name` to all code that gets the class, so there a module is a value.
    if scope.kind != "class":
        for target in targets:
            for _, value in scope_builder.assignment_pairs(target, node.value):
                analysis.allow_module(value)


def _match_names(analysis: PythonAnalysis, node: ast.expr | None, scope: Scope) -> None:
    """Check the attributes that a class pattern looks up by position."""
    for names in analysis.folder.possible(node, scope) if node is not None else ():
        for name in names if isinstance(names, tuple | list) else (names,):
            if isinstance(name, str):
                analysis.attribute_name(name, ast.Constant(None), scope, getattr(node, "lineno", 0))
            else:
                analysis.report.add_lookup("__match_args__", getattr(node, "lineno", 0))


def _loop(analysis: PythonAnalysis, node: ast.For, scope: Scope) -> None:
    """Allow modules in a literal that is looped over, because the name of the loop stands for each of them."""
    if isinstance(node.iter, ast.Tuple | ast.List) and isinstance(node.target, ast.Name) and scope.kind != "class":
        for element in node.iter.elts:
            analysis.allow_module(element)


def _defaults(analysis: PythonAnalysis, node: ast.arguments, _scope: Scope) -> None:
    for default in (*node.defaults, *node.kw_defaults):
        analysis.allow_module(default)
        excuse(analysis, default)


def _comparison(analysis: PythonAnalysis, node: ast.Compare, scope: Scope) -> None:
    nothing = [isinstance(other, ast.Constant) and other.value is None for other in node.comparators]
    if all(nothing) and all(isinstance(operator, ast.Is | ast.IsNot) for operator in node.ops):
        analysis.allow_module(node.left)
    for operator, other in zip(node.ops, node.comparators, strict=True):
        if isinstance(operator, ast.In | ast.NotIn):
            calls.allow_membership_test(analysis, other)
            analysis.allow_module(other)
        elif isinstance(operator, ast.Is | ast.IsNot):
            mark_type_only(analysis, other)
            mark_type_only(analysis, node.left)
        elif isinstance(operator, ast.Eq | ast.NotEq):
            mark_types(analysis, other, scope)
            mark_types(analysis, node.left, scope)


def _subscript(analysis: PythonAnalysis, node: ast.Subscript, scope: Scope) -> None:
    key = node.slice
    owners = analysis.values.paths(node.value, scope)
    if owners or isinstance(node.value, ast.Call):
        calls.check_namespace_lookup(analysis, node, scope)
        calls.check_environment_lookup(analysis, node, scope)
    if isinstance(key, ast.Attribute):
        mark_types(analysis, key, scope)
    generic = any(path in _GENERIC_TYPES or path.partition(".")[0] in _TYPE_LIBRARIES for path in owners)
    if generic and not is_data_type(analysis, node.value, scope):
        check_annotation(analysis, key, scope)
    if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value in INTERNALS:
        analysis.report.add_violation(ViolationKind.REFLECT, key.value, node.lineno)


_GENERIC_TYPES = words("list dict tuple set frozenset type collections.deque collections.OrderedDict")
_TYPE_LIBRARIES = words("typing typing_extensions pydantic")
"""Libraries that evaluate the texts among the arguments of a type."""


def _imports(analysis: PythonAnalysis, node: ast.Import, scope: Scope) -> None:
    for alias in node.names:
        analysis.report.imports[alias.name] = None
        _check_module(analysis, alias.name, node.lineno)
        if scope.kind == "class":
            _class_import(analysis, alias.name if alias.asname else alias.name.partition(".")[0], node.lineno)


def _class_import(analysis: PythonAnalysis, name: str, line: int) -> None:
    """Report an import into a class as a use: code that gets the class or an object of it gets what was imported."""
    path = canonical_path(name)
    if analysis.is_module(path):
        analysis.report_module_value(path, line)
    else:
        analysis.report.add_rule(path, rule_of(path), line, [])


def _imports_from(analysis: PythonAnalysis, node: ast.ImportFrom, scope: Scope) -> None:
    module = "." * node.level + (node.module or "")
    _check_module(analysis, module, node.lineno)
    analysis.report.imports[module] = None
    for alias in node.names:
        if module not in PLAIN_MODULES and alias.name != "*":
            analysis.report.imports[f"{module.removesuffix('.')}.{alias.name}"] = None
        if scope.kind == "class":
            _class_import(analysis, f"{module}.{alias.name}", node.lineno)
        path = canonical_path(f"{module}.{alias.name}")
        rule = rule_of(path)
        if rule.violation is not None and path not in calls.BY_NAME and path not in TYPES:
            analysis.report.add_violation(rule.violation, path, node.lineno)


def _check_module(analysis: PythonAnalysis, module: str, line: int) -> None:
    path = canonical_path(module)
    rule = rule_of(path)
    if rule.violation is not None and path != "builtins":
        analysis.report.add_violation(rule.violation, path, line)
    elif rule.unknown and path not in KNOWN_PREFIXES:
        analysis.report.add_effect(EffectKind.UNRESOLVED, module, line)


def _annotation(analysis: PythonAnalysis, node: ast.arg | ast.AnnAssign, scope: Scope) -> None:
    check_annotation(analysis, node.annotation, scope)


def _returns(analysis: PythonAnalysis, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
    check_annotation(analysis, node.returns, scope)
    for decorator in node.decorator_list:
        excuse(analysis, decorator)


def _class(analysis: PythonAnalysis, node: ast.ClassDef, scope: Scope) -> None:
    for outside in (*node.decorator_list, *node.bases, *(word.value for word in node.keywords)):
        excuse(analysis, outside)
    methods = {statement.name for statement in node.body if isinstance(statement, ast.FunctionDef)}
    if "__prepare__" in methods:
        analysis.report.add_lookup("__prepare__", node.lineno)
    for base in node.bases:
        paths = analysis.values.paths(base, scope)
        analysis.base_roots.update(path.partition(".")[0].partition("(")[0] for path in paths)
        if "sqlite3.Connection" in paths:
            analysis.report.add_access(EffectKind.WRITE, "sqlite3.Connection", node.lineno)
        if "string.Formatter" in paths and methods & _FORMATTING:
            analysis.report.add_lookup("string.Formatter", node.lineno)


_FORMATTING = words("format_field convert_field")
"""Methods of a formatter that get the values which the fields of a format look up."""


def _handler(analysis: PythonAnalysis, node: ast.ExceptHandler, _scope: Scope) -> None:
    mark_type_only(analysis, node.type)


def _call(analysis: PythonAnalysis, node: ast.Call, scope: Scope) -> None:
    analysis.callers[id(node.func)] = node
    calls.check_keywords(analysis, node)
    _note_class_data(analysis, node)
    if isinstance(node.func, ast.Attribute) and node.func.attr in _CHECKED_METHODS:
        _method_call(analysis, node, node.func, scope)
    paths = analysis.values.paths(node.func, scope) if isinstance(node.func, ast.Name | ast.Attribute) else NO_PATHS
    string_eval_calls.check_formulas(analysis, node, scope, paths)
    argument_rules.check_keywords(analysis, node, scope)
    string_eval_calls.check_model(analysis, node, scope, paths)
    for path in paths & _TYPE_CALLS:
        for argument in node.args[_TYPE_ARGUMENTS[path]] if analysis.is_certain(node.func, scope) else ():
            mark_type_only(analysis, argument)
            mark_types(analysis, argument, scope)
    ruled = paths & _RULED_CALLS
    for path in sorted(ruled):
        analysis.report.subject = path
        calls.BY_NAME[path](analysis, node, scope, path)
        analysis.report.subject = ""
    if ruled and ruled == paths:
        analysis.handled.add(id(node.func))
        if isinstance(node.func, ast.Attribute):
            _chain(analysis, node.func)


_APPLYING = words("apply agg aggregate transform")
"""Methods of frames that call a method by its name."""
_CHECKED_METHODS = ATTRIBUTE_CALLS | _APPLYING | words("get_field vformat format format_map")


def _note_class_data(analysis: PythonAnalysis, node: ast.Call) -> None:
    """Note annotations that are passed on; reading them by name is harmless."""
    name = _called_name(node)
    if name not in _LISTING and any(map(_annotations_of, node.args)):
        analysis.annotations[node.lineno] = None
    if name in _READING:
        analysis.handled.update(id(argument) for argument in node.args if isinstance(argument, ast.Constant))


def _called_name(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


_READING = words("getattr hasattr get")
_LISTING = words("print len dict list sorted str repr set tuple iter enumerate bool items keys values")
"""Functions that do not change what they are given."""
_TYPE_ARGUMENTS = {"isinstance": slice(1, 2), "issubclass": slice(1, 2), "typing.cast": slice(0, 1)}
"""Arguments that only name a type."""
_TYPE_CALLS = frozenset(_TYPE_ARGUMENTS)
_RULED_CALLS = frozenset(calls.BY_NAME)


def _method_call(analysis: PythonAnalysis, node: ast.Call, func: ast.Attribute, scope: Scope) -> None:
    if func.attr in ATTRIBUTE_CALLS:
        calls.check_attribute_call(analysis, node, scope)
    if func.attr in _APPLYING:
        calls.check_applied_names(analysis, node, scope)
    if func.attr in ("get_field", "vformat") and "string" in analysis.program.roots:
        calls.check_format_fields(analysis, node, scope)
    if func.attr in ("format", "format_map"):
        check_formatted_text(analysis, node, func.value, scope)


_RULES_OF: dict[type[ast.AST], tuple[Callable[..., None], ...]] = {
    ast.Name: (_name,),
    ast.Attribute: (_attribute,),
    ast.Assign: (_assign, string_eval_calls.check_item_assignment),
    ast.AnnAssign: (_assign, _annotation),
    ast.arguments: (_defaults,),
    ast.arg: (_annotation,),
    ast.FunctionDef: (_returns,),
    ast.AsyncFunctionDef: (_returns,),
    ast.ClassDef: (_class,),
    ast.Compare: (_comparison,),
    ast.For: (_loop, string_eval_calls.check_item_assignment),
    ast.Subscript: (_subscript, string_eval_calls.check_index),
    ast.Import: (_imports,),
    ast.ImportFrom: (_imports_from,),
    ast.Constant: (check_text,),
    ast.ExceptHandler: (_handler,),
    ast.MatchClass: (note_class_pattern,),
    ast.FormattedValue: (note_formatted,),
    ast.Call: (_call,),
}
