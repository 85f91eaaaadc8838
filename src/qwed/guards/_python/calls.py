"""Rules for calls whose effect depends on their arguments."""

import ast
import re

from qwed.guards._python import file_calls as files
from qwed.guards._python import library_calls, string_eval_calls
from qwed.guards._python.abstract_values import UNKNOWN
from qwed.guards._python.analysis import ENVIRONS, PythonAnalysis
from qwed.guards._python.attributes import CLASS_DATA, INTERNALS, TRAVERSALS
from qwed.guards._python.file_calls import Handler, argument_of, has_unpacking
from qwed.guards._python.library_rules import words
from qwed.guards._python.lookups import is_own_lookup, is_own_object
from qwed.guards._python.methods import report_named_method
from qwed.guards._python.name_resolution import OWN_MODULE, canonical_path
from qwed.guards._python.report import rule_of
from qwed.guards._python.scopes import Scope
from qwed.guards._python.syntax import dotted_name
from qwed.guards.code_findings import ViolationKind
from qwed.model import EffectKind

_NAMESPACES = frozenset({"globals", "locals", "vars"})
_PLAIN_CODECS = re.compile(
    r"(?i)(?:utf|ascii|us-ascii|latin|iso|cp|windows|big5|gb|euc|shift|koi|mac|punycode|idna)[\w-]*"
)


def allow_membership_test(analysis: PythonAnalysis, node: ast.expr) -> None:
    """Allow `name in globals()` and `name in sys.modules`, which only return a boolean."""
    here = node.func if isinstance(node, ast.Call) and not node.args else node
    if dotted_name(here) in ("globals", "locals", "vars", "sys.modules"):
        analysis.handled.update({id(here), id(node)})
        _mark_handled(analysis, here)


def _mark_handled(analysis: PythonAnalysis, node: ast.expr) -> None:
    while isinstance(node, ast.Attribute):
        analysis.handled.add(id(node))
        node = node.value
    analysis.handled.add(id(node))


def check_namespace_lookup(analysis: PythonAnalysis, node: ast.Subscript, scope: Scope) -> None:
    """Check `globals()["name"]` as that name, and `sys.modules[__name__]` as the program's own module."""
    owner = node.value
    if OWN_MODULE in analysis.values.paths(node, scope):
        _mark_handled(analysis, owner)
        analysis.report_use(OWN_MODULE, node, scope)
        return
    call = isinstance(owner, ast.Call) and not owner.args and isinstance(node.ctx, ast.Load)
    if not call or not isinstance(owner, ast.Call) or not isinstance(owner.func, ast.Name):
        return
    texts = analysis.folder.possible(node.slice, scope)
    paths = analysis.values.paths_of_name(owner.func.id, scope)
    if paths & _NAMESPACES and all(_is_plain_name(text) for text in texts):
        analysis.handled.update({id(owner), id(owner.func)})
        home = analysis.program.module if paths == {"globals"} else scope
        for text in texts:
            for path in sorted(analysis.values.paths_of_name(text, home)):
                analysis.aliased.discard(id(node))
                analysis.report_use(path, node, scope)


def check_environment_lookup(analysis: PythonAnalysis, node: ast.Subscript, scope: Scope) -> None:
    """Report `os.environ["NAME"]` as access to that variable, not to all of them."""
    owner = node.value
    if not isinstance(owner, ast.Name | ast.Attribute):
        return
    if isinstance(owner, ast.Name) and analysis.values.is_assumed(owner.id, scope):
        return
    paths = analysis.values.paths(owner, scope)
    if paths and paths <= ENVIRONS:
        _mark_handled(analysis, owner)
        analysis.report.add_effect(EffectKind.SECRET, analysis.target(node.slice, scope) or min(paths), node.lineno)


def _is_plain_name(text: object) -> bool:
    return isinstance(text, str) and not (text.startswith("__") and text.endswith("__"))


