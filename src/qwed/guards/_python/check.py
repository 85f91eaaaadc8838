"""The rules over a syntax tree: each kind of node that can mean something has one function."""

import ast
import re
from collections.abc import Callable

from qwed.guards._python import binders, calls, text_calls
from qwed.guards._python.annotations import TYPES, annotated, excuse, only_type
from qwed.guards._python.attributes import (
    ATTRIBUTE_CALLS,
    DANGEROUS_METHODS,
    DOUBTFUL_METHODS,
    INNER,
    REACHING,
    TELLING_METHODS,
)
from qwed.guards._python.fold import Folder
from qwed.guards._python.look import LIBRARIES, Look
from qwed.guards._python.report import PythonReport, rule_of
from qwed.guards._python.scopes import Program, Scope
from qwed.guards._python.tables import ASSUMED, KNOWN, RULES, words
from qwed.guards._python.values import REROOTED, Values, canonical
from qwed.guards.code_words import Danger
from qwed.words import EffectKind

_FORMAT_FIELD = re.compile(r"\{[^{}]*[.\[][^{}]*\}")
_FORMAT_STEP = re.compile(r"[.\[](\w+)")
_PLAIN_FORMAT = re.compile(r"\.__class__(?=\.__(?:name|qualname|module|doc)__)")
_FUNCTIONS = {name for name in ASSUMED.values() if name.rpartition(".")[2].islower() and "." in name}
_INNER_TEXT = INNER - ATTRIBUTE_CALLS - {"__code__", "__main__", "load_module", "exec_module"}
_DUNDERS = {name for name in _INNER_TEXT if name.startswith("__")}
_PIECES = {name[:end] for name in _DUNDERS for end in range(5, len(name))} | {
    name[start:] for name in _DUNDERS for start in range(1, len(name) - 4)
}
"""What is left of an inner name that somebody took apart."""


def check(program: Program) -> PythonReport:
    """The findings of a whole module; TooComplex where its names cannot be followed."""
    values = Values(program)
    folder = Folder(program, values)
    values.texts = folder.texts
    values.settle()
    look = Look(program, values, folder)
    for node, scope in program.visits:
        for rule in _RULES_OF.get(type(node), ()):
            rule(look, node, scope)
    _reflections(look)
    for line, what in look.evaluated.items() if look.annotations else ():
        look.report.danger(Danger.DYNAMIC, f"{what} of annotations put in later", line)
    return look.report


def _reflections(look: Look) -> None:
    """An attribute looked up by an unknown name is a way in where a text names an inner attribute."""
    for line, what in look.computed.items() if look.inner_texts else ():
        look.report.danger(Danger.REFLECT, f"{what} with a computed name", line)
        for text, where in look.inner_texts.items():
            look.report.danger(Danger.REFLECT, text, where)


def _name(look: Look, node: ast.Name, scope: Scope) -> None:
    if not isinstance(node.ctx, ast.Load) or id(node) in look.done:
        return
    _undefined(look, node, node, scope)
    # A module that is only assumed is one where its attributes are used, a function where it is called.
    assumed = look.values.assumed(node.id, scope)
    for path in sorted(look.values.named(node.id, scope)):
        if not assumed or (id(node) in look.callers and not look.is_module(path)):
            look.use(path, node, scope)


def _undefined(look: Look, node: ast.Name, whole: ast.expr, scope: Scope) -> None:
    """A name from nowhere that the module itself calls; inside a function it is some other part of the program."""
    if look.values.defined(node.id, scope) or id(node) in look.excused or id(whole) not in look.callers:
        return
    here: Scope | None = scope
    while here is not None and here.kind not in ("function", "class"):
        here = here.parent
    if here is None:
        look.report.effect(EffectKind.UNRESOLVED, node.id, node.lineno)


def _attribute(look: Look, node: ast.Attribute, scope: Scope) -> None:
    if id(node) in look.done:
        return
    base, attributes = _chain(look, node)
    if "__annotations__" in attributes and (attributes[-1] in _CHANGING or not isinstance(node.ctx, ast.Load)):
        look.annotations[node.lineno] = None
    _judge_names(look, node, base, attributes, scope)
    look.rename(base)
    paths = look.values.paths(node, scope)
    assumed = isinstance(base, ast.Name) and look.values.assumed(base.id, scope)
    for path in sorted(paths):
        if not assumed or (look.listed(path) and path.rpartition(".")[0] not in _FUNCTIONS):
            look.use(path, node, scope)
    if isinstance(base, ast.Name):
        _undefined(look, base, node, scope)
    if not paths:
        _method(look, node, attributes, scope)


_CHANGING = words("update setdefault __setitem__ __ior__")


def _chain(look: Look, node: ast.Attribute) -> tuple[ast.expr, list[str]]:
    """`a.b.c` as a and [b, c]; the inner links are judged with it."""
    attributes, here = [node.attr], node.value
    while isinstance(here, ast.Attribute):
        look.done.add(id(here))
        attributes.append(here.attr)
        here = here.value
    if isinstance(here, ast.Name):
        look.done.add(id(here))
    return here, attributes[::-1]