def _namespace(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Report a namespace used as a value: that of the module contains everything, that of a function its names."""
    if id(node) in analysis.handled or id(node.func) in analysis.handled:
        return
    if node.args:
        if analysis.is_foreign(node.args[0], scope):
            analysis.report.add_violation(ViolationKind.REFLECT, f"{path}()", node.lineno)
        if analysis.lists_foreign_class(node.args[0], scope):
            analysis.report.add_lookup(f"{path}() of a class", node.lineno)
        return
    if path == "globals" or not _in_function(scope):
        analysis.report.add_violation(ViolationKind.REFLECT, path if path != "vars" else "vars()", node.lineno)
        return
    home: Scope | None = scope
    while home is not None and home is not analysis.program.module:
        analysis.report_names(home, node.lineno)
        home = home.parent


def _in_function(scope: Scope) -> bool:
    current: Scope | None = scope
    while current is not None and current.kind != "function":
        current = current.parent
    return current is not None


def check_attribute_call(analysis: PythonAnalysis, node: ast.Call, scope: Scope) -> None:
    """Check `object.__setattr__(self, "x", 1)` and similar calls; they are allowed if the attribute is not internal."""
    func = node.func
    assert isinstance(func, ast.Attribute)  # noqa: S101 - the caller says so
    on_super = isinstance(func.value, ast.Call) and "super" in analysis.values.paths(func.value.func, scope)
    on_object = "object" in analysis.values.paths(func.value, scope) or func.value.__class__ is ast.Name
    unbound = not on_super and len(node.args) > 1 + (func.attr == "__setattr__")
    names = node.args[unbound : unbound + 1]
    owner = node.args[0] if unbound and node.args else func.value
    if not names or not (on_super or on_object) or (not on_super and analysis.is_foreign(owner, scope)):
        return
    texts = analysis.folder.possible(names[0], scope)
    if not any(text in INTERNALS or text in TRAVERSALS for text in texts if isinstance(text, str)):
        analysis.checked_attribute_calls.add(id(func))
        if UNKNOWN in texts:
            _report_lookup(analysis, names[0], scope, node.lineno, func.attr)
            if func.attr == "__getattribute__" and not is_own_object(analysis, owner, scope) and not on_super:
                analysis.report.add_lookup("__getattribute__ with a computed name", node.lineno)


def _reflect(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Check getattr, setattr and delattr, which are allowed if the name is not internal."""
    if len(node.args) < 2 or any(isinstance(argument, ast.Starred) for argument in node.args):
        analysis.report.add_violation(ViolationKind.REFLECT, f"{path} with a computed name", node.lineno)
        return
    base, name = node.args[:2]
    if analysis.is_certain(node.func, scope):
        analysis.allow_module(base)
    texts = analysis.folder.possible(name, scope)
    for text in sorted({text for text in texts if isinstance(text, str)}):
        _check_named_attribute(analysis, node, text, scope, path)
    if not isinstance(name, ast.Constant):
        analysis.computed_lookups.setdefault(node.lineno, path)
    if UNKNOWN in texts:
        if OWN_MODULE in analysis.values.paths(base, scope):
            analysis.report_names(analysis.program.module, node.lineno)
        _report_computed_name(analysis, node, name, scope, f"{path} with a computed name")


def _reflect_static(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Check inspect.getattr_static; what it returns is not followed."""
    _reflect(analysis, node, scope, path)
    analysis.report.add_effect(EffectKind.UNRESOLVED, path, node.lineno)


def _check_named_attribute(analysis: PythonAnalysis, node: ast.Call, text: str, scope: Scope, path: str) -> None:
    """Check one attribute that a call of getattr, setattr or delattr may name."""
    base, name = node.args[:2]
    bases = analysis.values.paths(base, scope)
    if not bases and path.endswith("getattr"):
        report_named_method(analysis, text, node.lineno)
    analysis.attribute_name(text, base, scope, node.lineno)
    if text in _TRAVERSAL_STEPS and not isinstance(name, ast.Constant):
        analysis.report.add_violation(ViolationKind.REFLECT, text, node.lineno)
    for named in analysis.values.extend(bases & {OWN_MODULE}, text):
        analysis.report_use(named, node, scope)
    for base_path in sorted(bases - {OWN_MODULE}):
        analysis.report_use(canonical_path(f"{base_path}.{text}"), node, scope)
    if path.rpartition(".")[2] in ("setattr", "delattr"):
        _check_set_attribute(analysis, node, text, scope, path)


def _check_set_attribute(analysis: PythonAnalysis, node: ast.Call, text: str, scope: Scope, path: str) -> None:
    analysis.check_assigned(analysis.values.paths(node.args[0], scope), text, node.lineno)
    if (text in CLASS_DATA or not text.isidentifier()) and path.endswith("setattr"):
        analysis.annotations[node.lineno] = None


def _kind(analysis: PythonAnalysis, node: ast.Call, scope: Scope, _path: str) -> None:
    """Check `type(value)` like its `__class__`: a violation if that class loads modules by name, otherwise harmless.
    The names in the class that `type(name, bases, members)` creates must be literal."""
    if len(node.args) > 1:
        members = node.args[2] if len(node.args) == 3 else None
        keys = members.keys if isinstance(members, ast.Dict) else [None]
        if not all(map(_is_member_name, keys)):
            analysis.report.add_lookup("type with computed members", node.lineno)
    for path in sorted(analysis.values.paths(node.args[0], scope)) if len(node.args) == 1 else ():
        rule = rule_of(canonical_path(f"{path}.__class__"))
        if rule.violation is not None:
            analysis.report.add_violation(rule.violation, f"{path}.__class__", node.lineno)


def _is_member_name(key: ast.expr | None) -> bool:
    """Return True for a literal name: libraries compose code of the names in a class."""
    return isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value.isidentifier()


_TRAVERSAL_STEPS = TRAVERSALS - {"__dict__", "__func__"}
"""Attributes that have no legitimate reason to be spelt indirectly."""


def _report_computed_name(analysis: PythonAnalysis, node: ast.Call, name: ast.expr, scope: Scope, what: str) -> None:
    """Report an unknown attribute name: a violation on a module or if the text is obfuscated."""
    base = node.args[0]
    modules = any(analysis.is_module(path) for path in analysis.values.paths(base, scope))
    prefix = analysis.folder.has_plain_prefix(name, scope)
    blind = modules and not _constants_only(analysis, base, scope, name)
    if blind or (not prefix and analysis.is_obfuscated(name, scope)):
        analysis.report.add_violation(ViolationKind.REFLECT, what, node.lineno)
    elif not prefix and not modules:
        _report_lookup(analysis, name, scope, node.lineno, what.partition(" ")[0])
        if what.startswith("getattr") and not is_own_lookup(analysis, node, scope):
            analysis.report.add_lookup(what, node.lineno)


def _report_lookup(analysis: PythonAnalysis, name: ast.expr, scope: Scope, line: int, what: str) -> None:
    """Report a lookup by a name that is not known: unresolved if the name is composed while the program runs."""
    analysis.computed_lookups[line] = what
    if what not in _SETTERS and analysis.is_composed(name, scope):
        analysis.report.add_lookup(f"{what} with a computed name", line)


_SETTERS = words("setattr delattr __setattr__ __delattr__")
"""Lookups that return nothing."""


def _constants_only(analysis: PythonAnalysis, base: ast.expr, scope: Scope, name: ast.expr) -> bool:
    """Return True for lookups such as `getattr(logging, level.upper())` (constants) and `getattr(hashlib, name)`
    (functions on data)."""
    is_upper = isinstance(name, ast.Call) and isinstance(name.func, ast.Attribute) and name.func.attr == "upper"
    paths = analysis.values.paths(base, scope)
    return is_upper and paths <= _DATA_MODULES and not analysis.is_obfuscated(name, scope)


_DATA_MODULES = words("logging hashlib math operator torch.nn torch.optim numpy numpy.random torch random")


def _inspect(analysis: PythonAnalysis, node: ast.Call, scope: Scope, _path: str) -> None:
    """Allow hasattr and dir, which only return a boolean and names."""
    if analysis.is_certain(node.func, scope):
        analysis.allow_module(node.args[0] if node.args else None)


def _attribute_getter(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Check operator.attrgetter, methodcaller and format fields, which name attributes by text."""
    for argument in node.args if path.endswith("attrgetter") else node.args[:1]:
        texts = analysis.folder.possible(argument, scope)
        for text in sorted({text for text in texts if isinstance(text, str)}):
            for part in text.split("."):
                if part in INTERNALS or part in TRAVERSALS:
                    analysis.report.add_violation(ViolationKind.REFLECT, part, node.lineno)
            report_named_method(analysis, text.rpartition(".")[2], node.lineno)
        if UNKNOWN in texts and (analysis.is_obfuscated(argument, scope) or isinstance(argument, ast.Starred)):
            analysis.report.add_violation(ViolationKind.REFLECT, "attribute with a computed name", node.lineno)
        elif UNKNOWN in texts:
            analysis.report.add_lookup(f"{path} with a computed name", node.lineno)


def check_format_fields(analysis: PythonAnalysis, node: ast.Call, scope: Scope) -> None:
    """Check the fields that a formatter of the program looks up."""
    _attribute_getter(analysis, node, scope, "string.Formatter().get_field")


def check_applied_names(analysis: PythonAnalysis, node: ast.Call, scope: Scope) -> None:
    """Check the methods that `frame.apply("name")` calls."""
    for part in string_eval_calls.flatten_containers([*node.args[:1], *(word.value for word in node.keywords)]):
        for text in analysis.folder.texts(part, scope):
            report_named_method(analysis, text, node.lineno)


def _reduce(analysis: PythonAnalysis, node: ast.Call, scope: Scope, _path: str) -> None:
    """Check `functools.reduce(getattr, names, value)`, which traverses attributes."""
    if not node.args or "getattr" not in analysis.values.paths(node.args[0], scope) or len(node.args) < 3:
        return
    names, base = node.args[1:3]
    for items in analysis.folder.possible(names, scope):
        for text in items if isinstance(items, tuple) else (items,):
            if isinstance(text, str):
                analysis.attribute_name(text, base, scope, node.lineno)
            else:
                analysis.computed_lookups[node.lineno] = "getattr"
    plain = not analysis.is_foreign(base, scope) and not analysis.is_obfuscated(names, scope)
    if plain and analysis.is_certain(node.func, scope):
        analysis.handled.add(id(node.args[0]))


def _yaml(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    loader = argument_of(node, "Loader", 1)
    paths = analysis.values.paths(loader, scope) if loader is not None else frozenset()
    if not paths or not paths <= {"yaml.SafeLoader", "yaml.CSafeLoader", "yaml.BaseLoader"}:
        analysis.report.add_violation(ViolationKind.DESERIALISE, path, node.lineno)


def _codec(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Report codecs that are not character encodings, because they transform one text into another."""
    encoding = argument_of(node, "encoding", 1)
    encodings = analysis.folder.possible(encoding, scope) if encoding is not None else ("utf-8",)
    if not all(isinstance(text, str) and _PLAIN_CODECS.fullmatch(text) for text in encodings):
        analysis.report.add_violation(ViolationKind.OBFUSCATE, path, node.lineno)


def _members(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Report a listing of all members: those of a module include everything it has imported, those of a function its
    globals. A predicate of `inspect` leaves out the values that reach further."""
    owner, predicate = argument_of(node, "object", 0), argument_of(node, "predicate", 1)
    owners = analysis.values.paths(owner, scope) if owner is not None else frozenset()
    chosen = analysis.values.paths(predicate, scope) if predicate is not None else frozenset()
    if any(analysis.is_module(owner_path) for owner_path in owners):
        analysis.report.add_violation(ViolationKind.REFLECT, path, node.lineno)
    elif not (chosen and chosen <= _MEMBER_TESTS) and not (owner is not None and analysis.is_own_class(owner, scope)):
        analysis.report.add_lookup(path, node.lineno)


_MEMBER_TESTS = words(
    "inspect.isfunction inspect.ismethod inspect.isclass inspect.isroutine inspect.iscoroutinefunction"
)


def _copied_attributes(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Check the attributes that `functools.wraps` copies, if the call names them."""
    given = [argument_of(node, word, index) for word, index in (("assigned", 2), ("updated", 3))]
    if path.endswith("wraps"):
        given = [argument_of(node, word, index) for word, index in (("assigned", 1), ("updated", 2))]
    for names in [names for names in given if names is not None]:
        for text in analysis.folder.possible(names, scope):
            items = text if isinstance(text, tuple | list) else (text,)
            if not all(isinstance(item, str) and item in _COPIED for item in items):
                analysis.report.add_lookup(f"{path} with chosen attributes", node.lineno)


_COPIED = words("__module__ __name__ __qualname__ __doc__ __dict__")


def _runs_tests(analysis: PythonAnalysis, node: ast.Call, _scope: Scope, path: str) -> None:
    """Allow `unittest.main()` for the program's own tests; report modules or tests named by text."""
    if node.args or has_unpacking(node) or any(word.arg in ("module", "defaultTest", "argv") for word in node.keywords):
        analysis.report.add_violation(ViolationKind.DYNAMIC, path, node.lineno)


def _violation_with_arguments(kind: ViolationKind) -> Handler:
    """Return a rule for a call that is harmless only without arguments."""

    def rule(analysis: PythonAnalysis, node: ast.Call, _scope: Scope, path: str) -> None:
        if node.args or node.keywords:
            analysis.report.add_violation(kind, path, node.lineno)

    return rule


def _unsafe_yaml(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    kind = argument_of(node, "typ", 0)
    types = analysis.folder.possible(kind, scope) if kind is not None else ("rt",)
    if has_unpacking(node) or not all(text in ("rt", "safe", "pure", ("rt",), ("safe",)) for text in types):
        analysis.report.add_violation(ViolationKind.DESERIALISE, path, node.lineno)


def check_keywords(analysis: PythonAnalysis, node: ast.Call) -> None:
    """Report keyword arguments that are a violation in any call."""
    for word in node.keywords:
        kind = KEYWORD_VIOLATIONS.get(word.arg or "")
        if kind is not None and isinstance(word.value, ast.Constant) and word.value.value is True:
            analysis.report.add_violation(kind, f"{word.arg}=True", node.lineno)
        if word.arg in ENVIRONMENT_WORDS and not analysis.program.roots.isdisjoint(_READING_ENVIRONMENT):
            analysis.report.add_effect(EffectKind.SECRET, _text_of(word.value) or word.arg or "", node.lineno)
        if word.arg == "fromfile_prefix_chars":
            analysis.report.add_effect(EffectKind.READ, word.arg, node.lineno)
        if word.arg == "field_transformer":
            analysis.report.add_lookup("field_transformer", node.lineno)
        names = word.value.keys if word.arg == "these" and isinstance(word.value, ast.Dict) else []
        if word.arg == "these" and (not names or not all(map(_is_member_name, names))):
            analysis.report.add_lookup("attributes with computed names", node.lineno)


def _text_of(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


ENVIRONMENT_WORDS = words("envvar auto_envvar_prefix env_prefix")
_READING_ENVIRONMENT = words("click typer asyncclick rich_click")
"""Libraries that read the environment variable of an option."""
KEYWORD_VIOLATIONS = {
    "shell": ViolationKind.PROCESS,
    "usetex": ViolationKind.PROCESS,
    "trust_remote_code": ViolationKind.DYNAMIC,
}

BY_NAME: dict[str, Handler] = {
    **files.BY_NAME,
    **string_eval_calls.BY_NAME,
    **library_calls.BY_NAME,
    **dict.fromkeys(("getattr", "setattr", "delattr"), _reflect),
    "inspect.getattr_static": _reflect_static,
    **dict.fromkeys(("builtins.getattr", "builtins.setattr", "builtins.delattr"), _reflect),
    **dict.fromkeys(("hasattr", "dir"), _inspect),
    "type": _kind,
    **dict.fromkeys(_NAMESPACES, _namespace),
    **dict.fromkeys(("yaml.load", "yaml.load_all"), _yaml),
    **dict.fromkeys(("codecs.decode", "codecs.encode", "codecs.getdecoder", "codecs.getencoder"), _codec),
    **dict.fromkeys(("inspect.getmembers", "inspect.getmembers_static"), _members),
    **dict.fromkeys(("functools.update_wrapper", "functools.wraps"), _copied_attributes),
    "unittest.main": _runs_tests,
    "xml.sax.make_parser": _violation_with_arguments(ViolationKind.DYNAMIC),
    "platform.architecture": _violation_with_arguments(ViolationKind.PROCESS),
    "ruamel.yaml.YAML": _unsafe_yaml,
    "operator.attrgetter": _attribute_getter,
    "operator.methodcaller": _attribute_getter,
    **dict.fromkeys((f"string.Formatter().{name}" for name in ("get_field", "format", "vformat")), _attribute_getter),
    "functools.reduce": _reduce,
}