def _judge_names(look: Look, node: ast.Attribute, base: ast.expr, attributes: list[str], scope: Scope) -> None:
    for index, attribute in enumerate(attributes):
        last = index == len(attributes) - 1
        if last and (id(node) in look.spelled or _own_subclasses(look, node, scope)):
            continue
        if last and attribute == "__class__" and not isinstance(node.ctx, ast.Load) and not _is_own_object(node.value):
            look.report.danger(Danger.REFLECT, attribute, node.lineno)
        elif not look.reads_fact(attributes, index):
            look.attribute_name(attribute, base, scope, node.lineno)


def _own_subclasses(look: Look, node: ast.Attribute, scope: Scope) -> bool:
    return node.attr == "__subclasses__" and look.own_class(node.value, scope)


def _method(look: Look, node: ast.Attribute, attributes: list[str], scope: Scope) -> None:
    """A method of a value that nobody knows."""
    _rerooted(look, node, attributes, scope)
    name = node.attr
    if name in look.program.methods or not isinstance(node.ctx, ast.Load) or _on_itself(look, node):
        return
    if name in DANGEROUS_METHODS and id(node) in look.callers:
        look.report.danger(DANGEROUS_METHODS[name], name, node.lineno)
    kinds = {TELLING_METHODS[name]} if name in TELLING_METHODS and not _gives_text(look, node) else set()
    if id(node) in look.callers:
        for root in look.program.roots & DOUBTFUL_METHODS.keys():
            kinds |= {DOUBTFUL_METHODS[root][name]} & set(EffectKind) if name in DOUBTFUL_METHODS[root] else set()
    for kind in sorted(kinds):
        look.report.deed(kind, next(iter(look.targets(node, scope)), "") or name, node.lineno)


def _gives_text(look: Look, node: ast.Attribute) -> bool:
    call = look.callers.get(id(node))
    return node.attr == "to_csv" and call is not None and not call.args and not call.keywords


def _on_itself(look: Look, node: ast.Attribute) -> bool:
    """A method of the program's own object, which may come from a part of the program that is not here."""
    return _is_own_object(node.value) and "pathlib" not in look.program.roots


def _is_own_object(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _rerooted(look: Look, node: ast.Attribute, attributes: list[str], scope: Scope) -> None:
    """`anything.os.system` is `os.system`, whatever holds the module."""
    for index, attribute in enumerate(attributes[:-1]):
        if attribute.lstrip("_") in REROOTED:
            path = canonical(".".join(["_", *attributes[index:]]))
            rule = rule_of(path)
            if rule.danger is not None or (path in RULES and rule.effects and not rule.unknown):
                look.mention(path, node, scope)


def _annotations_of(node: ast.expr | None) -> bool:
    """Whether it is the mapping of annotations itself."""
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name == "__annotations__"


def _assign(look: Look, node: ast.Assign | ast.AnnAssign, scope: Scope) -> None:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    held = [target.value for target in targets if isinstance(target, ast.Subscript)]
    if all(map(_annotations_of, [*targets, node.value])):
        # One function's annotations given to another were written down with the first.
        look.done.update(map(id, targets))
    elif any(map(_annotations_of, [*targets, *held, node.value])):
        look.annotations[node.lineno] = None
    # A class attribute is reached as `A.name`, which whoever gets the class can do, so there a module is handed on.
    if scope.kind != "class":
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            for _, value in binders.pairs(target, node.value):
                look.rename(value)


def _defaults(look: Look, node: ast.arguments, _scope: Scope) -> None:
    for default in (*node.defaults, *node.kw_defaults):
        look.rename(default)
        excuse(look, default)


def _comparison(look: Look, node: ast.Compare, _scope: Scope) -> None:
    nothing = [isinstance(other, ast.Constant) and other.value is None for other in node.comparators]
    if all(nothing) and all(isinstance(operator, ast.Is | ast.IsNot) for operator in node.ops):
        look.rename(node.left)
    for operator, other in zip(node.ops, node.comparators, strict=True):
        if isinstance(operator, ast.In | ast.NotIn):
            calls.only_looked_at(look, other)
            look.rename(other)
        elif isinstance(operator, ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
            only_type(look, other)
            only_type(look, node.left)


def _subscript(look: Look, node: ast.Subscript, scope: Scope) -> None:
    calls.looks_up(look, node, scope)
    calls.names_variable(look, node, scope)
    only_type(look, node.slice if isinstance(node.slice, ast.Attribute) else None)
    key = node.slice
    if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value in INNER:
        look.report.danger(Danger.REFLECT, key.value, node.lineno)


def _imports(look: Look, node: ast.Import, _scope: Scope) -> None:
    for alias in node.names:
        _imported(look, alias.name, node.lineno)


def _imports_from(look: Look, node: ast.ImportFrom, _scope: Scope) -> None:
    module = "." * node.level + (node.module or "")
    _imported(look, module, node.lineno)
    for alias in node.names:
        path = canonical(f"{module}.{alias.name}")
        rule = rule_of(path)
        if rule.danger is not None and path not in calls.BY_NAME and path not in TYPES:
            look.report.danger(rule.danger, path, node.lineno)


def _imported(look: Look, module: str, line: int) -> None:
    path = canonical(module)
    rule, root = rule_of(path), path.partition(".")[0]
    if rule.danger is not None and path != "builtins":
        look.report.danger(rule.danger, path, line)
    elif (root not in LIBRARIES and root not in RULES) or (rule.unknown and path not in KNOWN):
        look.report.effect(EffectKind.UNRESOLVED, module, line)


def _text(look: Look, node: ast.Constant, _scope: Scope) -> None:
    value = node.value
    if not isinstance(value, str) or "_" not in value:
        return
    if value == "__annotations__":
        look.annotations[node.lineno] = None
    for part in value.split(".") if len(value) < 200 else ():
        if part in _INNER_TEXT or part in _PIECES:
            look.inner_texts.setdefault(part, node.lineno)
    _format(look, value, node.lineno)


def _format(look: Look, text: str, line: int) -> None:
    if reaching_format(text):
        look.report.danger(Danger.REFLECT, "attribute lookup in a format string", line)


def reaching_format(text: str) -> bool:
    """Whether a field of a format string looks up an inner attribute."""
    fields = _FORMAT_FIELD.findall(_PLAIN_FORMAT.sub("", text))
    return any(step in REACHING for each in fields for step in _FORMAT_STEP.findall(each))


def _annotation(look: Look, node: ast.arg | ast.AnnAssign, scope: Scope) -> None:
    annotated(look, node.annotation, scope)


def _returns(look: Look, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
    annotated(look, node.returns, scope)
    for decorator in node.decorator_list:
        excuse(look, decorator)


def _class(look: Look, node: ast.ClassDef, scope: Scope) -> None:
    for outside in (*node.decorator_list, *node.bases, *(word.value for word in node.keywords)):
        excuse(look, outside)
    for base in node.bases:
        if "sqlite3.Connection" in look.values.paths(base, scope):
            look.report.deed(EffectKind.WRITE, "sqlite3.Connection", node.lineno)


def _pattern(look: Look, node: ast.MatchClass, scope: Scope) -> None:
    for attribute in node.kwd_attrs:
        look.attribute_name(attribute, node.cls, scope, node.lineno)


def _handler(look: Look, node: ast.ExceptHandler, _scope: Scope) -> None:
    only_type(look, node.type)


def _call(look: Look, node: ast.Call, scope: Scope) -> None:
    look.callers[id(node.func)] = node
    calls.risky_words(look, node)
    if any(map(_annotations_of, node.args)):
        look.annotations[node.lineno] = None
    if isinstance(node.func, ast.Attribute):
        _method_call(look, node, node.func, scope)
    paths = look.values.paths(node.func, scope) if isinstance(node.func, ast.Name | ast.Attribute) else frozenset()
    text_calls.formulas(look, node, scope, paths)
    for path in paths & _TYPE_ARGUMENTS.keys():
        for argument in node.args[_TYPE_ARGUMENTS[path]]:
            only_type(look, argument)
    for path in sorted(paths & calls.BY_NAME.keys()):
        calls.BY_NAME[path](look, node, scope, path)
    if paths and paths <= calls.BY_NAME.keys():
        look.done.add(id(node.func))
        if isinstance(node.func, ast.Attribute):
            _chain(look, node.func)


_TYPE_ARGUMENTS = {"isinstance": slice(1, 2), "issubclass": slice(1, 2), "typing.cast": slice(0, 1)}
"""Arguments that say which kind a value is."""


def _method_call(look: Look, node: ast.Call, func: ast.Attribute, scope: Scope) -> None:
    if func.attr in ATTRIBUTE_CALLS:
        calls.spelled(look, node, scope)
    if func.attr in ("format", "format_map"):
        for text in look.folder.texts(func.value, scope):
            _format(look, text, node.lineno)


_RULES_OF: dict[type[ast.AST], tuple[Callable[..., None], ...]] = {
    ast.Name: (_name,),
    ast.Attribute: (_attribute,),
    ast.Assign: (_assign, text_calls.kept),
    ast.AnnAssign: (_assign, _annotation),
    ast.arguments: (_defaults,),
    ast.arg: (_annotation,),
    ast.FunctionDef: (_returns,),
    ast.AsyncFunctionDef: (_returns,),
    ast.ClassDef: (_class,),
    ast.Compare: (_comparison,),
    ast.For: (text_calls.kept,),
    ast.Subscript: (_subscript, text_calls.index),
    ast.Import: (_imports,),
    ast.ImportFrom: (_imports_from,),
    ast.Constant: (_text,),
    ast.MatchClass: (_pattern,),
    ast.ExceptHandler: (_handler,),
    ast.Call: (_call,),
}
